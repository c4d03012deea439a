package sqlite

import (
	"context"
	"database/sql"
	_ "embed" // for publish.sql
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
)

//go:embed publish.sql
var publishFile string

var publishing = dialect.NewStatements(publishFile)

var beginWrite, durability = statement(publishing, "begin_write"), statement(publishing, "durability")

// Begin implements [dialect.Core]. SQLite's transactions are always serializable. Those that only read say so: some
// drivers can begin every other transaction with the write lock. The first statement of all others acquires the lock.
func (database) Begin(p dialect.Purpose, n dialect.Names) dialect.Beginning {
	if p == dialect.ForRead || p == dialect.ForCheck {
		return dialect.Beginning{Options: &sql.TxOptions{ReadOnly: true}}
	}
	sequences := dialect.SQL(dialect.Qualified(syntax, n.Table("sequences")))
	return dialect.Beginning{Options: &sql.TxOptions{},
		First: []string{dialect.NewBuilder(syntax).Fill(beginWrite, dialect.Args{"sequences": sequences})}}
}

// Identity implements [dialect.Core]. SQLite has none: a file that was replaced by another one looks the same.
func (database) Identity(context.Context, dialect.Querier, dialect.Names) (string, error) {
	return "", nil
}

// Durability implements [dialect.Core]. It demands synchronous=FULL or EXTRA: with NORMAL, a WAL database
// loses the newest commits in a power failure.
func (d database) Durability(ctx context.Context, q dialect.Querier) error {
	var level int
	if err := dialect.One(ctx, q, syntax, durability, nil, &level); err != nil {
		return err
	}
	if level < 2 {
		return fmt.Errorf("PRAGMA synchronous is %d, and must be FULL (2) or EXTRA (3) on every connection", level)
	}
	return nil
}

// LockSequence implements [dialect.Publishing]. It only reads the row: the transaction has the database's only
// write lock.
func (d database) LockSequence(ctx context.Context, tx dialect.Querier, f *dialect.Feed) (dialect.Sequence, error) {
	var s dialect.Sequence
	err := dialect.One(ctx, tx, syntax, publishing.For(syntax, f, "lock_sequence"), dialect.Args{"feed": f.Name},
		&s.Value,
		&s.Version, &s.Term, &s.UpdatedAt, &s.Now)
	return s, err
}

// TakeChanges implements [dialect.Publishing].
func (d database) TakeChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed, _ dialect.Seqs,
	limit int) ([]dialect.Change, error) {
	b := dialect.NewBuilder(syntax)
	query := b.Fill(publishing.For(syntax, f, "oldest"), dialect.Args{"limit": limit})
	return dialect.ReadChanges(ctx, tx, f, query, b.Args())
}

// AssignPositions implements [dialect.Publishing] by the statement assign_positions_by_kind or, if no kind was asked
// for, by up to two statements: assign_positions for the keys that have a row, and assign_tombstones if some have none.
func (d database) AssignPositions(ctx context.Context, tx dialect.Querier, f *dialect.Feed, as []dialect.Assignment,
	publishedAt int64) error {
	assigned := dialect.Assigned(f, as)
	of, args := "", dialect.Args{"published": publishedAt}
	if runs := dialect.Runs(assigned.Seqs()); !assigned.Triples && len(runs) == 1 {
		of, args["first"], args["last"] = "_of_run", runs[0].First, runs[0].Last()
		args["offset"] = assigned.Base + 1 - runs[0].First
	} else {
		args["list"], args["offset"] = assigned.JSON(), assigned.Base+1
	}
	if assigned.OtherKinds {
		_, err := dialect.Exec(ctx, tx, syntax, publishing.For(syntax, f, "assign_positions_by_kind"), args)
		return err
	}
	n, err := dialect.Exec(ctx, tx, syntax, publishing.For(syntax, f, "assign_positions"+of), args)
	if err == nil && n < int64(len(as)) {
		_, err = dialect.Exec(ctx, tx, syntax, publishing.For(syntax, f, "assign_tombstones"+of), args)
	}
	return err
}

// DeleteChanges implements [dialect.Publishing]. It may delete by range: see the statement delete_run.
func (d database) DeleteChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	return dialect.Exec(ctx, tx, syntax, publishing.For(syntax, f, "delete_run"),
		dialect.Args{"first": seqs[0], "last": seqs[len(seqs)-1]})
}
