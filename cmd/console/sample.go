package console

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/feedhttp"
)

const (
	// sampleFor is how long a sample is reused for all browsers.
	sampleFor     = time.Second
	sampleTimeout = 5 * time.Second
)

// sampler keeps the last sample of all feeds.
type sampler struct {
	states     states
	needsLogin bool          // requests without a login are refused
	lock       chan struct{} // full while a request reads the database; the others wait
	last       *samples
}

// samples has the numbers that the plots show.
type samples struct {
	At    int64         `json:"at"` // Unix milliseconds
	Feeds []sampledFeed `json:"feeds"`
}

type sampledFeed struct {
	Name    string  `json:"name"`
	Head    string  `json:"head"` // "" if the feed has no numeric head
	Waiting int64   `json:"waiting"`
	Oldest  float64 `json:"oldest_seconds"`
}

func newSampler(states states, needsLogin bool) *sampler {
	return &sampler{states: states, needsLogin: needsLogin, lock: make(chan struct{}, 1)}
}

// serve answers {"at":…,"feeds":[…]} with the feeds that the identity may see.
func (s *sampler) serve(w http.ResponseWriter, r *http.Request) {
	who := access.From(r.Context())
	ctx, cancel := context.WithTimeout(r.Context(), sampleTimeout)
	defer cancel()
	status, body := http.StatusOK, any(nil)
	var all *samples
	var err error
	anonymous := s.needsLogin && who.Name == ""
	if !anonymous {
		all, err = s.sampled(ctx)
	}
	switch {
	case anonymous:
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
	data, _ := json.Marshal(body) // strings and numbers: no error
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(data)
	}
}

// sampled returns a sample of all feeds. It reuses the last sample for sampleFor, so that the number of browsers does
// not matter to the database.
func (s *sampler) sampled(ctx context.Context) (*samples, error) {
	select {
	case s.lock <- struct{}{}:
		defer func() { <-s.lock }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if last := s.last; last != nil && time.Since(time.UnixMilli(last.At)) < sampleFor {
		return last, nil
	}
	states, _, err := s.states.all(ctx, access.Everyone())
	if err == nil {
		err = ctx.Err() // the request was cancelled: the sample may be incomplete
	}
	if err != nil {
		return nil, err
	}
	found := &samples{At: time.Now().UnixMilli()}
	for _, x := range states {
		f := sampledFeed{Name: x.Name, Waiting: x.Waits.Waiting, Oldest: x.Waits.OldestSeconds}
		if x.Info != nil && x.Info.ShardIDs == nil {
			f.Head = headOf(x.Info.Head)
		}
		found.Feeds = append(found.Feeds, f)
	}
	s.last = found
	return found, nil
}
