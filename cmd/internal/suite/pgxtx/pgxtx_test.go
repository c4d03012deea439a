// Package pgxtx_test has the tests of package pgxtx, on PostgreSQL.
package pgxtx_test

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/postgres"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
	"github.com/rowfeed/rowfeed/pgxtx"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// TestPoolIsNoTransaction: nothing that would run a call of rowfeed outside the caller's
// transaction is a rowfeed.Tx, nor can one be made of it.
func TestPoolIsNoTransaction(t *testing.T) {
	tx, own := reflect.TypeFor[rowfeed.Tx](), reflect.TypeFor[pgx.Tx]()
	for _, pool := range []reflect.Type{
		reflect.TypeFor[*sql.DB](), reflect.TypeFor[*sql.Conn](), reflect.TypeFor[*sql.Tx](),
		reflect.TypeFor[*pgxpool.Pool](), reflect.TypeFor[*pgxpool.Conn](), reflect.TypeFor[*pgx.Conn](),
		reflect.TypeFor[dialect.Querier](),
	} {
		if pool.Implements(tx) {
			t.Errorf("%s is a rowfeed.Tx", pool)
		}
		if pool.Implements(own) {
			t.Errorf("%s is a pgx.Tx", pool)
		}
	}
	if dialect.On(&sql.DB{}) == nil || reflect.TypeOf(dialect.On(&sql.DB{})).Implements(tx) {
		t.Error("dialect.On makes a rowfeed.Tx of a pool")
	}
	if !reflect.TypeOf(rowfeed.InTx(&sql.Tx{})).Implements(tx) {
		t.Error("InTx makes no rowfeed.Tx")
	}
}

// fixture is a feed with capture app and a pool of pgx's.
func fixture(t *testing.T) (*rowfeed.DB, *rowfeed.Feed, *pgxpool.Pool) {
	t.Helper()
	testdb.Postgres15.Require(t)
	d := testdb.Postgres15.New(t)
	db, err := rowfeed.Open(t.Context(), d.OpenTapped(t, testdb.Hooks{}), postgres.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.Exec(t, "CREATE TABLE kv (id bigint PRIMARY KEY, k text)")
	f, err := db.AddFeed(t.Context(), rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureApp}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), d.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return db, f, pool
}

// TestRecordsCommitAndRollBackWithPgxTransaction: what is recorded in a transaction of pgx's is there when it commits,
// and is not when it, or a savepoint in it, is rolled back.
func TestRecordsCommitAndRollBackWithPgxTransaction(t *testing.T) {
	db, f, pool := fixture(t)
	ctx := t.Context()
	record := func(tx pgx.Tx, id int64) {
		t.Helper()
		if _, err := tx.Exec(ctx, "INSERT INTO kv VALUES ($1, 'k')", id); err != nil {
			t.Fatal(err)
		}
		if err := f.Record(ctx, pgxtx.In(tx), rowfeed.Key{id}); err != nil {
			t.Fatal(err)
		}
	}
	wantPublished := func(when string, want int) {
		t.Helper()
		if n, err := f.Publish(ctx); n != want || err != nil {
			t.Errorf("%s: %d published, want %d, %v", when, n, want, err)
		}
	}
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	record(tx, 1)
	inner, err := tx.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	record(inner, 2)
	if err := inner.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	wantPublished("before the commit", 0)
	e := rowfeed.Entry{Position: "1", Generation: 1}
	for _, want := range []bool{true, false} {
		if first, err := db.MarkProcessed(ctx, pgxtx.In(tx), "c", "kv", e); first != want || err != nil {
			t.Errorf("mark an entry as processed: %v %v", first, err)
		}
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	wantPublished("after the commit", 1)

	if tx, err = pool.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	record(tx, 3)
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	wantPublished("after a rollback", 0)
}

// pretender is a pgx.Tx whose statements run by themselves.
type pretender struct {
	pgx.Tx
	conn *pgx.Conn
}

func (p pretender) Conn() *pgx.Conn { return p.conn }

// TestCallsOutsideOfTransactionAreRefused: what is no open transaction is refused by every call, with what to do,
// and nothing is written.
func TestCallsOutsideOfTransactionAreRefused(t *testing.T) {
	_, f, pool := fixture(t)
	ctx := context.Background()
	ended, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := ended.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for name, tx := range map[string]rowfeed.Tx{
		"nil": pgxtx.In(nil), "no connection": pgxtx.In(pretender{}),
		"a connection of its own": pgxtx.In(pretender{conn: conn.Conn()}),
		"a nil *sql.Tx":           rowfeed.InTx(nil),
	} {
		err := f.Record(ctx, tx, rowfeed.Key{1})
		var e *rowfeed.Error
		if !errors.As(err, &e) || e.Code != rowfeed.InvalidRequest || e.Next == "" {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := tx.Query(ctx, "SELECT 1"); !errors.As(err, &e) || e.Code != rowfeed.InvalidRequest {
			t.Errorf("%s: Query: %v", name, err)
		}
	}
	if err := f.Record(ctx, pgxtx.In(ended), rowfeed.Key{1}); err == nil {
		t.Error("a transaction that has ended was taken")
	}
	if n, err := f.Publish(ctx); n != 0 || err != nil {
		t.Errorf("%d published %v", n, err)
	}
}

// TestLockedULIDsFollowPgxSavepoints: pgx's transactions take ULIDs, and a nested one, which is a savepoint, that is
// rolled back takes its own back (hazard 8).
func TestLockedULIDsFollowPgxSavepoints(t *testing.T) {
	db, _, pool := fixture(t)
	ctx := t.Context()
	_, err := pool.Exec(ctx, "CREATE TABLE ev "+
		"(id bigint PRIMARY KEY, shard int NOT NULL, ulid uuid NOT NULL, UNIQUE (shard, ulid))")
	if err != nil {
		t.Fatal(err)
	}
	f, err := db.AddFeed(
		ctx,
		rowfeed.FeedSpec{
			Name:           "ev",
			Table:          "ev",
			Mode:           rowfeed.ModeBlocking,
			PositionColumn: "ulid",
			ShardColumn:    "shard",
		},
		nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	outer, err := f.Lock(ctx, pgxtx.In(tx), rowfeed.LockRequest{})
	if err != nil {
		t.Fatal(err)
	}
	nested, err := tx.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := f.Lock(ctx, pgxtx.In(tx), rowfeed.LockRequest{})
	if err == nil {
		err = errors.Join(outer.Verify(ctx), inner.Verify(ctx), nested.Rollback(ctx))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := inner.Verify(ctx); !errors.Is(err, rowfeed.Conflict) {
		t.Errorf("after the savepoint was rolled back: %v", err)
	}
	if nested, err = tx.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	if inner, err = f.Lock(ctx, pgxtx.In(nested), rowfeed.LockRequest{}); err == nil {
		err = errors.Join(inner.Verify(ctx), nested.Commit(ctx))
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // its own transaction has ended, the one around it has not
		if err := inner.Verify(ctx); !errors.Is(err, rowfeed.InvalidRequest) || !errors.Is(err, sql.ErrTxDone) {
			t.Errorf("after the savepoint was released: %v", err)
		}
	}
	id, err := outer.At(0, 5)
	if err == nil {
		_, err = tx.Exec(ctx, "INSERT INTO ev VALUES (1, 0, $1)", id)
	}
	if err = errors.Join(err, outer.Verify(ctx), tx.Commit(ctx)); err != nil {
		t.Fatal(err)
	}
	page, err := f.Fetch(ctx, rowfeed.Request{})
	if err != nil || len(page.Entries) != 1 || page.Entries[0].Position != id.String() {
		t.Errorf("%+v, %v, want %s", page, err, id)
	}
	if err := outer.Verify(ctx); err == nil {
		t.Error("ULIDs are good for a transaction that has ended")
	}
}
