package rowfeed

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/history"
	"github.com/rowfeed/rowfeed/internal/lease"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Status is how a feed stands.
type Status struct {
	Name       string `json:"name"`
	Mode       string `json:"mode"`
	State      string `json:"state"`
	Capture    string `json:"capture"`
	Table      string `json:"table"`
	Generation int64  `json:"generation"`
	Backlog
	TombstonesBelow int64 `json:"tombstones_below"`
	// Vanished counts keys whose rows are gone without a delete; nil when counting took
	// too long (Check tells).
	Vanished *int64 `json:"vanished"`
	// Publisher is the lease through which publishers take turns; nil while none has it.
	Publisher *feedtype.LeaseStatus `json:"publisher"`
	// Shards are those of a feed with ULIDs, in ascending order, and HoldersTold says how much of
	// who has them the database tells; "" for other feeds.
	Shards      []ShardStatus `json:"shards"`
	HoldersTold string        `json:"holders_told"`
	Blockers    []Blocker     `json:"blockers"`
	// BlockersUnseen says what is not told of who holds changes back; nil where everything is.
	BlockersUnseen *Unseen  `json:"blockers_unseen"`
	Problems       []string `json:"problems"`
	// Consumers are those whose cursors are in this database, with how far they are behind.
	Consumers []admin.ConsumerStatus `json:"consumers"`
}

// Backlog is what waits for a feed's publisher, and how far it has come.
type Backlog struct {
	Head          int64      `json:"head"`            // 0 of a feed with ULIDs, whose shards each have one
	PublishedAt   *time.Time `json:"published_at"`    // when the head was last advanced
	Waiting       int64      `json:"changes_waiting"` // up to a limit, MaxWaiting in a Status; of a feed with an outbox its records
	OldestSeconds float64    `json:"oldest_seconds"`  // age of the oldest change waiting; 0 of rows that hold their positions, which do not tell
}

// Blocker is an open transaction that may hold back changes.
type Blocker struct {
	Session    string   `json:"session"`
	User       string   `json:"user"`
	Host       string   `json:"host"`
	AgeSeconds *float64 `json:"age_seconds"` // of the transaction; nil where nobody tells
	Statement  string   `json:"statement"`   // the current or last one; "" where nobody tells
	Scope      string   `json:"scope"`       // what is known of it
}

// Unseen is what a database, or the rights of rowfeed's login, keep from being told.
type Unseen struct {
	Cause string `json:"cause"` // what is not told, and why
	Next  string `json:"next"`  // what to run, or to do, so that it is
}

const (
	// MaxWaiting bounds the count of changes waiting.
	MaxWaiting = 1_000_000
	// vanishedBudget bounds the count of vanished rows, which reads the whole feed.
	vanishedBudget = 2 * time.Second
)

// Status tells how the feed stands, and who holds it up.
func (f *Feed) Status(ctx context.Context) (*Status, error) {
	unread := f.catalog.Reload(ctx)
	if unread != nil && !errors.Is(unread, catalog.ErrUnreadable) {
		return nil, unread
	}
	r := f.catalog.Record.Load()
	s := &Status{Name: r.Name, Mode: r.Mode, State: r.State, Capture: string(r.Capture), Table: r.Source.String(),
		Generation: r.Generation, TombstonesBelow: r.TombstonesBelow, Shards: []ShardStatus{}, Blockers: []Blocker{}, Problems: []string{}}
	fail := func(doing string, err error) (*Status, error) {
		return nil, f.db.store.Fail(feedtype.FeedObject(f.name), doing, err)
	}
	if unread != nil {
		s.Problems = append(s.Problems, unread.Error())
		return s, nil
	}

	if err := f.mode().status(ctx, f, s); err != nil {
		return nil, err
	}
	publisher, err := lease.Look(ctx, f.db.store, f.db.store.On(), PublisherLease(f.name))
	if err != nil {
		return fail("look who publishes", err)
	}
	if lease.Held(publisher) {
		s.Publisher = publisher
	}
	blockers, unseen, err := f.Blockers(ctx)
	if err != nil {
		return nil, err
	}
	s.BlockersUnseen = unseen
	for _, x := range blockers {
		if !slices.ContainsFunc(s.Blockers, func(known Blocker) bool { return known.Session == x.Session }) { // of whom more is known
			s.Blockers = append(s.Blockers, x)
		}
	}
	problems, err := f.Verify(ctx)
	if err != nil {
		problems = []string{err.Error()}
	}
	if identity, err := f.db.store.Dialect.Identity(ctx, f.db.store.On(), f.db.store.Names); err == nil {
		if err := history.SameDatabase(r, identity); err != nil {
			problems = append(problems, err.Error())
		}
	}
	if fresh, err := f.VerifyPartitions(ctx); err == nil {
		problems = append(problems, fresh...)
	}
	if parts, err := f.VerifyParts(ctx); err == nil && parts != "" {
		problems = append(problems, parts)
	}
	s.Problems = append(s.Problems, problems...)
	if r.State == catalog.StateSharding {
		s.Problems = append(s.Problems, "parts of it are not served: "+catalog.FinishSharding(f.name, r.DataShards))
	}
	if s.Consumers, err = f.db.Admin().Consumers(ctx, feedtype.ConsumerID{Feed: f.name}); err != nil {
		return fail("read its consumers' cursors", err)
	}
	return s, nil
}

// Blockers are the open transactions that may hold back changes of the feed, as far as the
// database tells, and what it does not tell of them, nil where that is nothing; who has a shard of a
// feed with ULIDs is told by Shards.
func (f *Feed) Blockers(ctx context.Context) ([]Blocker, *Unseen, error) {
	found, unseen, err := f.db.store.Dialect.Blockers(ctx, f.db.store.On(), f.catalog.DialectFeed())
	if err != nil && f.db.store.Dialect.Classify(err) != dialect.ClassUndefined {
		return nil, nil, f.db.store.Fail(feedtype.FeedObject(f.name), "look for open transactions", err)
	}
	all := make([]Blocker, len(found))
	for i, x := range found {
		all[i] = Blocker{x.Session, x.User, x.Host, ageSeconds(x.AgeMicros), x.Statement, x.Scope}
	}
	return all, (*Unseen)(unseen), nil
}

// ageSeconds is an age that may not be known.
func ageSeconds(micros int64) *float64 {
	if micros < 0 {
		return nil
	}
	s := store.Seconds(micros)
	return &s
}
