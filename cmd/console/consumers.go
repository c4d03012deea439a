package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/access"
)

// consumerView is a consumer of a feed, with its shards.
type consumerView struct {
	Name, Feed    string
	ShardCount    int
	Shards        []cursorView
	Paused        int              // shards
	Failing       int              // shards that wait after a failure
	Failure       *rowfeed.Failure // of the shard that has failed for the longest time
	Target        string           // of a relay
	Processes     []string         // that work on a shard
	DeadLetters   int64
	Behind        *int64  // of the shard that is furthest behind; nil if unknown for all
	Seconds       float64 // likewise; -1 if unknown for all
	MayAdminister bool
}

// cursorView is the state of a shard of a consumer.
type cursorView struct {
	admin.ConsumerStatus
	Percent int // length of the bar
}

// State returns the text of the consumer's badge: the state of its shards that needs attention most.
func (c consumerView) State() string {
	shards := map[string]int{}
	for i := range c.Shards {
		shards[c.Shards[i].State()]++
	}
	switch {
	case shards["paused"] == len(c.Shards):
		return "paused"
	case shards["failing"] > 0:
		return "failing"
	case shards["paused"] > 0:
		return "partly paused"
	case shards["behind"] > 0:
		return "behind"
	case shards["unknown"] > 0:
		return "unknown"
	}
	return "ok"
}

// BehindSeconds returns nil if it is unknown for all shards.
func (c consumerView) BehindSeconds() *float64 {
	if c.Seconds < 0 {
		return nil
	}
	return &c.Seconds
}

// withheldFailure replaces the error of a handler if the token has a view: the error may contain keys and values that
// the view hides.
const withheldFailure = "The next entry cannot be handled. The error is hidden, because it may contain rows or " +
	"columns that your token must not see."

// shownFailure returns a failure as the identity may see it.
func shownFailure(who access.Identity, f rowfeed.Failure) rowfeed.Failure {
	if !who.View.IsZero() {
		f.Error = withheldFailure
	}
	return f
}

type consumersView struct {
	Consumers []consumerView
	One       string // the name, on the page of a single consumer
}

type consumerPages struct{ data Lists }

func (p consumerPages) all(q *request) (*answer, error) {
	all, err := p.groups(q.Context(), q.who, rowfeed.ConsumerID{})
	return &answer{template: "consumers", title: "Consumers", nav: "consumers",
		content: consumersView{Consumers: all}}, err
}

func (p consumerPages) one(q *request) (*answer, error) {
	all, err := p.groups(q.Context(), q.who, rowfeed.ConsumerID{Consumer: q.param})
	if err != nil {
		return nil, err
	}
	a := &answer{template: "consumer", title: q.param, nav: "consumers", content: consumersView{all, q.param}}
	if len(all) == 0 { // also if the identity may not see the consumer
		a.template, a.title, a.status = "error", "Not found", http.StatusNotFound
		a.content = errorView{"There is no such consumer",
			"No consumer " + shorten(q.param) + " has a cursor in this database, of a feed that you may see.",
			"A consumer appears here when it has read its first page.", "consumers", "Show the consumers"}
	}
	return a, nil
}

// groups returns the consumers that the identity may see, each with its shards.
func (p consumerPages) groups(ctx context.Context, who access.Identity, id rowfeed.ConsumerID) ([]consumerView, error) {
	all, err := p.data.Consumers(ctx, id)
	if err != nil {
		return nil, err
	}
	var groups []consumerView
	for _, s := range all {
		if !maySee(who, s.Feed) {
			continue
		}
		if s.Failure != nil {
			shown := shownFailure(who, *s.Failure)
			s.Failure = &shown
		}
		i := slices.IndexFunc(groups, func(g consumerView) bool { return g.Name == s.Consumer && g.Feed == s.Feed })
		if i < 0 {
			i = len(groups)
			groups = append(groups, consumerView{Name: s.Consumer, Feed: s.Feed, ShardCount: s.ShardCount, Seconds: -1,
				MayAdminister: who.May(access.Administer, s.Feed)})
		}
		groups[i].add(s)
	}
	for _, g := range groups {
		g.draw()
	}
	return groups, nil
}

func (c *consumerView) add(s admin.ConsumerStatus) {
	c.Shards = append(c.Shards, cursorView{ConsumerStatus: s})
	c.DeadLetters += s.DeadLetters
	if s.Paused {
		c.Paused++
	}
	if s.Failure != nil {
		c.Failing++
		if c.Failure == nil || s.Failure.Since.Before(c.Failure.Since) {
			c.Failure = s.Failure
		}
	}
	c.Target = cmp.Or(c.Target, s.Target)
	if s.Lease != nil && !slices.Contains(c.Processes, process(s.Lease.Owner)) {
		c.Processes = append(c.Processes, process(s.Lease.Owner))
	}
	if s.Behind != nil && (c.Behind == nil || *s.Behind > *c.Behind) {
		c.Behind = s.Behind
	}
	if s.BehindSeconds != nil {
		c.Seconds = max(c.Seconds, *s.BehindSeconds)
	}
}

// draw sets the length of each shard's bar in percent of the shard that is furthest behind. It compares entries, or
// seconds if entries are not counted.
func (c consumerView) draw() {
	for i, s := range c.Shards {
		part, all := 0.0, 0.0
		switch {
		case c.Behind != nil && s.Behind != nil:
			part, all = float64(*s.Behind), float64(*c.Behind)
		case c.Behind == nil && s.BehindSeconds != nil:
			part, all = *s.BehindSeconds, c.Seconds
		}
		if part > 0 && all > 0 {
			c.Shards[i].Percent = max(int(100*part/all), 1)
		}
	}
}
