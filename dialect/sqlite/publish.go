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

// TxOptions implements [dialect.Publish]. SQLite's transactions are always serializable. Those that only read
// say so: some drivers can begin every other transaction with the write lock.
func (Dialect) TxOptions(p dialect.Purpose) *sql.TxOptions {
	return &sql.TxOptions{ReadOnly: p == dialect.ForRead || p == dialect.ForCheck}
}

var beginWrite, durability = statement(publishing, "begin_write"), statement(publishing, "durability")

// Settings implements [dialect.Publish]. The first statement takes the write lock.
func (d Dialect) Settings(p dialect.Purpose, n dialect.Names) []string {
	if p == dialect.ForRead || p == dialect.ForCheck {
		return nil
	}
	sequences := dialect.SQL(dialect.Qualified(d, n.Table("sequences")))
	return []string{dialect.NewBuilder(d).Fill(beginWrite, dialect.Args{"sequences": sequences})}
}

// Durability implements [dialect.Publish]. It demands synchronous=FULL or EXTRA: with NORMAL, a WAL database
// loses the newest commits in a power failure.
func (d Dialect) Durability(ctx context.Context, q dialect.Querier) error {
	var level int
	if err := dialect.One(ctx, q, d, durability, nil, &level); err != nil {
		return err
	}
	if level < 2 {
		return fmt.Errorf("PRAGMA synchronous is %d, and must be FULL (2) or EXTRA (3) on every connection", level)
	}
	return nil
}

// HasChanges implements [dialect.Publish]. It takes no write lock.
func (d Dialect) HasChanges(ctx context.Context, q dialect.Querier, f *dialect.Feed, _ dialect.Seqs) (bool, error) {
	return dialect.HasChanges(ctx, q, d, f, dialect.Seqs{})
}

// LockSequence implements [dialect.Publish]. It only reads the row: the transaction has the database's only
// write lock.
func (d Dialect) LockSequence(ctx context.Context, tx dialect.Querier, f *dialect.Feed) (dialect.Sequence, error) {
	var s dialect.Sequence
	err := dialect.One(ctx, tx, d, publishing.For(d, f, "lock_sequence"), dialect.Args{"feed": f.Name}, &s.Value,
		&s.Version, &s.Term, &s.UpdatedAt, &s.Now)
	return s, err
}

// TakeChanges implements [dialect.Publish].
func (d Dialect) TakeChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed, _ dialect.Seqs,
	limit int) ([]dialect.Change, error) {
	b := dialect.NewBuilder(d)
	query := b.Fill(publishing.For(d, f, "oldest"), dialect.Args{"limit": limit})
	return dialect.ReadChanges(ctx, tx, f, query, b.Args())
}

// AssignPositions implements [dialect.Publish] by the statement assign_positions_by_kind or, if no kind was asked for,
// by up to two statements: assign_positions for the keys that have a row, and assign_tombstones if some have none.
func (d Dialect) AssignPositions(ctx context.Context, tx dialect.Querier, f *dialect.Feed, as []dialect.Assignment,
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
		_, err := dialect.Exec(ctx, tx, d, publishing.For(d, f, "assign_positions_by_kind"), args)
		return err
	}
	n, err := dialect.Exec(ctx, tx, d, publishing.For(d, f, "assign_positions"+of), args)
	if err == nil && n < int64(len(as)) {
		_, err = dialect.Exec(ctx, tx, d, publishing.For(d, f, "assign_tombstones"+of), args)
	}
	return err
}

// DeleteChanges implements [dialect.Publish]. It may delete by range: see the statement delete_run.
func (d Dialect) DeleteChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	return dialect.Exec(ctx, tx, d, publishing.For(d, f, "delete_run"),
		dialect.Args{"first": seqs[0], "last": seqs[len(seqs)-1]})
}
