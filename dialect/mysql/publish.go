package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// TxOptions implements [dialect.Publish]. It sets the isolation level of one transaction. The server's default,
// REPEATABLE READ, would read an old snapshot under the lock.
func (Dialect) TxOptions(p dialect.Purpose) *sql.TxOptions {
	switch p {
	case dialect.ForRead:
		return &sql.TxOptions{Isolation: sql.LevelReadCommitted, ReadOnly: true}
	case dialect.ForCheck:
		return &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	}
	return &sql.TxOptions{Isolation: sql.LevelReadCommitted}
}

// Settings implements [dialect.Publish]. The server ends a publisher's session that is silent for ten seconds inside
// a transaction. Otherwise a stopped process would keep the lock of the sequence's row until the server's own timeout,
// eight hours by default. MySQL has no other bound for that, and none that ends with the transaction.
func (Dialect) Settings(p dialect.Purpose, _ dialect.Names) []string {
	if !isPublishing(p) {
		return nil
	}
	// The assignments of one SET are made from left to right.
	return []string{"SET @rowfeed_wait_timeout = @@SESSION.wait_timeout, " +
		"SESSION wait_timeout = CAST(LEAST(@@SESSION.wait_timeout, 10) AS SIGNED)"}
}

// Restore implements [dialect.Publish]. Otherwise the bound would affect the next user of a pooled connection.
func (Dialect) Restore(p dialect.Purpose) string {
	if !isPublishing(p) {
		return ""
	}
	return "SET SESSION wait_timeout = @rowfeed_wait_timeout"
}

func isPublishing(p dialect.Purpose) bool { return p == dialect.ForPublish || p == dialect.ForMove }

// Unlocked implements [dialect.Publish].
func (Dialect) Unlocked() string { return " FOR UPDATE SKIP LOCKED" }

// Durability implements [dialect.Publish].
func (Dialect) Durability(ctx context.Context, q dialect.Querier) error {
	var log commitLog
	err := dialect.QueryRow(ctx, q, "SELECT "+commitVariables, nil, log.dest()...)
	if err == nil {
		err = log.forgetful()
	}
	return err
}

// HasChanges implements [dialect.Publish].
func (d Dialect) HasChanges(ctx context.Context, q dialect.Querier, f *dialect.Feed, among dialect.Seqs) (bool, error) {
	return dialect.HasChanges(ctx, q, d, f, among)
}

// Stamp implements [dialect.Publish]: nothing tells cheaply that a transaction has committed.
func (Dialect) Stamp() string { return "" }

// LockSequence implements [dialect.Publish].
func (d Dialect) LockSequence(ctx context.Context, tx dialect.Querier, f *dialect.Feed) (dialect.Sequence, error) {
	var s dialect.Sequence
	var locked string
	var mode sql.NullString
	b := dialect.NewBuilder(d)
	err := dialect.QueryRow(ctx, tx, "SELECT value, version, COALESCE(term, 0), updated_at, "+d.Now()+", "+identity+
		", "+readOnly+", "+unfit+" FROM "+
		dialect.Qualified(d, f.Names.Table("sequences"))+" WHERE name = "+b.Arg(f.Name)+" FOR UPDATE", b.Args(),
		&s.Value, &s.Version, &s.Term, &s.UpdatedAt, &s.Now, &s.Identity, &locked, &mode)
	if err == nil && isReadOnly(locked) {
		err = dialect.ErrReadOnly
	}
	if err == nil {
		err = refuseMode(mode)
	}
	return s, err
}

// PublishBatch implements [dialect.Publish]: the other operations do the work.
func (Dialect) PublishBatch(context.Context, dialect.Querier, *dialect.Feed, dialect.Sequence, int64, dialect.Seqs,
	int) (dialect.BatchResult, error) {
	return dialect.BatchResult{}, nil
}

// TakeChanges implements [dialect.Publish] by a consistent read. A locking read has no snapshot, and would wait
// for open writers.
func (d Dialect) TakeChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed, among dialect.Seqs,
	limit int) ([]dialect.Change, error) {
	// d.Value reads text as bytes, so 'Fred' is not 'fred'
	return dialect.TakeChanges(ctx, tx, d, f, which("seq", among), limit, d.Value)
}

// byKey keeps the planner on the source's primary key. With statistics from a time when the table was empty, it
// would read the whole table for every batch and every page. Another unique index is not named, because it may
// be renamed. A feed with ULIDs names its index.
func byKey(f *dialect.Feed) string {
	if f.ULIDs != nil {
		return " FORCE INDEX (" + Dialect{}.Quote(f.ULIDs.Index) + ")"
	}
	if f.Primary {
		return " FORCE INDEX (PRIMARY)"
	}
	return ""
}

// insertKeys returns the begin of the statement that copies keys. If the key has dates, this statement alone
// runs under keyMode: a zero date that the source has accepted must not stop the feed.
func insertKeys(f *dialect.Feed) string {
	for _, c := range f.Key {
		if c.Kind == feedtype.Date || c.Kind == feedtype.Timestamp {
			return inKeyMode("INSERT") + "INTO "
		}
	}
	return "INSERT INTO "
}

// inKeyMode returns the begin of a statement that runs under keyMode. It is spelled for MariaDB and for MySQL;
// each server takes the other's part for a comment.
func inKeyMode(verb string) string {
	return "/*M! SET STATEMENT sql_mode='" + keyMode + "' FOR */ " + verb + " /*+ SET_VAR(sql_mode='" +
		keyMode + "') */ "
}

// maxRuns is the number of runs of seqs up to which a statement names ranges. For more runs a list of seqs,
// each of which is looked up, is faster.
const maxRuns = 16

// AssignPositions implements [dialect.Publish] by one statement. The keys stay in the server. In READ COMMITTED
// the SELECT part locks nothing and waits for no other transaction. Of keys that are equal by collation the
// later change counts, and the key keeps its text.
func (d Dialect) AssignPositions(ctx context.Context, tx dialect.Querier, f *dialect.Feed, as []dialect.Assignment,
	publishedAt int64) error {
	assigned := dialect.Assigned(f, as)
	positions := dialect.Qualified(d, f.Positions())
	stored := strings.Join(dialect.StoredRefs(d, f, ""), ", ")
	row := dialect.Ref(d, "t", f.Key[0].Name)
	from := d.assigned(f, assigned)

	var q strings.Builder
	q.WriteString(insertKeys(f) + positions + " (" + stored +
		", feed_sync_id, shard, bucket, deleted, hidden, published_at)\n")
	fmt.Fprintf(&q, "SELECT %s, %s, %s, %s, %s IS NULL, %s, %d\n", strings.Join(dialect.StoredRefs(d, f, "c"), ", "),
		from.position, from.shard, f.Bucket(from.shard, "DIV"), row, from.hides, publishedAt)
	q.WriteString("FROM " + from.changes + "\nLEFT JOIN " + dialect.Qualified(d, f.Source) + " t" + byKey(f) + " ON " +
		dialect.SourceJoin(d, f, "t", "c"))
	known := dialect.HasPosition(d, f, " FORCE INDEX (PRIMARY)")
	q.WriteString("\nWHERE " + from.where + "(" + f.GetsPosition(row, known) + ")\n")
	if !f.ExactKey() {
		q.WriteString("ORDER BY " + from.order + "\n")
	}
	// Assignments are made from left to right, so hidden has its old value until its own turn. VALUES() is
	// deprecated since MySQL 8.0.20, but MariaDB does not know its successor.
	own := func(column string) string { return positions + "." + column }
	q.WriteString("ON DUPLICATE KEY UPDATE ")
	for _, column := range []string{"feed_sync_id", "published_at"} {
		q.WriteString(column + " = IF(" + own("hidden") + " = 1" + from.keeps + ", " + own(column) + ", VALUES(" +
			column + ")), ")
	}
	q.WriteString("deleted = VALUES(deleted)")
	if assigned.OtherKinds {
		q.WriteString(", hidden = (j.kind = 2 OR " + own("hidden") + " = 1 AND j.kind <> 1)")
	}
	_, err := tx.Exec(ctx, q.String())
	return err
}

// source is the part of AssignPositions' statement that reads the changes, as c, and expressions over it.
type source struct {
	changes, where, order         string
	position, shard, hides, keeps string
}

// assigned reads the changes as runs of seqs, and computes positions from seqs. If there are many runs, or a
// key has a shard or a kind, the statement gets the assignments as a JSON list. In both forms each step of the
// join is a lookup by a unique key, and the order of the join is fixed.
func (d Dialect) assigned(f *dialect.Feed, as *dialect.Assignments) source {
	changes := dialect.Qualified(d, f.Changes()) + " c FORCE INDEX (PRIMARY)"
	runs := dialect.Runs(as.Seqs())
	if !as.Triples && len(runs) <= maxRuns {
		ranges, places := make([]string, len(runs)), make([]string, len(runs))
		place := as.Base + 1
		for i, r := range runs {
			ranges[i] = fmt.Sprintf("c.seq BETWEEN %d AND %d", r.First, r.Last())
			places[i] = fmt.Sprintf("WHEN c.seq <= %d THEN %d", r.Last(), place-r.First)
			place += r.N
		}
		return source{changes, "(" + strings.Join(ranges, " OR ") + ") AND ", "c.seq",
			"c.seq + CASE " + strings.Join(places, " ") + " END", "0", "0", ""}
	}
	s := source{position: fmt.Sprintf("%d + j.place", as.Base), shard: "0", hides: "0", order: "j.place"}
	list := "seq BIGINT PATH '$'"
	if as.Triples {
		list, s.shard, s.hides =
			"seq BIGINT PATH '$[0]', shard INT PATH '$[1]', kind INT PATH '$[2]'", "j.shard", "j.kind = 2"
	}
	if as.OtherKinds {
		s.keeps = " AND j.kind = 0"
	}
	s.changes = "JSON_TABLE('" + as.JSON() + "', '$[*]' COLUMNS (place FOR ORDINALITY, " + list +
		")) j\nSTRAIGHT_JOIN " + changes + " ON c.seq = j.seq"
	return s
}

// DeleteChanges implements [dialect.Publish]. A DELETE that scans waits for the first record of an open writer
// that it meets, even outside of its range. The two forms here read only the changes to delete. In a run of
// consecutive seqs, LIMIT ends the scan at the last one, before the next record is read.
func (d Dialect) DeleteChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	changes := dialect.Qualified(d, f.Changes())
	runs := dialect.Runs(seqs)
	if len(runs) > maxRuns {
		return tx.Exec(ctx, "DELETE c FROM JSON_TABLE('"+dialect.SeqList(seqs)+
			"', '$[*]' COLUMNS (seq BIGINT PATH '$')) j STRAIGHT_JOIN "+
			changes+" c FORCE INDEX (PRIMARY) ON c.seq = j.seq")
	}
	var total int64
	for _, r := range runs {
		n, err := tx.Exec(ctx, fmt.Sprintf("DELETE FROM %s WHERE seq >= %d AND seq <= %d ORDER BY seq LIMIT %d",
			changes, r.First, r.Last(), r.N))
		if err != nil {
			return total, err
		}
		total += n
	}
	return total, nil
}
