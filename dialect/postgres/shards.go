package postgres

import (
	"context"
	"database/sql"
	_ "embed" // for shards.sql
	"errors"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

//go:embed shards.sql
var shardsFile string

var shards = dialect.NewStatements(shardsFile)

// LockShard implements [dialect.ULID].
func (d Dialect) LockShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int,
	bounds dialect.LockBounds) (dialect.Shard, error) {
	args := dialect.Args{"feed": f.Name, "shard": shard}
	bound := func() error {
		if bounds.Wait <= 0 {
			return nil
		}
		_, err := dialect.Exec(ctx, tx, d, shards.For(d, f, "bound_waits"),
			dialect.Args{"wait": milliseconds(bounds.Wait)})
		return err
	}
	lock := "lock_shard"
	if bounds.NoWait {
		lock = "try_shard"
	} else if err := bound(); err != nil {
		return dialect.Shard{}, err
	}
	for made := false; ; made = true {
		row := dialect.Shard{Shard: shard}
		err := dialect.One(ctx, tx, d, shards.For(d, f, lock), args, append(row.Dest(), &row.Transaction)...)
		if !errors.Is(err, sql.ErrNoRows) || made {
			return row, err
		}
		if bounds.NoWait {
			if err := bound(); err != nil {
				return row, err
			}
		}
		if _, err := dialect.Exec(ctx, tx, d, shards.For(d, f, "make_shard"), args); err != nil {
			return row, err
		}
	}
}

// TakeShard implements [dialect.ULID] by the feed's function. The statement that asks for the transaction's id also
// sets the bounds.
func (d Dialect) TakeShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int,
	bounds dialect.LockBounds, hintMillis int64, word string) (first dialect.ULIDState, forgetful, err error) {
	var transaction, wait, set, fsync, pages string
	if err := dialect.One(ctx, tx, d, shards.For(d, f, "bounds"), dialect.Args{"bounds": dialect.Joined(" || ",
		[]dialect.Built{d.setBound(f, "lock_timeout", bounds.Wait, bounds.Tighter),
			d.setBound(f, "idle_in_transaction_session_timeout", bounds.Idle, true)})},
		&transaction, &wait, &set); err != nil {
		return first, nil, err
	}
	err = dialect.One(ctx, tx, d, shards.For(d, f, "take_shard"), dialect.Args{
		"shard": shard, "hint": hintMillis, "word": word, "transaction": transaction, "wait": wait,
	}, &first.High, &first.Low, &set, &fsync, &pages)
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
// value is to, or the present one if to is 0. With tighter it is also the present one if that is tighter. The bound
// is a parameter, so that different bounds do not make different statements.
func (d Dialect) setBound(f *dialect.Feed, setting string, to time.Duration, tighter bool) dialect.Built {
	if to <= 0 {
		return func(*dialect.Builder) string { return "current_setting('" + setting + "')" }
	}
	name := "bound"
	if tighter {
		name = "tighter_bound"
	}
	return shards.For(d, f, name).With(dialect.Args{"setting": dialect.SQL("'" + setting + "'"),
		"to": milliseconds(to)})
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

// LockNonces implements [dialect.ULID].
func (d Dialect) LockNonces(ctx context.Context, tx dialect.Querier, f *dialect.Feed,
	shard int) (nonces string, err error) {
	err = dialect.One(ctx, tx, d, shards.For(d, f, "nonces"), dialect.Args{"feed": f.Name, "shard": shard}, &nonces)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return nonces, err
}

// AdvanceShard implements [dialect.ULID]. In another transaction than LockShard's it changes nothing and fails.
func (d Dialect) AdvanceShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, locked dialect.Shard,
	next dialect.ULIDState, nonces string) error {
	n, err := dialect.Exec(ctx, tx, d, shards.For(d, f, "advance_shard"), dialect.Args{
		"time": next.TimeMillis, "high": next.High, "low": next.Low, "nonces": nonces,
		"feed": f.Name, "shard": locked.Shard, "transaction": locked.Transaction,
	})
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
