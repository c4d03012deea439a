package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

// shardTable has the state of each shard with ULIDs, and below which of them entries were purged, and where back-fill places rows: below live_from,
// a time in milliseconds, where its live part begins, 0 before that; filled_by is the run that came first; its rows are rewritten by every
// writer, and want room beside them.
// Beside it is what consumers of such feeds have for all their shards.
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

// LockShard looks first, since a row is made once and locked ever after; a locking read
// leaves no version of the row behind. The transaction's id is kept: a statement that runs
// by itself has one of its own.
func (d Dialect) LockShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int, bounds dialect.LockBounds) (dialect.Shard, error) {
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
		if _, err := tx.Exec(ctx, dialect.NewShard(d, b, f, shard)+" ON CONFLICT (feed, shard) DO NOTHING", b.Args()...); err != nil {
			return row, err
		}
	}
}

// TakeShard calls the feed's function with the transaction's id, which another one refuses. The
// statement before it, which asks for that, sets the bounds; the former one on waiting is put
// back when the function has answered, and an error takes all of it back.
func (d Dialect) TakeShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int, bounds dialect.LockBounds, hintMillis int64, word string) (first dialect.ULIDState, forgetful, err error) {
	var transaction, wait, set, fsync, pages string
	b := dialect.NewBuilder(d)
	if err := dialect.QueryRow(ctx, tx, "SELECT pg_current_xact_id()::text, current_setting('lock_timeout'), "+
		setBound(b, "lock_timeout", bounds.Wait, bounds.Tighter)+" || "+setBound(b, "idle_in_transaction_session_timeout", bounds.Idle, true), b.Args(), &transaction, &wait, &set); err != nil {
		return first, nil, err
	}
	query := "SELECT ulid_high, ulid_low, set_config('lock_timeout', CAST($5 AS text), true), current_setting('fsync'), current_setting('full_page_writes') FROM " + dialect.Qualified(d, f.LockRoutine()) +
		"(CAST($1 AS bigint), CASE WHEN CAST($2 AS bigint) <> 0 THEN to_timestamp(CAST($2 AS bigint) / 1000.0) END, CAST($3 AS text), CAST($4 AS text))"
	err = dialect.QueryRow(ctx, tx, query, []any{shard, hintMillis, word, transaction, wait}, &first.High, &first.Low, &set, &fsync, &pages)
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

// setBound is an expression that sets a bound for the rest of the transaction and answers it: to d, or
// to what it is where d is 0, or where that is tighter and may hold.
func setBound(b *dialect.Builder, setting string, d time.Duration, tighter bool) string {
	now := "current_setting('" + setting + "')"
	if d <= 0 {
		return now
	}
	to := "CAST(" + b.Arg(milliseconds(d)) + " AS text)" // a parameter: statements of other bounds are the same text
	if tighter {
		to = "CASE WHEN " + now + " <> '0' AND " + now + "::interval < " + to + "::interval THEN " + now + " ELSE " + to + " END"
	}
	return "set_config('" + setting + "', " + to + ", true)"
}

// milliseconds is a duration as settings have it, rounded up.
func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%dms", (d + time.Millisecond - 1).Milliseconds())
}

// Usable asks for nothing: a transaction that cannot go on refuses every statement. That
// there is one is known where it is asked, from TakeShard.
func (Dialect) Usable(ctx context.Context, tx dialect.Querier) error {
	_, err := tx.Exec(ctx, "SELECT 1")
	return err
}

// Witness needs no lock: what a transaction has written it sees, whatever its snapshot, and
// nobody else writes its words.
func (d Dialect) Witness(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int) (witness string, err error) {
	b := dialect.NewBuilder(d)
	err = dialect.QueryRow(ctx, tx, dialect.ReadWitness(d, b, f, shard), b.Args(), &witness)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return witness, err
}

// AdvanceShard writes nothing in another transaction than LockShard's.
func (d Dialect) AdvanceShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, locked dialect.Shard, next dialect.ULIDState, witness string) error {
	b := dialect.NewBuilder(d)
	query := dialect.WriteShard(d, b, f, locked.Shard, next, witness) + " AND pg_current_xact_id()::text = CAST(" + b.Arg(locked.Transaction) + " AS text)"
	n, err := tx.Exec(ctx, query, b.Args()...)
	if err == nil && n != 1 {
		err = dialect.ErrNoTransaction
	}
	return err
}

// ULIDProblem takes the types that order 16 bytes as they stand.
func (Dialect) ULIDProblem(c *dialect.Column) string {
	if c.Type != "uuid" && c.Type != "bytea" {
		return "is " + c.Type + ": make it uuid or bytea"
	}
	return ""
}

// ShardProblem implements [dialect.ULID].
func (Dialect) ShardProblem(c *dialect.Column, triggered bool) (problem, next string) {
	if c.Virtual && triggered {
		return "is generated whenever it is read, and triggers see NULL in its place: every INSERT would fail", "make it GENERATED … STORED, or use --capture app"
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
