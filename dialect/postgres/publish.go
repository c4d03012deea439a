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

// statement returns a statement that depends on nothing.
func statement(file *dialect.Statements, name string) dialect.Statement {
	st, err := file.Render(Dialect{}, dialect.Names{}, name)
	if err != nil {
		panic(err)
	}
	return st
}

// text is the text of a statement for publishers that depends on nothing, and has no arguments.
func text(name string) string { return statement(publishing, name).String() }

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

var durability, stamp = text("durability"), text("stamp")

var askFirst = strings.TrimSuffix(text("ask_first"), ":query")

// HasChanges implements [dialect.Publish] by the statement ask_first. The number of rows "affected" is the number of
// rows found.
func (d Dialect) HasChanges(ctx context.Context, q dialect.Querier, f *dialect.Feed, among dialect.Seqs) (bool, error) {
	n, err := q.Exec(ctx, askFirst+dialect.FirstChange(d, f, among))
	return n > 0, err
}

// Stamp implements [dialect.Publish].
func (Dialect) Stamp() string { return stamp }

// LockSequence implements [dialect.Publish].
func (d Dialect) LockSequence(ctx context.Context, tx dialect.Querier, f *dialect.Feed) (dialect.Sequence, error) {
	var s dialect.Sequence
	b := dialect.NewBuilder(d)
	query := b.Fill(publishing.For(d, f, "lock_sequence"), dialect.Args{"feed": f.Name})
	err := dialect.QueryRow(ctx, tx, query, b.Args(), &s.Value, &s.Version, &s.Term, &s.UpdatedAt, &s.Now, &s.Identity)
	return s, err
}

// PublishBatch implements [dialect.Publish] by the statement publish_batch.
//
// Three kinds of feeds are left to the other operations. For data shards the client computes each key's shard;
// then there are keys with different texts, and rows with positions.
func (d Dialect) PublishBatch(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seq dialect.Sequence,
	generation int64, among dialect.Seqs, limit int) (dialect.BatchResult, error) {
	var done dialect.BatchResult
	if f.Sharded() || f.InRows() || !f.ExactKey() {
		return done, nil
	}
	b := dialect.NewBuilder(d)
	query := b.Fill(publishing.For(d, f, "publish_batch"), dialect.Args{
		"oldest": d.oldest(f, among, "seq, kind", dialect.SQL(strconv.Itoa(limit))),
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

// TakeChanges implements [dialect.Publish] by the statement oldest.
func (d Dialect) TakeChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed, among dialect.Seqs,
	limit int) ([]dialect.Change, error) {
	b := dialect.NewBuilder(d)
	oldest := d.oldest(f, among, dialect.SQL(dialect.ChangeColumns(d, f, d.Value)), limit)
	query := oldest(b)
	return dialect.ReadChanges(ctx, tx, f, query, b.Args())
}

// oldest is the query for the oldest changes among some seqs. limit is a number, or the text of one.
func (d Dialect) oldest(f *dialect.Feed, among dialect.Seqs, columns dialect.SQL, limit any) dialect.Built {
	scan := func(name string, ends dialect.Args) dialect.Built {
		return publishing.For(d, f, "oldest").With(dialect.Args{"columns": columns,
			"range": publishing.For(d, f, name).With(ends), "limit": limit})
	}
	if among.All() {
		return scan("all_changes", nil)
	}
	above := scan("changes_above", dialect.Args{"above": among.Above})
	if len(among.Gaps) == 0 {
		return above
	}
	var scans []dialect.Built
	for _, g := range among.Gaps {
		scans = append(scans, scan("changes_between", dialect.Args{"first": g.First, "last": g.Last()}))
	}
	return publishing.For(d, f, "oldest_of_ranges").With(dialect.Args{
		"ranges": dialect.Joined(") UNION ALL (", append(scans, above)), "limit": limit})
}

// AssignPositions implements [dialect.Publish] by the statement assign_positions, or assign_positions_by_kind.
func (d Dialect) AssignPositions(ctx context.Context, tx dialect.Querier, f *dialect.Feed, as []dialect.Assignment,
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
	var arrays []dialect.Built
	for _, of := range lists {
		arrays = append(arrays, publishing.For(d, f, "numbers").With(dialect.Args{"numbers": bigints(as, of)}))
	}
	b := dialect.NewBuilder(d)
	query := b.Fill(publishing.For(d, f, name), dialect.Args{
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

// DeleteChanges implements [dialect.Publish].
func (d Dialect) DeleteChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed,
	seqs []int64) (total int64, err error) {
	runs := dialect.Runs(seqs)
	if len(runs) > maxRuns {
		return dialect.Exec(ctx, tx, d, publishing.For(d, f, "delete_changes"),
			dialect.Args{"seqs": bigints(seqs, func(seq int64) int64 { return seq })})
	}
	for _, r := range runs {
		n, err := dialect.Exec(ctx, tx, d, publishing.For(d, f, "delete_run"),
			dialect.Args{"first": r.First, "last": r.Last()})
		if err != nil {
			return total, err
		}
		total += n
	}
	return total, nil
}
