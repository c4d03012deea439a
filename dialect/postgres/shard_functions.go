package postgres

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
)

// TakeULIDs is [dialect.TakeULIDs] for PostgreSQL.
func (Dialect) TakeULIDs(t dialect.ULIDTerms) (timeMillis, high, low string) {
	return dialect.TakeULIDs(t, func(bits string) string { return bits })
}

// ulidOf returns an expression for the ULID with these halves.
func ulidOf(f *dialect.Feed, high, low string) string {
	bytes := "int8send(" + high + ") || int8send(" + low + ")"
	if f.ULIDs.Position.Type == "uuid" {
		return "CAST(encode(" + bytes + ", 'hex') AS uuid)"
	}
	return bytes
}

// bytesOf returns an expression for the bytes of a ULID.
func bytesOf(f *dialect.Feed, ulid string) string {
	if f.ULIDs.Position.Type == "uuid" {
		return "uuid_send(" + ulid + ")"
	}
	return ulid
}

// millisOf returns an expression for the time of a ULID. It appends zeros, because a bytea may be too short.
func millisOf(f *dialect.Feed, ulid string) string {
	return "('x' || encode(substr(" + bytesOf(f, ulid) +
		" || decode('000000000000', 'hex'), 1, 6), 'hex'))::bit(48)::bigint"
}

// ULIDsAbove implements [dialect.ULID].
func (Dialect) ULIDsAbove(f *dialect.Feed, ulid string) (timeMillis, high, low string) {
	timeMillis = "(" + millisOf(f, ulid) + " + 1)"
	return timeMillis, "(" + timeMillis + " << 16)", "-1"
}

// ULIDUp implements [dialect.ULID] by the functions rowfeed_lock_<feed> and rowfeed_ulid_<feed>.
func (d Dialect) ULIDUp(f *dialect.Feed) []dialect.Step {
	text := func(text string) dialect.SQL { return dialect.SQL(d.Literal(text)) }
	count, setting := dialect.SQL(fmt.Sprint(int64(dialect.ULIDsPerLock))), text(taken(f))
	timeMillis, high, low := d.TakeULIDs(dialect.ULIDTerms{TimeMillis: "v_time", High: "v_high", Low: "v_low",
		Hint: "hint_ms", Random16: "random16", Random64: "random64", Count: string(count)})
	lock := dialect.Args{
		"no_transaction": text(noTransaction), "hint_ahead": text(hintAhead), "no_ulids": text(noULIDsLeft),
		"idle": text(milliseconds(dialect.LockIdle)), "wait": text(milliseconds(dialect.LockWait)),
		"active": text(dialect.StateActive), "setting": setting, "count": count,
		"most_ahead":         dialect.SQL(fmt.Sprint(dialect.MaxHintAhead.Milliseconds())),
		"last_time":          dialect.SQL(fmt.Sprint(dialect.LastULIDMillis)),
		"ulid_of_state":      dialect.SQL(ulidOf(f, "v_high", "v_low")),
		"millis_of_greatest": dialect.SQL(millisOf(f, "greatest")),
		"next_time":          dialect.SQL(timeMillis), "next_high": dialect.SQL(high), "next_low": dialect.SQL(low),
	}
	ulid := dialect.Args{
		"setting": setting, "count": count,
		"name_shard": text("name the shard of the row: " + f.ULIDRoutine().Name + "(i, shard)"),
		"lock_first": text("begin a transaction, and call " + f.LockRoutine().Name + " first"),
		"lock_again": text("call " + f.LockRoutine().Name + " again for more"),
		"ulid": dialect.SQL(ulidOf(f, "split_part(halves, ',', 1)::bigint",
			"(split_part(halves, ',', 2)::bigint + i)")),
	}
	return []dialect.Step{quoted(shards.Step(d, f, "lock_function", lock)),
		quoted(shards.Step(d, f, "ulid_function", ulid)), shards.Step(d, f, "revoke_shard_functions", nil)}
}

const lockArguments, ulidArguments = "(bigint, timestamptz, text, text)", "(bigint, bigint)"

// These are the SQLSTATEs that rowfeed_lock_<feed> raises. Nothing else in the function raises them.
const (
	noTransaction = "25P01" // no_active_sql_transaction
	hintAhead     = "22023" // invalid_parameter_value
	noULIDsLeft   = "2200H" // sequence_generator_limit_exceeded
)

// taken returns the name of the setting with the ULIDs that a transaction has taken of the feed.
func taken(f *dialect.Feed) string {
	sum := sha256.Sum256([]byte(f.Names.Schema + "\x00" + f.Names.Prefix + "\x00" + f.Name))
	return "rowfeed.taken_" + hex.EncodeToString(sum[:8])
}

// ULIDDown implements [dialect.ULID].
func (d Dialect) ULIDDown(f *dialect.Feed) []dialect.Step {
	return []dialect.Step{shards.Step(d, f, "drop_lock_function", nil), shards.Step(d, f, "drop_ulid_function", nil)}
}

// ULIDProblems implements [dialect.ULID]. It finds the functions, and compares their bodies.
func (d Dialect) ULIDProblems(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) (missing, other []string, err error) {
	up := d.ULIDUp(f)
	for i, name := range []string{dialect.Qualified(d, f.LockRoutine()) + lockArguments,
		dialect.Qualified(d, f.ULIDRoutine()) + ulidArguments} {
		var body string
		var powerless bool
		err := dialect.One(ctx, q, d, shards.For(d, f, "shard_function_state"), dialect.Args{
			"function": name, "feeds": dialect.Qualified(d, f.Names.Table("feeds")),
			"shards": dialect.Qualified(d, f.Names.Table("shards")), "source": dialect.Qualified(d, f.Source),
		}, &body, &powerless)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			missing = append(missing, dialect.RoutineMissing("function", name))
		case err != nil:
			return nil, nil, err
		case !dialect.SameText(body, bodyOf(up[i].SQL)):
			other = append(other, d.differs(f, name, body, f.Names.Table("shards"),
				dialect.RoutineDiffers("function", name),
				"no writer of the feed gets a lock"))
		case powerless:
			other = append(other,
				fmt.Sprintf("the owner of function %s may not read %s, read and write %s and %s, or use "+
					"their schemas: grant it, or change the function's owner", name, f.Source, f.Names.Table("feeds"),
					f.Names.Table("shards")))
		}
	}
	return missing, other, nil
}
