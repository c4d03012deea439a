// Package conform finds out whether a server speaks the protocol of docs/PROTOCOL.md. It only
// reads, and shares no code with what it judges.
package conform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Options say which server is tried.
type Options struct {
	URL   string // without /_feeds
	Feed  string // default: the first that the server lists
	Token string // sent as bearer token, where it is not empty
	// MaxEntries bounds how much of the feed is read. Default 2000.
	MaxEntries int
	// Only are the numbers of the checks to try. Default: all.
	Only []string
	// Patience is how long an answer may take that need not wait. Default 5 s.
	Patience time.Duration
	// Hold is for how long the head is waited at, a minute at most. Default 600 ms.
	Hold time.Duration
	// Tries is how often something is looked at that a writer may have come between. Default 3.
	Tries int
	// HTTP sends the requests. Default: a client of its own.
	HTTP *http.Client
}

// The results of a check.
const (
	Passed  = "passed"
	Failed  = "failed"  // a MUST does not hold
	Differs = "differs" // a SHOULD does not hold
	Untried = "untried" // the feed has nothing to show it by
)

// Result is what became of a check.
type Result struct {
	Check    string `json:"check"` // the number of the sentence
	Level    string `json:"level"` // MUST or SHOULD
	Sentence string `json:"sentence"`
	Result   string `json:"result"`
	Detail   string `json:"detail,omitempty"`
}

// check proves a sentence of the protocol.
type check struct {
	number, sentence string
	try              func(context.Context, *probe) error
}

// level is that of the word in the sentence.
func (c check) level() string {
	if strings.Contains(c.sentence, "SHOULD") {
		return "SHOULD"
	}
	return "MUST"
}

// checks are all, in the order of the protocol.
func checks() []check {
	return slices.Concat(ofFeeds(), ofPages(), ofCursors(), ofShards(), ofWaiting(), ofStreams(), ofProblems(),
		ofForms(), ofCaches(), ofCodings())
}

// untried is why a sentence cannot be shown by this feed.
type untried string

func (u untried) Error() string { return string(u) }

// Run tries every check. The error is one of a server that cannot be asked at all.
func Run(ctx context.Context, o Options) ([]Result, error) {
	p, err := newProbe(ctx, o)
	if err != nil {
		return nil, err
	}
	defer p.http.CloseIdleConnections()
	var results []Result
	for _, c := range checks() {
		if len(o.Only) > 0 && !slices.Contains(o.Only, c.number) {
			continue
		}
		r := Result{Check: c.number, Level: c.level(), Sentence: c.sentence, Result: Passed}
		for range cmp.Or(o.Tries, defaultTries) {
			if err = c.try(ctx, p); err == nil {
				break
			}
		}
		var nothing untried
		switch {
		case ctx.Err() != nil:
			return results, ctx.Err()
		case errors.As(err, &nothing):
			r.Result, r.Detail = Untried, string(nothing)
		case err != nil && r.Level == "SHOULD":
			r.Result, r.Detail = Differs, err.Error()
		case err != nil:
			r.Result, r.Detail = Failed, err.Error()
		}
		results = append(results, r)
	}
	return results, nil
}

// with is a query of pairs, on top of what every page of the feed is asked for with.
func (p *probe) with(pairs ...string) url.Values {
	query := url.Values{}
	for name, values := range p.scope {
		query[name] = slices.Clone(values)
	}
	for i := 0; i < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	return query
}

func ofFeeds() []check {
	return []check{
		{"1.1", "`GET /_feeds` MUST answer a JSON object whose member feeds lists the feeds, each with its name.",
			func(ctx context.Context, p *probe) error {
				names, err := p.list(ctx)
				if err == nil && !slices.Contains(names, p.feed) {
					err = fmt.Errorf("%q is not listed", p.feed)
				}
				return err
			}},
		{"1.2", "`GET /_feeds/{feed}` MUST answer a JSON object with the feed's name, mode, generation, head, key, " +
			"columns, base64 and data_shards.", func(ctx context.Context, p *probe) error {
			members := map[string]any{}
			if err := p.json(ctx, "/_feeds/"+url.PathEscape(p.feed), nil, &members); err != nil {
				return err
			}
			for _, name := range []string{
				"name", "mode", "generation", "head", "key", "columns", "base64", "data_shards",
			} {
				if members[name] == nil {
					return fmt.Errorf("%s is missing", name)
				}
			}
			if members["name"] != p.feed {
				return fmt.Errorf("the name is %v", members["name"])
			}
			return nil
		}},
	}
}
