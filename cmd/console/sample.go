package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/feedhttp"
)

const (
	// sampleFor is for how long a sample serves all browsers that ask.
	sampleFor     = time.Second
	sampleTimeout = 5 * time.Second
)

// sampler keeps the last sample of all feeds.
type sampler struct {
	turn chan struct{} // holds one: who looks; the others take what was found
	last *samples
}

// samples are the numbers that plots are drawn of.
type samples struct {
	At    int64         `json:"at"` // Unix milliseconds
	Feeds []sampledFeed `json:"feeds"`
}

type sampledFeed struct {
	Name    string  `json:"name"`
	Head    string  `json:"head"` // "" where it is no number that grows
	Waiting int64   `json:"waiting"`
	Oldest  float64 `json:"oldest_seconds"`
}

func newSampler() sampler { return sampler{turn: make(chan struct{}, 1)} }

// sample answers {"at":…,"feeds":[…]} of the feeds that may be seen.
func (h *Handler) sample(w http.ResponseWriter, r *http.Request) {
	who := access.From(r.Context())
	ctx, cancel := context.WithTimeout(r.Context(), sampleTimeout)
	defer cancel()
	status, body := http.StatusOK, any(nil)
	var all *samples
	var err error
	stranger := h.cfg.Login != nil && who.Name == ""
	if !stranger { // for whom the database is not asked
		all, err = h.sampled(ctx)
	}
	switch {
	case stranger:
		status, body = http.StatusUnauthorized, map[string]string{"detail": "log in again"}
	case err != nil:
		p := feedhttp.ProblemOf(err, "")
		status, body = p.Status, map[string]string{"detail": p.String()}
	default:
		seen := samples{At: all.At, Feeds: []sampledFeed{}}
		for _, f := range all.Feeds {
			if maySee(who, f.Name) {
				seen.Feeds = append(seen.Feeds, f)
			}
		}
		body = seen
	}
	data, _ := json.Marshal(body) // strings and numbers
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(data)
	}
}

// sampled looks at all feeds, unless somebody did a moment ago: many browsers are no more
// work for the database than one.
func (h *Handler) sampled(ctx context.Context) (*samples, error) {
	select {
	case h.sampler.turn <- struct{}{}:
		defer func() { <-h.sampler.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if last := h.sampler.last; last != nil && time.Since(time.UnixMilli(last.At)) < sampleFor {
		return last, nil
	}
	states, _, err := h.states(ctx, access.Everyone())
	if err == nil {
		err = ctx.Err() // who asked has gone: what was found is not all, and not for others
	}
	if err != nil {
		return nil, err
	}
	found := &samples{At: time.Now().UnixMilli()}
	for _, s := range states {
		f := sampledFeed{Name: s.Name, Waiting: s.Waits.Waiting, Oldest: s.Waits.OldestSeconds}
		if s.Info != nil && s.Info.ShardIDs == nil {
			f.Head = cmp.Or(string(s.Info.Head), "0")
		}
		found.Feeds = append(found.Feeds, f)
	}
	h.sampler.last = found
	return found, nil
}
