package console

import (
	"context"
	"errors"
	"log/slog"
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

// states tells how feeds stand.
type states struct {
	data     Feeds
	problems func(feed string) []string
	log      *slog.Logger
}

// all answers the states of the feeds that who may see; hidden tells that there are others.
func (x states) all(ctx context.Context, who access.Identity) (all []feedState, hidden bool, err error) {
	names, err := x.data.FeedNames(ctx)
	for _, name := range names {
		if !maySee(who, name) {
			hidden = true
			continue
		}
		s, err := x.of(ctx, name)
		if errors.Is(err, rowfeed.UnknownFeed) {
			continue // dropped meanwhile
		}
		if err != nil {
			x.addProblem(ctx, &s, err)
		}
		all = append(all, s)
	}
	return all, hidden, err
}

// of answers the state of a feed. With an error it still has what could be found.
func (x states) of(ctx context.Context, name string) (s feedState, err error) {
	s = feedState{Name: name, Problems: slices.Clone(x.problems(name))}
	if s.Info, err = x.data.Info(ctx, name); err != nil {
		return s, err
	}
	s.Waits, err = x.data.Backlog(ctx, name, maxBacklog)
	s.ManyWait = s.Waits.Waiting >= maxBacklog
	return s, err
}

// addProblem puts an error among the feed's problems, unless one of them tells of it, and
// into the log what the page does not tell.
func (x states) addProblem(ctx context.Context, s *feedState, err error) {
	if feedhttp.Withheld(err) {
		x.log.ErrorContext(ctx, "feed cannot be shown", "feed", s.Name, "error", err)
	}
	problem := feedhttp.ProblemOf(err, s.Name).String()
	if !slices.ContainsFunc(s.Problems, func(known string) bool { return strings.Contains(known, problem) }) {
		s.Problems = append(s.Problems, problem)
	}
}
