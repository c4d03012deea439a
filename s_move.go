package rowfeed

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/history"
	"github.com/rowfeed/rowfeed/internal/store"
	"github.com/rowfeed/rowfeed/internal/watch"
)

func newULIDRandom() (random dialect.ULIDRandom) {
	rand.Read(random[:])
	return random
}

const (
	// leastMoved is how many records a reader's transaction moves at least, where so many wait:
	// those behind its page cost next to nothing now, and the next page a transaction.
	leastMoved = 500
	// mostMoved bounds one transaction, which keeps other movers of the shard waiting.
	mostMoved = 5000
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

// fill moves records of a shard for a reader that has come to its end. That there are any its
// page has told, without a lock; the transaction is one of its own, and has no snapshot of then.
func (m outbox) fill(ctx context.Context, f *Feed, shard, limit int) error {
	moved, err := m.moveInTime(ctx, f, f.glance(), shard, max(limit, leastMoved))
	if errors.Is(err, errUnplaceable) && moved.records > 0 {
		return nil // the page is read again; the one at the end says so
	}
	return err
}

// moveInTime moves up to limit of a shard's records, for somebody who may wait for the shard.
func (m outbox) moveInTime(ctx context.Context, f *Feed, l lookout, shard, limit int) (movement, error) {
	moved, err := m.move(ctx, f, l, shard, limit, atOnce)
	if errors.Is(err, errShardHeld) {
		moved, err = m.move(ctx, f, l, shard, limit, inTime)
	}
	return moved, err
}

// move moves up to limit of a shard's records, among those that a look is for, in one transaction: under the lock of the
// shard, so that records stand in the order in which they were written, whoever moves them.
// The error is errShardHeld where the shard is not to be had within bounds, and
// errUnplaceable, beside what was moved, where a record stays: it names the first.
func (m outbox) move(ctx context.Context, f *Feed, l lookout, shard, limit int, bounds dialect.LockBounds) (movement, error) {
	return m.moveBut(ctx, f, l, shard, nil, min(limit, mostMoved), bounds)
}

// moveBut moves records but some that cannot be placed. Where the table of places does not take the
// key of another one, halves are tried, in their order, down to that record. Each try begins at the
// shard's first record: what was committed late meanwhile is not to come behind what was written after that.
func (m outbox) moveBut(ctx context.Context, f *Feed, l lookout, shard int, stuck []int64, limit int, bounds dialect.LockBounds) (movement, error) {
	all, err := m.moveOnce(ctx, f, l, shard, stuck, limit, bounds)
	switch {
	case !errors.Is(err, errUnplaceable):
		return all, err
	case all.taken == 1:
		all.stuck = []int64{all.last}
		return all, f.unplaceable(shard, all.last, err)
	}
	first, failed := m.moveBut(ctx, f, l, shard, stuck, all.taken/2, bounds)
	if failed != nil && !errors.Is(failed, errUnplaceable) {
		return first, failed
	}
	rest, err := m.moveBut(ctx, f, l, shard, slices.Concat(stuck, first.stuck), all.taken-all.taken/2, bounds)
	rest.records, rest.taken, rest.last, rest.took = rest.records+first.records, rest.taken+first.taken, max(rest.last, first.last), rest.took+first.took
	rest.stuck = slices.Concat(first.stuck, rest.stuck)
	if err != nil && !errors.Is(err, errUnplaceable) {
		return rest, err
	}
	return rest, firstError(failed, err)
}

// moveOnce is one moving transaction, with what follows from it.
func (m outbox) moveOnce(ctx context.Context, f *Feed, l lookout, shard int, stuck []int64, limit int, bounds dialect.LockBounds) (moved movement, err error) {
	started := time.Now()
	ctx, end := feedtype.StartSpan(ctx, f.db.cfg.Tracer, feedtype.Span{Op: feedtype.SpanPublish, Feed: f.name, Shard: shard})
	defer func() { end(feedtype.SpanEnd{Entries: moved.records, Err: err}) }()
	for attempt, raised := 1, false; ; attempt++ {
		err = f.db.store.InTx(ctx, dialect.ForMove, "move records of "+f.name, func(tx dialect.Querier) (err error) {
			moved, err = m.moveBatch(ctx, tx, f, l, shard, stuck, limit, bounds, raised)
			return err
		})
		if errors.Is(err, errKeyAbove) && attempt < store.MaxAttempts {
			raised = true
			continue
		}
		if attempt > 1 || !errors.Is(err, feedtype.DatabaseChanged) {
			break
		}
		if err := f.catalog.Reload(ctx); err != nil { // the record in hand may be older than a bump
			return movement{}, err
		}
	}
	switch {
	case errors.Is(err, store.ErrNothing):
		return movement{}, nil
	case errors.Is(err, errUnplaceable):
		return movement{taken: moved.taken, last: moved.last}, err
	case errors.Is(err, errShardHeld):
		return movement{}, f.heldError("records of it wait, and are not to be moved", whyHeld(err), shard)
	case f.db.store.Dialect.Classify(err) == dialect.ClassPermission:
		return movement{}, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.name), Cause: "records wait in its outbox, and this login may not move them", Err: err,
			Next: "run `rowfeed publish " + f.name + "` or `rowfeed serve` with another login, and readers like this one with --no-publish"}
	case err != nil:
		f.looked(l, 0, nil, false, err)
		return movement{}, f.settle(ctx, "move records of its outbox", err)
	}
	f.looked(l, moved.generation, moved.seqs, false, nil)
	moved.took = time.Since(started)
	generation := f.Generation()
	f.history.IsDurable(shard, feedtype.CursorState{Generation: generation, Position: moved.given})
	f.history.Saw(shard, generation, moved.given)
	f.db.watch.Tell(watch.Key{Feed: f.name, OfShard: true, Shard: shard}, watch.Standing{Generation: generation, Head: moved.given})
	f.db.cfg.Observer.Published(feedtype.PublishEvent{Feed: f.name, Changes: moved.records, Keys: moved.records, Generation: generation, Took: moved.took})
	return moved, nil
}

// errKeyAbove means that some keys have higher places in other shards than they would get:
// the batch is moved again, above those.
var errKeyAbove = errors.New("keys of it have higher positions in other shards")

// moveBatch is the moving transaction; package DESIGN.md gives the reasons for the order of
// its steps. Raised has it look for the places that the keys have.
func (m outbox) moveBatch(ctx context.Context, tx dialect.Querier, f *Feed, l lookout, shard int, stuck []int64, limit int, bounds dialect.LockBounds, raised bool) (movement, error) {
	d, r := f.db.store.Dialect, f.catalog.Record.Load()
	feed := r.Feed(f.db.store.Names)
	state, err := m.lockToMove(ctx, tx, f, shard, bounds)
	if err != nil {
		return movement{}, err
	}
	// A statement of its own behind the lock: it sees what the mover before has left.
	records, err := dialect.TakeRecords(ctx, tx, d, feed, shard, l.in(r.Generation), stuck, limit)
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
		err = f.livesFrom(ctx, tx, shard, places[0].Position)
	}
	if err == nil {
		err = d.AdvanceShard(ctx, tx, feed, state, next, state.Witness)
	}
	return movement{records: len(places), taken: len(records), seqs: seqsOf(places), last: last, generation: r.Generation, given: next.Given()}, err
}

// lockToMove locks a shard in the database that the feed is in, which was not set back.
func (outbox) lockToMove(ctx context.Context, tx dialect.Querier, f *Feed, shard int, bounds dialect.LockBounds) (state dialect.Shard, err error) {
	d, r := f.db.store.Dialect, f.catalog.Record.Load()
	if err := f.history.AssertDurable(ctx, tx); err != nil {
		return state, err
	}
	identity, err := d.Identity(ctx, tx, f.db.store.Names)
	if err != nil {
		return state, err
	}
	floor := f.history.Highest(shard)
	state, err = d.LockShard(ctx, tx, r.Feed(f.db.store.Names), shard, bounds)
	if d.Classify(err) == dialect.ClassLockTimeout {
		err = fmt.Errorf("%w: %w", errShardHeld, err)
	}
	if err != nil {
		return state, err
	}
	return state, firstError(history.SameDatabase(r, identity), f.history.NotSetBack(floor, r.Generation, state.Given()))
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
		if first, next, err = next.Take(hint, newULIDRandom(), 1); err != nil {
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
		return fmt.Errorf("%w: %w", errUnplaceable, err)
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

// pass moves up to limit records of every shard in which some wait. A shard that cannot be
// had keeps none of the others: it is left in line, and the error is errShardHeld. Where
// nothing is left but records that cannot be placed it is errUnplaceable.
func (m outbox) pass(ctx context.Context, f *Feed, limit int, full bool) (feedtype.PublishEvent, error) {
	l := f.look(ctx)
	r := f.catalog.Record.Load()
	e, among := feedtype.PublishEvent{Feed: f.name, Generation: r.Generation}, l.in(r.Generation)
	if !full && !l.settles() {
		waiting, err := f.db.store.Dialect.HasRecords(ctx, f.db.store.On(), r.Feed(f.db.store.Names), among)
		if err != nil || !waiting {
			f.looked(l, r.Generation, nil, true, err)
			return e, f.settle(ctx, "look into its outbox", err)
		}
	}
	shards, err := f.recordShards(ctx, among, 0)
	if err != nil {
		f.looked(l, r.Generation, nil, false, err)
		return e, f.settle(ctx, "look into its outbox", err)
	}
	due, left := f.line.sorted(shards)
	all := len(left) == 0
	var failed, stuck error
	for _, shard := range due {
		moved, err := m.move(ctx, f, l.ofPart(), shard, limit, atOnce)
		// What was left of it, up to that number, is in other shards.
		all = all && err == nil && (moved.taken < min(limit, mostMoved) || moved.last >= l.settled)
		if ctx.Err() != nil {
			return e, err
		}
		if f.line.tried(shard, err); errors.Is(err, errShardHeld) {
			left = append(left, shard)
			continue
		}
		if errors.Is(err, errUnplaceable) {
			stuck, err = firstError(stuck, err), nil
		}
		failed = firstError(failed, err)
		e.Changes, e.Keys, e.Took = e.Changes+moved.records, e.Keys+moved.records, max(e.Took, moved.took)
	}
	f.looked(l, r.Generation, nil, all, nil)
	if failed != nil && e.Changes > 0 { // what has failed is tried again by the next pass
		f.db.cfg.Observer.Trouble(feedtype.TroubleEvent{Feed: f.name, Err: failed})
		failed = nil
	}
	if failed == nil && e.Changes == 0 { // till then there may be more to move
		failed = stuck
	}
	if failed == nil && len(left) > 0 {
		failed = f.heldError("records of it wait, and are not to be moved", f.line.why(left[0]), left...)
	}
	return e, failed
}

// recordShards are the first shards in which records wait, among some numbers; limit 0: all.
func (f *Feed) recordShards(ctx context.Context, among dialect.Seqs, limit int) (shards []int, err error) {
	err = f.reading(ctx, "look into the outbox", func(q dialect.Querier) (err error) {
		shards, err = dialect.RecordShards(ctx, q, f.db.store.Dialect, f.catalog.DialectFeed(), among, limit)
		return err
	})
	return shards, err
}

// publishVisible moves the records of a shard that are visible now. Those of a transaction that
// is open now, and commits them below the last of these meanwhile, are taken along; those
// behind it are not waited for, however fast others write. The shard is waited for as long
// as somebody asks.
func (m outbox) publishVisible(ctx context.Context, f *Feed, shard int) error {
	var newest int64
	err := f.reading(ctx, "look into the outbox", func(q dialect.Querier) (err error) {
		newest, err = dialect.NewestRecord(ctx, q, f.db.store.Dialect, f.catalog.DialectFeed(), shard)
		return err
	})
	if err != nil {
		return f.settle(ctx, "look into its outbox", err)
	}
	for last := int64(0); last < newest; {
		l := f.glance()
		l.among = dialect.Seqs{} // whatever is visible, also where no look of a publisher goes
		moved, err := m.moveInTime(ctx, f, l, shard, mostMoved)
		if errors.Is(err, errShardHeld) && ctx.Err() == nil {
			continue
		}
		if errors.Is(err, errUnplaceable) { // it is no entry
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
func (f *Feed) livesFrom(ctx context.Context, tx dialect.Querier, shard int, first feedtype.Position) error {
	b := dialect.NewBuilder(f.db.store.Dialect)
	_, err := tx.Exec(ctx, "UPDATE "+f.db.store.Table("shards")+" SET live_from = "+b.Arg(int64(first.High>>16))+
		" WHERE feed = "+b.Arg(f.name)+" AND shard = "+b.Arg(shard), b.Args()...)
	return err
}

// part is one shard, as with mode blocking, which may have to be refused while rows are placed.
func (m outbox) part(ctx context.Context, f *Feed, l *catalog.Layout, q *dialect.PageQuery, s feedtype.Shards) error {
	q.Unserved, q.Among = catalog.Unfilled, f.glance().in(l.Generation)
	return m.blocking.part(ctx, f, l, q, s)
}

func (outbox) firstWaiting(f *Feed) string {
	r := f.catalog.Record.Load()
	return dialect.FirstRecords(f.db.store.Dialect, r.Feed(f.db.store.Names), f.unseen.since(r.Generation))
}
