package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

// TxOptions implements [dialect.Publish]. It sets the isolation level because the server's default may be
// another one.
func (Dialect) TxOptions(p dialect.Purpose) *sql.TxOptions {
	switch p {
	case dialect.ForCheck:
		return &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	case dialect.ForRead:
		return &sql.TxOptions{Isolation: sql.LevelReadCommitted, ReadOnly: true}
	}
	return &sql.TxOptions{Isolation: sql.LevelReadCommitted}
}

const (
	// writing undoes default_transaction_read_only. It must come before any query, so it cannot depend on one.
	// A standby answers it with SQLSTATE 0A000. The server also uses that code for a cached plan that is out of
	// date, so a caller that retries asks Identity.
	writing = `SET TRANSACTION READ WRITE`
	// durable raises synchronous_commit if the server's default is weaker. It never lowers it: remote_apply
	// stays.
	durable = `SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ` +
		`('off', 'local')`
	// askFirst begins a message with a query for one row of one table. It has those settings of byKey that such a
	// query needs, in one statement instead of five, because it is sent many times a second. If the session's default
	// is SERIALIZABLE, the query would take part in predicate locking. PostgreSQL would then fail a writer that
	// records a change after the query, and the query itself.
	askFirst = `SET TRANSACTION ISOLATION LEVEL READ COMMITTED; ` +
		`SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), ` +
		`set_config('jit', 'off', true); `
)

// setting is one setting of the server, for one transaction.
type setting struct{ name, to string }

var (
	// formats make text the same whatever the session's settings. With row_security off, the server fails if a
	// policy would hide rows.
	formats = []setting{{"TimeZone", "UTC"}, {"DateStyle", "ISO"}, {"IntervalStyle", "iso_8601"},
		{"extra_float_digits", "1"}, {"bytea_output", "hex"}, {"row_security", "off"}}
	// interpreted switches JIT compilation off. The planner adds ten thousand million to the cost of a plan
	// with a step that is switched off. At such a cost the server compiles even a plan over a few rows, each
	// time for hundreds of milliseconds.
	interpreted = setting{"jit", "off"}
	// byKey keeps the planner from reading a whole table for a page or a batch. Right after ANALYZE, or before
	// the first one, it prefers a hash join with a full scan.
	byKey = []setting{{"enable_hashjoin", "off"}, {"enable_mergejoin", "off"}, {"enable_seqscan", "off"},
		{"enable_bitmapscan", "off"}, interpreted}
	// inOrder makes back-fill follow the index of the key. With the statistics of a table that was almost
	// empty, every batch would read and sort the whole table. Hash joins are allowed, for Repair.
	inOrder = []setting{{"enable_seqscan", "off"}, {"enable_bitmapscan", "off"}, interpreted}
	// bounds make a publisher that is paused or cut off release the sequence's row.
	bounds = []setting{{"idle_in_transaction_session_timeout", "10s"}, {"lock_timeout", "30s"},
		{"statement_timeout", "120s"}}
	// reading makes a page give up early if another session has locked the table, so that other feeds get its
	// connection.
	reading = setting{"lock_timeout", "2s"}
	// publishing does the same, but after deadlock_timeout (one second by default). So PostgreSQL detects two
	// movers that wait for each other before one of them gives up.
	publishing = []setting{bounds[0], reading, bounds[2]}
	// atLeisure is for statements whose duration depends on the size of the user's table.
	atLeisure = []setting{bounds[0], bounds[1], {"statement_timeout", "0"}}
)

// oneByOne makes a statement of its own for each setting. For fifteen settings that takes 9 µs less of the
// server's CPU than atOnce. It is for transactions that run hundreds of times a second.
func oneByOne(lists ...[]setting) string {
	var sets []string
	for _, s := range slices.Concat(lists...) {
		sets = append(sets, "SET LOCAL "+s.name+" = '"+s.to+"'")
	}
	return strings.Join(sets, "; ")
}

// atOnce sets all settings by one statement. It is for transactions that are rare. An idle process renews its
// leases, and these statements must not dominate what a server counts and logs.
func atOnce(lists ...[]setting) string {
	var calls []string
	for _, s := range slices.Concat(lists...) {
		calls = append(calls, "set_config('"+s.name+"', '"+s.to+"', true)")
	}
	return "SELECT " + strings.Join(calls, ", ")
}

// settings has one message for each purpose. A message without parameters can contain several statements.
var settings = map[dialect.Purpose]string{
	dialect.ForPublish: strings.Join([]string{writing, durable, oneByOne(formats, byKey, publishing)}, "; "),
	dialect.ForMove:    strings.Join([]string{writing, durable, oneByOne(formats, byKey, publishing)}, "; "),
	dialect.ForRecord:  strings.Join([]string{writing, durable, atOnce(formats, inOrder, bounds)}, "; "),
	dialect.ForRepair:  strings.Join([]string{writing, durable, atOnce(formats, inOrder, atLeisure)}, "; "),
	dialect.ForConsume: strings.Join([]string{writing, durable}, "; "),
	dialect.ForRead:    oneByOne(formats, byKey, []setting{reading}),
	dialect.ForCheck:   oneByOne(formats), // without a query, because the first query determines the snapshot
}

// Settings implements [dialect.Publish].
func (Dialect) Settings(p dialect.Purpose, _ dialect.Names) []string { return []string{settings[p]} }

// Restore implements [dialect.Publish]. Every setting ends with its transaction.
func (Dialect) Restore(dialect.Purpose) string { return "" }

// Unlocked implements [dialect.Publish].
func (Dialect) Unlocked() string { return " FOR UPDATE SKIP LOCKED" }

// Durability implements [dialect.Publish]. It checks the setting that Settings has raised, and those that only
// the server's configuration determines.
func (Dialect) Durability(ctx context.Context, q dialect.Querier) error {
	var fsync, pages, commit string
	if err := dialect.QueryRow(ctx, q, "SELECT current_setting('fsync'), current_setting('full_page_writes'), "+
		"current_setting('synchronous_commit')", nil, &fsync, &pages, &commit); err != nil {
		return err
	}
	if commit == "off" || commit == "local" {
		return fmt.Errorf("synchronous_commit is %s in a transaction that has set it to on", commit)
	}
	return serverForgets(fsync, pages)
}

// serverForgets returns an error that names settings which a transaction cannot raise.
func serverForgets(fsync, pages string) error {
	if fsync != "on" || pages != "on" {
		return fmt.Errorf("fsync is %s and full_page_writes is %s; both must be on", fsync, pages)
	}
	return nil
}

// HasChanges implements [dialect.Publish]. It sends the settings in the same message, which the server runs as
// one transaction and plans each time. A plan that was kept from a time when nothing waited, or with statistics
// of that time, would read and sort everything that waits. The number of rows "affected" is the number of rows
// found.
func (d Dialect) HasChanges(ctx context.Context, q dialect.Querier, f *dialect.Feed, among dialect.Seqs) (bool, error) {
	n, err := q.Exec(ctx, askFirst+dialect.FirstChange(d, f, among))
	return n > 0, err
}

// Stamp implements [dialect.Publish] with the snapshot of a statement that begins now, which says which
// transactions have ended. It reads no table, so it cannot have a bad plan. The snapshot of a standby does not
// list which transactions are under way, so the text is empty there.
func (Dialect) Stamp() string {
	return "SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE CAST(pg_current_snapshot() AS text) END"
}

// LockSequence implements [dialect.Publish].
func (d Dialect) LockSequence(ctx context.Context, tx dialect.Querier, f *dialect.Feed) (dialect.Sequence, error) {
	var s dialect.Sequence
	err := dialect.QueryRow(ctx, tx, "SELECT value, version, COALESCE(term, 0), updated_at, "+d.Now()+", "+
		d.identity(f.Names)+" FROM "+
		dialect.Qualified(d, f.Names.Table("sequences"))+" WHERE name = $1 FOR UPDATE", []any{f.Name}, &s.Value,
		&s.Version, &s.Term, &s.UpdatedAt, &s.Now, &s.Identity)
	return s, err
}

// PublishBatch implements [dialect.Publish] by one statement, with one snapshot that is taken after the lock.
// Neither changes nor seqs are sent to the client, except the seqs that were deleted. The statement finds rows
// by keys: the CTEs, the arrays and the LATERAL joins leave the planner no other way. See AssignPositions.
//
// The limit is part of the text. As a parameter it makes the server plan the statement for each execution,
// because a plan for the known value looks better. That costs as much as publishing fifty keys.
//
// Three kinds of feeds are left to the other operations. For data shards the client computes each key's shard;
// then there are keys with different texts, and rows with positions.
func (d Dialect) PublishBatch(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seq dialect.Sequence,
	generation int64, among dialect.Seqs, limit int) (dialect.BatchResult, error) {
	var done dialect.BatchResult
	if f.Sharded() || f.InRows() || !f.ExactKey() {
		return done, nil
	}
	changes, positions := dialect.Qualified(d, f.Changes()), dialect.Qualified(d, f.Positions())
	stored, row := strings.Join(dialect.StoredRefs(d, f, ""), ", "), dialect.Ref(d, "t", f.Key[0].Name)
	b := dialect.NewBuilder(d)
	base := "CAST(" + b.Arg(seq.Value) + " AS bigint)"
	u := dialect.UpsertOneKind("(SELECT kind FROM asked)", base+" + row_number() OVER (ORDER BY c.seq)", "CAST("+
		b.Arg(max(seq.Now, seq.UpdatedAt))+" AS bigint)")
	query := `WITH batch AS MATERIALIZED (` + d.oldest(b, f, among, "seq, kind", strconv.Itoa(limit)) + `),
asked AS MATERIALIZED (SELECT min(kind) AS kind FROM batch HAVING min(kind) = max(kind)),
gone AS (DELETE FROM ` + changes + ` WHERE seq = ANY (ARRAY(SELECT seq FROM batch WHERE EXISTS (SELECT 1 ` +
		`FROM asked))) RETURNING seq, ` + stored + `),
keys AS (SELECT ` + stored + `, max(seq) AS seq FROM gone GROUP BY ` + stored + `),
placed AS (INSERT INTO ` + positions + ` AS p (` + stored +
		`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT ` + strings.Join(dialect.StoredRefs(d, f, "c"), ", ") + `, ` + u.Position + `, 0, 0, CASE WHEN ` + row +
		` IS NULL THEN 1 ELSE 0 END, ` + u.Hidden + `, ` + u.PublishedAt + `
FROM keys c
LEFT JOIN LATERAL (SELECT ` + row + ` FROM ` + dialect.Qualified(d, f.Source) + ` t WHERE ` +
		dialect.SourceJoin(d, f, "t", "c") + ` OFFSET 0) t ON true
WHERE ` + f.GetsPosition(row, d.known(f)) + `
ON CONFLICT (` + stored + `) DO UPDATE SET ` + u.Set + `),
advanced AS (` + dialect.Advance(d, b, f, seq, generation, base+" + (SELECT count(*) FROM keys)") +
		` AND EXISTS (SELECT 1 FROM asked) RETURNING 1)
SELECT (SELECT count(*) FROM batch), (SELECT count(*) FROM asked) > 0, (SELECT count(*) FROM gone), (SELECT count(*) ` +
		`FROM keys), (SELECT count(*) FROM advanced) > 0,
  array_to_string(ARRAY(SELECT seq FROM gone ORDER BY seq), ',')`
	var seqs string
	err := dialect.QueryRow(ctx, tx, query, b.Args(), &done.Changes, &done.OK, &done.Deleted, &done.Keys,
		&done.Advanced, &seqs)
	if done.OK = done.OK || done.Changes == 0; err != nil || !done.OK || seqs == "" {
		return done, err
	}
	done.Seqs = make([]int64, 0, done.Deleted)
	for text := range strings.SplitSeq(seqs, ",") {
		seq, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return done, err
		}
		done.Seqs = append(done.Seqs, seq)
	}
	return done, nil
}

// TakeChanges implements [dialect.Publish]. In READ COMMITTED a statement after the lock has a new snapshot,
// which shows all that the publisher before has committed.
func (d Dialect) TakeChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed, among dialect.Seqs,
	limit int) ([]dialect.Change, error) {
	b := dialect.NewBuilder(d)
	query := d.oldest(b, f, among, dialect.ChangeColumns(d, f, d.Value), b.Arg(limit))
	return dialect.ReadChanges(ctx, tx, f, query, b.Args())
}

// oldest returns a query for the oldest changes among some seqs. It scans each range by itself: with one
// condition for all ranges, one scan would filter the table from its beginning. The ends of ranges are
// parameters, so that there are few different statements.
func (d Dialect) oldest(b *dialect.Builder, f *dialect.Feed, among dialect.Seqs, columns, limit string) string {
	var scans []string
	most := " ORDER BY seq LIMIT " + limit
	for _, where := range among.Ranges("seq", func(n int64) string { return b.Arg(n) }) {
		scans = append(scans, "SELECT "+columns+" FROM "+dialect.Qualified(d, f.Changes())+where+most)
	}
	if len(scans) == 1 {
		return scans[0]
	}
	return "(" + strings.Join(scans, ") UNION ALL (") + ")" + most
}

// AssignPositions implements [dialect.Publish] by one statement. The keys stay in the server. If two different
// texts can be one key (citext, ICU collations, numeric), the last one counts, because one statement cannot
// upsert a row twice.
//
// LATERAL with OFFSET 0 fixes the order of the join: an assignment, its change by seq, then the row and the old
// position each by key. Without it, and with the statistics of a time when nothing waited, the planner reads
// every change that waits and compares each with every assignment: ten million comparisons for a batch of 100
// out of 100,000.
func (d Dialect) AssignPositions(ctx context.Context, tx dialect.Querier, f *dialect.Feed, as []dialect.Assignment,
	publishedAt int64) error {
	assigned, positions := dialect.Assigned(f, as), dialect.Qualified(d, f.Positions())
	stored, changed := dialect.StoredRefs(d, f, ""), strings.Join(dialect.StoredRefs(d, f, "c"), ", ")
	row, first := dialect.Ref(d, "t", f.Key[0].Name), dialect.Ref(d, "old", f.Key[0].Stored)
	distinct, order := "", "\nORDER BY j.place"
	if !f.ExactKey() {
		distinct, order = "DISTINCT ON ("+changed+") ", "\nORDER BY "+changed+", j.place DESC"
	}
	b := dialect.NewBuilder(d)
	numbers := func(of func(dialect.Assignment) int64) string {
		return "CAST(CAST(" + b.Arg(bigints(as, of)) + " AS text) AS bigint[])"
	}
	lists, columns, shard := numbers(func(a dialect.Assignment) int64 { return a.Seq }), "seq", "0"
	if assigned.Triples {
		lists += ", " + numbers(func(a dialect.Assignment) int64 { return int64(a.Shard) }) + ", " +
			numbers(func(a dialect.Assignment) int64 { return int64(a.Kind) })
		columns, shard = "seq, shard, kind", "j.shard::int"
	}
	u := assigned.Upsert("CAST("+b.Arg(assigned.Base)+" AS bigint) + j.place", "CAST("+b.Arg(publishedAt)+" AS bigint)")
	from := "unnest(" + lists + ") WITH ORDINALITY AS j(" + columns + `, place)
CROSS JOIN LATERAL (SELECT ` + changed + " FROM " + dialect.Qualified(d, f.Changes()) +
		` c WHERE c.seq = j.seq OFFSET 0) c
LEFT JOIN LATERAL (SELECT ` + row + " FROM " + dialect.Qualified(d, f.Source) + " t WHERE " +
		dialect.SourceJoin(d, f, "t", "c") + ` OFFSET 0) t ON true`
	known := d.known(f)
	if assigned.OtherKinds {
		from += `
LEFT JOIN LATERAL (SELECT ` + first + ", old.feed_sync_id, old.hidden, old.published_at FROM " + positions +
			" old WHERE " + dialect.StoredJoin(d, f, "old", "c") + ` OFFSET 0) old ON true`
		known = first + " IS NOT NULL"
	}
	query := "INSERT INTO " + positions + " AS p (" + strings.Join(stored, ", ") +
		", feed_sync_id, shard, bucket, deleted, hidden, published_at)\nSELECT " +
		distinct + changed + ", " + u.Position + ", " + shard + ", " + f.Bucket(shard, "/") + ", CASE WHEN " + row +
		" IS NULL THEN 1 ELSE 0 END, " + u.Hidden + ", " + u.PublishedAt +
		"\nFROM " + from + "\nWHERE " + f.GetsPosition(row, known) + order +
		"\nON CONFLICT (" + strings.Join(stored, ", ") + ") DO UPDATE SET " + u.Set
	_, err := tx.Exec(ctx, query, b.Args()...)
	return err
}

// known is dialect.Known as one lookup for each key. Without OFFSET, the planner may read all positions into a
// hash table if the statistics say that there are few.
func (d Dialect) known(f *dialect.Feed) string {
	return strings.TrimSuffix(dialect.HasPosition(d, f, ""), ")") + " OFFSET 0)"
}

// maxRuns is the number of runs up to which one DELETE for each run is faster than one DELETE by a list of
// keys.
const maxRuns = 8

// DeleteChanges implements [dialect.Publish]. A row that is not visible to a DELETE is not deleted.
func (d Dialect) DeleteChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed,
	seqs []int64) (total int64, err error) {
	from := "DELETE FROM " + dialect.Qualified(d, f.Changes())
	runs := dialect.Runs(seqs)
	if len(runs) > maxRuns {
		return tx.Exec(ctx, from+" WHERE seq = ANY (CAST(CAST($1 AS text) AS bigint[]))",
			bigints(seqs, func(seq int64) int64 { return seq }))
	}
	for _, r := range runs {
		n, err := tx.Exec(ctx, from+" WHERE seq BETWEEN $1 AND $2", r.First, r.Last())
		if err != nil {
			return total, err
		}
		total += n
	}
	return total, nil
}
