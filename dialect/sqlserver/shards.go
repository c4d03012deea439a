package sqlserver

import (
	"context"
	"database/sql"
	_ "embed" // for shards.sql
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

//go:embed shards.sql
var shardsFile string

var shards = dialect.NewStatements(shardsFile)

// checksum tells the feeds of a database apart in the names of locks.
func checksum(f *dialect.Feed) uint32 {
	return crc32.ChecksumIEEE([]byte(f.Names.Schema + "\x00" + f.Names.Prefix + "\x00" + f.Name))
}

// conditions joins conditions, of which there may be none.
func conditions(all []string) string {
	return strings.Join(append([]string{"1 = 1"}, all...), " AND ")
}

// LockShard implements [dialect.Locks].
func (d database) LockShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int,
	bounds dialect.LockBounds) (dialect.Shard, error) {
	row := dialect.Shard{Shard: shard}
	wait := milliseconds(bounds.Wait)
	if bounds.NoWait {
		wait = 0
	}
	err := dialect.One(ctx, tx, syntax, shards.For(syntax, f, "lock_shard"), dialect.Args{"wait": wait,
		"turn": fmt.Sprintf("%s%d", lockName(f), shard), "feed": f.Name, "shard": shard,
		"demand_versions": statement(publishing, "demand_versions").With(nil)},
		append(row.Dest(), &row.Transaction)...)
	return row, thrown(err)
}

// milliseconds returns a bound on waits, rounded up, or nil for the session's own.
func milliseconds(wait time.Duration) any {
	if wait <= 0 {
		return nil
	}
	return int64((wait + time.Millisecond - 1) / time.Millisecond)
}

// Usable implements [dialect.Locks].
func (d database) Usable(ctx context.Context, tx dialect.Querier) error {
	var state int
	err := thrown(dialect.One(ctx, tx, syntax, statement(shards, "usable"), nil, &state))
	if err == nil && state != 1 {
		err = errors.New("the transaction can only be rolled back")
	}
	return err
}

// TakeShard implements [dialect.Locks] by the feed's procedure. SQL Server has no bound on an idle transaction.
func (d database) TakeShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int,
	bounds dialect.LockBounds, hintMillis int64, word string) (first dialect.ULIDState, forgets, err error) {
	if bounds.Demanded {
		return first, nil, fmt.Errorf("SQL Server has no bound on the time that a transaction is idle: %w",
			errors.ErrUnsupported)
	}
	tighter := 0
	if bounds.Tighter {
		tighter = 1
	}
	var delayed string
	err = dialect.One(ctx, tx, syntax, shards.For(syntax, f, "take_shard"),
		dialect.Args{"wait": milliseconds(bounds.Wait),
			"hint": hintMillis, "tighter": tighter, "shard": shard, "word": word}, &first.High, &first.Low, &delayed)
	first.TimeMillis = int64(uint64(first.High) >> 16)
	return first, forgetful(delayed), thrown(err)
}

// LockNonces implements [dialect.Locks].
func (d database) LockNonces(ctx context.Context, tx dialect.Querier, f *dialect.Feed,
	shard int) (nonces string, err error) {
	err = dialect.One(ctx, tx, syntax, shards.For(syntax, f, "nonces"), dialect.Args{"feed": f.Name, "shard": shard},
		&nonces)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return nonces, err
}

// AdvanceShard implements [dialect.Locks]. In another transaction than LockShard's it changes nothing and fails.
func (d database) AdvanceShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, locked dialect.Shard,
	next dialect.ULIDState, nonces string) error {
	n, err := dialect.Exec(ctx, tx, syntax, shards.For(syntax, f, "advance_shard"),
		dialect.Args{"time": next.TimeMillis,
			"high": next.High, "low": next.Low, "nonces": nonces, "feed": f.Name, "shard": locked.Shard,
			"transaction": locked.Transaction})
	if err == nil && n != 1 {
		err = dialect.ErrNoTransaction
	}
	return err
}

// ULIDUp implements [dialect.Routines] by the procedure lock_<feed> and the function ulid_<feed>, which can also be
// called by the names that mssql-changefeed gave.
func (d database) ULIDUp(f *dialect.Feed) []dialect.Step {
	count := dialect.SQL(fmt.Sprint(int64(dialect.ULIDsPerLock)))
	key := func(part string) dialect.SQL {
		return dialect.SQL(literal(fmt.Sprintf("rowfeed.%08x.%s", checksum(f), part)))
	}
	return append([]dialect.Step{
		shards.Step(syntax, f, "lock_procedure", dialect.Args{
			"wait":  dialect.SQL(fmt.Sprint(dialect.LockWait.Milliseconds())),
			"count": count, "turn": dialect.SQL(literal(lockName(f))),
			"active":     dialect.SQL(literal(dialect.StateActive)),
			"most_ahead": dialect.SQL(fmt.Sprint(dialect.MaxHintAhead.Milliseconds())),
			"last_time":  dialect.SQL(fmt.Sprint(int64(dialect.LastULIDMillis))),
			"key_tx":     key("tx"), "key_high": key("high"), "key_low": key("low"),
		}),
		shards.Step(syntax, f, "ulid_function", dialect.Args{"count": count,
			"key_tx": key("tx"), "key_high": key("high"), "key_low": key("low"),
			"call_first": dialect.SQL(literal("rowfeed: call " + f.LockRoutine().Name +
				" first in this transaction, and ask for a number from 0 to 99999999999, not "))}),
	}, originalUp(f)...)
}

// ULIDDown implements [dialect.Routines].
func (d database) ULIDDown(f *dialect.Feed) []dialect.Step {
	return append(originalDown(f), shards.Step(syntax, f, "drop_lock_procedure", nil),
		shards.Step(syntax, f, "drop_ulid_function", nil))
}

// ULIDProblems implements [dialect.Routines]. It finds the routines, and compares their texts.
func (d database) ULIDProblems(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) (missing, other []string, err error) {
	up := d.ULIDUp(f)
	for i, kind := range []string{"procedure", "function"} {
		name := f.LockRoutine()
		if i == 1 {
			name = f.ULIDRoutine()
		}
		var text string
		var asItsOwner bool
		err := dialect.One(ctx, q, syntax, statement(shards, "routine_state"),
			dialect.Args{"routine": dialect.Qualified(syntax, name)}, &text, &asItsOwner)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			missing = append(missing, dialect.RoutineMissing(kind, name.String()))
		case err != nil:
			return nil, nil, err
		case text == "": // this login may not read it
		case !dialect.SameText(bodyOf(text), bodyOf(up[i].SQL)) || i == 0 && !asItsOwner:
			other = append(other, dialect.RoutineDiffers(kind, name.String()))
		}
	}
	if len(missing) > 0 { // the objects that call them are made again together with them
		return missing, other, nil
	}
	called, err := originalProblems(ctx, q, f)
	return nil, append(other, called...), err
}

// ulidsAbove is [dialect.Dialect].ULIDsAbove. A shift is out of range from the year 6429 on, so the bytes are put
// together.
func ulidsAbove(_ *dialect.Feed, ulid string) (timeMillis, high, low string) {
	timeMillis = "(CONVERT(bigint, SUBSTRING(" + ulid + ", 1, 6)) + 1)"
	return timeMillis, "CONVERT(bigint, SUBSTRING(CONVERT(binary(8), " + timeMillis + "), 3, 6) + 0x0000)", "-1"
}

// ulidProblem is [dialect.Codec].ULIDProblem. A uniqueidentifier is ordered by its last six bytes first.
func ulidProblem(c *dialect.Column) string {
	if !strings.EqualFold(c.Type, "binary(16)") {
		return "is " + c.Type + ": make it binary(16)"
	}
	return ""
}

// shardProblem is [dialect.Codec].ShardProblem. It finds no problem, because every value of an integer type is a valid
// shard, and triggers see computed columns.
func shardProblem(*dialect.Column, bool) (problem, next string) { return "", "" }

// noShard is [dialect.Codec].NoShard.
func noShard(string) string { return "" }

// noULID is [dialect.Codec].NoULID: the length of a binary(16) is fixed.
func noULID(*dialect.ULIDColumns, string, string) string { return "" }
