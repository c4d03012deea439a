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

// maxBacklog bounds the count of waiting changes, because pages refresh it often.
const maxBacklog = 100_000

// feedState is the state of a feed.
type feedState struct {
	Name     string
	Info     *rowfeed.Info // nil if the feed cannot be described
	Waits    admin.Backlog
	ManyWait bool // the count has reached maxBacklog
	Problems []string
}

// states reads the states of feeds.
type states struct {
	data     Feeds
	problems func(feed string) []string
	log      *slog.Logger
}

// all returns the states of the feeds that the identity may see. hidden is true if there are other feeds.
func (x states) all(ctx context.Context, who access.Identity) (all []feedState, hidden bool, err error) {
	names, err := x.data.FeedNames(ctx)
	for _, name := range names {
		if !maySee(who, name) {
			hidden = true
			continue
		}
		s, err := x.of(ctx, name)
		if errors.Is(err, rowfeed.UnknownFeed) {
			continue // dropped concurrently
		}
		if err != nil {
			x.addProblem(ctx, &s, err)
		}
		all = append(all, s)
	}
	return all, hidden, err
}

// of returns the state of a feed. With an error, s has the parts that could be read.
func (x states) of(ctx context.Context, name string) (s feedState, err error) {
	s = feedState{Name: name, Problems: slices.Clone(x.problems(name))}
	if s.Info, err = x.data.Info(ctx, name); err != nil {
		return s, err
	}
	s.Waits, err = x.data.Backlog(ctx, name, maxBacklog)
	s.ManyWait = s.Waits.Waiting >= maxBacklog
	return s, err
}

// addProblem adds an error to the feed's problems, unless one of them contains it. It logs errors whose text the page
// does not show.
func (x states) addProblem(ctx context.Context, s *feedState, err error) {
	if feedhttp.Withheld(err) {
		x.log.ErrorContext(ctx, "feed cannot be shown", "feed", s.Name, "error", err)
	}
	problem := feedhttp.ProblemOf(err, s.Name).String()
	if !slices.ContainsFunc(s.Problems, func(known string) bool { return strings.Contains(known, problem) }) {
		s.Problems = append(s.Problems, problem)
	}
}
