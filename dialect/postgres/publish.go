package postgres

import (
	"context"
	"database/sql"
	_ "embed" // for publish.sql
	"fmt"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

//go:embed publish.sql
var publishFile string

var publishing = dialect.NewStatements(publishFile)

// Begin implements [dialect.Core]. It sets the isolation level because the server's default may be another one. Every
// setting ends with its transaction.
func (database) Begin(p dialect.Purpose, _ dialect.Names) dialect.Beginning {
	options := &sql.TxOptions{Isolation: sql.LevelReadCommitted,
		ReadOnly: p == dialect.ForRead || p == dialect.ForCheck}
	if p == dialect.ForCheck {
		options.Isolation = sql.LevelRepeatableRead
	}
	return dialect.Beginning{Options: options, First: []string{settings[p]}}
}

// settings has one message for each purpose. A message without parameters can contain several statements.
var settings = func() map[dialect.Purpose]string {
	all := map[dialect.Purpose]string{}
	for purpose, name := range map[dialect.Purpose]string{
		dialect.ForPublish: "begin_publish", dialect.ForMove: "begin_move", dialect.ForRecord: "begin_record",
		dialect.ForRepair: "begin_repair", dialect.ForConsume: "begin_consume", dialect.ForRead: "begin_read",
		dialect.ForCheck: "begin_check",
	} {
		all[purpose] = text(name)
	}
	return all
}()

// named returns a statement that depends on the names of rowfeed's tables.
func named(file *dialect.Statements, n dialect.Names, name string) dialect.Statement {
	st, err := file.Render(syntax, n, name)
	if err != nil {
		panic(err)
	}
	return st
}

// statement returns a statement that depends on nothing.
func statement(file *dialect.Statements, name string) dialect.Statement {
	return named(file, dialect.Names{}, name)
}

// text is the text of a statement for publishers that depends on nothing, and has no arguments.
func text(name string) string { return statement(publishing, name).String() }

// Durability implements [dialect.Core]. It checks synchronous_commit, which Begin has raised, and what only
// the server's configuration determines.
func (database) Durability(ctx context.Context, q dialect.Querier) error {
	var fsync, pages, commit string
	if err := dialect.QueryRow(ctx, q, durability, nil, &fsync, &pages, &commit); err != nil {
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

// identity is [dialect.Dialect].IdentitySQL.
func identity(n dialect.Names) string { return named(publishing, n, "identity").String() }

// Identity implements [dialect.Core].
func (d database) Identity(ctx context.Context, q dialect.Querier, n dialect.Names) (string, error) {
	var id *string
	err := dialect.One(ctx, q, syntax, named(publishing, n, "ask_identity"), nil, &id)
	if err != nil {
		return "", err
	}
	if id == nil {
		return "", dialect.ErrReadOnly
	}
	return *id, nil
}

var durability, stamp = text("durability"), text("stamp")

var askFirst = strings.TrimSuffix(text("ask_first"), ":query")

// LockSequence implements [dialect.Publishing].
func (d database) LockSequence(ctx context.Context, tx dialect.Querier, f *dialect.Feed) (dialect.Sequence, error) {
	var s dialect.Sequence
	b := dialect.NewBuilder(syntax)
	query := b.Fill(publishing.For(syntax, f, "lock_sequence"), dialect.Args{"feed": f.Name})
	err := dialect.QueryRow(ctx, tx, query, b.Args(), &s.Value, &s.Version, &s.Term, &s.UpdatedAt, &s.Now, &s.Identity)
	return s, err
}

// PublishBatch implements [dialect.Batches] by the statement publish_batch.
//
// The other operations publish three kinds of feeds: feeds with data shards, because the client computes the shard of
// each key; feeds whose equal keys can have different texts; and feeds whose rows hold positions.
func (d database) PublishBatch(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seq dialect.Sequence,
	generation int64, among dialect.Seqs, limit int) (dialect.BatchResult, error) {
	var done dialect.BatchResult
	if f.Sharded() || f.InRows() || !f.ExactKey() {
		return done, nil
	}
	b := dialect.NewBuilder(syntax)
	query := b.Fill(publishing.For(syntax, f, "publish_batch"), dialect.Args{
		"oldest": oldest(f, among, "seq, kind", dialect.SQL(strconv.Itoa(limit))),
		"base":   seq.Value, "published": max(seq.Now, seq.UpdatedAt),
		"term": int64(seq.Term), "feed": f.Name, "version": seq.Version, "generation": generation,
	})
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

// TakeChanges implements [dialect.Publishing] by the statement oldest.
func (d database) TakeChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed, among dialect.Seqs,
	limit int) ([]dialect.Change, error) {
	b := dialect.NewBuilder(syntax)
	oldest := oldest(f, among, dialect.SQL(dialect.ChangeColumns(syntax, f, value)), limit)
	query := oldest(b)
	return dialect.ReadChanges(ctx, tx, f, query, b.Args())
}

// oldest is the query for the oldest changes among some seqs. limit is a number, or the text of one.
func oldest(f *dialect.Feed, among dialect.Seqs, columns dialect.SQL, limit any) dialect.Built {
	scans := dialect.RangeScans(syntax, f, "changes", among, nil)
	for i, scan := range scans {
		scans[i] = publishing.For(syntax, f, "oldest").With(
			dialect.Args{"columns": columns, "range": scan, "limit": limit})
	}
	if len(scans) == 1 {
		return scans[0]
	}
	return publishing.For(syntax, f, "oldest_of_ranges").With(
		dialect.Args{"ranges": dialect.Joined(") UNION ALL (", scans), "limit": limit})
}

// AssignPositions implements [dialect.Publishing] by the statement assign_positions, or assign_positions_by_kind.
func (d database) AssignPositions(ctx context.Context, tx dialect.Querier, f *dialect.Feed, as []dialect.Assignment,
	publishedAt int64) error {
	assigned := dialect.Assigned(f, as)
	lists := []func(dialect.Assignment) int64{func(a dialect.Assignment) int64 { return a.Seq }}
	name, names, shard := "assign_positions", "seq", "0"
	if assigned.Triples {
		lists = append(lists, func(a dialect.Assignment) int64 { return int64(a.Shard) },
			func(a dialect.Assignment) int64 { return int64(a.Kind) })
		names, shard = "seq, shard, kind", "j.shard::int"
	}
	if assigned.OtherKinds {
		name = "assign_positions_by_kind"
	}
	if f.OwnShard != "" {
		shard = "COALESCE(t.rowfeed_shard, -1)"
	}
	var arrays []dialect.Built
	for _, of := range lists {
		arrays = append(arrays, publishing.For(syntax, f, "numbers").With(dialect.Args{"numbers": bigints(as, of)}))
	}
	b := dialect.NewBuilder(syntax)
	query := b.Fill(publishing.For(syntax, f, name), dialect.Args{
		"base": assigned.Base, "published": publishedAt,
		"lists": dialect.Joined(", ", arrays), "names": dialect.SQL(names),
		"shard": dialect.SQL(shard), "bucket": dialect.SQL(f.Bucket(shard, "/")),
	})
	_, err := tx.Exec(ctx, query, b.Args()...)
	return err
}

// maxRuns is the number of runs up to which one DELETE for each run is faster than one DELETE by a list of
// keys.
const maxRuns = 8

// DeleteChanges implements [dialect.Publishing].
func (d database) DeleteChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed,
	seqs []int64) (total int64, err error) {
	runs := dialect.Runs(seqs)
	if len(runs) > maxRuns {
		return dialect.Exec(ctx, tx, syntax, publishing.For(syntax, f, "delete_changes"),
			dialect.Args{"seqs": bigints(seqs, func(seq int64) int64 { return seq })})
	}
	for _, r := range runs {
		n, err := dialect.Exec(ctx, tx, syntax, publishing.For(syntax, f, "delete_run"),
			dialect.Args{"first": r.First, "last": r.Last()})
		if err != nil {
			return total, err
		}
		total += n
	}
	return total, nil
}
