package operate

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
	"github.com/rowfeed/rowfeed/internal/store"
	"github.com/rowfeed/rowfeed/internal/ulidfeed"
)

// Inspector answers the questions of admin.Inspector about one feed.
type Inspector struct {
	*catalog.Feed
	Install *install.Feed
	Reader  *read.Reader
	ULIDs   *ulidfeed.Shards
	// Consumers is admin.Admin.Consumers.
	Consumers func(ctx context.Context, id feedtype.ConsumerID) ([]admin.ConsumerStatus, error)
}

// Status is admin.Inspector.Status.
func (f *Inspector) Status(ctx context.Context) (*admin.Status, error) {
	unread := f.Reload(ctx)
	if unread != nil && !errors.Is(unread, catalog.ErrUnreadable) {
		return nil, unread
	}
	r := f.Record.Load()
	s := &admin.Status{Name: r.Name, Failure: r.Failure, Mode: r.Mode, State: r.State, Capture: string(r.Capture),
		Table:      r.Source.String(),
		Generation: r.Generation, TombstonesBelow: r.TombstonesBelow, Shards: []admin.ShardStatus{},
		Blockers: []admin.Blocker{}, Problems: []string{}}
	fail := func(doing string, err error) (*admin.Status, error) {
		return nil, f.Fail(doing, err)
	}
	if unread != nil {
		s.Problems = append(s.Problems, unread.Error())
		return s, nil
	}

	kind, err := kindOf(r)
	if err == nil {
		err = kind.status(ctx, f, s)
	}
	if err != nil {
		return nil, err
	}
	publisher, err := lease.Read(ctx, f.Store, f.Store.On(), publish.LeaseName(f.Name))
	if err != nil {
		return fail("read the lease of its publisher", err)
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
		if !slices.ContainsFunc(s.Blockers, func(known admin.Blocker) bool { return known.Session == x.Session }) {
			s.Blockers = append(s.Blockers, x)
		}
	}
	problems, err := f.Install.Verifier.Verify(ctx)
	if err != nil {
		problems = []string{err.Error()}
	}
	if identity, err := f.Store.Dialect.Identity(ctx, f.Store.On(), f.Store.Names); err == nil && r.ULIDs != nil {
		if err := history.SameDatabase(r, identity); err != nil {
			problems = append(problems, err.Error())
		}
	}
	if fresh, err := f.Install.Partitions.VerifyPartitions(ctx); err == nil {
		problems = append(problems, fresh...)
	}
	if foreign, err := f.Install.Verifier.Foreign(ctx); err == nil {
		problems = append(problems, foreign...)
	}
	if outside, err := f.Install.Verifier.OutsideShards(ctx); err == nil && outside != "" {
		problems = append(problems, outside)
	}
	if parts, err := f.VerifyParts(ctx); err == nil && parts != "" {
		problems = append(problems, parts)
	}
	if nulls, err := f.Install.Verifier.NullKeys(ctx); err == nil && nulls != "" {
		problems = append(problems, nulls+"; "+giveKeys)
	}
	s.Problems = append(s.Problems, problems...)
	if r.State == catalog.StateMoving {
		s.Problems = append(s.Problems, "its positions are being moved out of the rows: "+install.FinishMoving(f.Name))
	}
	if r.State == catalog.StateSharding {
		s.Problems = append(s.Problems, "parts of the feed are not served: "+
			catalog.FinishSharding(f.Name, r.DataShards))
	}
	if s.Consumers, err = f.Consumers(ctx, feedtype.ConsumerID{Feed: f.Name}); err != nil {
		return fail("read its consumers' cursors", err)
	}
	return s, nil
}

// Blockers is admin.Inspector.Blockers. Shards reports the holders of shards.
func (f *Inspector) Blockers(ctx context.Context) ([]admin.Blocker, *admin.Unseen, error) {
	found, unseen, err := f.Store.Dialect.Blockers(ctx, f.Store.On(), f.DialectFeed())
	if err != nil && f.Store.Dialect.Classify(err) != dialect.ClassUndefined {
		return nil, nil, f.Fail("look for open transactions", err)
	}
	all := make([]admin.Blocker, len(found))
	for i, x := range found {
		all[i] = admin.Blocker{Session: x.Session, User: x.User, Host: x.Host, AgeSeconds: ageSeconds(x.AgeMicros),
			Statement: x.Statement, Scope: x.Scope}
	}
	return all, (*admin.Unseen)(unseen), nil
}

// ageSeconds converts an age; a negative one is not known.
func ageSeconds(micros int64) *float64 {
	if micros < 0 {
		return nil
	}
	s := store.Seconds(micros)
	return &s
}

// Backlog is admin.Inspector.Backlog.
func (f *Inspector) Backlog(ctx context.Context, limit int) (admin.Backlog, error) {
	if limit <= 0 || limit > admin.MaxWaiting {
		limit = admin.MaxWaiting
	}
	kind, err := kindOf(f.Record.Load())
	if err != nil {
		return admin.Backlog{}, err
	}
	return kind.backlog(ctx, f, limit)
}

// backlog reads the sequence and its term, and counts changes.
func (sequenceKind) backlog(ctx context.Context, f *Inspector, limit int) (found admin.Backlog, err error) {
	var updated, age int64
	var term feedtype.Term
	var since *int64
	err = dialect.One(ctx, f.Store.On(), f.Store.Dialect.Syntax, f.Statement(statements, "sequence"),
		dialect.Args{"feed": f.Name}, &found.Head, &updated, &term, &since)
	if f.Record.Load().PublishedElsewhere &&
		(errors.Is(err, store.ErrNoRows) || err != nil && f.Store.Dialect.Classify(err) == dialect.ClassUndefined) {
		err = nil // a problem of the status says that the sequence is gone
	}
	if err != nil {
		return found, f.Fail("read its sequence", err)
	}
	if term != 0 {
		found.Term = term.String()
		if since != nil {
			at := time.UnixMicro(*since).UTC()
			found.TermSince = &at
		}
	}
	if found.Head > 0 && updated > 0 {
		at := time.UnixMicro(updated).UTC()
		found.PublishedAt = &at
	}
	// A transaction ForRead has settings for the planner. Without them a plan that was made while most rows waited
	// reads the whole table when none waits. A missing table is ignored, since the rest of the answer is still useful.
	err = f.Store.InTx(ctx, dialect.ForRead, "count what waits in "+f.Name, func(tx dialect.Querier) (err error) {
		found.Waiting, age, err = f.Store.Dialect.Backlog(ctx, tx, f.DialectFeed(), limit)
		return err
	})
	if err != nil && f.Store.Dialect.Classify(err) != dialect.ClassUndefined {
		return found, f.Fail("count its waiting changes", err)
	}
	found.OldestSeconds = store.Seconds(age)
	return found, nil
}

// status adds the backlog of the outbox to the status of the shards.
func (m outboxKind) status(ctx context.Context, f *Inspector, s *admin.Status) (err error) {
	if err := m.ulidKind.status(ctx, f, s); err != nil {
		return err
	}
	s.Backlog, err = m.backlog(ctx, f, admin.MaxWaiting)
	return err
}

// backlog counts records.
func (outboxKind) backlog(ctx context.Context, f *Inspector, limit int) (b admin.Backlog, err error) {
	var age int64
	err = f.Read(ctx, "count the records", func(q dialect.Querier) (err error) {
		b.Waiting, age, err = f.Store.Dialect.Backlog(ctx, q, f.DialectFeed(), limit)
		return err
	})
	if err != nil && f.Store.Dialect.Classify(err) != dialect.ClassUndefined {
		return b, f.Fail("count its waiting records", err)
	}
	b.OldestSeconds = store.Seconds(max(age, 0))
	return b, nil
}
