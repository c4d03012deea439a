package mysql

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed" // for shards.sql
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed shards.sql
var shardsFile string

var shards = dialect.NewStatements(shardsFile)

// LockShard implements [dialect.Locks].
func (d database) LockShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int,
	bounds dialect.LockBounds) (dialect.Shard, error) {
	args := dialect.Args{"feed": f.Name, "shard": shard}
	row := dialect.Shard{Shard: shard}
	if bounds.NoWait {
		err := dialect.One(ctx, tx, syntax, shards.For(syntax, f, "try_shard"), args, row.Dest()...)
		if !errors.Is(err, sql.ErrNoRows) {
			return row, err
		}
	} else if err := d.Usable(ctx, tx); err != nil {
		return dialect.Shard{}, err
	}
	err := d.Bounded(ctx, tx, bounds.Wait, func() error {
		_, err := dialect.Exec(ctx, tx, syntax, shards.For(syntax, f, "make_shard"), args)
		return err
	})
	if err != nil {
		return dialect.Shard{}, err
	}
	err = dialect.One(ctx, tx, syntax, shards.For(syntax, f, "lock_shard"), args, row.Dest()...)
	return row, err
}

var (
	boundWaits, unboundWaits       = statement(shards, "bound_waits"), text(shards, "unbound_waits")
	beginSavepoint, endSavepoint   = text(shards, "begin_savepoint"), text(shards, "end_savepoint")
	idleBound, unboundFailedTaking = statement(shards, "idle_bound"), text(shards, "unbound_failed_take")
)

// Bounded implements [dialect.Bounds]. It sets the session's lock wait timeout, and sets it back afterwards.
func (d database) Bounded(ctx context.Context, tx dialect.Querier, wait time.Duration, fn func() error) error {
	if wait <= 0 {
		return fn()
	}
	if _, err := dialect.Exec(ctx, tx, syntax, boundWaits, dialect.Args{"seconds": wholeSeconds(wait)}); err != nil {
		return err
	}
	err := fn()
	_, restored := tx.Exec(context.WithoutCancel(ctx), unboundWaits)
	return cmp.Or(err, restored)
}

// wholeSeconds returns a duration in seconds, rounded up.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// checkIdle returns an error if the server lets this session be idle in a transaction for longer than idle.
// Both servers have no bound that ends with the transaction. So rowfeed sets none: it would stay with the
// connection, and end transactions of other users of the pool.
func (d database) checkIdle(ctx context.Context, tx dialect.Querier, idle time.Duration) error {
	var allowed int64
	if err := dialect.One(ctx, tx, syntax, idleBound, nil, &allowed); err != nil {
		return err
	}
	if have := time.Duration(allowed) * time.Second; have > idle {
		return fmt.Errorf("this session may idle in a transaction for %s: set idle_write_transaction_timeout "+
			"(MariaDB) or wait_timeout (both), for the session or in the connection's URL: %w", have,
			errors.ErrUnsupported)
	}
	return nil
}

// Usable implements [dialect.Locks].
func (d database) Usable(ctx context.Context, tx dialect.Querier) error {
	if _, err := tx.Exec(ctx, beginSavepoint); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, endSavepoint)
	if d.Classify(err) == dialect.ClassUndefined {
		err = dialect.ErrNoTransaction
	}
	return err
}

// TakeShard implements [dialect.Locks] by a call of the feed's procedure.
func (d database) TakeShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int,
	bounds dialect.LockBounds, hintMillis int64, word string) (first dialect.ULIDState, forgetful, err error) {
	if bounds.Demanded {
		if err := d.checkIdle(ctx, tx, bounds.Idle); err != nil {
			return first, nil, err
		}
	}
	var hint any
	if hintMillis != 0 {
		hint = hintMillis
	}
	var log commitLog
	err = dialect.One(ctx, tx, syntax, shards.For(syntax, f, "take_shard"), dialect.Args{
		"shard": shard, "hint": hint, "word": word, "wait": wholeSeconds(bounds.Wait), "tighter": bounds.Tighter,
	}, append([]any{&first.TimeMillis, &first.High, &first.Low}, log.dest()...)...)
	if err != nil && bounds.Wait > 0 {
		_, _ = tx.Exec(context.WithoutCancel(ctx), unboundFailedTaking)
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

// LockNonces implements [dialect.Locks].
func (d database) LockNonces(ctx context.Context, tx dialect.Querier, f *dialect.Feed,
	shard int) (nonces string, err error) {
	err = dialect.One(ctx, tx, syntax, shards.For(syntax, f, "nonces"), dialect.Args{"shard": shard}, &nonces)
	if number, _ := dialect.CodeField(err, "Number"); number == errSignalled {
		err = dialect.ErrNoTransaction
	}
	return nonces, err
}

// AdvanceShard implements [dialect.Locks].
func (d database) AdvanceShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, locked dialect.Shard,
	next dialect.ULIDState, nonces string) error {
	_, err := dialect.Exec(ctx, tx, syntax, shards.For(syntax, f, "advance_shard"), dialect.Args{
		"time": next.TimeMillis, "high": next.High, "low": next.Low, "nonces": nonces,
		"feed": f.Name, "shard": locked.Shard,
	})
	return err
}

// ulidProblem is [dialect.Codec].ULIDProblem. MariaDB's uuid is not ordered by its bytes.
func ulidProblem(c *dialect.Column) string {
	if strings.ToLower(c.Type) != "binary(16)" {
		return "is " + c.Type + ": make it binary(16)"
	}
	return ""
}

// shardProblem is [dialect.Codec].ShardProblem. The upper half of an unsigned bigint cannot be told from negative
// numbers, and makes a trigger fail.
func shardProblem(c *dialect.Column, _ bool) (problem, next string) {
	if t := strings.ToLower(c.Type); strings.HasPrefix(t, "bigint") && strings.Contains(t, "unsigned") {
		return "is " + c.Type + ", and could hold numbers above 9223372036854775807, which no shard has",
			"make it BIGINT"
	}
	return "", ""
}

// noShard is [dialect.Codec].NoShard.
func noShard(string) string { return "" }

// noULID is [dialect.Codec].NoULID: the length of a binary(16) is fixed.
func noULID(*dialect.ULIDColumns, string, string) string { return "" }

// TakeULIDs is [dialect.TakeULIDs]. The result of a bit operation is unsigned here.
func (database) TakeULIDs(t dialect.ULIDTerms) (timeMillis, high, low string) {
	return dialect.TakeULIDs(t, func(bits string) string { return "CAST(" + bits + " AS SIGNED)" })
}

// These are the error numbers that the procedures signal. Nothing else in the procedures raises them.
const (
	errSignalled   = 1644 // for a SIGNAL without a number: no transaction is open
	errHintAhead   = 1292
	errNoULIDsLeft = 1690
)

// ULIDUp implements [dialect.Routines]. It makes a procedure with which writers allocate ULIDs, a function that
// computes a ULID, and two procedures for this library: one allocates ULIDs, and one returns the nonces.
func (d database) ULIDUp(f *dialect.Feed) []dialect.Step {
	text := func(text string) dialect.SQL { return dialect.SQL(literal(text)) }
	number := func(n int64) dialect.SQL { return dialect.SQL(fmt.Sprint(n)) }
	count := number(dialect.ULIDsPerLock)
	timeMillis, high, low := d.TakeULIDs(dialect.ULIDTerms{TimeMillis: "v_time", High: "v_high", Low: "v_low",
		Hint: "v_hint", Random16: "v_random16", Random64: "v_random64", Count: string(count)})
	take := dialect.Args{
		"shards": inRoutine(d, f, f.Names.Table("shards")), "feeds": inRoutine(d, f, f.Names.Table("feeds")),
		"source": inRoutine(d, f, f.Source), "active": text(dialect.StateActive), "count": count,
		"ulid_of_state": ulidOf("v_high", "v_low"), "millis_of_greatest": dialect.SQL(millisOf("v_greatest")),
		"hint_ahead": number(errHintAhead), "most_ahead": number(dialect.MaxHintAhead.Milliseconds()),
		"no_ulids": number(errNoULIDsLeft), "last_time": number(dialect.LastULIDMillis),
		"next_time": dialect.SQL(timeMillis), "next_high": dialect.SQL(high), "next_low": dialect.SQL(low),
	}
	lock := maps.Clone(take)
	lock["hint"] = dialect.SQL("FLOOR(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', p_time_hint) / 1000)")
	lock["witness"], lock["ulid"] = dialect.SQL("witness"), ulidOf("v_first_high", "v_low")
	take["hint"], take["commit_variables"] = dialect.SQL("p_hint"), dialect.SQL(commitVariables)
	take["witness"] = dialect.SQL(fmt.Sprintf("SUBSTRING_INDEX(CONCAT_WS(' ', p_word, NULLIF(witness, '')), ' ', %d)",
		dialect.MaxNonces))
	return append(append(d.ULIDDown(f), d.steps(f, "key_mode")...), // no CREATE OR REPLACE is known to both servers
		shards.Step(syntax, f, "lock_procedure", lock), shards.Step(syntax, f, "take_procedure", take),
		shards.Step(syntax, f, "nonce_procedure", dialect.Args{"shards": take["shards"]}),
		shards.Step(syntax, f, "ulid_function", dialect.Args{
			"count": count, "ulid": ulidOf("p_ulid_high", "(p_ulid_low + i)"),
			"lock_again": text("rowfeed: give both halves of a lock, and a number below " + string(count) +
				"; lock again for more"),
		}))
}

// inRoutine returns a table as the feed's routines name it. A table in their own database is named without
// database. So a dump can be restored under another name, and a script can be printed that does not know the
// database.
func inRoutine(d database, f *dialect.Feed, t feedtype.TableName) dialect.SQL {
	if t.Schema == f.Names.Schema {
		t.Schema = ""
	}
	return dialect.SQL(dialect.Qualified(syntax, t))
}

// millisOf returns an expression for the time of a ULID.
func millisOf(ulid string) string {
	return "CAST(CONV(LEFT(HEX(" + ulid + "), 12), 16, 10) AS SIGNED)"
}

// ulidsAbove is [dialect.Dialect].ULIDsAbove.
func ulidsAbove(_ *dialect.Feed, ulid string) (timeMillis, high, low string) {
	timeMillis = "(" + millisOf(ulid) + " + 1)"
	return timeMillis, "CAST((" + timeMillis + " << 16) AS SIGNED)", "-1"
}

// ulidOf returns an expression for the ULID with these halves.
func ulidOf(high, low string) dialect.SQL {
	return dialect.SQL("UNHEX(CONCAT(LPAD(HEX(" + high + "), 16, '0'), LPAD(HEX(" + low + "), 16, '0')))")
}

// ULIDDown implements [dialect.Routines].
func (d database) ULIDDown(f *dialect.Feed) (steps []dialect.Step) {
	for _, name := range []string{"drop_lock_procedure", "drop_take_procedure", "drop_nonce_procedure",
		"drop_ulid_function"} {
		steps = append(steps, shards.Step(syntax, f, name, nil))
	}
	return steps
}

// routine is one of a feed's routines. An invoker routine runs with the rights of its caller.
type routine struct {
	kind    string
	name    feedtype.TableName
	invoker bool
}

// routines returns the feed's routines in the order in which ULIDUp makes them.
func routines(f *dialect.Feed) []routine {
	return []routine{{"procedure", f.LockRoutine(), false}, {"procedure", f.TakeRoutine(), false},
		{"procedure", f.NonceRoutine(), false}, {"function", f.ULIDRoutine(), true}}
}

// routine returns the account with whose rights a routine runs, and the routine's body. The body is NULL if
// this login may not see it.
func (d database) routine(
	ctx context.Context, q dialect.Querier, r routine,
) (definer string, body sql.NullString, err error) {
	err = dialect.One(ctx, q, syntax, routineState, dialect.Args{"schema": r.name.Schema, "name": r.name.Name,
		"kind": strings.ToUpper(r.kind)}, &definer, &body)
	return definer, body, err
}

var routineState = statement(shards, "routine_state")

// bodyOf returns the body of a routine, which begins with BEGIN.
func bodyOf(statement string) string { return statement[strings.Index(statement, "\nBEGIN\n")+1:] }

// ULIDProblems implements [dialect.Routines]. If this login may not see a routine's body, the body is not compared.
func (d database) ULIDProblems(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) (missing, other []string, err error) {
	up := d.ULIDUp(f)
	accounts, err := d.definers(ctx, q, f.Name, routineNeeds(f))
	if err != nil {
		return nil, nil, err
	}
	all := routines(f)
	for i, r := range all {
		made := bodyOf(up[len(up)-len(all)+i].SQL)
		account, body, err := d.routine(ctx, q, r)
		if err == nil && body.Valid && garbled(made) && !dialect.SameText(body.String, made) {
			if body.String, err = d.createdAs(ctx, q, strings.ToUpper(r.kind), r.name); err == nil {
				body.String = bodyOf(body.String)
			}
		}
		switch {
		case errors.Is(err, sql.ErrNoRows):
			missing = append(missing, dialect.RoutineMissing(r.kind, r.name.String()))
			continue
		case err != nil:
			return nil, nil, err
		case body.Valid && !dialect.SameText(body.String, made):
			other = append(other, dialect.RoutineDiffers(r.kind, r.name.String()))
			continue
		case r.invoker:
			continue
		}
		if x, err := accounts.account(ctx, account); err != nil {
			return nil, nil, err
		} else if x.fault != "" {
			other = append(other, x.problem(r.kind+" "+r.name.String(), account,
				"no writer of the feed can lock a shard"))
		}
	}
	return missing, other, nil
}
