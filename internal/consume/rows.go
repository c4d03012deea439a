package consume

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

//go:embed consume.sql
var file string

var statements = dialect.NewStatements(file)

// rowArgs name a row of the table rowfeed_cursors.
func rowArgs(consumer, feed string, shard int) dialect.Args {
	return dialect.Args{"consumer": consumer, "feed": feed, "shard": shard}
}

// Consumers runs the statements on the tables of consumers in one database.
type Consumers struct {
	Store  *store.Store
	Tracer feedtype.Tracer
}

func (db *Consumers) exec(ctx context.Context, q dialect.Querier, name string, args dialect.Args) (int64, error) {
	return db.Store.Exec(ctx, q, statements, name, args)
}

// part is a named condition as a part of a statement.
func (db *Consumers) part(name string, args dialect.Args) dialect.Built {
	return db.Store.Statement(statements, name).With(args)
}

func consumerObject(name, feed string) string {
	return fmt.Sprintf("consumer %q of feed %q", name, feed)
}

// CursorRow is a row of the table rowfeed_cursors.
type CursorRow struct {
	Consumer, Feed    string
	Shard, ShardCount int
	Value             feedtype.Cursor
	Generation        int64 // of Value; 0 if it has none
	Epoch             int64 // of the lease under which the row was claimed; 0 without a lease
	Paused            bool
	Aside             int64 // number of dead letters of this shard
	UpdatedAt         int64
	Failure           *feedtype.Failure // nil if the last attempt succeeded
	Target            string            // of a relay: where it delivers
	version           int64             // incremented by every write, except of failures and targets
}

func scanCursor(rows dialect.Rows) (*CursorRow, error) {
	r := &CursorRow{}
	var paused int
	var target sql.NullString
	var failure store.FailureScan
	err := rows.Scan(append([]any{&r.Consumer, &r.Feed, &r.Shard, &r.ShardCount, &r.Value, &r.Generation, &r.Epoch,
		&paused, &r.Aside, &r.UpdatedAt, &r.version, &target}, failure.Into()...)...)
	r.Paused, r.Target, r.Failure = paused != 0, target.String, failure.Failure()
	return r, err
}

// CursorsOf reads the cursors of a consumer of a feed, ordered by shard.
func (db *Consumers) CursorsOf(ctx context.Context, q dialect.Querier, consumer, feed string) ([]*CursorRow, error) {
	return store.All(ctx, db.Store, q, statements, "cursors", dialect.Args{"consumer": consumer, "feed": feed},
		scanCursor)
}

// Cursors reads the cursors that id names, ordered by consumer, feed and shard.
func (db *Consumers) Cursors(ctx context.Context, id feedtype.ConsumerID) ([]*CursorRow, error) {
	return store.All(ctx, db.Store, db.Store.On(), statements, "list_cursors", dialect.Args{"which": Which(id)},
		scanCursor)
}

// FailingCursors reads the cursors with a failure that are not paused, in the order of Cursors.
func (db *Consumers) FailingCursors(ctx context.Context) ([]*CursorRow, error) {
	return store.All(ctx, db.Store, db.Store.On(), statements, "failing_cursors", nil, scanCursor)
}

// cursorOf reads the cursor of one shard. It returns nil if there is none.
func (db *Consumers) cursorOf(ctx context.Context, q dialect.Querier, consumer, feed string,
	shard int) (*CursorRow, error) {
	rows, err := store.All(ctx, db.Store, q, statements, "cursor", rowArgs(consumer, feed, shard), scanCursor)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}

// ConsumerShardCount returns the number of shards of a consumer, and 1 for a new consumer. See Consumer.ShardCount.
func (db *Consumers) ConsumerShardCount(ctx context.Context, consumer, feed string) (int, error) {
	n, err := db.countOf(ctx, consumer, feed)
	return max(n, 1), db.Store.Fail(consumerObject(consumer, feed), "read its cursors", err)
}

// countOf returns the number of shards of a consumer, and 0 for a new consumer.
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

// Which is the condition that selects the rows of the consumers, feeds and shards that id names.
func Which(id feedtype.ConsumerID) dialect.Built {
	return func(b *dialect.Builder) string {
		condition := "1 = 1"
		if id.Consumer != "" {
			condition += " AND consumer = " + b.Arg(id.Consumer)
		}
		if id.Feed != "" {
			condition += " AND feed = " + b.Arg(id.Feed)
		}
		if id.Shard != nil {
			condition += " AND shard = " + b.Arg(*id.Shard)
		}
		return condition
	}
}

// RequireConsumer returns an error if no cursor matches id.
func (db *Consumers) RequireConsumer(ctx context.Context, id feedtype.ConsumerID) error {
	var n int64
	err := db.Store.One(ctx, db.Store.On(), statements, "count_cursors", dialect.Args{"which": Which(id)}, &n)
	if err == nil && n == 0 {
		err = db.UnknownConsumer(ctx, db.Store.On(), id)
	}
	return db.Store.Fail(id.String(), "look for its cursors", err)
}

// UnknownConsumer returns the error for an unknown consumer. Its text names the feeds that this consumer does read.
func (db *Consumers) UnknownConsumer(ctx context.Context, q dialect.Querier, id feedtype.ConsumerID) error {
	e := &feedtype.Error{Code: feedtype.UnknownConsumer, Object: id.String(), Cause: "there is no such cursor",
		Next: "`rowfeed consumer list` shows the consumers"}
	workers, failed := db.Workers(ctx, q, feedtype.ConsumerID{Consumer: id.Consumer})
	if failed != nil {
		return e
	}
	feeds, err := store.All(ctx, db.Store, q, statements, "feeds", dialect.Args{"consumer": id.Consumer},
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

// consumerRow is a row of the table rowfeed_consumers: what a consumer of a ULID feed has once for all its shards. A
// transaction that creates, moves or claims a cursor locks this row first. So all cursors have the same number of
// workers.
type consumerRow struct {
	shardCount int
	Paused     bool // new shards are paused too
}

func (r *consumerRow) count() int {
	if r == nil {
		return 0
	}
	return r.shardCount
}

func (db *Consumers) consumerRowOf(ctx context.Context, q dialect.Querier, consumer,
	feed string) (*consumerRow, error) {
	rows, err := store.All(ctx, db.Store, q, statements, "consumer", dialect.Args{"consumer": consumer, "feed": feed},
		func(rows dialect.Rows) (*consumerRow, error) {
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

// Workers returns the consumers of ULID feeds, by name and feed.
func (db *Consumers) Workers(ctx context.Context, q dialect.Querier,
	id feedtype.ConsumerID) (map[[2]string]*consumerRow, error) {
	id.Shard = nil
	found := map[[2]string]*consumerRow{}
	_, err := store.All(ctx, db.Store, q, statements, "consumers", dialect.Args{"which": Which(id)},
		func(rows dialect.Rows) (struct{}, error) {
			var key [2]string
			r, paused := &consumerRow{}, 0
			err := rows.Scan(&key[0], &key[1], &r.shardCount, &paused)
			r.Paused = paused != 0
			found[key] = r
			return struct{}{}, err
		})
	return found, err
}

// LockWhole locks the rows of the consumers that id names, and returns how many there are. It increments their
// version, so that workers read their cursors again: see checkCursors.
func (db *Consumers) LockWhole(ctx context.Context, tx dialect.Querier, id feedtype.ConsumerID) (int64, error) {
	id.Shard = nil
	return db.exec(ctx, tx, "lock_consumers", dialect.Args{"which": Which(id)})
}
