package shards

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/gap"
	"github.com/rowfeed/rowfeed/internal/history"
	"github.com/rowfeed/rowfeed/internal/publish"
	"github.com/rowfeed/rowfeed/internal/store"
	"github.com/rowfeed/rowfeed/internal/watch"
)

func NewULIDRandom() (random dialect.ULIDRandom) {
	rand.Read(random[:])
	return random
}

const (
	// leastMoved is how many records a reader's transaction moves at least, where so many wait:
	// those behind its page cost next to nothing now, and the next page a transaction.
	leastMoved = 500
	// mostMoved bounds one transaction, which keeps other movers of the shard waiting.
	MostMoved = 5000
)

// movement is what a moving transaction did.
type movement struct {
	records    int               // that were moved
	taken      int               // that were read
	seqs       []int64           // the order_sequences of those that were moved last
	last       int64             // the order_sequence of the last one read
	stuck      []int64           // those of records that cannot be placed
	generation int64             // of the feed as it was known then
	given      feedtype.Position // the highest that may have been given
	took       time.Duration
}

// outboxQueue moves the records of one feed's outbox: it gives them ULIDs, in the order in which they were written. It is
// the Positioner of such a feed, and fills shards for its readers.
type Outbox struct {
	*catalog.Feed
	History *history.History
	Watch   *watch.Watcher
	Gaps    *gap.Tracker

	queue retryQueue // see Pass
}

// Pending is the first record.
func (f *Outbox) Pending() string {
	r := f.Record.Load()
	return dialect.FirstRecords(f.Store.Dialect, r.Feed(f.Store.Names), f.Gaps.Since(r.Generation))
}

// Fill moves records of a shard for a reader that has come to its end. That there are any its
// page has told, without a lock; the transaction is one of its own, and has no snapshot of then.
func (f *Outbox) Fill(ctx context.Context, shard, limit int) (stuck bool, err error) {
	moved, err := f.moveInTime(ctx, f.Gaps.ScanShard(), shard, max(limit, leastMoved))
	if !errors.Is(err, publish.ErrStuck) {
		return false, err
	}
	if moved.records > 0 {
		return false, nil // the page is read again; the one at the end says so
	}
	f.tellStuck(err)
	return true, nil
}

// moveInTime moves up to limit of a shard's records, for somebody who may wait for the shard.
func (f *Outbox) moveInTime(ctx context.Context, l gap.Scan, shard, limit int) (movement, error) {
	moved, err := f.move(ctx, l, shard, limit, atOnce)
	if errors.Is(err, publish.ErrHeld) {
		moved, err = f.move(ctx, l, shard, limit, inTime)
	}
	return moved, err
}

// move moves up to limit of a shard's records, among those that a look is for, in one transaction: under the lock of the
// shard, so that records stand in the order in which they were written, whoever moves them.
// The error is errHeld where the shard is not to be had within bounds, and
// errStuck, beside what was moved, where a record stays: it names the first.
func (f *Outbox) move(ctx context.Context, l gap.Scan, shard, limit int, bounds dialect.LockBounds) (movement, error) {
	return f.moveBut(ctx, l, shard, nil, min(limit, MostMoved), bounds)
}

// moveBut moves records but some that cannot be placed. Where the table of places does not take the
// key of another one, halves are tried, in their order, down to that record. Each try begins at the
// shard's first record: what was committed late meanwhile is not to come behind what was written after that.
func (f *Outbox) moveBut(ctx context.Context, l gap.Scan, shard int, stuck []int64, limit int, bounds dialect.LockBounds) (movement, error) {
	all, err := f.moveOnce(ctx, l, shard, stuck, limit, bounds)
	switch {
	case !errors.Is(err, publish.ErrStuck):
		return all, err
	case all.taken == 1:
		all.stuck = []int64{all.last}
		return all, f.unplaceable(shard, all.last, err)
	}
	first, failed := f.moveBut(ctx, l, shard, stuck, all.taken/2, bounds)
	if failed != nil && !errors.Is(failed, publish.ErrStuck) {
		return first, failed
	}
	rest, err := f.moveBut(ctx, l, shard, slices.Concat(stuck, first.stuck), all.taken-all.taken/2, bounds)
	rest.records, rest.taken, rest.last, rest.took = rest.records+first.records, rest.taken+first.taken, max(rest.last, first.last), rest.took+first.took
	rest.stuck = slices.Concat(first.stuck, rest.stuck)
	if err != nil && !errors.Is(err, publish.ErrStuck) {
		return rest, err
	}
	return rest, cmp.Or(failed, err)
}

// moveOnce is one moving transaction, with what follows from it.
func (f *Outbox) moveOnce(ctx context.Context, l gap.Scan, shard int, stuck []int64, limit int, bounds dialect.LockBounds) (moved movement, err error) {
	started := time.Now()
	ctx, end := feedtype.StartSpan(ctx, f.Store.Tracer, feedtype.Span{Op: feedtype.SpanPublish, Feed: f.Name, Shard: shard})
	defer func() { end(feedtype.SpanEnd{Entries: moved.records, Err: err}) }()
	for attempt, raised := 1, false; ; attempt++ {
		err = f.Store.InTx(ctx, dialect.ForMove, "move records of "+f.Name, func(tx dialect.Querier) (err error) {
			moved, err = f.moveBatch(ctx, tx, l, shard, stuck, limit, bounds, raised)
			return err
		})
		if errors.Is(err, errKeyAbove) && attempt < store.MaxAttempts {
			raised = true
			continue
		}
		if attempt > 1 || !errors.Is(err, feedtype.DatabaseChanged) {
			break
		}
		if err := f.Reload(ctx); err != nil { // the record in hand may be older than a bump
			return movement{}, err
		}
	}
	switch {
	case errors.Is(err, store.ErrNothing):
		return movement{}, nil
	case errors.Is(err, publish.ErrStuck):
		return movement{taken: moved.taken, last: moved.last}, err
	case errors.Is(err, publish.ErrHeld):
		return movement{}, f.heldError("records of it wait, and are not to be moved", whyHeld(err), shard)
	case f.Store.Dialect.Classify(err) == dialect.ClassPermission:
		return movement{}, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.Name), Cause: "records wait in its outbox, and this login may not move them", Err: err,
			Next: "run `rowfeed publish " + f.Name + "` or `rowfeed serve` with another login, and readers like this one with --no-publish"}
	case err != nil:
		f.Gaps.Scanned(l, 0, nil, false, err)
		return movement{}, f.Explain(ctx, "move records of its outbox", err)
	}
	f.Gaps.Scanned(l, moved.generation, moved.seqs, false, nil)
	moved.took = time.Since(started)
	generation := f.Generation()
	f.History.IsDurable(shard, feedtype.CursorState{Generation: generation, Position: moved.given})
	f.History.Saw(shard, generation, moved.given)
	f.Watch.Tell(watch.Key{Feed: f.Name, OfShard: true, Shard: shard}, watch.Standing{Generation: generation, Head: moved.given})
	f.Store.Observer.Published(feedtype.PublishEvent{Feed: f.Name, Changes: moved.records, Keys: moved.records, Generation: generation, Took: moved.took})
	return moved, nil
}

// errKeyAbove means that some keys have higher places in other shards than they would get:
// the batch is moved again, above those.
var errKeyAbove = errors.New("keys of it have higher positions in other shards")

// moveBatch is the moving transaction; package DESIGN.md gives the reasons for the order of
// its steps. Raised has it look for the places that the keys have.
func (f *Outbox) moveBatch(ctx context.Context, tx dialect.Querier, l gap.Scan, shard int, stuck []int64, limit int, bounds dialect.LockBounds, raised bool) (movement, error) {
	d, r := f.Store.Dialect, f.Record.Load()
	feed := r.Feed(f.Store.Names)
	state, err := f.lockToMove(ctx, tx, shard, bounds)
	if err != nil {
		return movement{}, err
	}
	// A statement of its own behind the lock: it sees what the mover before has left.
	records, err := dialect.TakeRecords(ctx, tx, d, feed, shard, l.In(r.Generation), stuck, limit)
	if err == nil && len(records) == 0 {
		err = store.ErrNothing
	}
	if err != nil {
		return movement{}, err
	}
	from, last := state.ULIDState, records[len(records)-1].Seq
	if raised {
		highest, err := dialect.HighestPlace(ctx, tx, d, feed, shard, records[0].Seq, last)
		if err != nil {
			return movement{}, err
		}
		from = from.Past(highest)
	}
	places, next, err := takePlaces(records, from, time.UnixMicro(state.Now))
	if err == nil {
		err = f.beside(ctx, tx, func() error { return givePlaces(ctx, tx, d, feed, shard, places) })
	}
	if err == nil && state.ULIDState == (dialect.ULIDState{}) {
		err = f.LivesFrom(ctx, tx, shard, places[0].Position)
	}
	if err == nil {
		err = d.AdvanceShard(ctx, tx, feed, state, next, state.Witness)
	}
	return movement{records: len(places), taken: len(records), seqs: seqsOf(places), last: last, generation: r.Generation, given: next.Given()}, err
}

// lockToMove locks a shard in the database that the feed is in, which was not set back.
func (f *Outbox) lockToMove(ctx context.Context, tx dialect.Querier, shard int, bounds dialect.LockBounds) (state dialect.Shard, err error) {
	d, r := f.Store.Dialect, f.Record.Load()
	if err := f.History.AssertDurable(ctx, tx); err != nil {
		return state, err
	}
	identity, err := d.Identity(ctx, tx, f.Store.Names)
	if err != nil {
		return state, err
	}
	floor := f.History.Highest(shard)
	state, err = d.LockShard(ctx, tx, r.Feed(f.Store.Names), shard, bounds)
	if d.Classify(err) == dialect.ClassLockTimeout {
		err = fmt.Errorf("%w: %w", publish.ErrHeld, err)
	}
	if err != nil {
		return state, err
	}
	return state, cmp.Or(history.SameDatabase(r, identity), f.History.NotSetBack(floor, r.Generation, state.Given()))
}

// takePlaces are the ULIDs that records get, in their order: of the times of their hints,
// where the shard has not come to later ones.
func takePlaces(records []dialect.Record, from dialect.ULIDState, now time.Time) (places []dialect.Moved, next dialect.ULIDState, err error) {
	next = from
	for _, record := range records {
		hint := now.UnixMilli()
		if record.HintMillis != nil {
			hint = min(*record.HintMillis, hint) // the writer is gone: nobody could be refused
		}
		var first dialect.ULIDState
		if first, next, err = next.Take(hint, NewULIDRandom(), 1); err != nil {
			return nil, next, err
		}
		places = append(places, dialect.Moved{Seq: record.Seq, Position: first.Position()})
	}
	return places, next, nil
}

// givePlaces gives records their places, and takes them out of the outbox.
func givePlaces(ctx context.Context, tx dialect.Querier, d dialect.Dialect, feed *dialect.Feed, shard int, places []dialect.Moved) error {
	kept, err := d.PlaceRecords(ctx, tx, feed, shard, places)
	switch {
	case d.Classify(err) == dialect.ClassInvalid:
		return fmt.Errorf("%w: %w", publish.ErrStuck, err)
	case err != nil:
		return err
	case kept > 0:
		return errKeyAbove
	}
	seqs := seqsOf(places)
	n, err := d.DeleteRecords(ctx, tx, feed, seqs)
	if err != nil || n == int64(len(seqs)) {
		return err
	}
	kept, err = dialect.PlacedElsewhere(ctx, tx, d, feed, shard, seqs[0], seqs[len(seqs)-1])
	switch {
	case err != nil:
		return err
	case kept > 0:
		return errKeyAbove
	}
	return fmt.Errorf("deleted %d of the %d records read: a ULID is taken already, or somebody else deletes from %s", n, len(seqs), feed.Records())
}

// seqsOf are the order_sequences of records that have places.
func seqsOf(places []dialect.Moved) []int64 {
	seqs := make([]int64, len(places))
	for i, p := range places {
		seqs[i] = p.Seq
	}
	return seqs
}

// Pass moves up to limit records of every shard in which some wait. A shard that cannot be
// had keeps none of the others: it is left in line, and the error is errHeld. Where
// nothing is left but records that cannot be placed it is errStuck.
func (f *Outbox) Pass(ctx context.Context, limit int, full bool) (feedtype.PublishEvent, error) {
	l := f.Gaps.Scan(ctx)
	r := f.Record.Load()
	e, among := feedtype.PublishEvent{Feed: f.Name, Generation: r.Generation}, l.In(r.Generation)
	if !full && !l.Settles() {
		waiting, err := f.Store.Dialect.HasRecords(ctx, f.Store.On(), r.Feed(f.Store.Names), among)
		if err != nil || !waiting {
			f.Gaps.Scanned(l, r.Generation, nil, true, err)
			return e, f.Explain(ctx, "look into its outbox", err)
		}
	}
	shards, err := recordShards(ctx, f.Feed, among, 0)
	if err != nil {
		f.Gaps.Scanned(l, r.Generation, nil, false, err)
		return e, f.Explain(ctx, "look into its outbox", err)
	}
	due, left := f.queue.sorted(shards)
	all := len(left) == 0
	var failed, stuck error
	for _, shard := range due {
		moved, err := f.move(ctx, l.OfShard(), shard, limit, atOnce)
		// What was left of it, up to that number, is in other shards.
		all = all && err == nil && (moved.taken < min(limit, MostMoved) || moved.last >= l.Settled)
		if ctx.Err() != nil {
			return e, err
		}
		if f.queue.tried(shard, err); errors.Is(err, publish.ErrHeld) {
			left = append(left, shard)
			continue
		}
		if errors.Is(err, publish.ErrStuck) {
			stuck, err = cmp.Or(stuck, err), nil
		}
		failed = cmp.Or(failed, err)
		e.Changes, e.Keys, e.Took = e.Changes+moved.records, e.Keys+moved.records, max(e.Took, moved.took)
	}
	f.Gaps.Scanned(l, r.Generation, nil, all, nil)
	if failed != nil && e.Changes > 0 { // what has failed is tried again by the next pass
		f.Trouble(failed)
		failed = nil
	}
	if failed == nil && e.Changes == 0 { // till then there may be more to move
		failed = stuck
	}
	if failed == nil && len(left) > 0 {
		failed = f.heldError("records of it wait, and are not to be moved", f.queue.why(left[0]), left...)
	}
	return e, failed
}

// recordShards are the first shards in which records wait, among some numbers; limit 0: all.
func recordShards(ctx context.Context, f *catalog.Feed, among dialect.Seqs, limit int) (shards []int, err error) {
	err = f.Read(ctx, "look into the outbox", func(q dialect.Querier) (err error) {
		shards, err = dialect.RecordShards(ctx, q, f.Store.Dialect, f.DialectFeed(), among, limit)
		return err
	})
	return shards, err
}

// CatchUp moves the records of a shard that are visible now. Those of a transaction that
// is open now, and commits them below the last of these meanwhile, are taken along; those
// behind it are not waited for, however fast others write. The shard is waited for as long
// as somebody asks.
func (f *Outbox) CatchUp(ctx context.Context, shard int) error {
	var newest int64
	err := f.Read(ctx, "look into the outbox", func(q dialect.Querier) (err error) {
		newest, err = dialect.NewestRecord(ctx, q, f.Store.Dialect, f.DialectFeed(), shard)
		return err
	})
	if err != nil {
		return f.Explain(ctx, "look into its outbox", err)
	}
	for last := int64(0); last < newest; {
		l := f.Gaps.ScanShard().Everywhere() // whatever is visible, also where no look of a publisher goes
		moved, err := f.moveInTime(ctx, l, shard, MostMoved)
		if errors.Is(err, publish.ErrHeld) && ctx.Err() == nil {
			continue
		}
		if errors.Is(err, publish.ErrStuck) { // it is no entry
			f.tellStuck(err)
			err = nil
		}
		if err != nil || moved.records == 0 {
			return err
		}
		last = moved.last
	}
	return nil
}

// livesFrom settles where the live part of a shard begins, once and for all: at the first ULID that is given in it, with
// the shard locked. The least place tells it no more when that has moved to the head, or was purged.
func (f *Outbox) LivesFrom(ctx context.Context, tx dialect.Querier, shard int, first feedtype.Position) error {
	b := dialect.NewBuilder(f.Store.Dialect)
	_, err := tx.Exec(ctx, "UPDATE "+f.Store.Table("shards")+" SET live_from = "+b.Arg(int64(first.High>>16))+
		" WHERE feed = "+b.Arg(f.Name)+" AND shard = "+b.Arg(shard), b.Args()...)
	return err
}
