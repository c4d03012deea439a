// Package relay reads a feed and delivers it to a sink.
//
// It remembers how far it has come as a consumer does, in the table of cursors, and
// stores that after a delivery: each entry arrives at least once. A sink that keeps the
// cursor itself, in one transaction with the entries, gets each exactly once. Of each shard
// there is one batch under way at a time, so that the versions of a key arrive in order, and
// back-pressure needs no memory.
package relay

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/sink"
)

// Relay delivers a feed to a sink. Any number of processes may run one under the same
// name: one works, the others stand by; or, with shards, each has its share of them. Set
// the fields, then call Run or RunOnce.
type Relay struct {
	// Name is that of the consumer whose cursor the relay has: at most MaxName long,
	// otherwise as rowfeed.Consumer.Name.
	Name string
	// Source is what is read: a *rowfeed.Feed, or a feedhttp.Client.
	Source rowfeed.Source
	// DB is where cursor, lease and dead letters are. A sink.Transactional brings its own;
	// then it may be nil.
	DB *rowfeed.DB
	// Sink is what is delivered to. The relay does not close it.
	Sink sink.Sink
	// ShardCount is the number of shards, each with a cursor and a lease of its own, that
	// the instances share; 0 means as many as the relay has, which is one where it is new, and
	// Run and RunOnce put that number here. See rowfeed.Consumer.ShardCount. A
	// sink.Transactional has one: what a pass from the beginning did not bring it can tell of
	// the whole feed only. Where each shard of the feed is one by itself it is not told of
	// passes: such feeds are only appended to. When a cursor is refused it then ends,
	// whatever Restart says; or, where entries that a shard has not read were purged, that
	// shard rests.
	ShardCount int
	// KeepShardCount ends the relay with the code Conflict where its cursors are of another
	// number of shards, instead of dividing them anew. Run and RunOnce set it when they have
	// divided them: an instance does so once, when it is started, and not again when it has
	// waited for the lease, or lost it, or runs once more. Whoever changes ShardCount of a Relay
	// that has run sets it to false.
	KeepShardCount bool
	// Start is where a relay without a cursor begins: rowfeed.Beginning (the default),
	// Now, or At a time.
	Start rowfeed.Cursor
	// Limit is the greatest number of entries under way, of each shard. Default 500.
	Limit int
	// Wait is how long the source may keep a request waiting for an entry. Default
	// rowfeed.Consumer's.
	Wait time.Duration
	// Retry says how often an entry that the sink rejects is delivered again before it
	// counts as refused, and with which pauses. A sink that is away costs no attempts.
	Retry rowfeed.Retry
	// SetAside makes dead letters of keys whose entries are refused; otherwise the first
	// one ends the relay, or of several shards makes its own rest, see rowfeed.Stop.
	SetAside bool
	// Restart lets the relay begin again at the beginning when the source refuses its
	// cursor, as after a restored backup; otherwise that ends it. What the receiver has and
	// the feed has no more is then removed by a sink.Transactional; other receivers do not
	// hear of it.
	Restart bool
	// Lease is the ttl of the leases through which instances take turns, or share the
	// shards: for so long nothing is delivered, at most, after the one at work was killed.
	// Default 10 s.
	Lease time.Duration
	// Observe is told what happens. Default: nobody. What DB's Observer is told of
	// consumers, it is told of the relay's.
	Observe func(Event)

	// byShard: each shard of the feed is one by itself.
	byShard bool
}

// Event is something that happened to a relay.
type Event struct {
	Kind  Kind
	Relay string
	Feed  string
	Shard int
	Epoch int64  // of the shard's lease
	Owner string // of the lease; StandingBy
	// Batch, Accepted and Rejected are numbers of entries; Delivered.
	Batch, Accepted, Rejected int
	Took                      time.Duration // Delivered
	Err                       error         // Trouble; Delivered, unless all were accepted
}

// Kind is what an Event tells.
type Kind int

const (
	// Working: this instance has the lease, or that of the shard.
	Working Kind = iota
	// Delivered: the sink has answered for a batch.
	Delivered
	// Trouble is a failure that the relay survives.
	Trouble
	// StandingBy: another instance, the Owner, has the lease of a relay of one shard. Of
	// more the database's Observer is told.
	StandingBy
)

const (
	defaultLimit = 500
	defaultLease = 10 * time.Second
	// MaxName is how long a relay's name may be: that of its lease holds the feed's, too.
	MaxName = 54
)

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]*$`)

// Run delivers until ctx ends, then answers nil. It outlives databases, servers and
// receivers that go away. It ends with an error when the source refuses the cursor (see
// Restart), when the receiver refuses an entry (see SetAside), or when it cannot work at
// all.
func (r *Relay) Run(ctx context.Context) error {
	away := backoff.NewExponentialBackOff()
	away.InitialInterval, away.MaxInterval = 100*time.Millisecond, 10*time.Second
	for {
		err := r.run(ctx, false, away.Reset)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !passes(err):
			return r.explain(err)
		case err != nil:
			r.observe(Event{Kind: Trouble, Relay: r.Name, Err: err})
		}
		t := time.NewTimer(away.NextBackOff())
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}

// RunOnce delivers until the head of the moment is reached. It waits while another
// instance works, and says so (StandingBy), unless the relay is paused.
func (r *Relay) RunOnce(ctx context.Context) error {
	return r.explain(r.run(ctx, true, func() {}))
}

// explain says of a refused cursor what can be done about a relay's.
func (r *Relay) explain(err error) error {
	var e *rowfeed.Error
	if !errors.As(err, &e) || !errors.Is(err, rowfeed.CursorAhead) && !errors.Is(err, rowfeed.GenerationChanged) &&
		!errors.Is(err, rowfeed.TombstonesExpired) && !errors.Is(err, rowfeed.EntriesExpired) {
		return err
	}
	switch {
	case r.unswept() && e.Code == rowfeed.EntriesExpired:
		return &rowfeed.Error{Code: e.Code, Object: e.Object, Cause: e.Cause, Err: e.Err,
			Next: "run `rowfeed consumer reset " + r.Name +
				" --shard N` on the mirror's database to go on with what is kept; " +
				"the entries in between are only in the table"}
	case r.unswept():
		return &rowfeed.Error{Code: e.Code, Object: e.Object, Cause: e.Cause, Err: e.Err,
			Next: "empty the mirror's table and run `rowfeed consumer reset " + r.Name +
				"` on its database, then start again: nothing tells which of its rows the feed has lost, " +
				"and each of the feed's shards begins again by itself"}
	case !r.Restart && e.Code == rowfeed.EntriesExpired:
		return &rowfeed.Error{Code: e.Code, Object: e.Object, Cause: e.Cause, Err: e.Err,
			Next: "if the receiver may be sent again what is kept, start the relay with --restart (restart: " +
				"true in rowfeed.yaml); the entries in between are not told to it, and are only in the table"}
	case !r.Restart:
		return &rowfeed.Error{Code: e.Code, Object: e.Object, Cause: e.Cause, Err: e.Err,
			Next: "if the receiver may be sent every row again, start the relay with --restart (restart: " +
				"true in rowfeed.yaml); rows that are gone since are not told to it"}
	}
	return err
}

// unswept tells of a mirror that what a pass from the beginning does not bring is not removed
// from it: a feed whose shards are feeds by themselves is only appended to, and its shards pass
// one by one, while a mirror's rows do not tell whose they are.
func (r *Relay) unswept() bool { return r.byShard && r.transactional() }

// passes tells whether an error may end by itself.
func passes(err error) bool {
	for _, code := range []rowfeed.Code{
		rowfeed.Unavailable, rowfeed.Locked, rowfeed.Failed, rowfeed.LeaseLost, rowfeed.Sharding, rowfeed.Filling,
	} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

func (r *Relay) validate() error {
	invalid := func(param, cause, next string) error {
		return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: param, Object: fmt.Sprintf("relay %q", r.Name),
			Cause: cause, Next: next}
	}
	switch {
	case !namePattern.MatchString(r.Name) || len(r.Name) > MaxName:
		return invalid("name", "its name cannot be used",
			fmt.Sprintf("take a letter or digit, then up to %d of letters, digits, '_', '-', '.' and ':'", MaxName-1))
	case r.Source == nil || r.Sink == nil:
		return invalid("source", "source or sink are missing", "give both")
	case r.ShardCount > 1 && r.transactional():
		return invalid("shard count",
			"its sink can tell what a pass from the beginning did not bring of the whole feed only",
			"leave the number of shards at 1")
	case r.db() == nil:
		return invalid("db", "there is no database for its cursor", "give one")
	}
	return nil
}

func (r *Relay) transactional() bool {
	_, is := r.Sink.(sink.Transactional)
	return is
}

func (r *Relay) db() *rowfeed.DB {
	if t, ok := r.Sink.(sink.Transactional); ok {
		return t.DB()
	}
	return r.DB
}

func (r *Relay) observe(e Event) {
	if r.Observe != nil {
		r.Observe(e)
	}
}

// run divides the cursors, unless it has, takes the lease and works under it; of shards
// each has its own, which are the consumer's to take.
func (r *Relay) run(ctx context.Context, once bool, working func()) error {
	if err := r.validate(); err != nil {
		return err
	}
	info, err := r.Source.Info(ctx)
	if err != nil {
		return err
	}
	r.byShard = info.ShardIDs != nil
	if !r.KeepShardCount {
		if err := r.consumer(info.Name, 0).Divide(ctx); err != nil {
			return err
		}
		r.KeepShardCount = true
	}
	if r.ShardCount == 0 && !r.transactional() { // it cannot change from here on
		if r.ShardCount, err = r.shards(ctx, info.Name); err != nil {
			return err
		}
	}
	if r.ShardCount > 1 { // what passes the consumer outlives by itself
		return work(ctx, r.consumer(info.Name, 0), once)
	}
	return r.hold(ctx, info.Name, once, func(ctx context.Context, epoch int64) error {
		working()
		r.observe(Event{Kind: Working, Relay: r.Name, Feed: info.Name, Epoch: epoch})
		return work(ctx, r.consumer(info.Name, epoch), once)
	})
}

// shards is the number of shards that the relay has, 1 where it is new.
func (r *Relay) shards(ctx context.Context, feed string) (int, error) {
	return r.DB.Admin().ConsumerShardCount(ctx, r.Name, feed)
}

func work(ctx context.Context, c *rowfeed.Consumer, once bool) error {
	if once {
		return c.RunOnce(ctx)
	}
	return c.Run(ctx)
}

// consumer is the relay as the root package knows it.
func (r *Relay) consumer(feed string, epoch int64) *rowfeed.Consumer {
	c := &rowfeed.Consumer{Name: r.Name, Source: r.Source, DB: r.db(), Start: r.Start, Limit: r.Limit, Wait: r.Wait,
		Retry: r.Retry, Epoch: epoch,
		ShardCount: r.ShardCount, KeepShardCount: r.KeepShardCount, Lease: r.Lease, SoleLease: LeaseName(r.Name, feed)}
	if c.Limit == 0 {
		c.Limit = defaultLimit
	}
	if r.SetAside {
		c.OnFailure = rowfeed.SetAside
	}
	if r.Restart && !r.unswept() {
		c.OnRefused = func(context.Context, *sql.Tx, error) error { return nil }
	}
	if t, ok := r.Sink.(sink.Transactional); ok {
		if c.Handle = t.Apply; !r.unswept() {
			c.OnBegin, c.OnComplete = t.Begin, t.Complete
		}
		return c
	}
	rest, known := &quiet{}, &memory{}
	c.DeliverShard = func(shard int, epoch int64) func(context.Context, []rowfeed.Entry) ([]rowfeed.Refusal, error) {
		if r.ShardCount > 1 {
			r.observe(Event{Kind: Working, Relay: r.Name, Feed: feed, Shard: shard, Epoch: epoch})
		}
		return (&window{relay: r, feed: feed, shard: shard, epoch: epoch, memory: known, quiet: rest}).deliver
	}
	return c
}
