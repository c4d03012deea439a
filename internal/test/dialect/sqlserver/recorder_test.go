package sqlserver_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// recorder is a database that keeps the statements that it is sent, and answers nothing.
type recorder struct{ sent []string }

func (r *recorder) add(query string) {
	if !slices.Contains(r.sent, query) {
		r.sent = append(r.sent, query)
	}
}

// These methods implement the database's driver.

func (r *recorder) Connect(context.Context) (driver.Conn, error)                 { return r, nil }
func (r *recorder) Driver() driver.Driver                                        { return nil }
func (r *recorder) Prepare(string) (driver.Stmt, error)                          { return nil, errors.ErrUnsupported }
func (r *recorder) Close() error                                                 { return nil }
func (r *recorder) Begin() (driver.Tx, error)                                    { return r, nil }
func (r *recorder) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return r, nil }
func (r *recorder) Commit() error                                                { return nil }
func (r *recorder) Rollback() error                                              { return nil }
func (r *recorder) CheckNamedValue(*driver.NamedValue) error                     { return nil }
func (r *recorder) Columns() []string                                            { return nil }
func (r *recorder) Next([]driver.Value) error                                    { return io.EOF }
func (r *recorder) ExecContext(_ context.Context, q string, _ []driver.NamedValue) (driver.Result, error) {
	r.add(q)
	return driver.RowsAffected(1), nil
}
func (r *recorder) QueryContext(_ context.Context, q string, _ []driver.NamedValue) (driver.Rows, error) {
	r.add(q)
	return r, nil
}

// call runs every operation of a feed on a database that answers nothing. An operation may fail then, but it must not
// panic: each argument of its statements has a value.
func call(t *testing.T, f *dialect.Feed) []string {
	ctx, r := t.Context(), &recorder{}
	pool := sql.OpenDB(r)
	defer pool.Close()
	q := dialect.On(pool)
	table := &dialect.Table{Name: f.Source, Columns: append(slices.Clone(f.Key), f.Columns...)}
	some := dialect.Seqs{Gaps: []dialect.Run{{First: 3, N: 2}, {First: 7, N: 1}}, Above: 9}
	for _, p := range []dialect.Purpose{dialect.ForPublish, dialect.ForMove, dialect.ForRecord, dialect.ForRepair,
		dialect.ForRead, dialect.ForCheck, dialect.ForConsume} {
		begin := d.Begin(p, names)
		for _, s := range append(begin.First, begin.After) {
			if s != "" {
				r.add(s)
			}
		}
	}
	_, _ = d.CurrentSchema(ctx, q)
	_, _ = d.SchemaVersion(ctx, q, names)
	_, _ = d.Renames.OtherSchemas(ctx, q, names)
	_ = d.WithSchemaLock(ctx, pool, names, func(dialect.Querier) error { return nil })
	_, _ = d.Describe(ctx, q, f.Source)
	_, _ = d.Verify(ctx, q, f, table)
	_, _ = d.Repair(ctx, q, f, table)
	_, _ = d.Copies.Strays(ctx, q, f, table)
	_, _, _ = d.Renames.Moved(ctx, q, f)
	_, _ = d.BucketIndex(ctx, q, f)
	_ = d.Durability(ctx, q)
	_, _ = d.Identity(ctx, q, names)
	_, _, _ = d.Gaps.Writers(ctx, q, f)
	_, _, _ = d.Blockers(ctx, q, f)
	_, _, _ = d.Sessions.Holders(ctx, q, f)
	_, _ = d.Sessions.EndHolder(ctx, q, f, dialect.Holding{Holder: &dialect.Session{ID: "52"}})
	_, _, _ = d.Backlog(ctx, q, f, 10)
	login, _ := d.Roles.Login("app")
	rights := append(d.Routines.LockRights(f), dialect.May("INSERT", f.Changes(), "id", "kind"),
		dialect.May("SELECT", f.Positions()), dialect.May("UPDATE", f.Positions(), "shard"))
	_, _ = d.Roles.Account(ctx, q, "app")
	_, _ = d.Roles.Owns(ctx, q, login, rights[0])
	_, _ = d.Roles.PartsVisible(ctx, q, []string{"app"})
	_ = d.Roles.Grant(ctx, q, login, rights)
	_ = d.Roles.Revoke(ctx, q, login, rights)
	for _, s := range append(d.Roles.GrantSQL(login, rights), d.Roles.RevokeSQL(login, rights)...) {
		r.add(s.SQL)
	}
	page := dialect.PageQuery{After: feedtype.Numbered(7), Mark: feedtype.Numbered(3), Limit: 100, MaxBytes: 1 << 20,
		Unserved: []string{"sharding"}}
	_, _ = d.Replicas.OpenChange(ctx, pool, f, 3)
	if f.ULIDs != nil {
		page.Mark = feedtype.Position{}
		_, _ = d.LockShard(ctx, q, f, 3, dialect.LockBounds{Wait: time.Second})
		_, _, _ = d.TakeShard(ctx, q, f, 3, dialect.LockBounds{Tighter: true}, 0, "nonce")
		_ = d.Usable(ctx, q)
		_, _ = d.LockNonces(ctx, q, f, 3)
		_ = d.AdvanceShard(ctx, q, f, dialect.Shard{Shard: 3, Transaction: "1"}, dialect.ULIDState{}, "nonce")
		_, _, _ = d.Routines.ULIDProblems(ctx, q, f)
		_, _ = d.ReadPage(ctx, pool, f, page)
		page.AnyDatabase, page.Unserved = true, nil
		_, _ = d.ReadPage(ctx, pool, f, page)
	}
	if f.Outbox {
		b := dialect.NewBuilder(d.Syntax)
		r.add(dialect.RecordUnplaced(d.Syntax, b, f, func(*dialect.Builder) []string { return []string{"1 = 1"} }))
		_, _, _ = d.Backlog(ctx, q, f, 10, 3)
		_, _ = d.HasRecords(ctx, q, f, dialect.Seqs{})
		_, _ = d.HasRecords(ctx, q, f, some)
		_, _ = d.HasRecords(ctx, q, f, some, 1, 2)
		_, _ = d.PlaceRecords(ctx, q, f, 3, []dialect.Moved{{Seq: 4}})
		_, _ = d.DeleteRecords(ctx, q, f, []int64{4})
		r.add(d.DeletePlaces(f) + " WHERE g.shard = @p1")
		batch := dialect.BackfillBatch{Run: 1, Batch: 300, Rows: func(b *dialect.Builder) []string {
			return []string{"t.[id] > " + b.Arg(5)}
		}}
		_, _ = d.PlaceBehind(ctx, q, f, batch)
		batch.Time = &f.Columns[2]
		_, _ = d.PlaceBehind(ctx, q, f, batch)
	}
	// Package dialect sends these.
	own := map[string]dialect.Args{"in_any_order": {"more": 101}}
	if f.Outbox {
		own = map[string]dialect.Args{"newest_of_shard": {"shard": 3}, "first_shard": {}, "next_shard": {"above": 3}}
	}
	for name, args := range own {
		if query := dialect.NewBuilder(d.Syntax).Fill(d.Statement(f, name), args); strings.HasPrefix(query, "SELECT") {
			r.add(query)
		} else {
			r.add("SELECT 1 AS one FROM [dbo].[kv] " + query)
		}
	}
	if f.ULIDs == nil {
		_, _ = dialect.WalkKeys(ctx, q, d.Syntax, f, f.InRows(), nil, 100)
		_, _ = d.ReadPage(ctx, pool, f, page)
		_, _ = d.LockSequence(ctx, q, f)
		for _, among := range []dialect.Seqs{{}, {Above: 9}, some} {
			_, _ = d.HasChanges(ctx, q, f, among)
			_, _ = d.TakeChanges(ctx, q, f, among, 100)
		}
		as := []dialect.Assignment{{Seq: 3, Position: 8}, {Seq: 5, Position: 9, Kind: dialect.Republished, Shard: 2}}
		_ = d.AssignPositions(ctx, q, f, as, 1)
		_, _ = d.DeleteChanges(ctx, q, f, []int64{3, 5})
		_, _ = d.CloseChanges(ctx, q, f)
		_, _ = d.SetShards(ctx, q, f, f.InRows(), []dialect.Sharded{{Position: 8, Shard: 2}})
		_, _ = d.SetShards(ctx, q, f, false, []dialect.Sharded{{Position: 8, Shard: 2}})
		for _, s := range d.DeleteRow(f) {
			r.add(s)
		}
	}
	if f.InRows() {
		key := []any{int64(5)}
		_, _, _ = d.PlaceRows(ctx, q, f, nil, 100, 7, nil)
		_, _, _ = d.PlaceRows(ctx, q, f, key, 100, 7, nil)
		_, _ = d.ResetRows(ctx, q, f, "t.[id] = @p1", key)
	}
	if f.Sharded() {
		page.From, page.To = 10, 30
		page.Unserved = nil
		_, _ = d.ReadPage(ctx, pool, f, page)
	}
	return r.sent
}
