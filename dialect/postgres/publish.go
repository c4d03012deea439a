package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

// TxOptions name the isolation level, since the server's default may be another.
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
	// writing undoes default_transaction_read_only. It must come before any query, so it
	// cannot be made to depend on one; a standby answers it with 0A000, as it does a
	// cached plan that is out of date: who retries asks Identity.
	writing = `SET TRANSACTION READ WRITE`
	// durable raises synchronous_commit where the server's default is weaker, and never
	// lowers it (remote_apply stays).
	durable = `SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local')`
	// formats make text the same whatever the session's settings. A policy that would
	// hide rows is an error, not a gap: with row_security off the server refuses.
	formats = `SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'; SET LOCAL IntervalStyle = 'iso_8601'; SET LOCAL extra_float_digits = 1; SET LOCAL bytea_output = 'hex'; SET LOCAL row_security = off`
	// interpreted: what a forced plan must not do costs ten thousand million in the planner's
	// eyes, so that a plan with such a step, over a table of a few rows at that, is compiled
	// to machine code, for hundreds of milliseconds, each time anew.
	interpreted = `; SET LOCAL jit = off`
	// byKey keeps the planner from reading a whole table for a page or a batch: right
	// after ANALYZE, or before the first one, it prefers a hash join with a full scan.
	byKey = `SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off` + interpreted
	// inOrder keeps back-fill walking along the key: with the statistics of an emptier
	// table every batch would read and sort the whole table. Hash joins stay, for Repair.
	inOrder = `SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off` + interpreted
	// bounds: a publisher that is paused or cut off lets go of the sequence row.
	bounds = `SET LOCAL idle_in_transaction_session_timeout = '10s'; SET LOCAL lock_timeout = '30s'; SET LOCAL statement_timeout = '120s'`
	// moving: a mover gives up before long, but behind deadlock_timeout (a second, unless somebody
	// has changed it), so that two that wait for each other are told apart from one that waits.
	moving = bounds + `; SET LOCAL lock_timeout = '2s'`
	// atLeisure is for statements whose length depends on the user's table.
	atLeisure = `SET LOCAL idle_in_transaction_session_timeout = '10s'; SET LOCAL lock_timeout = '30s'; SET LOCAL statement_timeout = 0`
)

// Settings go out as one message: a statement without parameters may hold several.
func (Dialect) Settings(p dialect.Purpose, _ dialect.Names) []string {
	switch p {
	case dialect.ForPublish:
		return []string{strings.Join([]string{writing, durable, formats, byKey, bounds}, "; ")}
	case dialect.ForMove:
		return []string{strings.Join([]string{writing, durable, formats, byKey, moving}, "; ")}
	case dialect.ForRecord:
		return []string{strings.Join([]string{writing, durable, formats, inOrder, bounds}, "; ")}
	case dialect.ForRepair:
		return []string{strings.Join([]string{writing, durable, formats, inOrder, atLeisure}, "; ")}
	case dialect.ForConsume:
		return []string{writing + "; " + durable}
	case dialect.ForRead:
		return []string{strings.Join([]string{formats, byKey}, "; ")}
	}
	return []string{formats}
}

// Durability reads back what Settings raised, and what only the server's configuration
// decides.
func (Dialect) Durability(ctx context.Context, q dialect.Querier) error {
	var fsync, pages, commit string
	if err := dialect.QueryRow(ctx, q, "SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit')", nil, &fsync, &pages, &commit); err != nil {
		return err
	}
	if commit == "off" || commit == "local" {
		return fmt.Errorf("synchronous_commit is %s in a transaction that has set it to on", commit)
	}
	return serverForgets(fsync, pages)
}

// serverForgets names what no transaction can raise.
func serverForgets(fsync, pages string) error {
	if fsync != "on" || pages != "on" {
		return fmt.Errorf("fsync is %s and full_page_writes is %s; both must be on", fsync, pages)
	}
	return nil
}

// HasChanges asks with the settings in the same message, which the server runs as one
// transaction and plans anew: a plan that was kept from when nothing waited, or made
// with the statistics of then, reads and sorts everything that waits. The number of
// rows "affected" is the number found.
func (d Dialect) HasChanges(ctx context.Context, q dialect.Querier, f *dialect.Feed) (bool, error) {
	n, err := q.Exec(ctx, byKey+"; "+dialect.FirstChange(d, f))
	return n > 0, err
}

// LockSequence waits for other publishers.
func (d Dialect) LockSequence(ctx context.Context, tx dialect.Querier, f *dialect.Feed) (dialect.Sequence, error) {
	var s dialect.Sequence
	err := dialect.QueryRow(ctx, tx, "SELECT value, version, updated_at, "+d.Now()+", "+d.identity(f.Names)+" FROM "+
		dialect.Qualified(d, f.Names.Table("sequences"))+" WHERE name = $1 FOR UPDATE", []any{f.Name}, &s.Value, &s.Version, &s.UpdatedAt, &s.Now, &s.Identity)
	return s, err
}

// TakeChanges is a statement of its own after the lock: in READ COMMITTED it has a
// snapshot of its own, which sees everything the publisher before committed.
func (d Dialect) TakeChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed, limit int) ([]dialect.Change, error) {
	return dialect.TakeChanges(ctx, tx, d, f, limit, d.Value)
}

// AssignPositions upserts in one statement; the keys stay in the server. Where two
// different texts can be one key (citext, ICU collations, numeric), one statement
// may not meet the same row twice: the last one counts.
//
// LATERAL with OFFSET 0 fixes the order: an assignment, its change by seq, the row
// and the old position each by key. Left to itself the planner, with the statistics
// of a time when nothing was waiting, reads every change that waits and compares each
// with every assignment: ten million comparisons for a batch of 100 of 100,000.
func (d Dialect) AssignPositions(ctx context.Context, tx dialect.Querier, f *dialect.Feed, as []dialect.Assignment, publishedAt int64) error {
	stored, changed := dialect.StoredRefs(d, f, ""), strings.Join(dialect.StoredRefs(d, f, "c"), ", ")
	row, old := dialect.Ref(d, "t", f.Key[0].Name), dialect.Ref(d, "old", f.Key[0].Stored)
	distinct, order := "", "\nORDER BY j.position"
	for _, c := range f.Key {
		if !c.Exact {
			distinct, order = "DISTINCT ON ("+changed+") ", "\nORDER BY "+changed+", j.position DESC"
		}
	}
	sets := make([]string, 0, len(stored)+4)
	// Not shard and bucket, which a key keeps.
	for _, column := range append(stored, "feed_sync_id", "deleted", "hidden", "published_at") {
		sets = append(sets, column+" = excluded."+column)
	}
	query := "INSERT INTO " + dialect.Qualified(d, f.Positions()) + " (" + strings.Join(stored, ", ") +
		`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT ` + distinct + changed + `,
  CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.feed_sync_id ELSE j.position END,
  j.shard::int, ` + f.Bucket("j.shard::int", "/") + `, CASE WHEN ` + row + ` IS NULL THEN 1 ELSE 0 END,
  CASE j.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE COALESCE(old.hidden, 0) END,
  CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.published_at ELSE CAST($5 AS bigint) END
FROM unnest(CAST(CAST($1 AS text) AS bigint[]), CAST(CAST($2 AS text) AS bigint[]), CAST(CAST($3 AS text) AS bigint[]), CAST(CAST($4 AS text) AS bigint[]))
  AS j(seq, position, shard, kind)
CROSS JOIN LATERAL (SELECT ` + changed + " FROM " + dialect.Qualified(d, f.Changes()) + ` c WHERE c.seq = j.seq OFFSET 0) c
LEFT JOIN LATERAL (SELECT ` + row + " FROM " + dialect.Qualified(d, f.Source) + " t WHERE " + dialect.SourceJoin(d, f, "t", "c") + ` OFFSET 0) t ON true
LEFT JOIN LATERAL (SELECT ` + old + ", old.feed_sync_id, old.hidden, old.published_at FROM " + dialect.Qualified(d, f.Positions()) +
		" old WHERE " + dialect.StoredJoin(d, f, "old", "c") + ` OFFSET 0) old ON true
WHERE ` + f.Seen(row, old) + order + `
ON CONFLICT (` + strings.Join(stored, ", ") + ") DO UPDATE SET " + strings.Join(sets, ", ")
	_, err := tx.Exec(ctx, query,
		bigints(as, func(a dialect.Assignment) int64 { return a.Seq }),
		bigints(as, func(a dialect.Assignment) int64 { return a.Position }),
		bigints(as, func(a dialect.Assignment) int64 { return int64(a.Shard) }),
		bigints(as, func(a dialect.Assignment) int64 { return int64(a.Kind) }),
		publishedAt)
	return err
}

// DeleteChanges deletes by primary key: what is not visible is not touched.
func (d Dialect) DeleteChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	return tx.Exec(ctx, "DELETE FROM "+dialect.Qualified(d, f.Changes())+" WHERE seq = ANY (CAST(CAST($1 AS text) AS bigint[]))",
		bigints(seqs, func(seq int64) int64 { return seq }))
}
