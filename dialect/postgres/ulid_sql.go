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

// ULIDUp implements [dialect.ULID] by the functions rowfeed_lock_<feed> and rowfeed_ulid_<feed>. The first one
// stores what it has taken in a setting that is local to the transaction. The setting ends with the
// transaction, and a rollback to a savepoint restores it. So the second function cannot return a ULID that does
// not belong to its caller any more.
func (d Dialect) ULIDUp(f *dialect.Feed) []dialect.Step {
	lock, ulid := dialect.Qualified(d, f.LockRoutine()), dialect.Qualified(d, f.ULIDRoutine())
	return []dialect.Step{
		{Note: "takes ULIDs of a shard, and the shard for the rest of the transaction",
			SQL: "CREATE OR REPLACE FUNCTION " + lock +
				"(shard bigint DEFAULT 0, time_hint timestamptz DEFAULT NULL, word text DEFAULT NULL, " +
				"transaction_id text DEFAULT NULL, OUT ulid " + f.ULIDs.Position.Type +
				`, OUT ulid_high bigint, OUT ulid_low bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off ` +
				`SET enable_bitmapscan = off AS ` + d.Literal(d.lockBody(f))},
		{Note: "the i-th of the ULIDs that this transaction took last of a shard, which need not be named where it " +
			"is the only one", SQL: "CREATE OR REPLACE FUNCTION " + ulid +
			"(i bigint, shard bigint DEFAULT NULL) RETURNS " + f.ULIDs.Position.Type + `
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS ` + d.Literal(d.ulidBody(f))},
		{Note: "who may write to the feed is to be said", SQL: "REVOKE ALL ON FUNCTION " + lock + lockArguments + ", " +
			ulid + ulidArguments + " FROM PUBLIC"},
	}
}

// lockBody returns the body of rowfeed_lock_<feed>.
func (d Dialect) lockBody(f *dialect.Feed) string {
	shards := dialect.Qualified(d, f.Names.Table("shards"))
	name, setting, position := d.Literal(f.Name), d.Literal(taken(f)), dialect.Ref(d, "g", f.ULIDs.Position.Name)
	where := "s.feed = " + name + " AND s.shard = lock_shard"
	read := "SELECT s.time_ms, s.ulid_high, s.ulid_low INTO v_time, v_high, v_low FROM " + shards + " s WHERE " +
		where + " FOR UPDATE"
	timeMillis, high, low := d.TakeULIDs(dialect.ULIDTerms{TimeMillis: "v_time", High: "v_high", Low: "v_low",
		Hint: "hint_ms", Random16: "random16", Random64: "random64",
		Count: fmt.Sprint(int64(dialect.ULIDsPerLock))})
	return `
DECLARE
  lock_shard bigint := COALESCE(shard, 0);
  own text := ' ' || lock_shard || ':'; others text;
  v_time bigint; v_high bigint; v_low bigint; now_ms bigint; hint_ms bigint; random16 bigint; random64 bigint; ` +
		`bits bytea; greatest ` + f.ULIDs.Position.Type + `;
  -- the library has its own bounds
  unbounded boolean := word IS NULL AND current_setting('lock_timeout') = '0';
BEGIN
  IF transaction_id <> pg_current_xact_id()::text THEN
    RAISE EXCEPTION 'feed %: no transaction is open', ` + name + ` USING ERRCODE = ` + d.Literal(noTransaction) + `;
  END IF;
  -- readers see the ULIDs with this commit: it must be on the disk by then
  IF current_setting('synchronous_commit') IN ('off', 'local') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  IF word IS NULL AND current_setting('idle_in_transaction_session_timeout') = '0' THEN
    PERFORM set_config('idle_in_transaction_session_timeout', ` + d.Literal(milliseconds(dialect.LockIdle)) + `, true);
  END IF;
  IF unbounded THEN
    PERFORM set_config('lock_timeout', ` + d.Literal(milliseconds(dialect.LockWait)) + `, true);
  END IF;
  ` + read + `;
  IF NOT FOUND THEN
    -- FOR SHARE: what drops the feed writes this row first, waits, and then sees the row that is made below
    PERFORM FROM ` + dialect.Qualified(d, f.Names.Table("feeds")) + ` f WHERE f.name = ` + name + ` AND f.state = ` +
		d.Literal(dialect.StateActive) + ` FOR SHARE;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'feed % is not ready', ` + name +
		` USING ERRCODE = 'undefined_function', HINT = 'wait until feed add has ended';
    END IF;
    INSERT INTO ` + shards + ` AS s (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES (` + name +
		`, lock_shard, 0, 0, 0, '') ON CONFLICT DO NOTHING;
    ` + read + `;
  END IF;
  IF unbounded THEN
    PERFORM set_config('lock_timeout', '0', true);
  END IF;
  -- A statement of its own: it sees what whoever had the shard has left. SERIALIZABLE would take
  -- the writers of all shards that share a page of the index for writers of one.
  IF v_time = 0 OR current_setting('transaction_isolation') <> 'serializable' THEN
    SELECT ` + position + ` INTO greatest FROM ` + dialect.Qualified(d, f.Source) + ` g WHERE ` +
		dialect.Ref(d, "g", f.ULIDs.Shard.Name) + ` = lock_shard ORDER BY ` + position + ` DESC LIMIT 1;
    IF greatest >= ` + ulidOf(f, "v_high", "v_low") + ` THEN
      v_time := ` + millisOf(f, "greatest") + ` + 1;
      v_high := v_time << 16;
      v_low := -1;
    END IF;
  END IF;
  now_ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
  hint_ms := GREATEST(CASE time_hint WHEN 'infinity' THEN 9223372036854775807 WHEN '-infinity' THEN 1
    ELSE COALESCE(floor(extract(epoch FROM time_hint) * 1000), now_ms) END, 1);
  IF hint_ms > now_ms + ` + fmt.Sprint(dialect.MaxHintAhead.Milliseconds()) + ` THEN
    RAISE EXCEPTION 'feed %, shard %: the hint % is more than a minute ahead of the clock', ` + name +
		`, lock_shard, time_hint
      USING ERRCODE = ` + d.Literal(hintAhead) + `, HINT = 'leave the hint out, or mend the clock that it comes from';
  END IF;
  -- bytes of a random UUID that are random as a whole
  bits := uuid_send(gen_random_uuid());
  random16 := get_byte(bits, 0) * 256 + get_byte(bits, 1);
  random64 := ('x' || encode(substr(bits, 10, 7) || substr(bits, 3, 1), 'hex'))::bit(64)::bigint;
  SELECT ` + timeMillis + `,
    ` + high + `,
    ` + low + `
    INTO v_time, v_high, v_low;
  IF v_time > ` + fmt.Sprint(dialect.LastULIDMillis) + ` THEN
    RAISE EXCEPTION 'feed %, shard %: there is no ULID above those of the shard', ` + name + `, lock_shard
      USING ERRCODE = ` + d.Literal(noULIDsLeft) +
		`, HINT = 'rowfeed check names the row that nobody was given a ULID for: delete it';
  END IF;
  UPDATE ` + shards + ` s SET time_ms = v_time, ulid_high = v_high, ulid_low = v_low + ` +
		fmt.Sprint(int64(dialect.ULIDsPerLock)) + `,
    witness = CASE WHEN word IS NULL THEN s.witness ELSE array_to_string((string_to_array(concat_ws(' ', ` +
		`left(split_part(word, ' ', 1), 40), NULLIF(s.witness, '')), ' '))[1:` + fmt.Sprint(dialect.MaxNonces) +
		`], ' ') END
    WHERE ` + where + `;
  ulid := ` + ulidOf(f, "v_high", "v_low") + `;
  ulid_high := v_high;
  ulid_low := v_low;
  -- of each shard the last ones: " shard:high,low"
  others := COALESCE(current_setting(` + setting + `, true), '');
  IF strpos(others, own) > 0 THEN
    others := replace(others, own || split_part(split_part(others, own, 2), ' ', 1), '');
  END IF;
  PERFORM set_config(` + setting + `, others || own || v_high || ',' || v_low, true);
END `
}

// ulidBody returns the body of rowfeed_ulid_<feed>.
func (d Dialect) ulidBody(f *dialect.Feed) string {
	name, setting := d.Literal(f.Name), d.Literal(taken(f))
	return `
DECLARE
  halves text := current_setting(` + setting + `, true);
BEGIN
  IF shard IS NOT NULL THEN
    halves := split_part(split_part(halves, ' ' || shard || ':', 2), ' ', 1);
  ELSIF strpos(ltrim(halves), ' ') > 0 THEN
    RAISE EXCEPTION 'feed %: this transaction has locked several shards, each with ULIDs of its own', ` + name + `
      USING ERRCODE = 'ambiguous_parameter', HINT = ` +
		d.Literal("name the shard of the row: "+f.ULIDRoutine().Name+"(i, shard)") + `;
  ELSE
    halves := split_part(halves, ':', 2);
  END IF;
  IF COALESCE(halves, '') = '' THEN
    RAISE EXCEPTION 'feed %: this transaction has taken no ULIDs%, or a savepoint took them back', ` + name +
		`, COALESCE(' of shard ' || shard, '')
      USING ERRCODE = 'object_not_in_prerequisite_state', HINT = ` +
		d.Literal("begin a transaction, and call "+f.LockRoutine().Name+" first") + `;
  END IF;
  IF i IS NULL OR i < 0 OR i >= ` + fmt.Sprint(int64(dialect.ULIDsPerLock)) + ` THEN
    RAISE EXCEPTION 'feed %: % is not between 0 and ` + fmt.Sprint(int64(dialect.ULIDsPerLock-1)) + `', ` + name + `, i
      USING ERRCODE = 'invalid_parameter_value', HINT = ` + d.Literal("call "+f.LockRoutine().Name+" again for more") +
		`;
  END IF;
  RETURN ` + ulidOf(f, "split_part(halves, ',', 1)::bigint", "(split_part(halves, ',', 2)::bigint + i)") + `;
END `
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
	return []dialect.Step{
		{Note: "its function", SQL: "DROP FUNCTION IF EXISTS " + dialect.Qualified(d, f.LockRoutine()) + lockArguments},
		{Note: "its function", SQL: "DROP FUNCTION IF EXISTS " + dialect.Qualified(d, f.ULIDRoutine()) + ulidArguments},
	}
}

// ULIDProblems implements [dialect.ULID]. It finds the functions, and compares their bodies.
func (d Dialect) ULIDProblems(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) (missing, other []string, err error) {
	bodies := []string{d.lockBody(f), d.ulidBody(f)}
	for i, name := range []string{dialect.Qualified(d, f.LockRoutine()) + lockArguments,
		dialect.Qualified(d, f.ULIDRoutine()) + ulidArguments} {
		var body string
		var powerless bool
		err := dialect.QueryRow(ctx, q, `SELECT p.prosrc, p.prosecdef AND COALESCE(`+mayNotUse+` OR EXISTS (
    SELECT 1 FROM (VALUES ($2::text, 'SELECT'), ($2, 'UPDATE'), ($3, 'SELECT'), ($3, 'INSERT'), ($3, 'UPDATE'),
      ($4, 'SELECT')) n(on_table, need)
    WHERE NOT has_table_privilege(p.proowner, to_regclass(n.on_table), n.need)), false)
FROM pg_proc p WHERE p.oid = to_regprocedure($1)`, []any{name, dialect.Qualified(d, f.Names.Table("feeds")),
			dialect.Qualified(d, f.Names.Table("shards")), dialect.Qualified(d, f.Source)}, &body, &powerless)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			missing = append(missing, dialect.RoutineMissing("function", name))
		case err != nil:
			return nil, nil, err
		case body != bodies[i]:
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
