package sqlite

import (
	"context"
	_ "embed" // for shards.sql
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed shards.sql
var shardsFile string

var shards = dialect.NewStatements(shardsFile)

// LockShard implements [dialect.Locks]. Its INSERT acquires the database's only write lock, also if the row exists. It
// fails in a transaction that has read before another one wrote.
func (d database) LockShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int,
	bounds dialect.LockBounds) (dialect.Shard, error) {
	if err := d.Usable(ctx, tx); err != nil {
		return dialect.Shard{}, err
	}
	if bounds.Demanded {
		return dialect.Shard{}, fmt.Errorf("SQLite knows no bound on idle transactions: %w", errors.ErrUnsupported)
	}
	args := dialect.Args{"feed": f.Name, "shard": shard}
	err := waiting(ctx, tx, bounds, func(ctx context.Context) error {
		_, err := dialect.Exec(ctx, tx, syntax, shards.For(syntax, f, "make_shard"), args)
		return err
	})
	if isBusy(err) {
		err = fmt.Errorf("%w: %w", dialect.ErrLockWait, err)
	}
	if err != nil {
		return dialect.Shard{}, err
	}
	row := dialect.Shard{Shard: shard}
	err = dialect.One(ctx, tx, syntax, shards.For(syntax, f, "lock_shard"), args, row.Dest()...)
	return row, err
}

// leastWait is the shortest bound on a wait. A shorter one could also end a statement that waits for nothing,
// and its transaction with it.
const leastWait = 100 * time.Millisecond

var sessionBound = statement(shards, "bound_of_session")

// waiting runs fn with a bound on its wait for the write lock. The session's own bound, busy_timeout, belongs
// to the connection and is not changed: an abandoned transaction could not set it back before its connection is
// used again. If busy_timeout is shorter than the bound, fn is tried again. If it is longer, the context of fn
// ends; the driver then ends the wait, and the transaction stays usable.
func waiting(ctx context.Context, tx dialect.Querier, bounds dialect.LockBounds, fn func(context.Context) error) error {
	if bounds.Wait <= 0 || bounds.NoWait {
		return fn(ctx)
	}
	var millis int64
	if err := dialect.One(ctx, tx, syntax, sessionBound, nil, &millis); err != nil {
		return err
	}
	own, wait := time.Duration(millis)*time.Millisecond, max(bounds.Wait, leastWait)
	if bounds.Tighter && own > 0 && own <= wait { // 0 is the default if no setting was made
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
		// in the second case SQLite fails at once, because a transaction that has read may not wait
		case !isBusy(err), own > 0 && time.Since(began) < own:
			return err
		}
		select {
		case <-bounded.Done():
		case <-time.After(tryAgain):
		}
	}
}

// tryAgain is the pause between attempts to get the write lock if the session does not wait for it.
const tryAgain = 5 * time.Millisecond

// isBusy tells whether another transaction has the write lock. It is false if another one has written since
// this transaction read: then waiting does not help.
func isBusy(err error) bool {
	code, ok := resultCode(err)
	return ok && code&0xff == codeBusy && code != busySnapshot
}

// Usable implements [dialect.Locks]. It begins a transaction. If one is open, this fails, and changes nothing.
func (d database) Usable(ctx context.Context, tx dialect.Querier) error {
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

// TakeShard implements [dialect.Locks]. Durability is a setting of the connection, so it is read here, on the
// connection of the writer.
func (d database) TakeShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int,
	bounds dialect.LockBounds, hintMillis int64, word string) (first dialect.ULIDState, forgetful, err error) {
	first, err = dialect.TakeLocked(ctx, syntax, d, tx, f, shard, bounds, hintMillis, word)
	return first, d.Durability(ctx, tx), err
}

// LockNonces implements [dialect.Locks]. It locks the shard, which tells whether there is a transaction.
func (d database) LockNonces(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int) (string, error) {
	row, err := d.LockShard(ctx, tx, f, shard, dialect.LockBounds{})
	return row.Nonces, err
}

// AdvanceShard implements [dialect.Locks].
func (d database) AdvanceShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, locked dialect.Shard,
	next dialect.ULIDState, nonces string) error {
	_, err := dialect.Exec(ctx, tx, syntax, shards.For(syntax, f, "advance_shard"),
		dialect.Args{"time": next.TimeMillis,
			"high": next.High, "low": next.Low, "nonces": nonces, "feed": f.Name, "shard": locked.Shard})
	return err
}

// ulidProblem is [dialect.Codec].ULIDProblem. A BLOB column keeps bytes as they are.
func ulidProblem(c *dialect.Column) string {
	if c.Kind != feedtype.Binary {
		return "is declared " + strconv.Quote(c.Type) + ": declare it BLOB"
	}
	return ""
}

// shardProblem is [dialect.Codec].ShardProblem.
func shardProblem(*dialect.Column, bool) (problem, next string) { return "", "" }

// noShard is [dialect.Codec].NoShard. A column can hold values of any type.
func noShard(ref string) string { return "typeof(" + ref + ") <> 'integer'" }

// noULID is [dialect.Codec].NoULID. A column can hold values of any type.
func noULID(_ *dialect.ULIDColumns, position, shard string) string {
	return "(typeof(" + position + ") <> 'blob' OR length(" + position + ") <> 16 OR " + noShard(shard) + ")"
}

// ulidsAbove is [dialect.Dialect].ULIDsAbove. The time of a ULID is its first twelve hexadecimal digits. SQLite
// cannot convert such text to a number, so the expression converts each digit.
func ulidsAbove(_ *dialect.Feed, ulid string) (timeMillis, high, low string) {
	digits := make([]string, 12)
	for i := range digits {
		digits[i] = fmt.Sprintf("(instr('0123456789ABCDEF', substr(hex(%s), %d, 1)) - 1 << %d)", ulid, i+1, 44-4*i)
	}
	timeMillis = "(" + strings.Join(digits, " + ") + " + 1)"
	return timeMillis, "(" + timeMillis + " << 16)", "-1"
}

// millis is [dialect.Codec].Millis. It reads text that SQLite's date functions accept, in UTC, and numbers as
// seconds of Unix time.
func millis(_ dialect.Column, ref string) string {
	return "CASE typeof(" + ref + ") WHEN 'text' THEN CAST(round((julianday(" + ref +
		") - 2440587.5) * 86400000) AS INTEGER)" +
		" WHEN 'integer' THEN CAST(" + ref + " * 1000 AS INTEGER) WHEN 'real' THEN CAST(" + ref +
		" * 1000 AS INTEGER) END"
}
