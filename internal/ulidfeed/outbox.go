package ulidfeed

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

// NewULIDRandom returns fresh random bits for the ULIDs of a new millisecond.
func NewULIDRandom() (random dialect.ULIDRandom) {
	rand.Read(random[:])
	return random
}

const (
	// leastMoved is how many records a reader's transaction moves, even for a smaller page. Moving more records costs
	// next to nothing, and the next page would cost another transaction.
	leastMoved = 500
	// MostMoved bounds one moving transaction, since other movers of the shard wait for it.
	MostMoved = 5000
)

// moveResult is what one or several moving transactions did.
type moveResult struct {
	records    int               // records moved
	read       int               // records read
	seqs       []int64           // the order_sequences of the records moved last
	last       int64             // the order_sequence of the last record read
	stuck      []int64           // the order_sequences of records that cannot be placed
	generation int64             // the feed's generation as known to the transaction
	given      feedtype.Position // the highest position that may have been given
	took       time.Duration
}

// Outbox moves the records of one feed's outbox to their positions, in the order in which they were written. It is the
// publish.Positioner of such a feed, and moves records for readers at the end of a shard.
type Outbox struct {
	*catalog.Feed
	History *history.History
	Watch   *watch.Watcher
	Gaps    *gap.Tracker

	retries retryQueue // shards that another transaction held; see Pass
}

// Pending is the query for the first record.
func (f *Outbox) Pending() string {
	r := f.Record.Load()
	return dialect.FirstRecords(f.Store.Dialect.Syntax, r.Feed(f.Store.Names), f.Gaps.Since(r.Generation))
}

// MoveWaiting moves records of a shard for a reader that has read the shard to its end. The reader's page has told,
// without a lock, that records wait. MoveWaiting uses a transaction of its own, which does not share the page's
// snapshot.
func (f *Outbox) MoveWaiting(ctx context.Context, shard, limit int) (stuck bool, err error) {
	moved, err := f.moveBounded(ctx, f.Gaps.ScanShard(), shard, max(limit, leastMoved))
	if !errors.Is(err, publish.ErrStuck) {
		return false, err
	}
	if moved.records > 0 {
		return false, nil // the page is read again, and the last page reports the record
	}
	f.reportStuck(err)
	return true, nil
}

// moveBounded moves up to limit records of a shard. It waits up to publish.HeldPatience for the shard.
func (f *Outbox) moveBounded(ctx context.Context, scan gap.Scan, shard, limit int) (moveResult, error) {
	moved, err := f.move(ctx, scan, shard, limit, noWait)
	if errors.Is(err, publish.ErrHeld) {
		moved, err = f.move(ctx, scan, shard, limit, boundedWait)
	}
	return moved, err
}

// move moves up to limit records of a shard that the scan includes. The error is publish.ErrHeld if the shard cannot be
// locked within bounds. It is publish.ErrStuck, with the result of what was moved, if a record cannot be placed.
func (f *Outbox) move(
	ctx context.Context, scan gap.Scan, shard, limit int, bounds dialect.LockBounds,
) (moveResult, error) {
	return f.moveExcept(ctx, scan, shard, nil, min(limit, MostMoved), bounds)
}

// moveExcept moves the records of a shard except those in stuck. If the table of places refuses the key of another
// record, moveExcept halves the batch until it has found that record. Each attempt reads from the shard's first record:
// a record that was committed late must not get a position above records that were begun after its commit. It costs
// about a dozen transactions a pass. An index on the outbox would refuse the key at once, but every writer would pay
// for it.
func (f *Outbox) moveExcept(
	ctx context.Context, scan gap.Scan, shard int, stuck []int64, limit int, bounds dialect.LockBounds,
) (moveResult, error) {
	all, err := f.moveOnce(ctx, scan, shard, stuck, limit, bounds)
	switch {
	case !errors.Is(err, publish.ErrStuck):
		return all, err
	case all.read == 1:
		all.stuck = []int64{all.last}
		return all, f.unplaceableError(shard, all.last, err)
	}
	first, failed := f.moveExcept(ctx, scan, shard, stuck, all.read/2, bounds)
	if failed != nil && !errors.Is(failed, publish.ErrStuck) {
		return first, failed
	}
	rest, err := f.moveExcept(ctx, scan, shard, slices.Concat(stuck, first.stuck), all.read-all.read/2, bounds)
	rest.records += first.records
	rest.read += first.read
	rest.last = max(rest.last, first.last)
	rest.took += first.took
	rest.stuck = slices.Concat(first.stuck, rest.stuck)
	if err != nil && !errors.Is(err, publish.ErrStuck) {
		return rest, err
	}
	return rest, cmp.Or(failed, err)
}

// moveOnce runs one moving transaction, with its retries, and reports its result to history, watcher and Observer.
func (f *Outbox) moveOnce(
	ctx context.Context, scan gap.Scan, shard int, stuck []int64, limit int, bounds dialect.LockBounds,
) (moved moveResult, err error) {
	started := time.Now()
	ctx, end := feedtype.StartSpan(
		ctx, f.Store.Tracer, feedtype.Span{Op: feedtype.SpanPublish, Feed: f.Name, Shard: shard},
	)
	defer func() { end(feedtype.SpanEnd{Entries: moved.records, Err: err}) }()
	for attempt, aboveOthers := 1, false; ; attempt++ {
		err = f.Store.InTx(ctx, dialect.ForMove, "move records of "+f.Name, func(tx dialect.Querier) (err error) {
			moved, err = f.moveBatch(ctx, tx, scan, shard, stuck, limit, bounds, aboveOthers)
			return err
		})
		if errors.Is(err, errKeyAbove) && attempt < store.MaxAttempts {
			aboveOthers = true
			continue
		}
		if attempt > 1 || !errors.Is(err, feedtype.DatabaseChanged) {
			break
		}
		if err := f.Reload(ctx); err != nil { // the record of the feed may be older than a bump
			return moveResult{}, err
		}
	}
	switch {
	case errors.Is(err, store.ErrNothing):
		return moveResult{}, nil
	case errors.Is(err, publish.ErrStuck):
		return moveResult{read: moved.read, last: moved.last}, err
	case errors.Is(err, publish.ErrHeld):
		return moveResult{}, f.heldShardsError("its records cannot be moved yet", heldReason(err), shard)
	case f.Store.Dialect.Classify(err) == dialect.ClassPermission:
		return moveResult{}, &feedtype.Error{
			Code:   feedtype.Refused,
			Object: feedtype.FeedObject(f.Name),
			Cause:  "records wait in the feed's outbox, and this login may not move them",
			Err:    err,
			Next: "run `rowfeed publish " + f.Name + "` or `rowfeed serve` with a login that may, " +
				"and start readers that use this login with --no-publish",
		}
	case err != nil:
		f.Gaps.Scanned(scan, 0, nil, false, err)
		return moveResult{}, f.Explain(ctx, "move records of its outbox", err)
	}
	f.Gaps.Scanned(scan, moved.generation, moved.seqs, false, nil)
	moved.took = time.Since(started)
	generation := f.Generation()
	at := feedtype.CursorState{Generation: generation, Position: moved.given}
	f.History.MarkDurable(shard, at)
	f.History.Saw(shard, at)
	f.Watch.Tell(
		watch.Key{Feed: f.Name, OfShard: true, Shard: shard},
		watch.Watermark{Generation: generation, Head: moved.given},
	)
	f.Store.Observer.Published(feedtype.PublishEvent{
		Feed:       f.Name,
		Changes:    moved.records,
		Keys:       moved.records,
		Generation: generation,
		Took:       moved.took,
	})
	return moved, nil
}

// errKeyAbove means that a key of the batch has a higher position in another shard. The batch is moved again, above it.
var errKeyAbove = errors.New("keys of the records have higher positions in other shards")

// moveBatch is the moving transaction. DESIGN.md gives the reasons for the order of its steps. With aboveOthers it
// gives positions above the highest one that a key of the batch has.
func (f *Outbox) moveBatch(
	ctx context.Context, tx dialect.Querier, scan gap.Scan, shard int, stuck []int64, limit int,
	bounds dialect.LockBounds, aboveOthers bool,
) (moveResult, error) {
	d, r := f.Store.Dialect, f.Record.Load()
	feed := r.Feed(f.Store.Names)
	state, err := f.lockToMove(ctx, tx, shard, bounds)
	if err != nil {
		return moveResult{}, err
	}
	// This statement has to come after the lock, so that it sees what the previous mover has committed.
	records, err := dialect.TakeRecords(ctx, tx, d.Syntax, feed, shard, scan.In(r.Generation), stuck, limit)
	if err == nil && len(records) == 0 {
		err = store.ErrNothing
	}
	if err != nil {
		return moveResult{}, err
	}
	from, last := state.ULIDState, records[len(records)-1].Seq
	if aboveOthers {
		highest, err := dialect.HighestPlace(ctx, tx, d.Syntax, feed, shard, records[0].Seq, last)
		if err != nil {
			return moveResult{}, err
		}
		from = from.Past(highest)
	}
	places, next, err := takePlaces(records, from, time.UnixMicro(state.Now))
	if err == nil {
		err = f.boundedKeyWait(ctx, tx, func() error { return givePlaces(ctx, tx, d, feed, shard, places) })
	}
	if err == nil && state.ULIDState == (dialect.ULIDState{}) {
		err = f.LivesFrom(ctx, tx, shard, places[0].Position)
	}
	if err == nil {
		err = d.AdvanceShard(ctx, tx, feed, state, next, state.Nonces)
	}
	return moveResult{
		records:    len(places),
		read:       len(records),
		seqs:       seqsOf(places),
		last:       last,
		generation: r.Generation,
		given:      next.Given(),
	}, err
}

// lockToMove locks a shard. It refuses a database that is not the feed's, or that was set back.
func (f *Outbox) lockToMove(
	ctx context.Context, tx dialect.Querier, shard int, bounds dialect.LockBounds,
) (state dialect.Shard, err error) {
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

// takePlaces gives each record the next ULID, in order. A record's hint counts if it is later than the shard's time.
func takePlaces(
	records []dialect.Record, from dialect.ULIDState, now time.Time,
) (places []dialect.Moved, next dialect.ULIDState, err error) {
	next = from
	for _, record := range records {
		hint := now.UnixMilli()
		if record.HintMillis != nil {
			// A hint from the future cannot be refused any more: its transaction has committed.
			hint = min(*record.HintMillis, hint)
		}
		var first dialect.ULIDState
		if first, next, err = next.Take(hint, NewULIDRandom(), 1); err != nil {
			return nil, next, err
		}
		places = append(places, dialect.Moved{Seq: record.Seq, Position: first.Position()})
	}
	return places, next, nil
}

// givePlaces writes the places of records, and deletes the records from the outbox.
func givePlaces(
	ctx context.Context, tx dialect.Querier, d *dialect.Dialect, feed *dialect.Feed, shard int, places []dialect.Moved,
) error {
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
	kept, err = dialect.PlacedElsewhere(ctx, tx, d.Syntax, feed, shard, seqs[0], seqs[len(seqs)-1])
	switch {
	case err != nil:
		return err
	case kept > 0:
		return errKeyAbove
	}
	return fmt.Errorf(
		"deleted %d of the %d records read: another key has one of their ULIDs, or another program deletes from %s", n,
		len(seqs), feed.Records(),
	)
}

func seqsOf(places []dialect.Moved) []int64 {
	seqs := make([]int64, len(places))
	for i, p := range places {
		seqs[i] = p.Seq
	}
	return seqs
}

// Pass moves up to limit records of every shard that has records. A shard that another transaction holds does not delay
// the other shards: it goes to the retry queue, and the error is publish.ErrHeld. The error is publish.ErrStuck if only
// records are left that cannot be placed.
func (f *Outbox) Pass(ctx context.Context, limit int, full bool) (feedtype.PublishEvent, error) {
	scan := f.Gaps.Scan(ctx)
	r := f.Record.Load()
	e, among := feedtype.PublishEvent{Feed: f.Name, Generation: r.Generation}, scan.In(r.Generation)
	if !full && !scan.Settles() {
		waiting, err := f.Store.Dialect.HasRecords(ctx, f.Store.On(), r.Feed(f.Store.Names), among)
		if err != nil || !waiting {
			f.Gaps.Scanned(scan, r.Generation, nil, true, err)
			return e, f.Explain(ctx, "read its outbox", err)
		}
	}
	shards, err := recordShards(ctx, f.Feed, among, 0)
	if err != nil {
		f.Gaps.Scanned(scan, r.Generation, nil, false, err)
		return e, f.Explain(ctx, "read its outbox", err)
	}
	due, left := f.retries.split(shards)
	all := len(left) == 0
	var failed, stuck error
	for _, shard := range due {
		moved, err := f.move(ctx, scan.OfShard(), shard, limit, noWait)
		// If so, the shard has no record left up to scan.Settled.
		all = all && err == nil && (moved.read < min(limit, MostMoved) || moved.last >= scan.Settled)
		if ctx.Err() != nil {
			return e, err
		}
		if f.retries.record(shard, err); errors.Is(err, publish.ErrHeld) {
			left = append(left, shard)
			continue
		}
		if errors.Is(err, publish.ErrStuck) {
			stuck, err = cmp.Or(stuck, err), nil
		}
		failed = cmp.Or(failed, err)
		e.Changes, e.Keys, e.Took = e.Changes+moved.records, e.Keys+moved.records, max(e.Took, moved.took)
	}
	f.Gaps.Scanned(scan, r.Generation, nil, all, nil)
	if failed != nil && e.Changes > 0 { // the next pass tries the failed shard again
		f.Trouble(failed)
		failed = nil
	}
	if failed == nil && e.Changes == 0 { // otherwise another pass may find more to move
		failed = stuck
	}
	if failed == nil && len(left) > 0 {
		failed = f.heldShardsError("its records cannot be moved yet", f.retries.reason(left[0]), left...)
	}
	return e, failed
}

// recordShards lists the first limit shards that have records among some order_sequences; limit 0 means all.
func recordShards(ctx context.Context, f *catalog.Feed, among dialect.Seqs, limit int) (shards []int, err error) {
	err = f.Read(ctx, "read the outbox", func(q dialect.Querier) (err error) {
		shards, err = dialect.RecordShards(ctx, q, f.Store.Dialect.Syntax, f.DialectFeed(), among, limit)
		return err
	})
	return shards, err
}

// CatchUp moves the records of a shard that are visible now, and records below the last of them that are committed
// meanwhile. It does not wait for later records, however fast they are written. It waits for the shard until ctx ends.
func (f *Outbox) CatchUp(ctx context.Context, shard int) error {
	var newest int64
	err := f.Read(ctx, "read the outbox", func(q dialect.Querier) (err error) {
		newest, err = dialect.NewestRecord(ctx, q, f.Store.Dialect.Syntax, f.DialectFeed(), shard)
		return err
	})
	if err != nil {
		return f.Explain(ctx, "read its outbox", err)
	}
	for last := int64(0); last < newest; {
		scan := f.Gaps.ScanShard().Everywhere() // also outside of the ranges that a publisher scans
		moved, err := f.moveBounded(ctx, scan, shard, MostMoved)
		if errors.Is(err, publish.ErrHeld) && ctx.Err() == nil {
			continue
		}
		if errors.Is(err, publish.ErrStuck) { // the record is no entry
			f.reportStuck(err)
			err = nil
		}
		if err != nil || moved.records == 0 {
			return err
		}
		last = moved.last
	}
	return nil
}

// LivesFrom records where the live part of a shard begins: at the first ULID given in it. The caller has locked the
// shard, and calls LivesFrom once for each. The lowest place cannot show it later: that place may have moved, or may
// have been purged.
func (f *Outbox) LivesFrom(ctx context.Context, tx dialect.Querier, shard int, first feedtype.Position) error {
	_, err := f.Store.Exec(ctx, tx, statements, "live_from",
		dialect.Args{"feed": f.Name, "shard": shard, "first": int64(first.High >> 16)})
	return err
}
