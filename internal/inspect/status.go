package inspect

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
	"github.com/rowfeed/rowfeed/internal/install"
	"github.com/rowfeed/rowfeed/internal/lease"
	"github.com/rowfeed/rowfeed/internal/publish"
	"github.com/rowfeed/rowfeed/internal/read"
	"github.com/rowfeed/rowfeed/internal/shards"
	"github.com/rowfeed/rowfeed/internal/store"
)

// inspector tells how one feed stands: what waits, who is in the way, and how far its consumers are behind.
type Inspector struct {
	*catalog.Feed
	Install *install.Feed
	Reader  *read.Reader
	ULIDs   *shards.Shards
	// Consumers tells how consumers stand.
	Consumers func(ctx context.Context, id feedtype.ConsumerID) ([]admin.ConsumerStatus, error)
}

// Status tells how the feed stands, and who holds it up.
func (f *Inspector) Status(ctx context.Context) (*admin.Status, error) {
	unread := f.Reload(ctx)
	if unread != nil && !errors.Is(unread, catalog.ErrUnreadable) {
		return nil, unread
	}
	r := f.Record.Load()
	s := &admin.Status{Name: r.Name, Mode: r.Mode, State: r.State, Capture: string(r.Capture), Table: r.Source.String(),
		Generation: r.Generation, TombstonesBelow: r.TombstonesBelow, Shards: []admin.ShardStatus{}, Blockers: []admin.Blocker{}, Problems: []string{}}
	fail := func(doing string, err error) (*admin.Status, error) {
		return nil, f.Fail(doing, err)
	}
	if unread != nil {
		s.Problems = append(s.Problems, unread.Error())
		return s, nil
	}

	view, err := viewOf(r)
	if err == nil {
		err = view.status(ctx, f, s)
	}
	if err != nil {
		return nil, err
	}
	publisher, err := lease.Look(ctx, f.Store, f.Store.On(), publish.LeaseName(f.Name))
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
		if !slices.ContainsFunc(s.Blockers, func(known admin.Blocker) bool { return known.Session == x.Session }) { // of whom more is known
			s.Blockers = append(s.Blockers, x)
		}
	}
	problems, err := f.Install.Verify(ctx)
	if err != nil {
		problems = []string{err.Error()}
	}
	if identity, err := f.Store.Dialect.Identity(ctx, f.Store.On(), f.Store.Names); err == nil {
		if err := history.SameDatabase(r, identity); err != nil {
			problems = append(problems, err.Error())
		}
	}
	if fresh, err := f.Install.Partitions.VerifyPartitions(ctx); err == nil {
		problems = append(problems, fresh...)
	}
	if parts, err := f.VerifyParts(ctx); err == nil && parts != "" {
		problems = append(problems, parts)
	}
	s.Problems = append(s.Problems, problems...)
	if r.State == catalog.StateSharding {
		s.Problems = append(s.Problems, "parts of it are not served: "+catalog.FinishSharding(f.Name, r.DataShards))
	}
	if s.Consumers, err = f.Consumers(ctx, feedtype.ConsumerID{Feed: f.Name}); err != nil {
		return fail("read its consumers' cursors", err)
	}
	return s, nil
}

// Blockers are the open transactions that may hold back changes of the feed, as far as the
// database tells, and what it does not tell of them, nil where that is nothing; who has a shard of a
// feed with ULIDs is told by Shards.
func (f *Inspector) Blockers(ctx context.Context) ([]admin.Blocker, *admin.Unseen, error) {
	found, unseen, err := f.Store.Dialect.Blockers(ctx, f.Store.On(), f.DialectFeed())
	if err != nil && f.Store.Dialect.Classify(err) != dialect.ClassUndefined {
		return nil, nil, f.Fail("look for open transactions", err)
	}
	all := make([]admin.Blocker, len(found))
	for i, x := range found {
		all[i] = admin.Blocker{Session: x.Session, User: x.User, Host: x.Host, AgeSeconds: ageSeconds(x.AgeMicros), Statement: x.Statement, Scope: x.Scope}
	}
	return all, (*admin.Unseen)(unseen), nil
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
func (f *Inspector) Backlog(ctx context.Context, limit int) (admin.Backlog, error) {
	if limit <= 0 || limit > admin.MaxWaiting {
		limit = admin.MaxWaiting
	}
	view, err := viewOf(f.Record.Load())
	if err != nil {
		return admin.Backlog{}, err
	}
	return view.backlog(ctx, f, limit)
}

// backlog reads the sequence, and counts changes.
func (sequenceView) backlog(ctx context.Context, f *Inspector, limit int) (found admin.Backlog, err error) {
	b := dialect.NewBuilder(f.Store.Dialect)
	var updated, age int64
	err = dialect.QueryRow(ctx, f.Store.On(), "SELECT value, updated_at FROM "+f.Store.Table("sequences")+
		" WHERE name = "+b.Arg(f.Name), b.Args(), &found.Head, &updated)
	if err != nil {
		return found, f.Fail("read its sequence", err)
	}
	if found.Head > 0 {
		at := time.UnixMicro(updated).UTC()
		found.PublishedAt = &at
	}
	// The table may be gone: the rest is still worth knowing.
	// In a transaction, for its settings: without them a plan that was made while most
	// rows waited reads the whole table when none does.
	err = f.Store.InTx(ctx, dialect.ForRead, "count what waits in "+f.Name, func(tx dialect.Querier) (err error) {
		found.Waiting, age, err = f.Store.Dialect.Backlog(ctx, tx, f.DialectFeed(), limit)
		return err
	})
	if err != nil && f.Store.Dialect.Classify(err) != dialect.ClassUndefined {
		return found, f.Fail("count the changes waiting", err)
	}
	found.OldestSeconds = store.Seconds(age)
	return found, nil
}

// status adds to that of the shards what waits in the outbox, and since when.
func (m outboxView) status(ctx context.Context, f *Inspector, s *admin.Status) (err error) {
	if err := m.ulidView.status(ctx, f, s); err != nil {
		return err
	}
	s.Backlog, err = m.backlog(ctx, f, admin.MaxWaiting)
	return err
}

// backlog counts records.
func (outboxView) backlog(ctx context.Context, f *Inspector, limit int) (b admin.Backlog, err error) {
	var age int64
	err = f.Read(ctx, "count the records", func(q dialect.Querier) (err error) {
		b.Waiting, age, err = f.Store.Dialect.Backlog(ctx, q, f.DialectFeed(), limit)
		return err
	})
	if err != nil && f.Store.Dialect.Classify(err) != dialect.ClassUndefined {
		return b, f.Fail("count the records waiting", err)
	}
	b.OldestSeconds = store.Seconds(max(age, 0))
	return b, nil
}
