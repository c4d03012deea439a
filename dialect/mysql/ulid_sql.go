package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// TakeULIDs is [dialect.TakeULIDs]. The result of a bit operation is unsigned here.
func (Dialect) TakeULIDs(t dialect.ULIDTerms) (timeMillis, high, low string) {
	return dialect.TakeULIDs(t, func(bits string) string { return "CAST(" + bits + " AS SIGNED)" })
}

// These are the error numbers that the procedures signal. Nothing else in the procedures raises them.
const (
	errSignalled   = 1644 // for a SIGNAL without a number: no transaction is open
	errHintAhead   = 1292
	errNoULIDsLeft = 1690
)

// ULIDUp implements [dialect.ULID]. It makes a procedure with which writers take ULIDs, a function that
// computes a ULID, and two procedures for this library: one takes ULIDs, and one returns the nonces. Neither
// server has a cheap variable that is local to a transaction. So the caller gives the function the halves of
// the first ULID, and the function cannot know whether they are the caller's.
func (d Dialect) ULIDUp(f *dialect.Feed) []dialect.Step {
	count := fmt.Sprint(int64(dialect.ULIDsPerLock))
	steps := append(d.ULIDDown(f), d.steps(f, "key_mode")...) // no CREATE OR REPLACE is known to both servers
	return append(steps, dialect.Step{Note: "takes ULIDs of a shard, and the shard for the rest of the transaction",
		SQL: "CREATE PROCEDURE " + dialect.Qualified(d, f.LockRoutine()) +
			`(IN p_shard bigint, IN p_time_hint datetime(6), OUT p_ulid binary(16), OUT p_ulid_high bigint, ` +
			`OUT p_ulid_low bigint)
MODIFIES SQL DATA SQL SECURITY DEFINER
` + d.takeBody(f, "", "FLOOR(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', p_time_hint) / 1000)", "witness",
			"IF @@GLOBAL.log_bin AND NOT @@SESSION.sql_log_bin THEN\n    SIGNAL SQLSTATE '45000' "+
				"SET MESSAGE_TEXT = 'rowfeed: sql_log_bin is off: readers would be shown a commit that a crash takes "+
				"back; leave it on';\n  END IF;\n"+
				"  SET p_ulid_high = v_first_high, p_ulid_low = v_low;\n  SET p_ulid = "+
				ulidOf("v_first_high", "v_low")+";")},
		dialect.Step{Note: "the same for rowfeed's library: the hint in milliseconds of Unix time, " +
			"a word by which it knows its own again, and an answer in one row; how many seconds to wait at most, " +
			"0 as the session does, or less where that is tighter and may hold", SQL: "CREATE PROCEDURE " +
			dialect.Qualified(d, f.TakeRoutine()) +
			`(IN p_shard bigint, IN p_hint bigint, IN p_word varchar(40) CHARACTER SET ascii, IN p_wait int, ` +
			`IN p_tighter bool)
MODIFIES SQL DATA SQL SECURITY DEFINER
` + d.takeBody(f, "p_wait > 0 AND NOT (p_tighter AND v_own <= p_wait)", "p_hint",
			fmt.Sprintf("SUBSTRING_INDEX(CONCAT_WS(' ', p_word, NULLIF(witness, '')), ' ', %d)", dialect.MaxNonces),
			"SELECT v_first_time, v_first_high, v_low, "+commitVariables+";")},
		dialect.Step{Note: "the words that the library has left with a shard",
			SQL: "CREATE PROCEDURE " + dialect.Qualified(d, f.NonceRoutine()) +
				`(IN p_shard bigint)
READS SQL DATA SQL SECURITY DEFINER
BEGIN
  ` + mustBeOpen + `
  SELECT COALESCE((SELECT witness FROM ` + inRoutine(d, f, f.Names.Table("shards")) + ` WHERE feed = ` +
				d.Literal(f.Name) + ` AND shard = p_shard), '');
END`},
		dialect.Step{Note: "the i-th ULID from two halves",
			SQL: "CREATE FUNCTION " + dialect.Qualified(d, f.ULIDRoutine()) +
				`(p_ulid_high bigint, p_ulid_low bigint, i bigint) RETURNS binary(16)
DETERMINISTIC NO SQL SQL SECURITY INVOKER
BEGIN
  IF p_ulid_high IS NULL OR p_ulid_low IS NULL OR i IS NULL OR i < 0 OR i >= ` + count + ` THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'rowfeed: give both halves of a lock, and a number below ` + count +
				`; lock again for more';
  END IF;
  RETURN ` + ulidOf("p_ulid_high", "(p_ulid_low + i)") + `;
END`})
}

// inRoutine returns a table as the feed's routines name it. A table in their own database is named without
// database. So a dump can be restored under another name, and a script can be printed that does not know the
// database.
func inRoutine(d Dialect, f *dialect.Feed, t feedtype.TableName) string {
	if t.Schema == f.Names.Schema {
		t.Schema = ""
	}
	return dialect.Qualified(d, t)
}

// mustBeOpen is the begin of procedures that need an open transaction.
const mustBeOpen = `DECLARE EXIT HANDLER FOR 1305 SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'rowfeed: ` +
	`no transaction is open: begin one, lock, insert, commit';
  SAVEPOINT rowfeed_lock;
  RELEASE SAVEPOINT rowfeed_lock;`

// takeBody returns the body of a procedure that takes ULIDs of the shard p_shard, above those of its rows. MAX
// over the end of a unique index is answered from the index, whatever the statistics. That read must not lock:
// the gaps at the end of the index belong to several shards.
//
// bounded is the condition under which a wait is bounded by p_wait; it is empty for a procedure without p_wait.
// hint is an expression for the time hint, NULL for the clock's time. witness is an expression for the new
// nonces, and answer has the statements at the end.
func (d Dialect) takeBody(f *dialect.Feed, bounded, hint, witness, answer string) string {
	shards, name := inRoutine(d, f, f.Names.Table("shards")), d.Literal(f.Name)
	count := fmt.Sprint(int64(dialect.ULIDsPerLock))
	where := " WHERE feed = " + name + " AND shard = v_shard"
	timeMillis, high, low := d.TakeULIDs(dialect.ULIDTerms{TimeMillis: "v_time", High: "v_high", Low: "v_low",
		Hint: "v_hint", Random16: "v_random16", Random64: "v_random64", Count: count})
	var own, bound, unbound string
	if bounded != "" {
		unbound = "  SET SESSION innodb_lock_wait_timeout = v_own, @rowfeed_own_wait = NULL;\n"
		own = "  DECLARE v_own int DEFAULT @@SESSION.innodb_lock_wait_timeout;\n"
		bound = "  IF " + bounded +
			" THEN\n    SET @rowfeed_own_wait = v_own, SESSION innodb_lock_wait_timeout = p_wait;\n  END IF;\n"
	}
	return `BEGIN
  DECLARE v_shard bigint DEFAULT COALESCE(p_shard, 0);
  DECLARE v_time, v_high, v_low, v_first_time, v_first_high, v_now, v_hint, v_random16, v_random64 bigint;
  DECLARE v_bits char(64);
  DECLARE v_greatest binary(16);
` + own + `  ` + mustBeOpen + `
` + bound + `  INSERT INTO ` + shards + ` (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES (` + name +
		`, v_shard, 0, 0, 0, '') ON DUPLICATE KEY UPDATE witness = witness;
  SELECT time_ms, ulid_high, ulid_low INTO v_time, v_high, v_low FROM ` + shards + where + ` FOR UPDATE;
` + unbound + `  IF v_time = 0 AND NOT EXISTS (SELECT 1 FROM ` + inRoutine(d, f, f.Names.Table("feeds")) +
		` WHERE name = ` + name + ` AND state = ` + d.Literal(dialect.StateActive) + `) THEN
    SIGNAL SQLSTATE '42S02' SET MYSQL_ERRNO = 1146, MESSAGE_TEXT = 'rowfeed: the feed is not ready: ` +
		`wait until feed add has ended';
  END IF;
  SELECT MAX(` + dialect.Ref(d, "g", f.ULIDs.Position.Name) + `) INTO v_greatest FROM ` + inRoutine(d, f, f.Source) +
		` g WHERE ` + dialect.Ref(d, "g", f.ULIDs.Shard.Name) + ` = v_shard;
  IF v_greatest >= ` + ulidOf("v_high", "v_low") + ` THEN
    SET v_time = ` + millisOf("v_greatest") + ` + 1;
    SET v_high = CAST((v_time << 16) AS SIGNED), v_low = -1;
  END IF;
  SET v_now = ` + d.Now() + ` DIV 1000;
  SET v_hint = GREATEST(COALESCE(` + hint + `, v_now), 1);
  IF v_hint > v_now + ` + fmt.Sprint(dialect.MaxHintAhead.Milliseconds()) + ` THEN
    SIGNAL SQLSTATE '22007' SET MYSQL_ERRNO = ` + fmt.Sprint(errHintAhead) +
		`, MESSAGE_TEXT = 'rowfeed: the hint is more than a minute ahead of the clock: leave it out, ` +
		`or mend the clock that it comes from';
  END IF;
  SET v_bits = SHA2(CONCAT(UUID(), ' ', RAND(), ' ', RAND(), ' ', CONNECTION_ID()), 256);
  SET v_random16 = CONV(LEFT(v_bits, 4), 16, 10);
  SET v_random64 = CAST(CAST(CONV(SUBSTRING(v_bits, 5, 16), 16, 10) AS UNSIGNED) AS SIGNED);
  SET v_first_time = ` + timeMillis + `;
  SET v_first_high = ` + high + `;
  SET v_low = ` + low + `;
  IF v_first_time > ` + fmt.Sprint(dialect.LastULIDMillis) + ` THEN
    SIGNAL SQLSTATE '22003' SET MYSQL_ERRNO = ` + fmt.Sprint(errNoULIDsLeft) +
		`, MESSAGE_TEXT = 'rowfeed: there is no ULID above those of the shard: rowfeed check names the row, delete it';
  END IF;
  UPDATE ` + shards + ` SET time_ms = v_first_time, ulid_high = v_first_high, ulid_low = v_low + ` + count +
		`, witness = ` + witness + where + `;
  ` + answer + `
END`
}

// millisOf returns an expression for the time of a ULID.
func millisOf(ulid string) string {
	return "CAST(CONV(LEFT(HEX(" + ulid + "), 12), 16, 10) AS SIGNED)"
}

// ULIDsAbove implements [dialect.ULID].
func (Dialect) ULIDsAbove(_ *dialect.Feed, ulid string) (timeMillis, high, low string) {
	timeMillis = "(" + millisOf(ulid) + " + 1)"
	return timeMillis, "CAST((" + timeMillis + " << 16) AS SIGNED)", "-1"
}

// ulidOf returns an expression for the ULID with these halves.
func ulidOf(high, low string) string {
	return "UNHEX(CONCAT(LPAD(HEX(" + high + "), 16, '0'), LPAD(HEX(" + low + "), 16, '0')))"
}

// ULIDDown implements [dialect.ULID].
func (d Dialect) ULIDDown(f *dialect.Feed) []dialect.Step {
	return []dialect.Step{
		{Note: "its procedure", SQL: "DROP PROCEDURE IF EXISTS " + dialect.Qualified(d, f.LockRoutine())},
		{Note: "its procedure", SQL: "DROP PROCEDURE IF EXISTS " + dialect.Qualified(d, f.TakeRoutine())},
		{Note: "its procedure", SQL: "DROP PROCEDURE IF EXISTS " + dialect.Qualified(d, f.NonceRoutine())},
		{Note: "its function", SQL: "DROP FUNCTION IF EXISTS " + dialect.Qualified(d, f.ULIDRoutine())},
	}
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
func (d Dialect) routine(
	ctx context.Context, q dialect.Querier, r routine,
) (definer string, body sql.NullString, err error) {
	err = dialect.QueryRow(ctx, q, "SELECT DEFINER, ROUTINE_DEFINITION FROM information_schema.ROUTINES "+
		"WHERE ROUTINE_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND ROUTINE_NAME = ? AND ROUTINE_TYPE = ?",
		[]any{r.name.Schema, r.name.Name, strings.ToUpper(r.kind)}, &definer, &body)
	return definer, body, err
}

// ULIDProblems implements [dialect.ULID]. If this login may not see a routine's body, the body is not compared.
func (d Dialect) ULIDProblems(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) (missing, other []string, err error) {
	up := d.ULIDUp(f)
	accounts, err := d.definers(ctx, q, f.Name, routineNeeds(f))
	if err != nil {
		return nil, nil, err
	}
	all := routines(f)
	for i, r := range all {
		made := up[len(up)-len(all)+i].SQL
		made = made[strings.Index(made, "\nBEGIN\n")+1:]
		account, body, err := d.routine(ctx, q, r)
		if err == nil && body.Valid && body.String != made && garbled(made) {
			if body.String, err = d.createdAs(ctx, q,
				strings.ToUpper(r.kind), r.name); strings.HasSuffix(body.String, made) {
				body.String = made
			}
		}
		switch {
		case errors.Is(err, sql.ErrNoRows):
			missing = append(missing, dialect.RoutineMissing(r.kind, r.name.String()))
			continue
		case err != nil:
			return nil, nil, err
		case body.Valid && body.String != made:
			other = append(other, dialect.RoutineDiffers(r.kind, r.name.String()))
			continue
		case r.invoker:
			continue
		}
		if x, err := accounts.account(ctx, account); err != nil {
			return nil, nil, err
		} else if x.fault != "" {
			other = append(other, x.problem(r.kind+" "+r.name.String(), account, "no writer of the feed gets a lock"))
		}
	}
	return missing, other, nil
}
