package consume

import (
	"context"
	"errors"
	"maps"
	"math"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// MarkProcessed is documented at rowfeed.DB.MarkProcessed.
func (db *Consumers) MarkProcessed(ctx context.Context, tx dialect.Querier, consumer, feed string,
	e feedtype.Entry) (first bool, err error) {
	switch {
	case !feedtype.ValidConsumer(consumer):
		return false, feedtype.Invalid("consumer", "%q is not a consumer name", consumer)
	case e.Generation < 1 || e.Position == "":
		return false, feedtype.Invalid("entry",
			"its generation or position is missing: pass an entry as the feed delivered it")
	}
	if err := feedtype.ValidName(feed); err != nil {
		return false, err
	}
	position, err := orderedPosition(e)
	if err != nil {
		return false, err
	}
	if e.Stamp != 0 {
		if known, err := db.processedWithoutStamp(ctx, tx, consumer, feed, e); known || err != nil {
			return false, db.Store.Fail(consumerObject(consumer, feed), "look for a processed entry", err)
		}
	}
	n, err := db.exec(ctx, tx, "mark_processed", dialect.Args{"consumer": consumer, "feed": feed,
		"generation": e.Generation, "shard": e.Shard, "position": position})
	return n == 1, db.Store.Fail(consumerObject(consumer, feed), "mark an entry as processed", err)
}

// processedWithoutStamp tells whether an entry was processed before entries had stamps. An id that was marked before
// the entry was published belongs to another entry, which had the same position before the database was set back.
func (db *Consumers) processedWithoutStamp(ctx context.Context, tx dialect.Querier, consumer, feed string,
	e feedtype.Entry) (bool, error) {
	stamp := e.Stamp
	e.Stamp = 0
	position, err := orderedPosition(e)
	if err != nil {
		return false, err
	}
	var n int
	err = db.Store.One(ctx, tx, statements, "processed_without_stamp", dialect.Args{"consumer": consumer, "feed": feed,
		"generation": e.Generation, "shard": e.Shard, "position": position, "published": stamp}, &n)
	return n > 0, err
}

// orderedPosition returns an entry's position and stamp as text that sorts like positions do.
func orderedPosition(e feedtype.Entry) (string, error) {
	p, err := feedtype.ParsePosition(e.Position)
	if err != nil {
		return "", feedtype.Invalid("entry", "%q is not a position", e.Position)
	}
	if e.Stamp == 0 {
		return p.Ordered(), nil
	}
	return p.Ordered() + strconv.FormatInt(e.Stamp, 32), nil
}

// purgeSize is the number of processed ids that one transaction deletes.
const purgeSize = 2000

// PurgeProcessed deletes the processed ids up to a cursor, and those of older generations. No entry at or below the
// cursor can come again. Beginning means the lowest cursor of the consumer of this name. It returns the number of
// deleted ids.
func (db *Consumers) PurgeProcessed(ctx context.Context, consumer, feed string,
	upTo feedtype.Cursor) (total int64, err error) {
	if err := db.Store.RequireSchema(ctx, db.Store.On()); err != nil {
		return 0, err
	}
	object := consumerObject(consumer, feed)
	if upTo == feedtype.Beginning {
		if upTo, err = db.lowestCursor(ctx, consumer, feed); err != nil {
			return 0, err
		}
	}
	at, err := upTo.State()
	if err != nil {
		return 0, err
	}
	if at.Start {
		return 0, nil
	}
	type part struct{ generation, shard int64 }
	parts, err := store.All(ctx, db.Store, db.Store.On(), statements, "processed_parts",
		dialect.Args{"consumer": consumer, "feed": feed, "generation": at.Generation},
		func(rows dialect.Rows) (p part, err error) { return p, rows.Scan(&p.generation, &p.shard) })
	if err != nil {
		return 0, db.Store.Fail(object, "purge processed ids", err)
	}
	for _, p := range parts {
		last := at.Position.Ordered() + "z" // above every stamp of the position
		if p.generation < at.Generation {
			last = strings.Repeat("Z", 40) // above every position
		}
		for n := int64(math.MaxInt64); n >= purgeSize; total += n {
			err := db.Store.InTx(ctx, dialect.ForRecord, "purge processed ids", func(tx dialect.Querier) (err error) {
				n, err = db.purgeBatch(ctx, tx, consumer, feed, p.generation, p.shard, last)
				return err
			})
			if err != nil {
				return total, db.Store.Fail(object, "purge processed ids", err)
			}
		}
	}
	return total, nil
}

// purgeBatch deletes the lowest positions up to last, at most purgeSize of them.
func (db *Consumers) purgeBatch(ctx context.Context, tx dialect.Querier, consumer, feed string, generation, shard int64,
	last string) (int64, error) {
	args := dialect.Args{"consumer": consumer, "feed": feed, "generation": generation, "shard": shard, "last": last}
	batch := maps.Clone(args)
	batch["others"] = dialect.SQL(strconv.Itoa(purgeSize - 1))
	err := db.Store.One(ctx, tx, statements, "end_of_batch", batch, &last)
	if err != nil && !errors.Is(err, store.ErrNoRows) {
		return 0, err
	}
	args["last"] = last
	return db.exec(ctx, tx, "purge_processed", args)
}

// lowestCursor returns the cursor of the shard that is furthest behind.
func (db *Consumers) lowestCursor(ctx context.Context, consumer, feed string) (feedtype.Cursor, error) {
	id := feedtype.ConsumerID{Consumer: consumer, Feed: feed}
	values, err := store.All(ctx, db.Store, db.Store.On(), statements, "values",
		dialect.Args{"consumer": consumer, "feed": feed},
		func(rows dialect.Rows) (c feedtype.Cursor, err error) { return c, rows.Scan(&c) })
	if err != nil {
		return "", db.Store.Fail(id.String(), "read its cursors", err)
	}
	if len(values) == 0 {
		return "", db.UnknownConsumer(ctx, db.Store.On(), id)
	}
	lowest, found := feedtype.CursorState{}, false
	for _, c := range values {
		at, err := c.State()
		if err != nil { // "now" or "at:…": nothing has been read
			return feedtype.Beginning, nil
		}
		if !found || at.Generation < lowest.Generation || at.Generation == lowest.Generation &&
			lowest.Position.Above(at.Position) {
			lowest, found = at, true
		}
	}
	return lowest.Cursor(), nil
}
