package consume

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Consumers are those of a database.
type Consumers struct {
	Store  *store.Store
	Tracer feedtype.Tracer
}

func (db *Consumers) builder() *dialect.Builder { return dialect.NewBuilder(db.Store.Dialect) }

func (db *Consumers) table(name string) string { return db.Store.Table(name) }

// now is the database's time, as SQL.
func (db *Consumers) now() string { return db.Store.Dialect.Now() }

func consumerObject(name, feed string) string {
	return fmt.Sprintf("consumer %q of feed %q", name, feed)
}

// CursorRow is a row of the table of cursors.
type CursorRow struct {
	Consumer, Feed    string
	Shard, ShardCount int
	Value             feedtype.Cursor
	Generation        int64 // of value; 0 where it has none
	Epoch             int64 // of the lease under which the row is written; 0 without one
	Paused            bool
	Aside             int64 // dead letters of this shard
	UpdatedAt         int64
	Failure           string // why the shard rests; empty where it does not
	version           int64  // counts the writes
}

const CursorColumns = "consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, failure"

func ScanCursor(rows dialect.Rows) (*CursorRow, error) {
	r := &CursorRow{}
	var paused int
	var failure sql.NullString
	err := rows.Scan(&r.Consumer, &r.Feed, &r.Shard, &r.ShardCount, &r.Value, &r.Generation, &r.Epoch, &paused, &r.Aside, &r.UpdatedAt, &r.version, &failure)
	r.Paused, r.Failure = paused != 0, failure.String
	return r, err
}

// CursorsOf reads the cursors of a consumer of a feed, in the order of their shards.
func (db *Consumers) CursorsOf(ctx context.Context, q dialect.Querier, consumer, feed string) ([]*CursorRow, error) {
	b := db.builder()
	return dialect.QueryAll(ctx, q, "SELECT "+CursorColumns+" FROM "+db.table("cursors")+
		" WHERE consumer = "+b.Arg(consumer)+" AND feed = "+b.Arg(feed)+" ORDER BY shard", b.Args(), ScanCursor)
}

// cursorOf reads a shard's cursor; nil where there is none.
func (db *Consumers) cursorOf(ctx context.Context, q dialect.Querier, consumer, feed string, shard int) (*CursorRow, error) {
	b := db.builder()
	rows, err := dialect.QueryAll(ctx, q, "SELECT "+CursorColumns+" FROM "+db.table("cursors")+
		" WHERE consumer = "+b.Arg(consumer)+" AND feed = "+b.Arg(feed)+" AND shard = "+b.Arg(shard), b.Args(), ScanCursor)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}

// ConsumerShardCount is the number of shards that a consumer has, 1 where it is new: see
// Consumer.ShardCount.
func (db *Consumers) ConsumerShardCount(ctx context.Context, consumer, feed string) (int, error) {
	n, err := db.countOf(ctx, consumer, feed)
	return max(n, 1), db.Store.Fail(consumerObject(consumer, feed), "read its cursors", err)
}

// countOf is that number, 0 where the consumer is new.
func (db *Consumers) countOf(ctx context.Context, consumer, feed string) (int, error) {
	whole, err := db.consumerRowOf(ctx, db.Store.On(), consumer, feed)
	if err != nil || whole != nil {
		return whole.count(), err
	}
	rows, err := db.CursorsOf(ctx, db.Store.On(), consumer, feed)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0].ShardCount, nil
}

// where is the condition that a row is one of those named.
func WhereID(b *dialect.Builder, id feedtype.ConsumerID) string {
	conditions := []string{"1 = 1"}
	if id.Consumer != "" {
		conditions = append(conditions, "consumer = "+b.Arg(id.Consumer))
	}
	if id.Feed != "" {
		conditions = append(conditions, "feed = "+b.Arg(id.Feed))
	}
	if id.Shard != nil {
		conditions = append(conditions, "shard = "+b.Arg(*id.Shard))
	}
	return strings.Join(conditions, " AND ")
}

// knowsConsumer answers an error where there is no cursor of those named.
func (db *Consumers) knowsConsumer(ctx context.Context, id feedtype.ConsumerID) error {
	b := db.builder()
	var n int64
	err := dialect.QueryRow(ctx, db.Store.On(), "SELECT count(*) FROM "+db.table("cursors")+" WHERE "+WhereID(b, id), b.Args(), &n)
	if err == nil && n == 0 {
		err = db.UnknownConsumer(ctx, db.Store.On(), id)
	}
	return db.Store.Fail(id.String(), "look for its cursors", err)
}

// UnknownConsumer says what there is instead.
func (db *Consumers) UnknownConsumer(ctx context.Context, q dialect.Querier, id feedtype.ConsumerID) error {
	e := &feedtype.Error{Code: feedtype.UnknownConsumer, Object: id.String(), Cause: "there is no such cursor", Next: "`rowfeed consumer list` shows the consumers"}
	b := db.builder()
	workers, failed := db.Workers(ctx, q, feedtype.ConsumerID{Consumer: id.Consumer})
	if failed != nil {
		return e
	}
	feeds, err := dialect.QueryAll(ctx, q, "SELECT feed, max(shard_count) FROM "+db.table("cursors")+" WHERE consumer = "+b.Arg(id.Consumer)+" GROUP BY feed ORDER BY feed", b.Args(),
		func(rows dialect.Rows) (feed string, err error) {
			var shards int
			err = rows.Scan(&feed, &shards)
			switch {
			case workers[[2]string{id.Consumer, feed}] != nil:
			case id.Shard != nil && shards == 1:
				feed += " (shard 0 alone)"
			case id.Shard != nil:
				feed += fmt.Sprintf(" (shards 0 to %d)", shards-1)
			}
			return feed, err
		})
	if err == nil && len(feeds) > 0 {
		e.Cause += ", but there are some of feed " + strings.Join(feeds, ", ")
	}
	return e
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// consumerRow is what a consumer has for all shards of a feed each of which is one by itself: a row
// of the table of consumers. Who makes cursors, or moves or claims one, locks it first: so no
// cursor is made of another number of workers than the others have.
type consumerRow struct {
	shardCount int
	Paused     bool // a shard that comes is paused, too
}

func (r *consumerRow) count() int {
	if r == nil {
		return 0
	}
	return r.shardCount
}

func (db *Consumers) consumerRowOf(ctx context.Context, q dialect.Querier, consumer, feed string) (*consumerRow, error) {
	b := db.builder()
	rows, err := dialect.QueryAll(ctx, q, "SELECT shard_count, paused FROM "+db.table("consumers")+
		" WHERE consumer = "+b.Arg(consumer)+" AND feed = "+b.Arg(feed), b.Args(), func(rows dialect.Rows) (*consumerRow, error) {
		r, paused := &consumerRow{}, 0
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
func (db *Consumers) Workers(ctx context.Context, q dialect.Querier, id feedtype.ConsumerID) (map[[2]string]*consumerRow, error) {
	b := db.builder()
	found := map[[2]string]*consumerRow{}
	_, err := dialect.QueryAll(ctx, q, "SELECT consumer, feed, shard_count, paused FROM "+db.table("consumers")+" WHERE "+WhereID(b, feedtype.ConsumerID{Consumer: id.Consumer, Feed: id.Feed}), b.Args(),
		func(rows dialect.Rows) (struct{}, error) {
			var who [2]string
			r, paused := &consumerRow{}, 0
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
	b := db.builder()
	return tx.Exec(ctx, "UPDATE "+db.table("consumers")+" SET version = version + 1 WHERE "+WhereID(b, feedtype.ConsumerID{Consumer: id.Consumer, Feed: id.Feed}), b.Args()...)
}
