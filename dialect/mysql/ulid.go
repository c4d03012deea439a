package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

// LockShard implements [dialect.ULID]. An upsert locks the row, whether it exists or not. In REPEATABLE READ,
// an UPDATE or a locking read of a missing row takes a gap lock, and two transactions that insert the rows of
// different shards would deadlock. Only a savepoint tells whether there is a transaction: outside of one, it
// does not exist any more after its statement.
func (d Dialect) LockShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int,
	bounds dialect.LockBounds) (dialect.Shard, error) {
	if bounds.NoWait {
		// In READ COMMITTED, the read of a missing row locks nothing.
		b := dialect.NewBuilder(d)
		row, err := dialect.ScanShard(ctx, tx, shard, dialect.ReadShard(d, b, f, shard)+" FOR UPDATE NOWAIT", b.Args())
		if !errors.Is(err, sql.ErrNoRows) {
			return row, err
		}
	} else if err := d.Usable(ctx, tx); err != nil {
		return dialect.Shard{}, err
	}
	err := waiting(ctx, tx, bounds.Wait, func() error {
		b := dialect.NewBuilder(d)
		_, err := tx.Exec(ctx, dialect.NewShard(d, b, f, shard)+" ON DUPLICATE KEY UPDATE witness = witness",
			b.Args()...)
		return err
	})
	if err != nil {
		return dialect.Shard{}, err
	}
	b := dialect.NewBuilder(d)
	return dialect.ScanShard(ctx, tx, shard, dialect.ReadShard(d, b, f, shard)+" FOR UPDATE", b.Args())
}

// waiting runs fn with a bound on its lock waits, by a variable of the session that is set back afterwards.
// MySQL has no such bound for a single statement.
func waiting(ctx context.Context, tx dialect.Querier, wait time.Duration, fn func() error) error {
	if wait <= 0 {
		return fn()
	}
	// The assignments of one SET are made from left to right.
	if _, err := tx.Exec(ctx, fmt.Sprintf("SET @rowfeed_lock_wait = @@SESSION.innodb_lock_wait_timeout, "+
		"SESSION innodb_lock_wait_timeout = %d", wholeSeconds(wait))); err != nil {
		return err
	}
	err := fn()
	_, restored := tx.Exec(context.WithoutCancel(ctx), "SET SESSION innodb_lock_wait_timeout = @rowfeed_lock_wait")
	return cmp.Or(err, restored)
}

// wholeSeconds returns a duration in seconds, rounded up.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// idleBound returns an error if the server lets this session be idle in a transaction for longer than idle.
// Both servers have no bound that ends with the transaction. So rowfeed sets none: it would stay with the
// connection, and end transactions of other users of the pool.
func idleBound(ctx context.Context, tx dialect.Querier, idle time.Duration) error {
	var allowed int64
	if err := dialect.QueryRow(ctx, tx,
		"SELECT @@SESSION.wait_timeout /*M! * 0 + COALESCE(NULLIF(@@SESSION.idle_write_transaction_timeout, 0), "+
			"NULLIF(@@SESSION.idle_transaction_timeout, 0), @@SESSION.wait_timeout) */", nil, &allowed); err != nil {
		return err
	}
	if have := time.Duration(allowed) * time.Second; have > idle {
		return fmt.Errorf("this session may idle in a transaction for %s: set idle_write_transaction_timeout "+
			"(MariaDB) or wait_timeout (both), for the session or in the connection's URL: %w", have,
			errors.ErrUnsupported)
	}
	return nil
}

// Usable implements [dialect.ULID].
func (d Dialect) Usable(ctx context.Context, tx dialect.Querier) error {
	if _, err := tx.Exec(ctx, "SAVEPOINT rowfeed_lock"); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "RELEASE SAVEPOINT rowfeed_lock")
	if d.Classify(err) == dialect.ClassUndefined {
		err = dialect.ErrNoTransaction
	}
	return err
}

// TakeShard implements [dialect.ULID] by a call of the feed's procedure, which is one statement where LockShard
// and AdvanceShard are five. The procedure sets the bound on waits, and sets it back unless it fails.
func (d Dialect) TakeShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int,
	bounds dialect.LockBounds, hintMillis int64, word string) (first dialect.ULIDState, forgetful, err error) {
	if bounds.Demanded {
		if err := idleBound(ctx, tx, bounds.Idle); err != nil {
			return first, nil, err
		}
	}
	var hint any
	if hintMillis != 0 {
		hint = hintMillis
	}
	var log commitLog
	err = dialect.QueryRow(ctx, tx, "CALL "+dialect.Qualified(d, f.TakeRoutine())+"(?, ?, ?, ?, ?)",
		[]any{shard, hint, word, wholeSeconds(bounds.Wait), bounds.Tighter},
		append([]any{&first.TimeMillis, &first.High, &first.Low}, log.dest()...)...)
	if err != nil && bounds.Wait > 0 {
		// The procedure has no handler for that, because a statement that is killed runs no handler. It has
		// stored the session's own setting in a variable.
		_, _ = tx.Exec(context.WithoutCancel(ctx),
			"SET SESSION innodb_lock_wait_timeout = CAST(COALESCE(@rowfeed_own_wait, "+
				"@@SESSION.innodb_lock_wait_timeout) AS SIGNED), @rowfeed_own_wait = NULL")
	}
	switch number, _ := dialect.CodeField(err, "Number"); number {
	case errSignalled:
		err = dialect.ErrNoTransaction
	case errHintAhead:
		err = dialect.ErrHintAhead
	case errNoULIDsLeft:
		err = dialect.ErrNoULIDsLeft
	}
	if err == nil {
		forgetful = log.forgetful()
	}
	return first, forgetful, err
}

// LockNonces implements [dialect.ULID]. It needs no lock: a transaction sees what it has written, whatever its
// snapshot, and no other transaction writes its nonces.
func (d Dialect) LockNonces(ctx context.Context, tx dialect.Querier, f *dialect.Feed,
	shard int) (nonces string, err error) {
	err = dialect.QueryRow(ctx, tx, "CALL "+dialect.Qualified(d, f.NonceRoutine())+"(?)", []any{shard}, &nonces)
	if number, _ := dialect.CodeField(err, "Number"); number == errSignalled {
		err = dialect.ErrNoTransaction
	}
	return nonces, err
}

// AdvanceShard implements [dialect.ULID].
func (d Dialect) AdvanceShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, locked dialect.Shard,
	next dialect.ULIDState, nonces string) error {
	b := dialect.NewBuilder(d)
	_, err := tx.Exec(ctx, dialect.WriteShard(d, b, f, locked.Shard, next, nonces), b.Args()...)
	return err
}

// ULIDProblem implements [dialect.ULID]. MariaDB's uuid is not ordered by its bytes.
func (Dialect) ULIDProblem(c *dialect.Column) string {
	if strings.ToLower(c.Type) != "binary(16)" {
		return "is " + c.Type + ": make it binary(16)"
	}
	return ""
}

// ShardProblem implements [dialect.ULID]. The upper half of an unsigned bigint cannot be told from negative
// numbers, and makes a trigger fail.
func (Dialect) ShardProblem(c *dialect.Column, _ bool) (problem, next string) {
	if t := strings.ToLower(c.Type); strings.HasPrefix(t, "bigint") && strings.Contains(t, "unsigned") {
		return "is " + c.Type + ", and could hold numbers above 9223372036854775807, which no shard has",
			"make it BIGINT"
	}
	return "", ""
}

// NoShard implements [dialect.ULID].
func (Dialect) NoShard(string) string { return "" }

// NoULID implements [dialect.ULID]: the length of a binary(16) is fixed.
func (Dialect) NoULID(*dialect.ULIDColumns, string) string { return "" }
