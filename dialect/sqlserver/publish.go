package sqlserver

import (
	"context"
	"database/sql"
	_ "embed" // for publish.sql
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed publish.sql
var publishFile string

var publishing = dialect.NewStatements(publishFile)

// Begin implements [dialect.Core]. It never asks for a read-only transaction, which the driver refuses. Publishers and
// pages give up early if another session has locked the table. In a deadlock the server ends a publisher's transaction
// rather than a writer's. A consumer's handler keeps the session as it is.
func (database) Begin(p dialect.Purpose, _ dialect.Names) dialect.Beginning {
	b := dialect.Beginning{Options: &sql.TxOptions{Isolation: sql.LevelReadCommitted}}
	wait, priority := "30000", "NORMAL"
	switch p {
	case dialect.ForConsume:
		return b
	case dialect.ForPublish, dialect.ForMove:
		wait, priority = "2000", "LOW"
	case dialect.ForRead:
		wait = "2000"
	case dialect.ForCheck:
		b.Options.Isolation = sql.LevelSnapshot
		b.After = statement(publishing, "restore_isolation").String()
	}
	b.First = []string{dialect.NewScript(syntax).Fill(statement(publishing, "settings"),
		dialect.Args{"wait": dialect.SQL(wait), "priority": dialect.SQL(priority)})}
	return b
}

// Durability implements [dialect.Core].
func (d database) Durability(ctx context.Context, q dialect.Querier) error {
	var delayed string
	if err := dialect.One(ctx, q, syntax, statement(publishing, "durability"), nil, &delayed); err != nil {
		return err
	}
	return forgetful(delayed)
}

// forgetful returns an error if the database acknowledges every commit before it is on the disk.
func forgetful(delayed string) error {
	if delayed == "FORCED" {
		return errors.New("DELAYED_DURABILITY of the database is FORCED: set it to DISABLED or ALLOWED")
	}
	return nil
}

// Identity implements [dialect.Core].
func (d database) Identity(ctx context.Context, q dialect.Querier, _ dialect.Names) (string, error) {
	var id sql.NullString
	if err := dialect.One(ctx, q, syntax, statement(publishing, "read_identity"), nil, &id); err != nil {
		return "", err
	}
	if !id.Valid {
		return "", dialect.ErrReadOnly
	}
	return id.String, nil
}

// Writers implements [dialect.Gaps] by the locks on the table of changes, or the outbox. A login without VIEW SERVER
// STATE is not told.
func (d database) Writers(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) (open []dialect.Writer, told bool, err error) {
	table, _ := f.Waiting()
	_, err = dialect.All(ctx, q, syntax, statement(publishing, "writers"),
		dialect.Args{"table": dialect.Qualified(syntax, table)}, func(rows dialect.Rows) (none struct{}, err error) {
			var w dialect.Writer
			if err := rows.Scan(&told, &w.Transaction, &w.Orphan); err != nil {
				return none, err
			}
			if w.Session = w.Transaction; w.Transaction != "" {
				open = append(open, w)
			}
			return none, nil
		})
	if d.Classify(err) == dialect.ClassPermission {
		return nil, false, nil
	}
	return open, told && err == nil, err
}

// HasChanges implements [dialect.Publishing] by the statement has_changes.
func (d database) HasChanges(ctx context.Context, q dialect.Querier, f *dialect.Feed,
	among dialect.Seqs) (bool, error) {
	scans := scansOf(publishing.For(syntax, f, "first_change"), dialect.RangeScans(syntax, f, "changes", among, nil),
		nil)
	if f.InRows() {
		scans = append(scans, publishing.For(syntax, f, "first_row").With(nil))
	}
	return found(dialect.One(ctx, q, syntax, publishing.For(syntax, f, "has_changes"),
		dialect.Args{"scans": dialect.Joined(" UNION ALL ", scans)}, new(int64)))
}

// scansOf returns a statement for each scan, with the scan and args as its arguments.
func scansOf(st dialect.Statement, scans []dialect.Built, args dialect.Args) []dialect.Built {
	all := make([]dialect.Built, len(scans))
	for i, scan := range scans {
		with := dialect.Args{"scan": scan}
		maps.Copy(with, args)
		all[i] = st.With(with)
	}
	return all
}

// found tells whether a query has answered a row.
func found(err error) (bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// LockSequence implements [dialect.Publishing].
func (d database) LockSequence(ctx context.Context, tx dialect.Querier, f *dialect.Feed) (dialect.Sequence, error) {
	var s dialect.Sequence
	err := dialect.One(ctx, tx, syntax, publishing.For(syntax, f, "lock_sequence"),
		dialect.Args{"feed": f.Name, "turn": lockName(f) + "turn"},
		&s.Value, &s.Version, &s.Term, &s.UpdatedAt, &s.Now, &s.Identity)
	return s, err
}

// TakeChanges implements [dialect.Publishing] by the statement take_changes.
func (d database) TakeChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed, among dialect.Seqs,
	limit int) ([]dialect.Change, error) {
	b := dialect.NewBuilder(syntax)
	query := b.Fill(publishing.For(syntax, f, "take_changes"), dialect.Args{"limit": limit,
		"scans": dialect.Joined(" UNION ALL ", scansOf(publishing.For(syntax, f, "oldest"),
			dialect.RangeScans(syntax, f, "changes", among, nil), dialect.Args{"limit": limit}))})
	return dialect.ReadChanges(ctx, tx, f, query, b.Args())
}

// AssignPositions implements [dialect.Publishing] by the batch assign_positions.
func (d database) AssignPositions(ctx context.Context, tx dialect.Querier, f *dialect.Feed, as []dialect.Assignment,
	publishedAt int64) error {
	assigned := dialect.Assigned(f, as)
	assigned.Triples = true
	_, err := dialect.Exec(ctx, tx, syntax, publishing.For(syntax, f, "assign_positions"), dialect.Args{
		"base": assigned.Base, "list": assigned.JSON(), "published": publishedAt})
	return err
}

// DeleteChanges implements [dialect.Publishing].
func (d database) DeleteChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	return dialect.Exec(ctx, tx, syntax, publishing.For(syntax, f, "delete_changes"),
		dialect.Args{"seqs": dialect.SeqList(seqs)})
}

// millis is [dialect.Codec].Millis. A time without offset is read as UTC.
func millis(c dialect.Column, ref string) string {
	switch c.Kind {
	case feedtype.TimestampTZ:
		ref = "SWITCHOFFSET(" + ref + ", 0)"
	case feedtype.Timestamp, feedtype.Date:
	default:
		return ""
	}
	return "DATEDIFF_BIG(millisecond, '1970-01-01', " + ref + ")"
}

// lockName returns the begin of the names of a feed's locks. The server shows 32 characters of a name, and the longest
// is that of a shard with 20 characters.
func lockName(f *dialect.Feed) string {
	return "rf" + strings.ToLower(fmt.Sprintf("%08x", checksum(f))) + ":"
}
