package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

// TxOptions are the defaults: SQLite's transactions are serializable. Reading ones
// are marked, so that drivers that begin with the write lock leave it alone.
func (Dialect) TxOptions(p dialect.Purpose) *sql.TxOptions {
	return &sql.TxOptions{ReadOnly: p == dialect.ForRead || p == dialect.ForCheck}
}

// Settings take the write lock with the first statement, whatever the driver's
// BEGIN was: a transaction that reads first and writes later fails at once with
// SQLITE_BUSY when another writer came between, busy_timeout or not.
func (d Dialect) Settings(p dialect.Purpose, n dialect.Names) []string {
	if p == dialect.ForRead || p == dialect.ForCheck {
		return nil
	}
	return []string{"UPDATE " + dialect.Qualified(d, n.Table("sequences")) + " SET version = version WHERE 0"}
}

// Durability wants synchronous=FULL: with NORMAL a WAL database loses the newest
// commits in a power cut.
func (Dialect) Durability(ctx context.Context, q dialect.Querier) error {
	var level int
	if err := dialect.QueryRow(ctx, q, "PRAGMA synchronous", nil, &level); err != nil {
		return err
	}
	if level < 2 {
		return fmt.Errorf("PRAGMA synchronous is %d, and must be FULL (2) or EXTRA (3) on every connection", level)
	}
	return nil
}

// SeqsGrow is false: the seqs of a table that was emptied begin anew. What was deleted is
// walked over by nobody.
func (Dialect) SeqsGrow() bool { return false }

// Which is the whole table: see SeqsGrow.
func (Dialect) Which(string, dialect.Seqs) []string { return []string{""} }

// Writers has nothing to tell: see SeqsGrow.
func (Dialect) Writers(context.Context, dialect.Querier, *dialect.Feed) ([]dialect.Writer, bool, error) {
	return nil, false, nil
}

// HasChanges reads without the write lock.
func (d Dialect) HasChanges(ctx context.Context, q dialect.Querier, f *dialect.Feed, _ dialect.Seqs) (bool, error) {
	return dialect.HasChanges(ctx, q, d, f, dialect.Seqs{})
}

// Stamp is none: PRAGMA data_version tells of other connections' commits alone, and compares with
// itself on one connection, which would have to be kept for it.
func (Dialect) Stamp() string { return "" }

// LockSequence reads the row; the transaction has the database's only write lock.
func (d Dialect) LockSequence(ctx context.Context, tx dialect.Querier, f *dialect.Feed) (dialect.Sequence, error) {
	var s dialect.Sequence
	err := dialect.QueryRow(ctx, tx, "SELECT value, version, updated_at, "+d.Now()+" FROM "+
		dialect.Qualified(d, f.Names.Table("sequences"))+" WHERE name = ?", []any{f.Name}, &s.Value, &s.Version, &s.UpdatedAt, &s.Now)
	return s, err
}

// PublishAlike leaves it to the statements below.
func (Dialect) PublishAlike(context.Context, dialect.Querier, *dialect.Feed, dialect.Sequence, int64, dialect.Seqs, int) (dialect.Alike, error) {
	return dialect.Alike{}, nil
}

// TakeChanges reads the oldest changes.
func (d Dialect) TakeChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed, _ dialect.Seqs, limit int) ([]dialect.Change, error) {
	return dialect.TakeChanges(ctx, tx, d, f, "", limit, d.Value)
}

// AssignPositions upserts the keys that have a row, and counts them; only when some have
// none a second statement looks where those stood. One statement for both would read the
// table that it writes, for which SQLite collects all rows before it writes the first. CROSS
// JOIN keeps SQLite from any other order than: an assignment, its change by rowid, the row
// and the old position each by key. The conflict target is the key alone: a clash of
// positions is an error.
func (d Dialect) AssignPositions(ctx context.Context, tx dialect.Querier, f *dialect.Feed, as []dialect.Assignment, publishedAt int64) error {
	assigned, positions := dialect.Assigned(f, as), dialect.Qualified(d, f.Positions())
	stored, row := dialect.StoredRefs(d, f, ""), dialect.Ref(d, "t", f.Key[0].Name)
	from := d.assigned(f, assigned)
	u := assigned.Upsert(from.position, strconv.FormatInt(publishedAt, 10))
	order := ""
	if !f.ExactKey() {
		order = "\nORDER BY " + from.order // of two texts of one key the later change counts; the key keeps its text
	}
	upsert := func(deleted, join, where string) (int64, error) {
		return tx.Exec(ctx, "INSERT INTO "+positions+" AS p ("+strings.Join(stored, ", ")+", feed_sync_id, shard, bucket, deleted, hidden, published_at)\nSELECT "+
			strings.Join(dialect.StoredRefs(d, f, "c"), ", ")+", "+u.Position+", "+from.shard+", "+f.Bucket(from.shard, "/")+", "+deleted+", "+u.Hidden+", "+u.PublishedAt+
			"\nFROM "+from.changes+"\n"+join+"\nWHERE "+from.where+" AND ("+where+")"+order+
			"\nON CONFLICT ("+strings.Join(stored, ", ")+") DO UPDATE SET "+u.Set, from.args...)
	}
	source, is, known := dialect.Qualified(d, f.Source)+" t", dialect.SourceJoin(d, f, "t", "c"), dialect.Known(d, f, "")
	if assigned.Wish {
		_, err := upsert(row+" IS NULL",
			"LEFT JOIN "+source+" ON "+is+"\nLEFT JOIN "+positions+" old ON "+dialect.StoredJoin(d, f, "old", "c"),
			f.Seen(row, dialect.Ref(d, "old", f.Key[0].Stored)+" IS NOT NULL"))
		return err
	}
	// Not a join: where the key's index was dropped and a second row has the key, it would count for one that has none.
	n, err := upsert("0", "", "EXISTS (SELECT 1 FROM "+source+" WHERE "+is+")")
	if err == nil && n < int64(len(as)) {
		_, err = upsert("1", "LEFT JOIN "+source+" ON "+is, row+" IS NULL AND ("+f.Seen(row, known)+")")
	}
	return err
}

// assignedFrom is where AssignPositions finds the changes, c, and what it knows of them.
type assignedFrom struct {
	changes, where, order string
	position, shard       string
	args                  []any
}

// assigned reads consecutive seqs as a range, and the positions follow from them. Where there
// are gaps, or a key has a shard or a kind, the assignments travel as a list.
func (d Dialect) assigned(f *dialect.Feed, as *dialect.Assignments) assignedFrom {
	changes := dialect.Qualified(d, f.Changes()) + " c"
	if runs := dialect.Runs(as.Seqs()); !as.Triples && len(runs) == 1 {
		r := runs[0]
		return assignedFrom{changes: changes, where: "c.seq BETWEEN ? AND ?", order: "c.seq",
			position: strconv.FormatInt(as.Base+1-r.First, 10) + " + c.seq", shard: "0", args: []any{r.First, r.Last()}}
	}
	// key is the place in the list, from 0.
	list, shard := "value AS seq", "0"
	if as.Triples {
		list, shard = "value ->> 0 AS seq, value ->> 1 AS shard, value ->> 2 AS kind", "j.shard"
	}
	return assignedFrom{changes: "(SELECT key AS place, " + list + " FROM json_each(?)) j\nCROSS JOIN " + changes + " ON c.seq = j.seq", where: "1", order: "j.place",
		position: strconv.FormatInt(as.Base+1, 10) + " + j.place", shard: shard, args: []any{as.JSON()}}
}

// DeleteChanges may delete by range: the changes were taken in seq order from the
// lowest, and while this transaction holds the only write lock none is invisible.
func (d Dialect) DeleteChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	return tx.Exec(ctx, "DELETE FROM "+dialect.Qualified(d, f.Changes())+" WHERE seq BETWEEN ? AND ?", seqs[0], seqs[len(seqs)-1])
}
