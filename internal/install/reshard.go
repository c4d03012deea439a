package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/publish"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Another number of data shards moves nearly every key to another shard, so it is a new
// generation: cursors of before are refused, and nobody can take a part of before for one
// of now. The generation, the number and the state "sharding" are written in one
// transaction, under the lock of the feed's sequence. From then on publishers give keys
// that are new the shard that is right; a key that has one keeps it, and is given the
// right one by a walk along the keys, in batches under the same lock: whatever becomes of
// a key meanwhile, the walk has still to come to it, or has been there. Parts are not
// served until the walk is over; the whole feed is.

// reshardBatch is the number of keys that one transaction gives their shards.
const reshardBatch = 500

// heldTries is how often rows that others hold are tried, while they become no fewer,
// before that is an error.
const heldTries = 60

// The walk's stages, in their order: the first part of the mark in feeds.fill_after,
// before the key that it has come to.
const (
	walkPositions = iota // the keys of positions_<feed>
	walkRows             // the rows, where they hold their positions
	walkDone             // the index is next
)

// division divides the keys of one feed among data shards.
type Resharding struct {
	*catalog.Feed
	Recorder *publish.Recorder
}

// Reshard divides an existing feed by another number of data shards, and answers whether
// that changed anything. It begins a new generation of the feed: cursors of before are
// refused with the code GenerationChanged, and consumers start at the beginning. Writers,
// publishers and readers of the whole feed go on; requests for a part of it are answered
// with the code Sharding until every key has its shard. When Reshard breaks off, call it
// again with the same number: it goes on where it stopped, also beside others that do so.
// progress may be nil; it is told how many keys this call has looked at.
func (f *Resharding) Reshard(ctx context.Context, dataShards int, progress func(keys int64)) (changed bool, err error) {
	if dataShards < 1 || dataShards > feedtype.MaxDataShards {
		return false, feedtype.Invalid("data-shards", "%d must be between 1 and %d", dataShards, feedtype.MaxDataShards)
	}
	if f.DialectFeed().ULIDs != nil {
		return false, &feedtype.Error{
			Code:   feedtype.Refused,
			Object: feedtype.FeedObject(f.Name),
			Cause:  "divide by data shards: its rows are only appended, and every integer is a shard of its own",
			Err:    errors.ErrUnsupported,
			Next: "give rows other shards, where readers are to have more of them; " +
				"workers share those that there are (ShardCount, `rowfeed relay --shard-count`)",
		}
	}
	if err := f.Recorder.ByKey("divide by data shards"); err != nil {
		return false, err
	}
	for {
		if err := f.Reload(ctx); err != nil {
			return false, err
		}
		r := f.Record.Load()
		conflict := func(next, format string, args ...any) (bool, error) {
			return false, feedError(feedtype.Conflict, f.Name, next, format, args...)
		}
		switch {
		case r.State == catalog.StateSharding && r.DataShards != dataShards:
			return conflict(catalog.FinishSharding(f.Name, r.DataShards),
				"its keys are being given their shards among %d", r.DataShards)
		case r.State == catalog.StateSharding:
			return true, f.giveShards(ctx, dataShards, progress)
		case r.State != catalog.StateActive:
			return conflict("run `rowfeed feed add "+f.Name+"` again with its options, which completes it",
				"it is not complete, but %s", r.State)
		case r.DataShards == dataShards:
			return changed, nil
		}
		if err := f.beginSharding(ctx, r, dataShards); err != nil && !errors.Is(err, ErrRecordChanged) {
			return false, f.Fail("begin to give keys other data shards", err)
		}
		changed = true // by this call or by another that asks for the same
		f.Recorder.Wake()
	}
}

// beginSharding writes the new number of data shards with a new generation, unless the
// record is another by now.
func (f *Resharding) beginSharding(ctx context.Context, r *catalog.Record, dataShards int) error {
	to := *r
	to.DataShards = dataShards
	if feed := to.Feed(f.Store.Names); feed.InRows() {
		table, err := catalog.DescribeTable(ctx, f.Store, f.Store.On(), r.Source)
		if err != nil {
			return err
		}
		if err := cmp.Or(HoldsExactKeys(&to), holdsShards(&to, table)); err != nil {
			return err
		}
	}
	return f.Store.InTx(ctx, dialect.ForRecord, "shard "+f.Name, func(tx dialect.Querier) error {
		seq, err := f.Store.Dialect.LockSequence(ctx, tx, r.Feed(f.Store.Names))
		if errors.Is(err, store.ErrNoRows) {
			return ErrRecordChanged // dropped
		}
		if err != nil {
			return err
		}
		b := dialect.NewBuilder(f.Store.Dialect)
		n, err := tx.Exec(ctx, "UPDATE "+f.Store.Table("feeds")+" SET state = "+b.Arg(catalog.StateSharding)+
			", fill_after = NULL, data_shards = "+b.Arg(int64(dataShards))+
			" WHERE name = "+b.Arg(f.Name)+" AND state = "+b.Arg(catalog.StateActive)+" AND generation = "+
			b.Arg(r.Generation), b.Args()...)
		if err != nil {
			return err
		}
		if n != 1 {
			return ErrRecordChanged
		}
		for _, s := range bumpSteps(f.Store.Dialect, f.Store.Names, f.Name, store.OrNull(seq.Identity)) {
			if _, err := tx.Exec(ctx, s.SQL); err != nil {
				return err
			}
		}
		return nil
	})
}

// giveShards walks along the keys until each has its shard among the number wanted.
func (f *Resharding) giveShards(ctx context.Context, wanted int, progress func(int64)) error {
	var total, former int64
	denied := 0
	for {
		r := f.Record.Load()
		switch {
		case r.DataShards != wanted:
			return feedError(feedtype.Conflict, f.Name, "agree on a number, then run `rowfeed feed upgrade "+f.Name+
				" --data-shards N`", "another has divided it among %d data shards meanwhile", r.DataShards)
		case r.State != catalog.StateSharding:
			return nil // another has done the rest
		}
		if len(r.FillAfter) > 0 && r.FillAfter[0] == int64(walkDone) {
			err := f.endSharding(ctx, r)
			if err != nil && !errors.Is(err, ErrRecordChanged) {
				return f.Fail("make the index by shard", err)
			}
			if err := f.Reload(ctx); err != nil {
				return err
			}
			continue
		}
		var looked, late int64
		err := f.Store.InTx(ctx, dialect.ForPublish, "give keys of "+f.Name+" their shards",
			func(tx dialect.Querier) (err error) {
				looked, late, err = f.shardBatch(ctx, tx, r)
				return err
			})
		switch {
		case errors.Is(err, ErrRecordChanged):
			looked, late = 0, 0 // rolled back; rows may be free by now, or another has been there
		case errors.Is(err, store.ErrNoRows) || err != nil &&
			f.Store.Dialect.Classify(err) == dialect.ClassUndefined: // dropped meanwhile?
			if err := f.Reload(ctx); err != nil {
				return err
			}
			return f.Fail("give keys their shards", err)
		case err != nil:
			return f.Fail("give keys their shards (run it again to go on)", err)
		}
		if late > 0 {
			if late < former {
				denied = 0 // it gets on
			}
			former = late
			if denied++; denied == heldTries {
				return feedError(feedtype.Locked, f.Name,
					"`rowfeed status "+f.Name+"` names the transactions; then "+
						catalog.FinishSharding(f.Name, r.DataShards),
					"%d rows cannot be given their shards: other transactions hold them, or a trigger undoes it", late)
			}
			if err := store.Pause(ctx, store.Backoff(denied)); err != nil {
				return err
			}
			continue
		}
		denied, former = 0, 0
		if total += looked; progress != nil && looked > 0 {
			progress(total)
		}
		if err := f.Reload(ctx); err != nil {
			return err
		}
	}
}

// shardBatch gives the next keys of the walk their shards. It answers how many it looked
// at, and how many rows others held: then the walk stays where it is.
func (f *Resharding) shardBatch(ctx context.Context, tx dialect.Querier, r *catalog.Record) (
	looked, late int64, err error,
) {
	d, feed := f.Store.Dialect, r.Feed(f.Store.Names)
	if _, err := d.LockSequence(ctx, tx, feed); err != nil {
		return 0, 0, err
	}
	stage, after := walk(r)
	rows := stage == walkRows
	keys, err := dialect.WalkKeys(ctx, tx, d, feed, rows, after, reshardBatch)
	if err != nil {
		return 0, 0, err
	}
	if len(keys) > 0 && after != nil && dialect.KeyIdentity(keys[0].Key) == dialect.KeyIdentity(after) {
		return 0, 0, fmt.Errorf("the walk along the key does not get beyond %v", after)
	}
	wrong, err := Misplaced(r, keys, rows)
	if err != nil {
		return 0, 0, err
	}
	if len(wrong) > 0 {
		n, err := d.SetShards(ctx, tx, feed, rows, wrong)
		if err != nil {
			return 0, 0, err
		}
		if late = int64(len(wrong)) - n; late > 0 && !rows {
			return 0, 0, fmt.Errorf("%d of %d positions could not be given their shards: somebody else writes %s", late,
				len(wrong), feed.Positions())
		}
	}
	mark := []any{int64(stage)}
	switch {
	case late > 0:
		return 0, late, f.shardsGiven(ctx, tx, r, nil)
	case len(keys) == reshardBatch:
		mark = append(mark, keys[len(keys)-1].Key...)
	case stage == walkPositions && feed.InRows():
		mark[0] = int64(walkRows)
	default:
		mark[0] = int64(walkDone)
	}
	return int64(len(keys)), 0, f.shardsGiven(ctx, tx, r, mark)
}

// walk is the stage that the walk along the keys is in, and the key behind which it goes
// on.
func walk(r *catalog.Record) (stage int, after []any) {
	if len(r.FillAfter) == 0 {
		return walkPositions, nil
	}
	at, _ := r.FillAfter[0].(int64)
	if len(r.FillAfter) > 1 {
		after = r.FillAfter[1:]
	}
	return int(at), after
}

// misplaced are the places of the keys whose shard is not that of the key. A row that
// waits gets its shard with its position.
func Misplaced(r *catalog.Record, keys []dialect.PlaceKey, rows bool) ([]dialect.Sharded, error) {
	var wrong []dialect.Sharded
	shardOf := r.Sharder()
	for _, k := range keys {
		if k.Position == nil {
			continue
		}
		shard, err := shardOf(k.Key)
		if err != nil {
			return nil, err
		}
		bucket := 0
		if r.DataShards > 1 {
			bucket = dialect.Bucket(shard, r.DataShards)
		}
		if k.Shard == nil || *k.Shard != int64(shard) || !rows && *k.Bucket != int64(bucket) {
			wrong = append(wrong, dialect.Sharded{Position: *k.Position, Shard: shard})
		}
	}
	return wrong, nil
}

// unlessChanged is the condition that the feed's record is as it was read: in the same
// generation, still being sharded, and at the same mark of the walk. A feed of the same
// name and number may be another's walk, at its beginning.
func unlessChanged(r *catalog.Record, b *dialect.Builder) string {
	where := " WHERE name = " + b.Arg(r.Name) + " AND generation = " + b.Arg(r.Generation) + " AND state = " +
		b.Arg(catalog.StateSharding)
	if r.FillMark == nil {
		return where + " AND fill_after IS NULL"
	}
	return where + " AND fill_after = " + b.Arg(*r.FillMark)
}

// shardsGiven notes how far the walk has come; nil: no further. The record must be as it
// was read, or this batch was made for another division of the feed.
func (f *Resharding) shardsGiven(ctx context.Context, tx dialect.Querier, r *catalog.Record, mark []any) error {
	b := dialect.NewBuilder(f.Store.Dialect)
	var n int64
	if err := dialect.QueryRow(ctx, tx, "SELECT count(*) FROM "+f.Store.Table("feeds")+unlessChanged(r, b), b.Args(),
		&n); err != nil {
		return err
	}
	if n != 1 {
		return ErrRecordChanged
	}
	if mark == nil {
		return nil
	}
	b = dialect.NewBuilder(f.Store.Dialect)
	set := " SET fill_after = " + b.Arg(dialect.EncodeKey(mark))
	_, err := tx.Exec(ctx, "UPDATE "+f.Store.Table("feeds")+set+unlessChanged(r, b), b.Args()...)
	return err
}

// endSharding makes or removes the index by bucket, and then the feed is whole: both only
// while the record is as it was read, which the caller has to look at again.
func (f *Resharding) endSharding(ctx context.Context, r *catalog.Record) error {
	err := f.Store.WithSchemaLock(ctx, "shard "+f.Name, func(q dialect.Querier) error {
		b := dialect.NewBuilder(f.Store.Dialect)
		var n int64
		if err := dialect.QueryRow(ctx, q, "SELECT count(*) FROM "+f.Store.Table("feeds")+unlessChanged(r, b), b.Args(),
			&n); err != nil {
			return err
		}
		if n != 1 {
			return ErrRecordChanged
		}
		steps, err := f.Store.Dialect.BucketIndex(ctx, q, r.Feed(f.Store.Names))
		if err != nil {
			return err
		}
		if err := run(ctx, q, steps); err != nil {
			return err
		}
		b = dialect.NewBuilder(f.Store.Dialect)
		set := " SET state = " + b.Arg(catalog.StateActive) + ", fill_after = NULL"
		_, err = q.Exec(ctx, "UPDATE "+f.Store.Table("feeds")+set+unlessChanged(r, b), b.Args()...)
		return err // it ends nothing after a bump, which takes another lock
	})
	if err == nil {
		f.Recorder.Wake()
	}
	return err
}

// holdsShards refuses rows that cannot hold their data shards, where they are to.
func holdsShards(r *catalog.Record, table *dialect.Table) error {
	if r.Capture != feedtype.CaptureColumn || r.DataShards <= 1 {
		return nil
	}
	refuse := func(next, format string, args ...any) error {
		return tableError(feedtype.Refused, table.Name, next, format, args...)
	}
	shard := table.Kept(dialect.ShardColumn)
	if shard == nil {
		return nil // it gets one that does
	}
	for _, ix := range table.Unique {
		if slices.ContainsFunc(ix.Columns, func(c dialect.IndexColumn) bool { return c.Name == shard.Name }) {
			return refuse("drop that index, or rename the column: rowfeed then adds one of its own",
				"publishers would write its column %s, which the unique index %q has", shard.Name, ix.Name)
		}
	}
	if problem := shard.ShardProblem(r.DataShards); problem != "" {
		return refuse("", "its column %s %s", shard.Name, problem)
	}
	return nil
}
