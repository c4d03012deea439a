package console

import (
	"context"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/access"
)

type feedsView struct {
	Feeds     []feedRow
	Problems  []problemView
	Hidden    bool // there are feeds that the identity may not see
	Waiting   int64
	ManyWait  bool
	Consumers int
}

type feedRow struct {
	feedState
	Consumers []consumerView
	Behind    *consumerView // the consumer that is furthest behind
}

type feedsPage struct {
	states    states
	consumers consumerPages
}

func (p feedsPage) show(q *request) (*answer, error) {
	if name := q.URL.Query().Get("feed"); name != "" { // an older URL of a feed's page
		return &answer{redirect: "feeds/" + strings.ReplaceAll(name, "/", "")}, nil
	}
	a := &answer{template: "feeds", title: "Feeds", nav: "feeds"}
	states, hidden, err := p.states.all(q.Context(), q.who)
	if err != nil {
		return nil, err
	}
	groups, err := p.consumers.groups(q.Context(), q.who, rowfeed.ConsumerID{})
	if err != nil {
		return nil, err
	}
	v := feedsView{Hidden: hidden, Consumers: len(groups)}
	for _, s := range states {
		row := feedRow{feedState: s}
		for _, g := range groups {
			if g.Feed != s.Name {
				continue
			}
			if row.Consumers = append(row.Consumers, g); row.Behind == nil || g.Seconds > row.Behind.Seconds {
				row.Behind = &g
			}
		}
		v.Waiting += s.Waits.Waiting
		v.ManyWait = v.ManyWait || s.ManyWait
		v.Feeds = append(v.Feeds, row)
	}
	v.Problems, err = p.problems(q.Context(), q.who, states)
	a.content = v
	return a, err
}

// problemView is a problem of a feed, or what keeps failing.
type problemView struct {
	admin.Failing
	Text string // of a problem that has no Failure
}

// problems lists what is wrong with feeds, and what keeps failing. A problem of a feed that its publisher's failure
// tells is listed once.
func (p feedsPage) problems(ctx context.Context, who access.Identity, states []feedState) ([]problemView, error) {
	failing, err := p.consumers.data.Failing(ctx)
	if err != nil {
		return nil, err
	}
	var all []problemView
	for _, f := range failing {
		if !maySee(who, f.Feed) {
			continue
		}
		f.Failure = shownFailure(who, f.Failure)
		all = append(all, problemView{Failing: f})
	}
	for _, s := range states {
		for _, text := range s.Problems {
			if !slices.ContainsFunc(failing, func(f admin.Failing) bool {
				return f.Kind == admin.KindPublisher && f.Feed == s.Name && strings.Contains(f.Error, text)
			}) {
				all = append(all, problemView{admin.Failing{Kind: "feed", Feed: s.Name}, text})
			}
		}
	}
	return all, nil
}
