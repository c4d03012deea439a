package rowfeed

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/history"
	"github.com/rowfeed/rowfeed/internal/lease"
	"github.com/rowfeed/rowfeed/internal/store"
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

// Backlog tells what waits for the feed's publisher: what of Status costs little, for whoever
// asks now and then, as metrics do. Changes are counted up to limit; 0 means MaxWaiting.
func (f *Feed) Backlog(ctx context.Context, limit int) (Backlog, error) {
	if limit <= 0 || limit > MaxWaiting {
		limit = MaxWaiting
	}
	return f.mode().backlog(ctx, f, limit)
}

// backlog reads the sequence, and counts changes.
func (sequenced) backlog(ctx context.Context, f *Feed, limit int) (found Backlog, err error) {
	b := dialect.NewBuilder(f.db.store.Dialect)
	var updated, age int64
	err = dialect.QueryRow(ctx, f.db.store.On(), "SELECT value, updated_at FROM "+f.db.store.Table("sequences")+
		" WHERE name = "+b.Arg(f.name), b.Args(), &found.Head, &updated)
	if err != nil {
		return found, f.db.store.Fail(feedtype.FeedObject(f.name), "read its sequence", err)
	}
	if found.Head > 0 {
		at := time.UnixMicro(updated).UTC()
		found.PublishedAt = &at
	}
	// The table may be gone: the rest is still worth knowing.
	// In a transaction, for its settings: without them a plan that was made while most
	// rows waited reads the whole table when none does.
	err = f.db.store.InTx(ctx, dialect.ForRead, "count what waits in "+f.name, func(tx dialect.Querier) (err error) {
		found.Waiting, age, err = f.db.store.Dialect.Backlog(ctx, tx, f.catalog.DialectFeed(), limit)
		return err
	})
	if err != nil && f.db.store.Dialect.Classify(err) != dialect.ClassUndefined {
		return found, f.db.store.Fail(feedtype.FeedObject(f.name), "count the changes waiting", err)
	}
	found.OldestSeconds = store.Seconds(age)
	return found, nil
}

// status adds to that of the shards what waits in the outbox, and since when.
func (m outbox) status(ctx context.Context, f *Feed, s *Status) (err error) {
	if err := m.blocking.status(ctx, f, s); err != nil {
		return err
	}
	s.Backlog, err = m.backlog(ctx, f, MaxWaiting)
	return err
}

// backlog counts records.
func (outbox) backlog(ctx context.Context, f *Feed, limit int) (b Backlog, err error) {
	var age int64
	err = f.reading(ctx, "count the records", func(q dialect.Querier) (err error) {
		b.Waiting, age, err = f.db.store.Dialect.Backlog(ctx, q, f.catalog.DialectFeed(), limit)
		return err
	})
	if err != nil && f.db.store.Dialect.Classify(err) != dialect.ClassUndefined {
		return b, f.db.store.Fail(feedtype.FeedObject(f.name), "count the records waiting", err)
	}
	b.OldestSeconds = store.Seconds(max(age, 0))
	return b, nil
}
