package install

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/publish"
	"github.com/rowfeed/rowfeed/internal/store"
)

// reshardBatch is the number of keys that one transaction assigns to shards.
const reshardBatch = 500

// maxLockedTries limits how often a batch is repeated for locked rows while their number does not fall.
const maxLockedTries = 60

// The stages of the walk, in their order. The mark in feeds.fill_after has the stage, and then the last key of it.
const (
	walkPositions = iota // the keys of positions_<feed>
	walkRows             // the rows of the table, if they hold their positions
	walkDone             // all keys have their shards; the index comes next
)

// Resharding changes the number of data shards of one feed. DESIGN.md says why it misses no key.
type Resharding struct {
	*catalog.Feed
	Recorder *publish.Recorder
}

// Reshard changes the feed's number of data shards, and returns whether that changed anything. Writers, publishers and
// readers of the whole feed continue, and keep their cursors. Requests for a part of the feed are answered with the
// code Sharding until every key has its shard. Then cursors of parts that were given for another number are refused
// with the code OtherPart; consumers with several shards continue from their lowest cursor. After an interruption a
// second call with the same number continues. Concurrent calls with the same number are safe. progress may be nil; it
// receives the number of keys that this call has read.
func (f *Resharding) Reshard(ctx context.Context, dataShards int, progress func(keys int64)) (changed bool, err error) {
	if dataShards < 1 || dataShards > feedtype.MaxDataShards {
		return false, feedtype.Invalid("data-shards", "%d must be between 1 and %d", dataShards, feedtype.MaxDataShards)
	}
	if f.DialectFeed().ULIDs != nil {
		return false, &feedtype.Error{
			Code:   feedtype.Refused,
			Object: feedtype.FeedObject(f.Name),
			Cause:  "change data shards: its rows are only appended, and each value of the shard column is a shard",
			Err:    errors.ErrUnsupported,
			Next: "for more shards, insert rows with other values in the shard column; " +
				"to share the existing shards among more workers, set ShardCount or `rowfeed relay --shard-count`",
		}
	}
	if err := f.Recorder.ByKey("change data shards"); err != nil {
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
				"its keys are being assigned to %d data shards", r.DataShards)
		case r.State == catalog.StateSharding:
			return true, f.assignShards(ctx, dataShards, progress)
		case r.State == catalog.StateElsewhere:
			return conflict("run `rowfeed feed upgrade "+f.Name+" --published-here` first; parts of the feed can "+
				"be read without data shards", "another publisher gives its positions, and would not give shards")
		case r.State == catalog.StateMoving:
			return false, RefuseMoving(r, "change data shards")
		case r.State != catalog.StateActive:
			return conflict("run `rowfeed feed add "+f.Name+"` again with the same options, which completes the feed",
				"the feed is not complete: its state is %s", r.State)
		case r.DataShards == dataShards:
			return changed, nil
		}
		if err := f.beginSharding(ctx, r, dataShards); err != nil && !errors.Is(err, ErrRecordChanged) {
			return false, f.Fail("begin to change data shards", err)
		}
		changed = true // by this call or by a concurrent one with the same number
		f.Recorder.Wake()
	}
}

// assignShards walks along the keys until each has its shard among the wanted number of data shards.
func (f *Resharding) assignShards(ctx context.Context, wanted int, progress func(int64)) error {
	var total, former int64
	denied := 0
	for {
		r := f.Record.Load()
		switch {
		case r.DataShards != wanted:
			return feedError(feedtype.Conflict, f.Name, "agree on a number, then run `rowfeed feed upgrade "+f.Name+
				" --data-shards N`", "another process has set %d data shards meanwhile", r.DataShards)
		case r.State != catalog.StateSharding:
			return nil // another process has done the rest
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
			looked, late = 0, 0 // rolled back: another process has done this batch
		case errors.Is(err, store.ErrNoRows) || err != nil &&
			f.Store.Dialect.Classify(err) == dialect.ClassUndefined: // was the feed dropped?
			if err := f.Reload(ctx); err != nil {
				return err
			}
			return f.Fail("assign keys to shards", err)
		case err != nil:
			return f.Fail("assign keys to shards (run the command again to continue)", err)
		}
		if late > 0 {
			if late < former {
				denied = 0 // fewer rows are locked
			}
			former = late
			if denied++; denied == maxLockedTries {
				return feedError(feedtype.Locked, f.Name,
					"`rowfeed status "+f.Name+"` names the transactions; then "+
						catalog.FinishSharding(f.Name, r.DataShards),
					"%d rows cannot be assigned to shards: other transactions lock them, "+
						"or a trigger reverts the change", late)
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

// shardBatch assigns the next keys of the walk to their shards. It returns how many keys it has read, and how many rows
// other transactions lock. In that case the walk does not advance.
func (f *Resharding) shardBatch(ctx context.Context, tx dialect.Querier, r *catalog.FeedRecord) (
	looked, late int64, err error,
) {
	d, feed := f.Store.Dialect, r.Feed(f.Store.Names)
	if _, err := d.LockSequence(ctx, tx, feed); err != nil {
		return 0, 0, err
	}
	stage, after := walk(r)
	rows := stage == walkRows
	if rows && feed.OwnShard != "" {
		return 0, 0, f.saveMark(ctx, tx, r, []any{int64(walkDone)}) // nothing is written into rows
	}
	keys, err := dialect.WalkKeys(ctx, tx, d.Syntax, feed, rows, after, reshardBatch)
	if err != nil {
		return 0, 0, err
	}
	if len(keys) > 0 && after != nil && dialect.KeyIdentity(keys[0].Key) == dialect.KeyIdentity(after) {
		return 0, 0, fmt.Errorf("the walk along the keys does not advance beyond %v", after)
	}
	placed, err := f.recordShardless(ctx, tx, feed, keys)
	if err != nil {
		return 0, 0, err
	}
	wrong, err := Misplaced(r, placed, rows)
	if err != nil {
		return 0, 0, err
	}
	if len(wrong) > 0 {
		n, err := d.SetShards(ctx, tx, feed, rows, wrong)
		if err != nil {
			return 0, 0, err
		}
		if late = int64(len(wrong)) - n; late > 0 && !rows {
			return 0, 0, fmt.Errorf("%d of %d positions could not be assigned to shards: another program writes %s",
				late, len(wrong), feed.Positions())
		}
	}
	mark := []any{int64(stage)}
	switch {
	case late > 0:
		return 0, late, f.saveMark(ctx, tx, r, nil)
	case len(keys) == reshardBatch:
		mark = append(mark, keys[len(keys)-1].Key...)
	case stage == walkPositions && feed.InRows():
		mark[0] = int64(walkRows)
	default:
		mark[0] = int64(walkDone)
	}
	return int64(len(keys)), 0, f.saveMark(ctx, tx, r, mark)
}

// walk returns the stage of the walk, and the last key that it has processed.
func walk(r *catalog.FeedRecord) (stage int, after []any) {
	if len(r.FillAfter) == 0 {
		return walkPositions, nil
	}
	at, _ := r.FillAfter[0].(int64)
	if len(r.FillAfter) > 1 {
		after = r.FillAfter[1:]
	}
	return int(at), after
}

// Misplaced returns the positions whose stored shard is not the key's shard. Keys without a position are left out: the
// publisher assigns their shard together with the position.
func Misplaced(r *catalog.FeedRecord, keys []dialect.PlaceKey, rows bool) ([]dialect.Sharded, error) {
	var wrong []dialect.Sharded
	shardOf, feed := r.Sharder(), r.Feed(dialect.Names{})
	for _, k := range keys {
		if k.Position == nil || feed.RowShards() {
			continue
		}
		shard, err := shardOf(k.Key)
		if err != nil {
			return nil, err
		}
		if feed.OwnShard != "" {
			shard = keptShard(k)
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

// keptShard is the data shard of a key: the first that it had, even if its row holds another one now.
func keptShard(k dialect.PlaceKey) int {
	switch {
	case *k.Shard < 0 && k.Own != nil:
		return int(*k.Own)
	case *k.Shard < 0:
		return dialect.NoShard
	}
	return int(*k.Shard)
}

// recordShardless records the keys that get their first data shard, for the publisher to give them a position, too: the
// readers of that part may have passed the one that they have. It returns the other keys.
func (f *Resharding) recordShardless(ctx context.Context, tx dialect.Querier, feed *dialect.Feed,
	keys []dialect.PlaceKey) ([]dialect.PlaceKey, error) {
	var others []dialect.PlaceKey
	var positions []int64
	for _, k := range keys {
		if feed.OwnShard != "" && !feed.InRows() && k.Position != nil && *k.Shard < 0 && k.Own != nil && *k.Own >= 0 {
			positions = append(positions, *k.Position)
		} else {
			others = append(others, k)
		}
	}
	if len(positions) == 0 {
		return others, nil
	}
	d := f.Store.Dialect
	_, err := dialect.Exec(ctx, tx, d.Syntax, statements.For(d.Syntax, feed, "record_shardless"),
		d.Uncut(dialect.Args{"placed": dialect.SQL(strconv.Itoa(int(dialect.Placed))),
			"positions": dialect.List(positions)}))
	return others, err
}

// unchanged is the condition that the feed's record has the generation and the mark that were read, and this state.
func unchanged(s *store.Store, r *catalog.FeedRecord, state string) dialect.Built {
	mark := s.Statement(statements, "no_mark").With(nil)
	if r.FillMark != nil {
		mark = s.Statement(statements, "same_mark").With(dialect.Args{"mark": *r.FillMark})
	}
	return s.Statement(statements, "unchanged").With(dialect.Args{"feed": r.Name, "generation": r.Generation,
		"data_shards": int64(r.DataShards), "state": state, "mark": mark})
}

// saveMark saves how far the walk has come; nil leaves the mark as it is. If the record has changed since it was read,
// this batch was made for another number of shards, and the error is ErrRecordChanged.
func (f *Resharding) saveMark(ctx context.Context, tx dialect.Querier, r *catalog.FeedRecord, mark []any) error {
	if mark == nil {
		return refuseChanged(ctx, tx, f.Store, r, catalog.StateSharding)
	}
	return saveMark(ctx, tx, f.Store, r, catalog.StateSharding, mark)
}

// refuseChanged returns ErrRecordChanged if the record has changed since it was read in this state.
func refuseChanged(ctx context.Context, q dialect.Querier, s *store.Store, r *catalog.FeedRecord, state string) error {
	var n int64
	err := s.One(ctx, q, statements, "count_unchanged", dialect.Args{"unchanged": unchanged(s, r, state)}, &n)
	if err == nil && n != 1 {
		err = ErrRecordChanged
	}
	return err
}

// endSharding makes or removes the index by bucket, and sets the feed active. It does neither if the record has changed
// since it was read. The caller reloads the record. Making the index at once is cheaper than moving each key in it.
func (f *Resharding) endSharding(ctx context.Context, r *catalog.FeedRecord) error {
	err := f.Store.WithSchemaLock(ctx, "shard "+f.Name, func(q dialect.Querier) error {
		if err := refuseChanged(ctx, q, f.Store, r, catalog.StateSharding); err != nil {
			return err
		}
		steps, err := f.Store.Dialect.BucketIndex(ctx, q, r.Feed(f.Store.Names))
		if err != nil {
			return err
		}
		if err := run(ctx, q, steps); err != nil {
			return err
		}
		_, err = f.Store.Exec(ctx, q, statements, "end_walk", dialect.Args{"active": catalog.StateActive,
			"unchanged": unchanged(f.Store, r, catalog.StateSharding)})
		return err // changes nothing after a bump, which does not acquire the schema lock
	})
	if err == nil {
		f.Recorder.Wake()
	}
	return err
}
