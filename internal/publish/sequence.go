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

// Sequence is the Positioner of feeds whose positions are numbers of one sequence.
type Sequence struct {
	*catalog.Feed
	History   *history.History
	Watch     *watch.Watcher
	Gaps      *gap.Tracker
	BatchSize int // documented in rowfeed.Config

	own history.Own
	mu  sync.Mutex
	// purgeFrom is the position from which the next purge reads: there is no tombstone below it.
	purgeFrom feedtype.CursorState
	rowStart  rowStart // see placeRows
}

// Pending returns a query for the first change.
func (f *Sequence) Pending() string {
	r := f.Record.Load()
	return dialect.FirstChange(f.Store.Dialect.Syntax, r.Feed(f.Store.Names), f.Gaps.Since(r.Generation))
}

// Waiting returns the highest position while changes wait. It returns "" while a pass has the sequence's lock, however
// long that pass takes. A second pass immediately after it would harm programs that read MariaDB's tables without
// rowfeed.
func (f *Sequence) Waiting(ctx context.Context) (string, error) {
	r := f.Record.Load()
	waiting, err := f.Store.Dialect.HasChanges(ctx, f.Store.On(), r.Feed(f.Store.Names), f.Gaps.Since(r.Generation))
	if err != nil || !waiting {
		return "", err
	}
	var head string
	err = f.Store.One(ctx, f.Store.On(), statements, "head",
		dialect.Args{"feed": f.Name, "hint": dialect.SQL(f.Store.Dialect.SkipLockedHint),
			"unlocked": dialect.SQL(f.Store.Dialect.SkipLocked)}, &head)
	if errors.Is(err, store.ErrNoRows) {
		return "", nil
	}
	return head, err
}

// Tell does nothing: no pass of a sequence leaves changes for other transactions.
func (*Sequence) Tell(context.Context, error) {}

// errStale means that the feed's record is out of date, or that another program advanced the sequence without the lock.
var errStale = errors.New("the sequence's version, or the feed's generation, changed while the sequence was locked")

// Pass publishes one batch. First it asks, without a lock, whether there is a change. After a full batch this is not
// necessary, and it is not enough for a scan that closes gaps.
func (f *Sequence) Pass(ctx context.Context, limit int, full bool) (feedtype.PublishEvent, error) {
	e := feedtype.PublishEvent{Feed: f.Name}
	started := time.Now()
	scan := f.Gaps.Scan(ctx)
	if !full && !scan.Settles() {
		r := f.Record.Load()
		waiting, err := f.Store.Dialect.HasChanges(ctx, f.Store.On(), r.Feed(f.Store.Names), scan.In(r.Generation))
		if err != nil || !waiting {
			f.Gaps.Scanned(scan, r.Generation, nil, true, err)
			return e, f.Explain(ctx, "publish", err)
		}
	}
	var seqs []int64
	var term feedtype.Term
	var err error
	ctx, end := feedtype.StartSpan(ctx, f.Store.Tracer, feedtype.Span{Op: feedtype.SpanPublish, Feed: f.Name})
	defer func() {
		if errors.Is(err, store.ErrNothing) { // Another publisher was faster.
			err = nil
		}
		end(feedtype.SpanEnd{Entries: e.Keys, Err: err})
	}()
	for attempt := 1; ; attempt++ {
		err = f.Store.InTx(ctx, dialect.ForPublish, "publish "+f.Name, func(tx dialect.Querier) (err error) {
			e, seqs, term, err = f.publishBatch(ctx, tx, &scan, limit)
			return err
		})
		if attempt == 1 && f.isOtherwiseNow(ctx, err) {
			continue
		}
		if !errors.Is(err, errStale) || attempt == store.MaxAttempts {
			break
		}
		if err := store.Pause(ctx, store.Backoff(attempt)); err != nil {
			return e, err
		}
		if err := f.Reload(ctx); err != nil {
			return e, err
		}
		scan = f.Gaps.Scan(ctx)
	}
	if errors.Is(err, store.ErrNothing) {
		f.Gaps.Scanned(scan, e.Generation, nil, true, nil)
		return feedtype.PublishEvent{Feed: f.Name}, nil
	}
	f.Gaps.Scanned(scan, e.Generation, seqs, len(seqs) < limit, err)
	if err != nil {
		return feedtype.PublishEvent{Feed: f.Name}, f.Explain(ctx, "publish", f.explainDuplicate(ctx, err))
	}
	e.Took = time.Since(started)
	at := feedtype.CursorState{Generation: e.Generation, Position: feedtype.Numbered(e.Head), Term: term}
	f.History.MarkDurable(0, at)
	f.History.Saw(0, at)
	f.Watch.Tell(watch.Key{Feed: f.Name},
		watch.Watermark{Generation: at.Generation, Head: at.Position, Term: at.Term})
	f.Store.Observer.Published(e)
	return e, nil
}

// isOtherwiseNow returns true if a pass that writes into rows has failed because its feed got a fence or another
// capture. It then has loaded the new record.
func (f *Sequence) isOtherwiseNow(ctx context.Context, err error) bool {
	before := f.DialectFeed()
	if err == nil || errors.Is(err, store.ErrNothing) || !before.InRows() || before.Fenced() {
		return false
	}
	return f.Reload(ctx) == nil && (f.DialectFeed().Fenced() || !f.DialectFeed().InRows())
}

// publishBatch is the publishing transaction. DESIGN.md gives the reasons for the order of its steps. If the database
// has lost what this publisher did last, scan becomes a full scan.
func (f *Sequence) publishBatch(
	ctx context.Context, tx dialect.Querier, scan *gap.Scan, limit int,
) (e feedtype.PublishEvent, seqs []int64, term feedtype.Term, err error) {
	d, r := f.Store.Dialect, f.Record.Load()
	e = feedtype.PublishEvent{Feed: f.Name, Generation: r.Generation}
	feed := r.Feed(f.Store.Names)
	if err := f.History.AssertDurable(ctx, tx); err != nil {
		return e, nil, 0, err
	}
	seq, err := d.LockSequence(ctx, tx, feed)
	if errors.Is(err, store.ErrNoRows) {
		return e, nil, 0, &feedtype.Error{
			Code:   feedtype.UnknownFeed,
			Object: feedtype.FeedObject(f.Name),
			Cause:  "it has no row in the sequences table",
			Next:   "run `rowfeed feed list`; if it lists the feed, run `rowfeed feed upgrade " + f.Name + "`",
		}
	}
	if err != nil {
		return e, nil, 0, err
	}
	own := f.own.Take()
	defer func() {
		if err != nil {
			f.own.Return(own)
		} else {
			f.own.Leave(seq, e.Head)
		}
	}()
	var lost bool
	if seq.Term, lost, err = own.Continue(ctx, tx, f.Store, f.Name, seq); err != nil {
		return e, nil, 0, err
	}
	if lost {
		f.Gaps.Reset()
		*scan = f.Gaps.Scan(ctx)
	}
	if d.Batches != nil && seq.Value <= math.MaxInt64-int64(limit) {
		all, err := d.Batches.PublishBatch(ctx, tx, feed, seq, r.Generation, scan.In(r.Generation), limit)
		if err != nil || all.OK {
			e.Changes, e.Keys, e.Head = all.Changes, all.Keys, seq.Value+int64(all.Keys)
			return e, all.Seqs, seq.Term, cmp.Or(err, checkPublished(feed, all))
		}
	}
	changes, err := d.TakeChanges(ctx, tx, feed, scan.In(r.Generation), limit)
	if err != nil {
		return e, nil, 0, err
	}
	room := len(changes)
	if feed.InRows() {
		room += limit
	}
	if seq.Value > math.MaxInt64-int64(room) {
		return e, nil, 0, &feedtype.Error{
			Code:   feedtype.Refused,
			Object: feedtype.FeedObject(f.Name),
			Cause:  "its sequence has reached the end of int64, so its changes cannot be published",
		}
	}
	// Changes come before rows: a delete must not get a higher position than a row that was inserted after it.
	assignments, err := assignments(r, changes, seq.Value)
	if err != nil {
		return e, nil, 0, err
	}
	for _, part := range splitByKind(assignments, feed.ExactKey()) {
		if err := d.AssignPositions(ctx, tx, feed, part, max(seq.Now, seq.UpdatedAt)); err != nil {
			return e, nil, 0, err
		}
	}
	if seqs, err = f.deleteChanges(ctx, tx, feed, changes); err != nil {
		return e, nil, 0, err
	}
	rows, err := f.placeRows(ctx, tx, r, seq.Value+int64(len(assignments)), limit)
	if err != nil {
		return e, nil, 0, err
	}
	if len(changes)+rows == 0 {
		return e, nil, 0, store.ErrNothing
	}
	e.Changes, e.Keys = len(changes)+rows, len(assignments)+rows
	e.Head = seq.Value + int64(e.Keys)
	if feed.InRows() {
		if err := f.checkPlaced(ctx, tx, feed, seq.Value, seq.Value+int64(len(assignments)), e.Head); err != nil {
			return e, nil, 0, err
		}
	}
	return e, seqs, seq.Term, f.advance(ctx, tx, r, seq, e.Head)
}

// deleteChanges deletes exactly these changes, and returns their numbers.
func (f *Sequence) deleteChanges(
	ctx context.Context, tx dialect.Querier, feed *dialect.Feed, changes []dialect.Change,
) (seqs []int64, err error) {
	if len(changes) == 0 {
		return nil, nil
	}
	seqs = make([]int64, len(changes))
	for i, c := range changes {
		seqs[i] = c.Seq
	}
	n, err := f.Store.Dialect.DeleteChanges(ctx, tx, feed, seqs)
	return seqs, cmp.Or(err, checkDeleted(feed, int(n), len(seqs)))
}

func checkDeleted(feed *dialect.Feed, n, of int) error {
	if n != of {
		return fmt.Errorf(
			"deleted %d of the %d changes read: another program deletes from table %s",
			n,
			of,
			feed.Changes(),
		)
	}
	return nil
}

// checkPublished checks that the one statement has done everything that a pass has to do.
func checkPublished(feed *dialect.Feed, all dialect.BatchResult) error {
	switch {
	case all.Changes == 0:
		return store.ErrNothing
	case all.Deleted == all.Changes && !all.Advanced:
		return errStale
	}
	return checkDeleted(feed, all.Deleted, all.Changes)
}

// advance moves the sequence to head, unless its version, or the feed's generation or number of data shards, is another
// by now.
func (f *Sequence) advance(
	ctx context.Context, tx dialect.Querier, r *catalog.FeedRecord, seq dialect.Sequence, head int64,
) error {
	s := f.Store.Dialect.Syntax
	n, err := dialect.Exec(ctx, tx, s, statements.For(s, r.Feed(f.Store.Names), "advance"), dialect.Args{
		"head": head, "term": int64(seq.Term),
		"now": max(seq.Now, seq.UpdatedAt), "feed": f.Name, "version": seq.Version, "generation": r.Generation,
		"data_shards": max(r.DataShards, 1)})
	if err == nil && n != 1 {
		err = errStale
	}
	return err
}

// assignments collapses changes by key, and numbers the keys from above base, in the order of each key's last change. A
// key's last republish or unpublish counts, whatever a repair has recorded later.
func assignments(r *catalog.FeedRecord, changes []dialect.Change, base int64) ([]dialect.Assignment, error) {
	type collapsed struct {
		last int // index of the key's last change
		kind dialect.ChangeKind
	}
	keys := make([]collapsed, 0, len(changes))
	byIdentity, keyOf := make(map[string]int, len(changes)), make([]int, len(changes))
	var id []byte
	for i, c := range changes {
		id = dialect.AppendIdentity(id[:0], c.Key)
		n, ok := byIdentity[string(id)]
		if !ok {
			n, keys = len(keys), append(keys, collapsed{})
			byIdentity[string(id)] = n
		}
		k := &keys[n]
		keyOf[i], k.last = n, i
		if c.Kind != dialect.Changed && (c.Kind != dialect.Placed || k.kind == dialect.Changed) {
			k.kind = c.Kind
		}
	}
	as := make([]dialect.Assignment, 0, len(keys))
	shardOf := r.Sharder()
	for i, c := range changes {
		k := keys[keyOf[i]]
		if k.last != i {
			continue
		}
		shard, err := shardOf(c.Key)
		if err != nil {
			return nil, err
		}
		position := base + int64(len(as)) + 1
		as = append(as, dialect.Assignment{Seq: c.Seq, Position: position, Shard: shard, Kind: k.kind})
	}
	return as, nil
}

// splitByKind splits assignments into groups, one for each statement. If keys can be equal although their texts differ
// (exact is false), two assignments may have the same key. Then an assignment after an unpublish or republish must see
// its effect, and needs a statement of its own.
func splitByKind(as []dialect.Assignment, exact bool) [][]dialect.Assignment {
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

// batchSize adapts the number of changes in a batch. Larger batches cost less per key, and lock the sequence's row for
// longer.
type batchSize struct{ size, low, high int }

func newBatchSize(start int) *batchSize {
	return &batchSize{size: start, low: min(100, start), high: max(5000, start)}
}

func (b *batchSize) adapt(e feedtype.PublishEvent) {
	switch {
	case e.Took > 500*time.Millisecond:
		b.size = max(b.size/2, min(b.size, b.low))
	case e.Changes >= b.size && e.Took < 100*time.Millisecond:
		b.size = min(b.size*2, b.high)
	}
}

// shrink halves the size after a batch that failed: it may have exceeded a limit of the database on time or size.
func (b *batchSize) shrink() { b.size = max(b.size/2, 1) }
