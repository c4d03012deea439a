package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/gap"
	"github.com/rowfeed/rowfeed/internal/history"
	"github.com/rowfeed/rowfeed/internal/store"
	"github.com/rowfeed/rowfeed/internal/watch"
)

// sequence is the Positioner of feeds whose positions are numbers of one sequence.
type Sequence struct {
	*catalog.Feed
	History   *history.History
	Watch     *watch.Watcher
	Gaps      *gap.Tracker
	BatchSize int // see rowfeed.Config

	mu sync.Mutex
	// barren is the place below which there is no tombstone to purge.
	barren feedtype.CursorState
	turn   turn // see placeRows
}

// Pending is the first change.
func (f *Sequence) Pending() string {
	r := f.Record.Load()
	return dialect.FirstChange(f.Store.Dialect, r.Feed(f.Store.Names), f.Gaps.Since(r.Generation))
}

// Tell has nothing to tell: a pass leaves nothing that waits for another transaction.
func (*Sequence) Tell(context.Context, error) {}

// errStale means that the sequence was advanced by someone who did not lock it.
var errStale = errors.New("the sequence's version or the feed's generation changed under its lock")

// Pass publishes a batch of the feed as last read. The cheap question, whether there is a
// change, comes first and takes no lock; with none, nothing is written. After a full
// batch there is no need to ask, and where a gap may be given up it does not do.
func (f *Sequence) Pass(ctx context.Context, limit int, full bool) (feedtype.PublishEvent, error) {
	e := feedtype.PublishEvent{Feed: f.Name}
	started := time.Now()
	l := f.Gaps.Scan(ctx)
	if !full && !l.Settles() {
		r := f.Record.Load()
		waiting, err := f.Store.Dialect.HasChanges(ctx, f.Store.On(), r.Feed(f.Store.Names), l.In(r.Generation))
		if err != nil || !waiting {
			f.Gaps.Scanned(l, r.Generation, nil, true, err)
			return e, f.Explain(ctx, "publish", err)
		}
	}
	var seqs []int64
	var err error
	ctx, end := feedtype.StartSpan(ctx, f.Store.Tracer, feedtype.Span{Op: feedtype.SpanPublish, Feed: f.Name})
	defer func() {
		if errors.Is(err, store.ErrNothing) { // somebody else has published it
			err = nil
		}
		end(feedtype.SpanEnd{Entries: e.Keys, Err: err})
	}()
	for attempt := 1; ; attempt++ {
		err = f.Store.InTx(ctx, dialect.ForPublish, "publish "+f.Name, func(tx dialect.Querier) (err error) {
			e, seqs, err = f.publishBatch(ctx, tx, l, limit)
			return err
		})
		// The record in hand may be older than a bump.
		bumped := errors.Is(err, feedtype.DatabaseChanged) && attempt == 1
		if !errors.Is(err, errStale) && !bumped || attempt == store.MaxAttempts {
			break
		}
		if err := store.Pause(ctx, store.Backoff(attempt)); err != nil {
			return e, err
		}
		if err := f.Reload(ctx); err != nil {
			return e, err
		}
		l = f.Gaps.Scan(ctx) // of the feed as it is now
	}
	if errors.Is(err, store.ErrNothing) {
		f.Gaps.Scanned(l, e.Generation, nil, true, nil)
		return feedtype.PublishEvent{Feed: f.Name}, nil
	}
	f.Gaps.Scanned(l, e.Generation, seqs, len(seqs) < limit, err)
	if err != nil {
		return feedtype.PublishEvent{Feed: f.Name}, f.Explain(ctx, "publish", err)
	}
	e.Took = time.Since(started)
	head := feedtype.Numbered(e.Head)
	f.History.IsDurable(0, feedtype.CursorState{Generation: e.Generation, Position: head})
	f.History.Saw(0, e.Generation, head)
	f.Watch.Tell(watch.Key{Feed: f.Name}, watch.Standing{Generation: e.Generation, Head: head})
	f.Store.Observer.Published(e)
	return e, nil
}

// publishBatch is the publishing transaction; package DESIGN.md gives the reasons
// for the order of its steps.
func (f *Sequence) publishBatch(ctx context.Context, tx dialect.Querier, l gap.Scan, limit int) (e feedtype.PublishEvent, seqs []int64, err error) {
	d, r := f.Store.Dialect, f.Record.Load()
	e = feedtype.PublishEvent{Feed: f.Name, Generation: r.Generation}
	feed := r.Feed(f.Store.Names)
	if err := f.History.AssertDurable(ctx, tx); err != nil {
		return e, nil, err
	}
	floor := f.History.Highest(0)
	seq, err := d.LockSequence(ctx, tx, feed)
	if errors.Is(err, store.ErrNoRows) {
		return e, nil, &feedtype.Error{Code: feedtype.UnknownFeed, Object: feedtype.FeedObject(f.Name), Cause: "it has no row in the sequences table",
			Next: "`rowfeed feed list` shows the feeds; if it is listed, run `rowfeed feed upgrade " + f.Name + "`"}
	}
	if err != nil {
		return e, nil, err
	}
	if err := cmp.Or(history.SameDatabase(r, seq.Identity), f.History.NotSetBack(floor, r.Generation, feedtype.Numbered(seq.Value))); err != nil {
		return e, nil, err
	}
	if seq.Value <= math.MaxInt64-int64(limit) {
		all, err := d.PublishAlike(ctx, tx, feed, seq, r.Generation, l.In(r.Generation), limit)
		if err != nil || all.OK {
			e.Changes, e.Keys, e.Head = all.Changes, all.Keys, seq.Value+int64(all.Keys)
			return e, all.Seqs, cmp.Or(err, allAlike(feed, all))
		}
	}
	changes, err := d.TakeChanges(ctx, tx, feed, l.In(r.Generation), limit)
	if err != nil {
		return e, nil, err
	}
	room := len(changes)
	if feed.InRows() {
		room += limit
	}
	if seq.Value > math.MaxInt64-int64(room) {
		return e, nil, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.Name), Cause: "its sequence has reached the end of int64"}
	}
	// Deletes and wishes first, so that they are never above a row that came after them.
	assignments, err := assignments(r, changes, seq.Value)
	if err != nil {
		return e, nil, err
	}
	for _, part := range statements(assignments, feed.ExactKey()) {
		if err := d.AssignPositions(ctx, tx, feed, part, max(seq.Now, seq.UpdatedAt)); err != nil {
			return e, nil, err
		}
	}
	if seqs, err = f.deleteChanges(ctx, tx, feed, changes); err != nil {
		return e, nil, err
	}
	rows, err := f.placeRows(ctx, tx, r, seq.Value+int64(len(assignments)), limit)
	if err != nil {
		return e, nil, err
	}
	if len(changes)+rows == 0 {
		return e, nil, store.ErrNothing
	}
	e.Changes, e.Keys = len(changes)+rows, len(assignments)+rows
	e.Head = seq.Value + int64(e.Keys)
	return e, seqs, f.advance(ctx, tx, r, seq, e.Head)
}

// deleteChanges answers their seqs.
func (f *Sequence) deleteChanges(ctx context.Context, tx dialect.Querier, feed *dialect.Feed, changes []dialect.Change) (seqs []int64, err error) {
	if len(changes) == 0 {
		return nil, nil
	}
	seqs = make([]int64, len(changes))
	for i, c := range changes {
		seqs[i] = c.Seq
	}
	n, err := f.Store.Dialect.DeleteChanges(ctx, tx, feed, seqs)
	return seqs, cmp.Or(err, allDeleted(feed, int(n), len(seqs)))
}

func allDeleted(feed *dialect.Feed, n, of int) error {
	if n != of {
		return fmt.Errorf("deleted %d of the %d changes read: somebody else deletes from %s", n, of, feed.Changes())
	}
	return nil
}

// allAlike looks whether one statement has done all that a pass has to do.
func allAlike(feed *dialect.Feed, all dialect.Alike) error {
	switch {
	case all.Changes == 0:
		return store.ErrNothing
	case all.Deleted == all.Changes && !all.Advanced:
		return errStale
	}
	return allDeleted(feed, all.Deleted, all.Changes)
}

// advance moves the sequence to head, unless somebody else has, or the feed is another.
func (f *Sequence) advance(ctx context.Context, tx dialect.Querier, r *catalog.Record, seq dialect.Sequence, head int64) error {
	b := dialect.NewBuilder(f.Store.Dialect)
	n, err := tx.Exec(ctx, dialect.Advance(f.Store.Dialect, b, r.Feed(f.Store.Names), seq, r.Generation, b.Arg(head)), b.Args()...)
	if err == nil && n != 1 {
		err = errStale
	}
	return err
}

// assign collapses changes by key and numbers the keys from above base, in the
// order of each key's last change. The last explicit wish (republish, unpublish) of
// a key's changes holds, whatever a repair has recorded.
func assignments(r *catalog.Record, changes []dialect.Change, base int64) ([]dialect.Assignment, error) {
	type fate struct {
		last int // index of the key's last change
		kind dialect.ChangeKind
	}
	fates := make([]fate, 0, len(changes))
	known, which := make(map[string]int, len(changes)), make([]int, len(changes))
	var id []byte
	for i, c := range changes {
		id = dialect.AppendIdentity(id[:0], c.Key)
		k, ok := known[string(id)]
		if !ok {
			k, fates = len(fates), append(fates, fate{})
			known[string(id)] = k
		}
		f := &fates[k]
		which[i], f.last = k, i
		if c.Kind != dialect.Changed && (c.Kind != dialect.Placed || f.kind == dialect.Changed) {
			f.kind = c.Kind
		}
	}
	as := make([]dialect.Assignment, 0, len(fates))
	shardOf := r.Sharder()
	for i, c := range changes {
		f := fates[which[i]]
		if f.last != i {
			continue
		}
		shard, err := shardOf(c.Key)
		if err != nil {
			return nil, err
		}
		as = append(as, dialect.Assignment{Seq: c.Seq, Position: base + int64(len(as)) + 1, Shard: shard, Kind: f.kind})
	}
	return as, nil
}

// statements cuts assignments into those that one statement may hold. Where keys can
// be equal although their text differs, two assignments of a batch may be one key, and
// what a wish to hide or show did must be seen by what follows it.
func statements(as []dialect.Assignment, exact bool) [][]dialect.Assignment {
	if len(as) == 0 {
		return nil
	}
	if exact {
		return [][]dialect.Assignment{as}
	}
	var parts [][]dialect.Assignment
	for start := 0; start < len(as); {
		end := start
		for end < len(as) && as[end].Kind == as[start].Kind {
			end++
		}
		parts, start = append(parts, as[start:end]), end
	}
	return parts
}

// batchSize adapts the number of changes taken at once: larger batches cost less
// per key, and hold the sequence row for longer.
type batchSize struct{ size, low, high int }

func newBatchSize(start int) *batchSize {
	return &batchSize{size: start, low: min(100, start), high: max(5000, start)}
}

func (b *batchSize) learn(e feedtype.PublishEvent) {
	switch {
	case e.Took > 500*time.Millisecond:
		b.size = max(b.size/2, min(b.size, b.low))
	case e.Changes >= b.size && e.Took < 100*time.Millisecond:
		b.size = min(b.size*2, b.high)
	}
}

// shrink is for a batch that failed: it may have run into a bound of the database, on
// time or size, and as large as that it always will.
func (b *batchSize) shrink() { b.size = max(b.size/2, 1) }
