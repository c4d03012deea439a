package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

// shardTable makes the table of shards and the table of consumers of ULID feeds. The table of shards has the
// state of each shard, the position up to which its entries were purged (below_high, below_low), and the state
// of back-fill. live_from is the time, in milliseconds, at which the live part of the shard begins. Back-fill
// places rows below it. It is 0 until the live part begins. filled_by is the run of back-fill that came to the
// shard first. Every writer updates a shard's row; a low fill factor keeps space for its next version in the
// same page.
//
// The table of consumers has what a consumer's shards of such a feed have in common.
func (d Dialect) shardTable(name func(base string) string) dialect.Migration {
	return dialect.Migration{
		Version: 7,
		Title:   "shards with ULIDs",
		Up: []string{
			"CREATE TABLE " + name("shards") + ` (
  feed text COLLATE "C" NOT NULL,
  shard bigint NOT NULL,
  time_ms bigint NOT NULL,
  ulid_high bigint NOT NULL,
  ulid_low bigint NOT NULL,
  below_high bigint NOT NULL DEFAULT 0,
  below_low bigint NOT NULL DEFAULT 0,
  witness text COLLATE "C" NOT NULL,
  live_from bigint NOT NULL DEFAULT 0,
  filled_by bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (feed, shard)
) WITH (fillfactor = 10)`,
			"CREATE TABLE " + name("consumers") + ` (
  consumer text COLLATE "C" NOT NULL,
  feed text COLLATE "C" NOT NULL,
  shard_count integer NOT NULL,
  paused smallint NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (consumer, feed)
)`,
			"INSERT INTO " + name("schema_version") + " VALUES (7, " + d.Now() + ")",
		},
		Down: []string{
			"DROP TABLE " + name("consumers"),
			"DROP TABLE " + name("shards"),
			"DELETE FROM " + name("schema_version") + " WHERE version = 7",
		},
	}
}

// LockShard implements [dialect.ULID]. It tries a locking read first, because a shard's row is inserted only
// once, and a locking read leaves no dead version of the row behind. The transaction's id is kept for
// AdvanceShard: a statement outside of a transaction has an id of its own.
func (d Dialect) LockShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int,
	bounds dialect.LockBounds) (dialect.Shard, error) {
	bound := func() error {
		if bounds.Wait <= 0 {
			return nil
		}
		_, err := tx.Exec(ctx, "SELECT set_config('lock_timeout', $1::text, true)", milliseconds(bounds.Wait))
		return err
	}
	lock := " FOR UPDATE"
	if bounds.NoWait {
		lock += " NOWAIT"
	} else if err := bound(); err != nil {
		return dialect.Shard{}, err
	}
	for made := false; ; made = true {
		b := dialect.NewBuilder(d)
		query := dialect.ReadShard(d, b, f, shard, "pg_current_xact_id()::text") + lock
		var transaction string
		row, err := dialect.ScanShard(ctx, tx, shard, query, b.Args(), &transaction)
		row.Transaction = transaction
		if !errors.Is(err, sql.ErrNoRows) || made {
			return row, err
		}
		if bounds.NoWait {
			if err := bound(); err != nil {
				return row, err
			}
		}
		b = dialect.NewBuilder(d)
		if _, err := tx.Exec(ctx, dialect.NewShard(d, b, f, shard)+" ON CONFLICT (feed, shard) DO NOTHING",
			b.Args()...); err != nil {
			return row, err
		}
	}
}

// TakeShard implements [dialect.ULID]. It calls the feed's function with the id of the transaction. The
// function fails in another transaction. The statement that asks for the id also sets the bounds. lock_timeout
// is set back when the function has returned; if there is an error, the rollback sets it back.
func (d Dialect) TakeShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int,
	bounds dialect.LockBounds, hintMillis int64, word string) (first dialect.ULIDState, forgetful, err error) {
	var transaction, wait, set, fsync, pages string
	b := dialect.NewBuilder(d)
	if err := dialect.QueryRow(ctx, tx, "SELECT pg_current_xact_id()::text, current_setting('lock_timeout'), "+
		setBound(b, "lock_timeout", bounds.Wait, bounds.Tighter)+" || "+
		setBound(b, "idle_in_transaction_session_timeout", bounds.Idle, true), b.Args(), &transaction, &wait,
		&set); err != nil {
		return first, nil, err
	}
	query := "SELECT ulid_high, ulid_low, set_config('lock_timeout', CAST($5 AS text), true), " +
		"current_setting('fsync'), current_setting('full_page_writes') FROM " + dialect.Qualified(d, f.LockRoutine()) +
		"(CAST($1 AS bigint), CASE WHEN CAST($2 AS bigint) <> 0 THEN to_timestamp(CAST($2 AS bigint) / 1000.0) END, " +
		"CAST($3 AS text), CAST($4 AS text))"
	err = dialect.QueryRow(ctx, tx, query, []any{shard, hintMillis, word, transaction, wait}, &first.High, &first.Low,
		&set, &fsync, &pages)
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		switch coded.SQLState() {
		case noTransaction:
			err = dialect.ErrNoTransaction
		case hintAhead:
			err = dialect.ErrHintAhead
		case noULIDsLeft:
			err = dialect.ErrNoULIDsLeft
		}
	}
	first.TimeMillis = int64(uint64(first.High) >> 16)
	return first, serverForgets(fsync, pages), err
}

// setBound returns an expression that sets a bound until the end of the transaction, and returns its value. The
// value is d, or the present one if d is 0. With tighter it is also the present one if that is tighter.
func setBound(b *dialect.Builder, setting string, d time.Duration, tighter bool) string {
	now := "current_setting('" + setting + "')"
	if d <= 0 {
		return now
	}
	// a parameter, so that different bounds do not make different statements
	to := "CAST(" + b.Arg(milliseconds(d)) + " AS text)"
	if tighter {
		to = "CASE WHEN " + now + " <> '0' AND " + now + "::interval < " + to + "::interval THEN " + now +
			" ELSE " + to + " END"
	}
	return "set_config('" + setting + "', " + to + ", true)"
}

// milliseconds returns a duration in the syntax of settings, rounded up.
func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%dms", (d + time.Millisecond - 1).Milliseconds())
}

// Usable implements [dialect.ULID]. A transaction that cannot continue refuses every statement. TakeShard has
// already shown that there is a transaction.
func (Dialect) Usable(ctx context.Context, tx dialect.Querier) error {
	_, err := tx.Exec(ctx, "SELECT 1")
	return err
}

// LockNonces implements [dialect.ULID]. It needs no lock: a transaction sees what it has written, whatever its
// snapshot, and no other transaction writes its nonces.
func (d Dialect) LockNonces(ctx context.Context, tx dialect.Querier, f *dialect.Feed,
	shard int) (nonces string, err error) {
	b := dialect.NewBuilder(d)
	err = dialect.QueryRow(ctx, tx, dialect.ReadNonces(d, b, f, shard), b.Args(), &nonces)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return nonces, err
}

// AdvanceShard implements [dialect.ULID]. In another transaction than LockShard's it changes nothing and fails.
func (d Dialect) AdvanceShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, locked dialect.Shard,
	next dialect.ULIDState, nonces string) error {
	b := dialect.NewBuilder(d)
	query := dialect.WriteShard(d, b, f, locked.Shard, next, nonces) + " AND pg_current_xact_id()::text = CAST(" +
		b.Arg(locked.Transaction) + " AS text)"
	n, err := tx.Exec(ctx, query, b.Args()...)
	if err == nil && n != 1 {
		err = dialect.ErrNoTransaction
	}
	return err
}

// ULIDProblem implements [dialect.ULID]. It accepts the types that order 16 bytes as they are.
func (Dialect) ULIDProblem(c *dialect.Column) string {
	if c.Type != "uuid" && c.Type != "bytea" {
		return "is " + c.Type + ": make it uuid or bytea"
	}
	return ""
}

// ShardProblem implements [dialect.ULID].
func (Dialect) ShardProblem(c *dialect.Column, triggered bool) (problem, next string) {
	if c.Virtual && triggered {
		return "is generated whenever it is read, and triggers see NULL in its place: every INSERT would fail",
			"make it GENERATED … STORED, or use --capture app"
	}
	return "", ""
}

// NoShard implements [dialect.ULID].
func (Dialect) NoShard(string) string { return "" }

// NoULID implements [dialect.ULID].
func (d Dialect) NoULID(u *dialect.ULIDColumns, alias string) string {
	if u.Position.Type == "uuid" {
		return ""
	}
	return "octet_length(" + dialect.Ref(d, alias, u.Position.Name) + ") <> 16"
}
