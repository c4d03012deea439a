package console

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/feedhttp"
)

// maxBacklog bounds the count of what waits: pages ask for it often.
const maxBacklog = 100_000

// feedState is how a feed stands.
type feedState struct {
	Name     string
	Info     *rowfeed.Info // nil where the feed cannot be described
	Waits    admin.Backlog
	ManyWait bool // at least so many
	Problems []string
}

type feedsView struct {
	Feeds     []feedRow
	Hidden    bool // there are others
	Waiting   int64
	ManyWait  bool
	Consumers int
}

type feedRow struct {
	feedState
	Consumers []consumerView
	Behind    *consumerView // who is furthest behind
}

func (h *Handler) feeds(q *request) (*answer, error) {
	if name := q.URL.Query().Get("feed"); name != "" { // where feeds once were
		return &answer{goTo: "feeds/" + strings.ReplaceAll(name, "/", "")}, nil
	}
	a := &answer{template: "feeds", title: "Feeds", nav: "feeds"}
	states, hidden, err := h.states(q.Context(), q.who)
	if err != nil {
		return nil, err
	}
	groups, err := h.groups(q.Context(), q.who, rowfeed.ConsumerID{})
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
	a.content = v
	return a, nil
}

// states are those of the feeds that who may see; hidden tells that there are others.
func (h *Handler) states(ctx context.Context, who access.Identity) (all []feedState, hidden bool, err error) {
	names, err := h.data.FeedNames(ctx)
	for _, name := range names {
		if !maySee(who, name) {
			hidden = true
			continue
		}
		s, err := h.state(ctx, name)
		if errors.Is(err, rowfeed.UnknownFeed) {
			continue // dropped meanwhile
		}
		if err != nil {
			h.note(ctx, &s, err)
		}
		all = append(all, s)
	}
	return all, hidden, err
}

// state is a feed's. With an error it still has what could be found.
func (h *Handler) state(ctx context.Context, name string) (s feedState, err error) {
	s = feedState{Name: name, Problems: slices.Clone(h.cfg.Problems(name))}
	if s.Info, err = h.data.Info(ctx, name); err != nil {
		return s, err
	}
	s.Waits, err = h.data.Backlog(ctx, name, maxBacklog)
	s.ManyWait = s.Waits.Waiting >= maxBacklog
	return s, err
}

// note puts an error among the feed's problems, unless one of them tells of it, and
// into the log what the page does not tell.
func (h *Handler) note(ctx context.Context, s *feedState, err error) {
	if feedhttp.Withheld(err) {
		h.cfg.Log.ErrorContext(ctx, "feed cannot be shown", "feed", s.Name, "error", err)
	}
	problem := feedhttp.ProblemOf(err, s.Name).String()
	if !slices.ContainsFunc(s.Problems, func(known string) bool { return strings.Contains(known, problem) }) {
		s.Problems = append(s.Problems, problem)
	}
}
