package console

import "time"

// SetPast sets the samples that the handler has kept for its plots: n of them up to now, pastEvery apart. of returns
// the feed's head and its number of waiting changes in sample i.
func (h *Handler) SetPast(n int, feed string, of func(i int) (head string, waiting int64)) {
	first := time.Now().Add(-time.Duration(n) * pastEvery)
	for i := range n {
		head, waiting := of(i)
		h.sample.past = append(h.sample.past, &samples{At: first.Add(time.Duration(i) * pastEvery).UnixMilli(),
			Feeds: []sampledFeed{{Name: feed, Head: head, Waiting: waiting}}})
	}
}
