package consume

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// wholeRow is what a consumer has for all shards of a feed each of which is one by itself: a row
// of the table of consumers. Who makes cursors, or moves or claims one, locks it first: so no
// cursor is made of another number of workers than the others have.
type wholeRow struct {
	shardCount int
	Paused     bool // a shard that comes is paused, too
}

func (r *wholeRow) count() int {
	if r == nil {
		return 0
	}
	return r.shardCount
}

func (db *Consumers) wholeOf(ctx context.Context, q dialect.Querier, consumer, feed string) (*wholeRow, error) {
	b := dialect.NewBuilder(db.Store.Dialect)
	rows, err := dialect.QueryAll(ctx, q, "SELECT shard_count, paused FROM "+db.Store.Table("consumers")+
		" WHERE consumer = "+b.Arg(consumer)+" AND feed = "+b.Arg(feed), b.Args(), func(rows dialect.Rows) (*wholeRow, error) {
		r, paused := &wholeRow{}, 0
		err := rows.Scan(&r.shardCount, &paused)
		r.Paused = paused != 0
		return r, err
	})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}

// Workers are the consumers, by name and feed, whose feed's shards are feeds by themselves.
func (db *Consumers) Workers(ctx context.Context, q dialect.Querier, id feedtype.ConsumerID) (map[[2]string]*wholeRow, error) {
	b := dialect.NewBuilder(db.Store.Dialect)
	found := map[[2]string]*wholeRow{}
	_, err := dialect.QueryAll(ctx, q, "SELECT consumer, feed, shard_count, paused FROM "+db.Store.Table("consumers")+" WHERE "+WhereID(b, feedtype.ConsumerID{Consumer: id.Consumer, Feed: id.Feed}), b.Args(),
		func(rows dialect.Rows) (struct{}, error) {
			var who [2]string
			r, paused := &wholeRow{}, 0
			err := rows.Scan(&who[0], &who[1], &r.shardCount, &paused)
			r.Paused = paused != 0
			found[who] = r
			return struct{}{}, err
		})
	return found, err
}

// LockWhole locks the rows of the consumers that id names, and answers how many there are. It
// counts in them, which has workers read their cursors: see check.
func (db *Consumers) LockWhole(ctx context.Context, tx dialect.Querier, id feedtype.ConsumerID) (int64, error) {
	b := dialect.NewBuilder(db.Store.Dialect)
	return tx.Exec(ctx, "UPDATE "+db.Store.Table("consumers")+" SET version = version + 1 WHERE "+WhereID(b, feedtype.ConsumerID{Consumer: id.Consumer, Feed: id.Feed}), b.Args()...)
}

// arrangeShards sees to it that the consumer has a cursor for each shard that the feed has.
// That of a new consumer begins where the consumer does; a shard that comes later begins at its
// beginning. Only an instance that starts changes the number of workers, and changes no cursor.
func (r *consuming) arrangeShards(ctx context.Context, info *feedtype.Info, starting bool) error {
	for {
		begins, err := r.begins(ctx, info)
		if err == nil {
			err = r.arrangeWith(ctx, info, starting, begins)
		}
		if !errors.Is(err, errOvertaken) { // dropped in this moment, and new again
			return err
		}
	}
}

// arrangeWith knows where a new consumer begins.
func (r *consuming) arrangeWith(ctx context.Context, info *feedtype.Info, starting bool, begins map[int]feedtype.Cursor) error {
	db, id := r.c.DB, feedtype.ConsumerID{Consumer: r.c.Name, Feed: info.Name}
	return db.Store.InTx(ctx, dialect.ForRecord, "make a consumer's cursors", func(tx dialect.Querier) error {
		n, err := db.LockWhole(ctx, tx, id)
		isNew := false
		if err == nil && n == 0 {
			b := dialect.NewBuilder(db.Store.Dialect)
			columns := []string{"consumer", "feed", "shard_count", "paused", "version"}
			values := []string{b.Arg(r.c.Name), b.Arg(info.Name), b.Arg(r.count), "0", "0"}
			if n, err = tx.Exec(ctx, db.Store.Dialect.InsertNew(db.Store.Table("consumers"), columns, values, columns[:2]), b.Args()...); err == nil {
				isNew = n == 1
				_, err = db.LockWhole(ctx, tx, id)
			}
		}
		if err != nil {
			return err
		}
		whole, err := db.wholeOf(ctx, tx, r.c.Name, info.Name)
		if err != nil {
			return err
		}
		rows, err := db.CursorsOf(ctx, tx, r.c.Name, info.Name)
		switch {
		case err != nil:
			return err
		case whole == nil, isNew && begins == nil && !r.c.Start.IsBeginning():
			return errOvertaken
		}
		shards := info.ShardIDs
		if isNew && len(rows) == 0 && begins != nil { // else it has read another feed of this name
			shards = slices.Collect(maps.Keys(begins))
		} else {
			begins = nil
		}
		other := slices.ContainsFunc(rows, func(row *CursorRow) bool { return row.ShardCount != r.count })
		if whole.shardCount != r.count && !starting {
			return r.recounted(whole.shardCount)
		}
		if whole.shardCount != r.count || other {
			for _, table := range []string{"consumers", "cursors"} {
				b := dialect.NewBuilder(db.Store.Dialect)
				if _, err := tx.Exec(ctx, "UPDATE "+db.Store.Table(table)+" SET shard_count = "+b.Arg(r.count)+", version = version + 1 WHERE "+WhereID(b, id), b.Args()...); err != nil {
					return err
				}
			}
		}
		return r.insertShards(ctx, tx, info.Name, whole.Paused, rows, shards, begins)
	})
}

// newShards makes cursors of shards that have come to the feed while this instance works.
func (r *consuming) newShards(ctx context.Context, shards []int) error {
	db, id := r.c.DB, feedtype.ConsumerID{Consumer: r.c.Name, Feed: r.feed}
	err := db.Store.InTx(ctx, dialect.ForRecord, "make cursors of new shards", func(tx dialect.Querier) error {
		if _, err := db.LockWhole(ctx, tx, id); err != nil {
			return err
		}
		whole, err := db.wholeOf(ctx, tx, r.c.Name, r.feed)
		switch {
		case err != nil:
			return err
		case whole == nil:
			return errOvertaken
		case whole.shardCount != r.count:
			return r.recounted(whole.shardCount)
		}
		rows, err := db.CursorsOf(ctx, tx, r.c.Name, r.feed)
		if err != nil {
			return err
		}
		return r.insertShards(ctx, tx, r.feed, whole.Paused, rows, shards, nil)
	})
	if errors.Is(err, errOvertaken) {
		return r.open(ctx, false) // it was dropped, and begins anew
	}
	return err
}

// insertShards inserts the cursors that are missing, each at its place, or at its beginning.
// Nobody else does: the consumer is locked.
func (r *consuming) insertShards(ctx context.Context, tx dialect.Querier, feed string, paused bool, rows []*CursorRow, shards []int, begins map[int]feedtype.Cursor) error {
	has := make(map[int]bool, len(rows))
	for _, row := range rows {
		has[row.Shard] = true
	}
	missing := slices.DeleteFunc(slices.Clone(shards), func(shard int) bool { return has[shard] })
	const most = 100 // of which each has nine parameters
	for some := range slices.Chunk(missing, most) {
		b := dialect.NewBuilder(r.c.DB.Store.Dialect)
		values := make([]string, len(some))
		for i, shard := range some {
			values[i] = "(" + strings.Join([]string{b.Arg(r.c.Name), b.Arg(feed), b.Arg(shard), b.Arg(r.count), b.Arg(string(begins[shard])), b.Arg(begins[shard].Generation()),
				"0", "0", b.Arg(number(paused)), "0", r.c.DB.Store.Dialect.Now()}, ", ") + ")"
		}
		_, err := tx.Exec(ctx, "INSERT INTO "+r.c.DB.Store.Table("cursors")+
			" (consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at) VALUES "+strings.Join(values, ", "), b.Args()...)
		if err != nil {
			return err
		}
	}
	return nil
}

// unread is what nobody has counted yet.
const unread = -1

// check looks whether somebody has moved a cursor of the worker's, and reads them all where any
// of the consumer's was: whoever moves, makes or claims one counts in the consumer's row. What
// a worker writes behind a page it need not tell; another instance that has the same shard
// finds that when it writes.
func (w *worker) check(ctx context.Context) error {
	r := w.r
	db := r.c.DB
	b := dialect.NewBuilder(db.Store.Dialect)
	var count int
	var changes int64
	err := dialect.QueryRow(ctx, db.Store.On(), "SELECT shard_count, version FROM "+db.Store.Table("consumers")+
		" WHERE consumer = "+b.Arg(r.c.Name)+" AND feed = "+b.Arg(r.feed), b.Args(), &count, &changes)
	switch {
	case errors.Is(err, store.ErrNoRows): // it was dropped, and begins anew
		clear(w.shards)
		w.standings, w.changes = nil, unread
		return r.open(ctx, false)
	case err != nil:
		return err
	case count != r.count:
		return r.recounted(count)
	}
	if changes != w.changes {
		if err := w.read(ctx); err != nil {
			return err
		}
		w.changes = changes
	}
	if err := w.releases(ctx); err != nil {
		return err
	}
	w.checkedAt = time.Now()
	return nil
}

// read reads the worker's cursors, which are its lease's from then on.
func (w *worker) read(ctx context.Context) error {
	rows, err := w.mine(ctx)
	if err != nil {
		return err
	}
	var earlier []int
	for _, row := range rows {
		if row.Epoch < w.r.epoch {
			earlier = append(earlier, row.Shard)
		}
	}
	if len(earlier) > 0 {
		if err := w.claim(ctx, earlier); err != nil {
			return err
		}
		if rows, err = w.mine(ctx); err != nil {
			return err
		}
	}
	there := make(map[int]bool, len(rows))
	for _, row := range rows {
		there[row.Shard] = true
		if w.r.epoch != 0 && row.Epoch > w.r.epoch {
			return &feedtype.Error{Code: feedtype.LeaseLost, Object: w.r.object(), Cause: fmt.Sprintf("the lease with epoch %d is over: the cursor of shard %d is held under epoch %d", w.r.epoch, row.Shard, row.Epoch),
				Next: "acquire the lease again"}
		}
		t := w.shards[row.Shard]
		if t == nil {
			t = &ownShard{one: w.r.bare(w.r.until, row.Shard, w.r.epoch)}
			t.one.ofShard = true
			w.shards[row.Shard] = t
		} else if t.one.version == row.version {
			continue
		}
		one := t.one
		t.last = row
		one.row, one.version, one.readAt, one.releases = row, row.version, time.Now(), true
		one.parked, one.notBefore = row.Paused && !w.r.once, time.Time{}
		t.due = !one.parked
	}
	for shard := range w.shards {
		if !there[shard] {
			delete(w.shards, shard)
			w.standings = nil // it may come again
		}
	}
	return nil
}

// mine are the cursors of the worker's shards.
func (w *worker) mine(ctx context.Context) ([]*CursorRow, error) {
	rows, err := w.r.c.DB.CursorsOf(ctx, w.r.c.DB.Store.On(), w.r.c.Name, w.r.feed)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if row.ShardCount != w.r.count {
			return nil, w.r.recounted(row.ShardCount)
		}
	}
	return slices.DeleteFunc(rows, func(row *CursorRow) bool { return JobOf(row.Shard, w.r.count) != w.job }), nil
}

// claim makes cursors the lease's, see claim of one.
func (w *worker) claim(ctx context.Context, shards []int) error {
	db := w.r.c.DB
	const most = 500
	for some := range slices.Chunk(shards, most) {
		err := db.Store.InTx(ctx, dialect.ForRecord, "claim cursors", func(tx dialect.Querier) error {
			if _, err := db.LockWhole(ctx, tx, feedtype.ConsumerID{Consumer: w.r.c.Name, Feed: w.r.feed}); err != nil {
				return err
			}
			b := dialect.NewBuilder(db.Store.Dialect)
			query := "UPDATE " + db.Store.Table("cursors") + " SET epoch = " + b.Arg(w.r.epoch) + ", version = version + 1, updated_at = " + db.Store.Dialect.Now() +
				" WHERE consumer = " + b.Arg(w.r.c.Name) + " AND feed = " + b.Arg(w.r.feed) + " AND shard_count = " + b.Arg(w.r.count)
			epoch := b.Arg(w.r.epoch)
			list := make([]string, len(some))
			for i, shard := range some {
				list[i] = b.Arg(shard)
			}
			_, err := tx.Exec(ctx, query+" AND epoch < "+epoch+" AND shard IN ("+strings.Join(list, ", ")+")", b.Args()...)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// releases asks, where keys are set aside, for which shards an operator wants some back.
func (w *worker) releases(ctx context.Context) error {
	aside := false
	for _, t := range w.shards {
		aside = aside || t.last.Aside > 0
	}
	if !aside {
		return nil
	}
	db := w.r.c.DB
	b := dialect.NewBuilder(db.Store.Dialect)
	shards, err := dialect.QueryAll(ctx, db.Store.On(), "SELECT DISTINCT shard FROM "+db.Store.Table("dead_letters")+" WHERE consumer = "+b.Arg(w.r.c.Name)+
		" AND feed = "+b.Arg(w.r.feed)+" AND state = "+b.Arg(feedtype.LetterRetry), b.Args(), func(rows dialect.Rows) (shard int, err error) { return shard, rows.Scan(&shard) })
	if err != nil {
		return err
	}
	for _, shard := range shards {
		if t := w.shards[shard]; t != nil && !t.one.parked && t.last.Value.Settled() {
			t.one.releases, t.due, t.one.notBefore = true, true, time.Time{}
		}
	}
	return nil
}

// pausedOf answers an error where a shard of a job is paused, or the number of workers is
// another one by now.
func (r *consuming) pausedOf(ctx context.Context, job int) error {
	w := &worker{r: r, job: job}
	rows, err := w.mine(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Paused {
			one := r.bare(r.until, row.Shard, 0)
			one.ofShard = true
			return one.isPaused()
		}
	}
	return nil
}
