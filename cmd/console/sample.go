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
	// pastFor is how long samples are kept for the plots, and pastEvery their distance. plot.js and sample.js have the
	// same values.
	pastFor   = 15 * time.Minute
	pastEvery = 10 * time.Second
)

// sampler keeps the last sample of all feeds, and samples of the last pastFor.
type sampler struct {
	states     states
	needsLogin bool          // requests without a login are refused
	lock       chan struct{} // full while a request reads the database; the others wait
	last       *samples
	past       []*samples // the oldest first
}

// samples has the numbers that the plots show.
type samples struct {
	At    int64         `json:"at"` // Unix milliseconds
	Feeds []sampledFeed `json:"feeds"`
}

// answeredSamples are the last sample, and earlier ones if the request asks for them.
type answeredSamples struct {
	*samples
	Past []*samples `json:"past,omitempty"`
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

// run takes samples until ctx ends.
func (s *sampler) run(ctx context.Context) {
	next := time.NewTicker(pastEvery)
	defer next.Stop()
	for {
		bounded, cancel := context.WithTimeout(ctx, sampleTimeout)
		_, _, _ = s.sampled(bounded) // without an answer of the database the plots have a gap
		cancel()
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
	}
}

// serve answers {"at":…,"feeds":[…]} with the feeds that the identity may see. With the parameter past it adds
// "past":[{"at":…,"feeds":[…]}], the oldest first.
func (s *sampler) serve(w http.ResponseWriter, r *http.Request) {
	who := access.From(r.Context())
	ctx, cancel := context.WithTimeout(r.Context(), sampleTimeout)
	defer cancel()
	status, body := http.StatusOK, any(nil)
	var last *samples
	var past []*samples
	var err error
	anonymous := s.needsLogin && who.Name == ""
	if !anonymous {
		last, past, err = s.sampled(ctx)
	}
	switch {
	case anonymous:
		status, body = http.StatusUnauthorized, map[string]string{"detail": "log in again"}
	case err != nil:
		p := feedhttp.ProblemOf(err, "")
		status, body = p.Status, map[string]string{"detail": p.String()}
	default:
		seen := answeredSamples{samples: last.seenBy(who)}
		if r.URL.Query().Has("past") {
			for _, p := range past {
				seen.Past = append(seen.Past, p.seenBy(who))
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

// seenBy returns the sample of the feeds that the identity may see.
func (x *samples) seenBy(who access.Identity) *samples {
	seen := &samples{At: x.At, Feeds: []sampledFeed{}}
	for _, f := range x.Feeds {
		if maySee(who, f.Name) {
			seen.Feeds = append(seen.Feeds, f)
		}
	}
	return seen
}

// sampled returns a sample of all feeds, and the past. It reuses the last sample for sampleFor, so that the number of
// browsers does not matter to the database.
func (s *sampler) sampled(ctx context.Context) (last *samples, past []*samples, err error) {
	select {
	case s.lock <- struct{}{}:
		defer func() { <-s.lock }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	if last = s.last; last != nil && time.Since(time.UnixMilli(last.At)) < sampleFor {
		return last, s.past, nil
	}
	states, _, err := s.states.all(ctx, access.Everyone())
	if err == nil {
		err = ctx.Err() // the request was cancelled: the sample may be incomplete
	}
	if err != nil {
		return nil, nil, err
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
	s.keep(found)
	return found, s.past, nil
}

// keep adds a sample to the past, unless the last one there is too new, and removes those that are too old. Readers may
// hold the slice: its elements do not change.
func (s *sampler) keep(x *samples) {
	// A sample's time varies with the time that the database needs.
	const least = int64((pastEvery - sampleFor) / time.Millisecond)
	if n := len(s.past); n > 0 && x.At-s.past[n-1].At < least {
		return
	}
	s.past = append(s.past, x)
	for x.At-s.past[0].At > int64(pastFor/time.Millisecond) {
		s.past = s.past[1:]
	}
}
