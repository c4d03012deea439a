package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

// TxOptions implements [dialect.Publish]. SQLite's transactions are always serializable. Those that only read
// say so: some drivers can begin every other transaction with the write lock.
func (Dialect) TxOptions(p dialect.Purpose) *sql.TxOptions {
	return &sql.TxOptions{ReadOnly: p == dialect.ForRead || p == dialect.ForCheck}
}

// Settings implements [dialect.Publish]. The first statement takes the write lock, whatever BEGIN the driver
// sends. A transaction that reads first and then writes fails with SQLITE_BUSY if another writer came between,
// at once, whatever busy_timeout is.
func (d Dialect) Settings(p dialect.Purpose, n dialect.Names) []string {
	if p == dialect.ForRead || p == dialect.ForCheck {
		return nil
	}
	return []string{"UPDATE " + dialect.Qualified(d, n.Table("sequences")) + " SET version = version WHERE 0"}
}

// Restore implements [dialect.Publish]. There is nothing to restore.
func (Dialect) Restore(dialect.Purpose) string { return "" }

// Unlocked implements [dialect.Publish].
func (Dialect) Unlocked() string { return "" }

// Durability implements [dialect.Publish]. It demands synchronous=FULL or EXTRA: with NORMAL, a WAL database
// loses the newest commits in a power failure.
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

// SeqsGrow implements [dialect.Publish]. In a table that is empty, the seqs start again. A scan does not read
// deleted changes, so no range has to be left out.
func (Dialect) SeqsGrow() bool { return false }

// ScanRanges implements [dialect.Publish]. It returns the whole table: see SeqsGrow.
func (Dialect) ScanRanges(string, dialect.Seqs) []string { return []string{""} }

// Writers implements [dialect.Publish]. It tells nothing: see SeqsGrow.
func (Dialect) Writers(context.Context, dialect.Querier, *dialect.Feed) ([]dialect.Writer, bool, error) {
	return nil, false, nil
}

// HasChanges implements [dialect.Publish]. It takes no write lock.
func (d Dialect) HasChanges(ctx context.Context, q dialect.Querier, f *dialect.Feed, _ dialect.Seqs) (bool, error) {
	return dialect.HasChanges(ctx, q, d, f, dialect.Seqs{})
}

// Stamp implements [dialect.Publish]. PRAGMA data_version does not show commits of the same connection. Its
// values can be compared only if they come from the same connection, which would have to be reserved for that.
func (Dialect) Stamp() string { return "" }

// LockSequence implements [dialect.Publish]. It only reads the row: the transaction has the database's only
// write lock.
func (d Dialect) LockSequence(ctx context.Context, tx dialect.Querier, f *dialect.Feed) (dialect.Sequence, error) {
	var s dialect.Sequence
	err := dialect.QueryRow(ctx, tx, "SELECT value, version, COALESCE(term, 0), updated_at, "+d.Now()+" FROM "+
		dialect.Qualified(d, f.Names.Table("sequences"))+" WHERE name = ?", []any{f.Name}, &s.Value, &s.Version,
		&s.Term, &s.UpdatedAt, &s.Now)
	return s, err
}

// PublishBatch implements [dialect.Publish]: the other operations do the work.
func (Dialect) PublishBatch(context.Context, dialect.Querier, *dialect.Feed, dialect.Sequence, int64, dialect.Seqs,
	int) (dialect.BatchResult, error) {
	return dialect.BatchResult{}, nil
}

// TakeChanges implements [dialect.Publish].
func (d Dialect) TakeChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed, _ dialect.Seqs,
	limit int) ([]dialect.Change, error) {
	return dialect.TakeChanges(ctx, tx, d, f, "", limit, d.Value)
}

// AssignPositions implements [dialect.Publish]. The first statement upserts the keys that have a row, and
// counts them. Only if some keys have none, a second statement looks for their positions. A single statement
// would read the table that it writes; for that, SQLite collects all rows before it writes the first one.
//
// CROSS JOIN makes SQLite join in this order: an assignment, its change by rowid, the row and the old position
// each by key. The conflict target is the key alone, so a position that exists already is an error.
func (d Dialect) AssignPositions(ctx context.Context, tx dialect.Querier, f *dialect.Feed, as []dialect.Assignment,
	publishedAt int64) error {
	assigned, positions := dialect.Assigned(f, as), dialect.Qualified(d, f.Positions())
	stored, row := dialect.StoredRefs(d, f, ""), dialect.Ref(d, "t", f.Key[0].Name)
	from := d.assigned(f, assigned)
	u := assigned.Upsert(from.position, strconv.FormatInt(publishedAt, 10))
	order := ""
	if !f.ExactKey() {
		// if one key has two texts, the later change counts, and the key keeps its text
		order = "\nORDER BY " + from.order
	}
	upsert := func(deleted, join, where string) (int64, error) {
		return tx.Exec(ctx, "INSERT INTO "+positions+" AS p ("+strings.Join(stored, ", ")+
			", feed_sync_id, shard, bucket, deleted, hidden, published_at)\nSELECT "+
			strings.Join(dialect.StoredRefs(d, f, "c"), ", ")+", "+u.Position+", "+from.shard+", "+
			f.Bucket(from.shard, "/")+", "+deleted+", "+u.Hidden+", "+u.PublishedAt+
			"\nFROM "+from.changes+"\n"+join+"\nWHERE "+from.where+" AND ("+where+")"+order+
			"\nON CONFLICT ("+strings.Join(stored, ", ")+") DO UPDATE SET "+u.Set, from.args...)
	}
	source, is, known := dialect.Qualified(d, f.Source)+" t", dialect.SourceJoin(d, f, "t", "c"), dialect.HasPosition(
		d, f, "")
	if assigned.OtherKinds {
		_, err := upsert(row+" IS NULL",
			"LEFT JOIN "+source+" ON "+is+"\nLEFT JOIN "+positions+" old ON "+dialect.StoredJoin(d, f, "old", "c"),
			f.GetsPosition(row, dialect.Ref(d, "old", f.Key[0].Stored)+" IS NOT NULL"))
		return err
	}
	// EXISTS, not a join. If the key's index was dropped, two rows may have the same key. A join would count
	// both, and so hide a key without a row.
	n, err := upsert("0", "", "EXISTS (SELECT 1 FROM "+source+" WHERE "+is+")")
	if err == nil && n < int64(len(as)) {
		_, err = upsert("1", "LEFT JOIN "+source+" ON "+is, row+" IS NULL AND ("+f.GetsPosition(row, known)+")")
	}
	return err
}

// assignedFrom is the part of AssignPositions' statement that reads the changes, as c, and expressions over it.
type assignedFrom struct {
	changes, where, order string
	position, shard       string
	args                  []any
}

// assigned reads changes with consecutive seqs as a range, and computes positions from seqs. If the seqs have
// gaps, or some key has a shard or a kind, the statement gets the assignments as a JSON list.
func (d Dialect) assigned(f *dialect.Feed, as *dialect.Assignments) assignedFrom {
	changes := dialect.Qualified(d, f.Changes()) + " c"
	if runs := dialect.Runs(as.Seqs()); !as.Triples && len(runs) == 1 {
		r := runs[0]
		return assignedFrom{changes: changes, where: "c.seq BETWEEN ? AND ?", order: "c.seq",
			position: strconv.FormatInt(as.Base+1-r.First, 10) + " + c.seq", shard: "0", args: []any{r.First, r.Last()}}
	}
	// json_each's column key is the index in the list, from 0.
	list, shard := "value AS seq", "0"
	if as.Triples {
		list, shard = "value ->> 0 AS seq, value ->> 1 AS shard, value ->> 2 AS kind", "j.shard"
	}
	return assignedFrom{changes: "(SELECT key AS place, " + list + " FROM json_each(?)) j\nCROSS JOIN " + changes +
		" ON c.seq = j.seq", where: "1", order: "j.place",
		position: strconv.FormatInt(as.Base+1, 10) + " + j.place", shard: shard, args: []any{as.JSON()}}
}

// DeleteChanges implements [dialect.Publish]. It may delete by range: TakeChanges has read the changes from the
// lowest seq on, and while this transaction has the only write lock no change is invisible to it.
func (d Dialect) DeleteChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	return tx.Exec(ctx, "DELETE FROM "+dialect.Qualified(d, f.Changes())+" WHERE seq BETWEEN ? AND ?", seqs[0],
		seqs[len(seqs)-1])
}
