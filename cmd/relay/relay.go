// Package relay reads a feed and delivers it to a sink.
//
// A relay is a consumer: its cursor is in the table of cursors. It stores the cursor after a delivery, so each entry
// arrives at least once. A sink that stores the cursor itself, in one transaction with the entries, gets each entry
// exactly once. Each shard delivers one batch at a time. So the versions of a key arrive in order, and a slow sink
// does not make the relay buffer entries.
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

// Relay delivers a feed to a sink. Any number of processes may run a relay under the same name. With one shard, one
// process works and the others stand by. With several shards, each process works on its share of them. Set the
// fields, then call Run or RunOnce.
type Relay struct {
	// Name is the name of the relay's consumer: at most MaxName bytes, otherwise as rowfeed.Consumer.Name.
	Name string
	// Source is the feed to read: a *rowfeed.Feed, or a feedhttp.Client.
	Source rowfeed.Source
	// DB is the database of cursor, lease and dead letters. It may be nil for a sink.Transactional, which has its
	// own.
	DB *rowfeed.DB
	// Sink is where entries are delivered. The relay does not close it.
	Sink sink.Sink
	// ShardCount is the number of shards, each with a cursor and a lease of its own, that the instances share. 0
	// means the number that the relay already has, or 1 for a new relay; Run and RunOnce then store that number here.
	// See rowfeed.Consumer.ShardCount.
	//
	// With a sink.Transactional it must be 0 or 1: such a sink can only tell for the whole feed what a pass from the
	// beginning did not bring. If its feed is a ULID feed, which is append-only, the relay does not call the sink's
	// Begin and Complete. Such a relay ends if its cursor is refused, whatever Restart says. If entries that a shard
	// has not read were purged, that shard rests.
	ShardCount int
	// KeepShardCount makes the relay end with the code Conflict if its cursors are of another shard count, instead of
	// changing them. Run and RunOnce set it after they have changed the shard count. So an instance changes it once,
	// when it starts, and not again after it has waited for the lease, has lost the lease, or runs again. Set it to
	// false if you change the ShardCount of a Relay that has run.
	KeepShardCount bool
	// Start is where a relay without a cursor begins: rowfeed.Beginning (the default),
	// Now, or At a time.
	Start rowfeed.Cursor
	// Limit is the maximum number of entries that a shard delivers at a time. Default 500.
	Limit int
	// Wait is the maximum time that the source may hold a request while it has no entry. Default: that of
	// rowfeed.Consumer.
	Wait time.Duration
	// Retry says how often, and with which pauses, an entry that the sink rejects is delivered again before it counts
	// as refused. Attempts with an unavailable sink do not count.
	Retry rowfeed.Retry
	// SetAside stores keys whose entries are refused as dead letters. Otherwise the first refused entry ends the
	// relay. With several shards only its own shard rests, see rowfeed.Stop.
	SetAside bool
	// Restart lets the relay begin again at the beginning if the source refuses its cursor, for example after a
	// restored backup. Otherwise the relay ends. A sink.Transactional then removes the rows that the feed no longer
	// has. Other receivers are not told of such rows.
	Restart bool
	// Lease is the time to live of the leases by which instances take turns, or share the shards. It is the maximum
	// time without deliveries after the working instance was killed. Default 10 s.
	Lease time.Duration
	// Target says where Sink delivers, for operators. It is stored with the cursor, so it must not have a password.
	Target string
	// Observe, if set, is called when something happens. The Observer of DB gets the events of the relay's consumer.
	Observe func(Event)

	// byShard means that the feed is a ULID feed: each shard has an order of its own.
	byShard bool
}

// Event is something that happened to a relay.
type Event struct {
	Kind  Kind
	Relay string
	Feed  string
	Shard int
	Epoch int64  // of the lease of the relay or the shard
	Owner string // of the lease, for StandingBy
	// Batch, Accepted and Rejected are numbers of entries, for Delivered.
	Batch, Accepted, Rejected int
	Took                      time.Duration // for Delivered
	Err                       error         // for Trouble; for Delivered unless all entries were accepted
}

// Kind is the kind of an Event.
type Kind int

const (
	// Working means that this instance has acquired the lease of the relay or of the shard.
	Working Kind = iota
	// Delivered means that the sink has returned the results of a batch.
	Delivered
	// Trouble is a failure that the relay survives.
	Trouble
	// StandingBy means that another instance, Owner, holds the lease of a relay with one shard. For several shards
	// the database's Observer gets JobEvents.
	StandingBy
)

const (
	defaultLimit = 500
	defaultLease = 10 * time.Second
	// MaxName is the maximum length of a relay's name, in bytes. The name of its lease also contains the feed's name.
	MaxName = 54
)

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]*$`)

// Run delivers until ctx ends, and then returns nil. It survives databases, servers and receivers that are
// unavailable. It returns an error if the source refuses the cursor (see Restart), if the receiver refuses an entry
// (see SetAside), or if it cannot work at all.
func (r *Relay) Run(ctx context.Context) error {
	pauses := newPauses()
	for {
		started := time.Now()
		err := r.run(ctx, false)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !passes(err):
			return r.explain(err)
		case err != nil:
			r.observe(Event{Kind: Trouble, Relay: r.Name, Err: err})
		}
		t := time.NewTimer(pauses.after(time.Since(started)))
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}

// pauses are between two runs of a relay.
type pauses struct{ *backoff.ExponentialBackOff }

func newPauses() pauses {
	p := pauses{backoff.NewExponentialBackOff()}
	p.InitialInterval, p.MaxInterval = 100*time.Millisecond, 10*time.Second
	return p
}

// after returns the pause after a run. It becomes longer from run to run, until a run takes longer than any pause:
// acquiring the lease is no progress if the receiver then refuses every entry.
func (p pauses) after(run time.Duration) time.Duration {
	if run > p.MaxInterval {
		p.Reset()
	}
	return p.NextBackOff()
}

// RunOnce delivers up to the head of the feed at that time. While another instance works, it waits and reports
// StandingBy, unless the relay is paused.
func (r *Relay) RunOnce(ctx context.Context) error {
	return r.explain(r.run(ctx, true))
}

// explain adds to the error of a refused cursor what the operator of a relay can do.
func (r *Relay) explain(err error) error {
	var e *rowfeed.Error
	if !errors.As(err, &e) || !errors.Is(err, rowfeed.CursorAhead) && !errors.Is(err, rowfeed.HistoryLost) &&
		!errors.Is(err, rowfeed.GenerationChanged) &&
		!errors.Is(err, rowfeed.TombstonesExpired) && !errors.Is(err, rowfeed.EntriesExpired) {
		return err
	}
	switch {
	case r.unswept() && e.Code == rowfeed.EntriesExpired:
		return &rowfeed.Error{Code: e.Code, Object: e.Object, Cause: e.Cause, Err: e.Err,
			Next: "run `rowfeed consumer reset " + r.Name +
				" --shard N` on the mirror's database to continue with the entries that are kept; " +
				"the mirror misses the entries that were removed before it got them: their rows are only in the table"}
	case r.unswept():
		return &rowfeed.Error{Code: e.Code, Object: e.Object, Cause: e.Cause, Err: e.Err,
			Next: "empty the mirror's table and run `rowfeed consumer reset " + r.Name +
				"` on its database, then start again: the mirror cannot tell which of its rows the feed no longer " +
				"has, " +
				"because each of the feed's shards begins again by itself"}
	case !r.Restart && e.Code == rowfeed.EntriesExpired:
		return &rowfeed.Error{Code: e.Code, Object: e.Object, Cause: e.Cause, Err: e.Err,
			Next: "if the receiver may get all kept entries again, start the relay with --restart (restart: " +
				"true in rowfeed.yaml); it misses the entries that were removed before it got them: their rows are " +
				"only in the table"}
	case !r.Restart:
		return &rowfeed.Error{Code: e.Code, Object: e.Object, Cause: e.Cause, Err: e.Err,
			Next: "if the receiver may get every row again, start the relay with --restart (restart: " +
				"true in rowfeed.yaml); it does not get the deletes of rows that are gone since"}
	}
	return err
}

// unswept tells whether a mirror keeps rows that a pass from the beginning does not bring. That is so for a ULID
// feed: it is append-only, its shards make their passes separately, and the rows of a mirror do not tell which shard
// they belong to.
func (r *Relay) unswept() bool { return r.byShard && r.transactional() }

// passes tells whether an error is temporary.
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
			fmt.Sprintf("use a letter or digit, then up to %d of letters, digits, '_', '-', '.' and ':'", MaxName-1))
	case r.Source == nil || r.Sink == nil:
		return invalid("source", "source or sink are missing", "give both")
	case r.ShardCount > 1 && r.transactional():
		return invalid("shard count",
			"its sink can only find rows that the feed no longer has if one shard reads the whole feed",
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

// run sets the shard count, unless it has done so before, acquires the lease and works under it. The consumer
// acquires the leases of several shards.
func (r *Relay) run(ctx context.Context, once bool) error {
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
	if r.ShardCount == 0 && !r.transactional() { // it no longer changes
		if r.ShardCount, err = r.shards(ctx, info.Name); err != nil {
			return err
		}
	}
	if r.ShardCount > 1 { // the consumer survives temporary errors by itself
		return work(ctx, r.consumer(info.Name, 0), once)
	}
	return r.hold(ctx, info.Name, once, func(ctx context.Context, epoch int64) error {
		r.observe(Event{Kind: Working, Relay: r.Name, Feed: info.Name, Epoch: epoch})
		return work(ctx, r.consumer(info.Name, epoch), once)
	})
}

// shards returns the number of shards of the relay, or 1 for a new relay.
func (r *Relay) shards(ctx context.Context, feed string) (int, error) {
	return r.DB.Admin().ConsumerShardCount(ctx, r.Name, feed)
}

func work(ctx context.Context, c *rowfeed.RelayConsumer, once bool) error {
	if once {
		return c.RunOnce(ctx)
	}
	return c.Run(ctx)
}

// consumer returns the consumer of the relay.
func (r *Relay) consumer(feed string, epoch int64) *rowfeed.RelayConsumer {
	c := &rowfeed.RelayConsumer{
		Consumer: rowfeed.Consumer{Name: r.Name, Source: r.Source, DB: r.db(), ShardCount: r.ShardCount,
			Options: rowfeed.ConsumerOptions{
				Start: r.Start, Limit: r.Limit, Wait: r.Wait, Lease: r.Lease, Retry: r.Retry,
			}},
		Epoch: epoch, SoleLease: LeaseName(r.Name, feed), KeepShardCount: r.KeepShardCount,
		Target: r.Target,
	}
	if c.Options.Limit == 0 {
		c.Options.Limit = defaultLimit
	}
	if r.SetAside {
		c.OnFailure = rowfeed.SetAside
	}
	if r.Restart && !r.unswept() {
		c.Options.OnRefused = func(context.Context, *sql.Tx, error) error { return nil }
	}
	if t, ok := r.Sink.(sink.Transactional); ok {
		if c.Handle = t.Apply; !r.unswept() {
			c.Options.OnBegin, c.Options.OnComplete = t.Begin, t.Complete
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
