package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// shardTable has the state of each shard with ULIDs, and below which of them entries were purged, and where back-fill places rows: below live_from,
// a time in milliseconds, where its live part begins, 0 before that; filled_by is the run that came first.
// Beside it is what consumers of such feeds have for all their shards.
func (d Dialect) shardTable(name func(base string) string) dialect.Migration {
	return dialect.Migration{
		Version: 7,
		Title:   "shards with ULIDs",
		Up: []string{
			"CREATE TABLE " + name("shards") + ` (
  feed TEXT NOT NULL,
  shard INTEGER NOT NULL,
  time_ms INTEGER NOT NULL,
  ulid_high INTEGER NOT NULL,
  ulid_low INTEGER NOT NULL,
  below_high INTEGER NOT NULL DEFAULT 0,
  below_low INTEGER NOT NULL DEFAULT 0,
  witness TEXT NOT NULL,
  live_from INTEGER NOT NULL DEFAULT 0,
  filled_by INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (feed, shard)
)`,
			"CREATE TABLE " + name("consumers") + ` (
  consumer TEXT NOT NULL,
  feed TEXT NOT NULL,
  shard_count INTEGER NOT NULL,
  paused INTEGER NOT NULL,
  version INTEGER NOT NULL,
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

// LockShard takes the database's only write lock with its INSERT, also where the row is
// there: a transaction that has read before, while another wrote, is refused here.
func (d Dialect) LockShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int, bounds dialect.LockBounds) (dialect.Shard, error) {
	if err := d.Usable(ctx, tx); err != nil {
		return dialect.Shard{}, err
	}
	if bounds.Demanded {
		return dialect.Shard{}, fmt.Errorf("SQLite knows no bound on idle transactions: %w", errors.ErrUnsupported)
	}
	err := waiting(ctx, tx, bounds, func(ctx context.Context) error {
		b := dialect.NewBuilder(d)
		_, err := tx.Exec(ctx, dialect.NewShard(d, b, f, shard)+" ON CONFLICT (feed, shard) DO NOTHING", b.Args()...)
		return err
	})
	if isBusy(err) {
		err = fmt.Errorf("%w: %w", dialect.ErrLockWait, err)
	}
	if err != nil {
		return dialect.Shard{}, err
	}
	b := dialect.NewBuilder(d)
	return dialect.ScanShard(ctx, tx, shard, dialect.ReadShard(d, b, f, shard), b.Args())
}

// leastWait is the shortest bound on a wait: what ends a wait would end a statement as well that
// waits for nothing, and the transaction with it.
const leastWait = 100 * time.Millisecond

// waiting runs fn under a bound on its wait for the write lock. The session's own bound,
// busy_timeout, is the connection's, and stays as it is: a transaction that is given up could not put
// it back before its connection serves others. Hence fn is tried again where that is shorter, and its
// context ends where it is longer; the driver ends a wait with it, and leaves the transaction alone.
func waiting(ctx context.Context, tx dialect.Querier, bounds dialect.LockBounds, fn func(context.Context) error) error {
	if bounds.Wait <= 0 || bounds.NoWait {
		return fn(ctx)
	}
	var millis int64
	if err := dialect.QueryRow(ctx, tx, "PRAGMA busy_timeout", nil, &millis); err != nil {
		return err
	}
	own, wait := time.Duration(millis)*time.Millisecond, max(bounds.Wait, leastWait)
	if bounds.Tighter && own > 0 && own <= wait { // 0 is what it is where nobody has said anything
		return fn(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		began := time.Now()
		err := fn(bounded)
		switch {
		case err != nil && bounded.Err() != nil && ctx.Err() == nil:
			return fmt.Errorf("%w after %s: %v", dialect.ErrLockWait, wait, err)
		case !isBusy(err), own > 0 && time.Since(began) < own: // or it is refused at once: who has read may not wait
			return err
		}
		select {
		case <-bounded.Done():
		case <-time.After(tryAgain):
		}
	}
}

// tryAgain is how often the write lock is tried where the session does not wait for it.
const tryAgain = 5 * time.Millisecond

// isBusy tells whether another transaction has the write lock. Where one had it since this one
// has read, no wait helps.
func isBusy(err error) bool {
	code, ok := resultCode(err)
	return ok && code&0xff == codeBusy && code != busySnapshot
}

// Usable begins another transaction, which fails within one and changes nothing.
func (d Dialect) Usable(ctx context.Context, tx dialect.Querier) error {
	if _, err := tx.Exec(ctx, "BEGIN"); err == nil {
		if _, err := tx.Exec(ctx, "ROLLBACK"); err != nil {
			return err
		}
		return dialect.ErrNoTransaction
	} else if d.Classify(err) != dialect.ClassUndefined {
		return err
	}
	return nil
}

// TakeShard reads and writes the row. Durability is the connection's, which another one knows nothing of.
func (d Dialect) TakeShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int, bounds dialect.LockBounds, hintMillis int64, word string) (first dialect.ULIDState, forgetful, err error) {
	first, err = dialect.TakeLocked(ctx, d, tx, f, shard, bounds, hintMillis, word)
	return first, d.Durability(ctx, tx), err
}

// Witness locks, which tells whether there is a transaction.
func (d Dialect) Witness(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int) (string, error) {
	row, err := d.LockShard(ctx, tx, f, shard, dialect.LockBounds{})
	return row.Witness, err
}

// AdvanceShard writes the row.
func (d Dialect) AdvanceShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, locked dialect.Shard, next dialect.ULIDState, witness string) error {
	b := dialect.NewBuilder(d)
	_, err := tx.Exec(ctx, dialect.WriteShard(d, b, f, locked.Shard, next, witness), b.Args()...)
	return err
}

// ULIDProblem takes columns that keep bytes as bytes.
func (Dialect) ULIDProblem(c *dialect.Column) string {
	if c.Kind != feedtype.Binary {
		return "is declared " + strconv.Quote(c.Type) + ": declare it BLOB"
	}
	return ""
}

// ShardProblem implements [dialect.ULID].
func (Dialect) ShardProblem(*dialect.Column, bool) (problem, next string) { return "", "" }

// NoShard implements [dialect.ULID]: a column may hold values of any type.
func (Dialect) NoShard(ref string) string { return "typeof(" + ref + ") <> 'integer'" }

// NoULID implements [dialect.ULID]: a column may hold values of any type, and texts are below
// all bytes.
func (d Dialect) NoULID(u *dialect.ULIDColumns, alias string) string {
	position := dialect.Ref(d, alias, u.Position.Name)
	return "(typeof(" + position + ") <> 'blob' OR length(" + position + ") <> 16 OR " + d.NoShard(dialect.Ref(d, alias, u.Shard.Name)) + ")"
}

// ULIDsAbove begins the millisecond above the ULID's, which is its first twelve hexadecimal
// digits: SQLite reads no number from such a text.
func (Dialect) ULIDsAbove(_ *dialect.Feed, ulid string) (timeMillis, high, low string) {
	digits := make([]string, 12)
	for i := range digits {
		digits[i] = fmt.Sprintf("(instr('0123456789ABCDEF', substr(hex(%s), %d, 1)) - 1 << %d)", ulid, i+1, 44-4*i)
	}
	timeMillis = "(" + strings.Join(digits, " + ") + " + 1)"
	return timeMillis, "(" + timeMillis + " << 16)", "-1"
}

// ULIDUp makes nothing: SQLite has no functions of a database's own.
func (Dialect) ULIDUp(*dialect.Feed) []dialect.Step { return nil }

// ULIDDown removes nothing.
func (Dialect) ULIDDown(*dialect.Feed) []dialect.Step { return nil }

// ULIDProblems is about functions.
func (Dialect) ULIDProblems(context.Context, dialect.Querier, *dialect.Feed) (missing, other []string, err error) {
	return nil, nil, nil
}
