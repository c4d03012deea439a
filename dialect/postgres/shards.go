package postgres

import (
	"context"
	"crypto/sha256"
	"database/sql"
	_ "embed" // for shards.sql
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

//go:embed shards.sql
var shardsFile string

var shards = dialect.NewStatements(shardsFile)

// LockShard implements [dialect.Locks].
func (d database) LockShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int,
	bounds dialect.LockBounds) (dialect.Shard, error) {
	args := dialect.Args{"feed": f.Name, "shard": shard}
	bound := func() error {
		if bounds.Wait <= 0 {
			return nil
		}
		_, err := dialect.Exec(ctx, tx, syntax, shards.For(syntax, f, "bound_waits"),
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
		err := dialect.One(ctx, tx, syntax, shards.For(syntax, f, lock), args, append(row.Dest(), &row.Transaction)...)
		if !errors.Is(err, sql.ErrNoRows) || made {
			return row, err
		}
		if bounds.NoWait {
			if err := bound(); err != nil {
				return row, err
			}
		}
		if _, err := dialect.Exec(ctx, tx, syntax, shards.For(syntax, f, "make_shard"), args); err != nil {
			return row, err
		}
	}
}

// TakeShard implements [dialect.Locks] by the feed's function. The statement that asks for the transaction's id also
// sets the bounds.
func (d database) TakeShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int,
	bounds dialect.LockBounds, hintMillis int64, word string) (first dialect.ULIDState, forgetful, err error) {
	var transaction, wait, set, fsync, pages string
	if err := dialect.One(ctx, tx, syntax, shards.For(syntax, f, "bounds"),
		dialect.Args{"bounds": dialect.Joined(" || ",
			[]dialect.Built{d.setBound(f, "lock_timeout", bounds.Wait, bounds.Tighter),
				d.setBound(f, "idle_in_transaction_session_timeout", bounds.Idle, true)})},
		&transaction, &wait, &set); err != nil {
		return first, nil, err
	}
	err = dialect.One(ctx, tx, syntax, shards.For(syntax, f, "take_shard"), dialect.Args{
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
// value is to, or the present one if to is 0. With tighter it is also the present one if that is tighter. The bound is
// a parameter, so that different bounds do not make different statements.
func (d database) setBound(f *dialect.Feed, setting string, to time.Duration, tighter bool) dialect.Built {
	if to <= 0 {
		return func(*dialect.Builder) string { return "current_setting('" + setting + "')" }
	}
	name := "bound"
	if tighter {
		name = "tighter_bound"
	}
	return shards.For(syntax, f, name).With(dialect.Args{"setting": dialect.SQL("'" + setting + "'"),
		"to": milliseconds(to)})
}

// milliseconds returns a duration in the syntax of settings, rounded up.
func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%dms", (d + time.Millisecond - 1).Milliseconds())
}

// Usable implements [dialect.Locks]. TakeShard has already shown that there is a transaction.
func (d database) Usable(ctx context.Context, tx dialect.Querier) error {
	_, err := dialect.Exec(ctx, tx, syntax, statement(shards, "usable"), nil)
	return err
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
	n, err := dialect.Exec(ctx, tx, syntax, shards.For(syntax, f, "advance_shard"), dialect.Args{
		"time": next.TimeMillis, "high": next.High, "low": next.Low, "nonces": nonces,
		"feed": f.Name, "shard": locked.Shard, "transaction": locked.Transaction,
	})
	if err == nil && n != 1 {
		err = dialect.ErrNoTransaction
	}
	return err
}

// ulidProblem is [dialect.Codec].ULIDProblem. It accepts the types that order 16 bytes as they are.
func ulidProblem(c *dialect.Column) string {
	if c.Type != "uuid" && c.Type != "bytea" {
		return "is " + c.Type + ": make it uuid or bytea"
	}
	return ""
}

// shardProblem is [dialect.Codec].ShardProblem.
func shardProblem(c *dialect.Column, triggered bool) (problem, next string) {
	if c.Virtual && triggered {
		return "is generated whenever it is read, and triggers see NULL in its place: every INSERT would fail",
			"make it GENERATED … STORED, or use --capture app"
	}
	return "", ""
}

// noShard is [dialect.Codec].NoShard.
func noShard(string) string { return "" }

// noULID is [dialect.Codec].NoULID.
func noULID(u *dialect.ULIDColumns, position, _ string) string {
	if u.Position.Type == "uuid" {
		return ""
	}
	return "octet_length(" + position + ") <> 16"
}

// TakeULIDs is [dialect.TakeULIDs] for PostgreSQL.
func (database) TakeULIDs(t dialect.ULIDTerms) (timeMillis, high, low string) {
	return dialect.TakeULIDs(t, func(bits string) string { return bits })
}

// ulidsAbove is [dialect.Dialect].ULIDsAbove.
func ulidsAbove(f *dialect.Feed, ulid string) (timeMillis, high, low string) {
	timeMillis = "(" + dialect.NewScript(syntax).Fill(shards.For(syntax, f, "millis"),
		dialect.Args{"ulid": dialect.SQL(ulid)}) + " + 1)"
	return timeMillis, "(" + timeMillis + " << 16)", "-1"
}

// ULIDUp implements [dialect.Routines] by the functions rowfeed_lock_<feed> and rowfeed_ulid_<feed>.
func (d database) ULIDUp(f *dialect.Feed) []dialect.Step {
	text := func(text string) dialect.SQL { return dialect.SQL(literal(text)) }
	ulidOf := func(high, low dialect.SQL) dialect.Built {
		return shards.For(syntax, f, "ulid").With(dialect.Args{"high": high, "low": low})
	}
	count, setting := dialect.SQL(fmt.Sprint(int64(dialect.ULIDsPerLock))), text(taken(f))
	timeMillis, high, low := d.TakeULIDs(dialect.ULIDTerms{TimeMillis: "v_time", High: "v_high", Low: "v_low",
		Hint: "hint_ms", Random16: "random16", Random64: "random64", Count: string(count)})
	lock := dialect.Args{
		"shard": dialect.SQL("lock_shard"), "name": text(f.LockRoutine().Name),
		"begin_first": text("begin a transaction, lock, insert rows with " + f.ULIDRoutine().Name +
			"(i, shard), commit"),
		"no_transaction": text(noTransaction), "hint_ahead": text(hintAhead), "no_ulids": text(noULIDsLeft),
		"idle": text(milliseconds(dialect.LockIdle)), "wait": text(milliseconds(dialect.LockWait)),
		"active": text(dialect.StateActive), "setting": setting, "count": count,
		"most_ahead":         dialect.SQL(fmt.Sprint(dialect.MaxHintAhead.Milliseconds())),
		"last_time":          dialect.SQL(fmt.Sprint(dialect.LastULIDMillis)),
		"ulid_of_state":      ulidOf("v_high", "v_low"),
		"millis_of_greatest": shards.For(syntax, f, "millis").With(dialect.Args{"ulid": dialect.SQL("greatest")}),
		"newest":             dialect.SQL(fmt.Sprintf("[1:%d]", dialect.MaxNonces)), // of the nonces
		"next_time":          dialect.SQL(timeMillis), "next_high": dialect.SQL(high), "next_low": dialect.SQL(low),
	}
	ulid := dialect.Args{
		"setting": setting, "count": count,
		"name_shard": text("name the shard of the row: " + f.ULIDRoutine().Name + "(i, shard)"),
		"lock_first": text("begin a transaction, and call " + f.LockRoutine().Name + " first"),
		"lock_again": text("call " + f.LockRoutine().Name + " again for more"),
		"ulid":       ulidOf("split_part(halves, ',', 1)::bigint", "(split_part(halves, ',', 2)::bigint + i)"),
	}
	return []dialect.Step{quoted(shards.Step(syntax, f, "lock_function", lock)),
		quoted(shards.Step(syntax, f, "ulid_function", ulid)), shards.Step(syntax, f, "revoke_shard_functions", nil)}
}

const lockArguments, ulidArguments = "(bigint, timestamptz, text, text)", "(bigint, bigint)"

// These are the SQLSTATEs that rowfeed_lock_<feed> raises. Nothing else in the function raises them.
const (
	noTransaction = "25P01" // no_active_sql_transaction
	hintAhead     = "22023" // invalid_parameter_value
	noULIDsLeft   = "2200H" // sequence_generator_limit_exceeded
)

// taken returns the name of the setting that stores the ULIDs which a transaction has allocated in the feed.
func taken(f *dialect.Feed) string {
	sum := sha256.Sum256([]byte(f.Names.Schema + "\x00" + f.Names.Prefix + "\x00" + f.Name))
	return "rowfeed.taken_" + hex.EncodeToString(sum[:8])
}

// ULIDDown implements [dialect.Routines].
func (d database) ULIDDown(f *dialect.Feed) []dialect.Step {
	return []dialect.Step{shards.Step(syntax, f, "drop_lock_function", nil),
		shards.Step(syntax, f, "drop_ulid_function", nil)}
}

// ULIDProblems implements [dialect.Routines]. It finds the functions, and compares their bodies.
func (d database) ULIDProblems(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) (missing, other []string, err error) {
	up := d.ULIDUp(f)
	for i, name := range []string{dialect.Qualified(syntax, f.LockRoutine()) + lockArguments,
		dialect.Qualified(syntax, f.ULIDRoutine()) + ulidArguments} {
		var body string
		var powerless bool
		err := dialect.One(ctx, q, syntax, shards.For(syntax, f, "shard_function_state"), dialect.Args{
			"function": name, "feeds": dialect.Qualified(syntax, f.Names.Table("feeds")),
			"shards": dialect.Qualified(syntax, f.Names.Table("shards")), "source": dialect.Qualified(syntax, f.Source),
		}, &body, &powerless)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			missing = append(missing, dialect.RoutineMissing("function", name))
		case err != nil:
			return nil, nil, err
		case !dialect.SameText(body, bodyOf(up[i].SQL)):
			other = append(other, d.differs(f, name, body, f.Names.Table("shards"),
				dialect.RoutineDiffers("function", name),
				"no writer of the feed can lock a shard"))
		case powerless:
			other = append(other,
				fmt.Sprintf("the owner of function %s may not read %s, read and write %s and %s, or use "+
					"their schemas: grant it, or change the function's owner", name, f.Source, f.Names.Table("feeds"),
					f.Names.Table("shards")))
		}
	}
	return missing, other, nil
}
