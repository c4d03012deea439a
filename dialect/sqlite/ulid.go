package sqlite

import (
	"context"
	"strconv"

	"github.com/rowfeed/rowfeed/dialect"
)

// shardTable has the state of each shard with ULIDs, and where back-fill places rows: below live_from,
// a time in milliseconds, if that is not 0; filled_by is the run that came first.
func (d Dialect) shardTable(name func(base string) string) dialect.Migration {
	return dialect.Migration{
		Version: 7,
		Title:   "shards with ULIDs",
		Up: []string{
			"CREATE TABLE " + name("shards") + ` (
  feed TEXT NOT NULL,
  shard INTEGER NOT NULL,
  time_ms INTEGER NOT NULL,
  ulid_high INTEGER NOT NULL,
  ulid_low INTEGER NOT NULL,
  witness TEXT NOT NULL,
  live_from INTEGER NOT NULL DEFAULT 0,
  filled_by INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (feed, shard)
)`,
			"INSERT INTO " + name("schema_version") + " VALUES (7, " + d.Now() + ")",
		},
		Down: []string{
			"DROP TABLE " + name("shards"),
			"DELETE FROM " + name("schema_version") + " WHERE version = 7",
		},
	}
}

// LockShard takes the database's only write lock with its INSERT, also where the row is
// there: a transaction that has read before, while another wrote, is refused here.
func (d Dialect) LockShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int) (dialect.Shard, error) {
	// Within a transaction another cannot begin, and the failed statement changes nothing.
	if _, err := tx.Exec(ctx, "BEGIN"); err == nil {
		if _, err := tx.Exec(ctx, "ROLLBACK"); err != nil {
			return dialect.Shard{}, err
		}
		return dialect.Shard{}, dialect.ErrNoTransaction
	} else if d.Classify(err) != dialect.ClassUndefined {
		return dialect.Shard{}, err
	}
	b := dialect.NewBuilder(d)
	if _, err := tx.Exec(ctx, dialect.NewShard(d, b, f, shard)+" ON CONFLICT (feed, shard) DO NOTHING", b.Args()...); err != nil {
		return dialect.Shard{}, err
	}
	b = dialect.NewBuilder(d)
	return dialect.ScanShard(ctx, tx, shard, dialect.ReadShard(d, b, f, shard), b.Args())
}

// TakeShard reads and writes the row.
func (d Dialect) TakeShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int, hintMillis int64, word string) (dialect.ULIDState, error) {
	return dialect.TakeLocked(ctx, d, tx, f, shard, hintMillis, word)
}

// Witness locks, which tells whether there is a transaction.
func (d Dialect) Witness(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int) (string, error) {
	row, err := d.LockShard(ctx, tx, f, shard)
	return row.Witness, err
}

// AdvanceShard writes the row.
func (d Dialect) AdvanceShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, locked dialect.Shard, next dialect.ULIDState, witness string) error {
	b := dialect.NewBuilder(d)
	_, err := tx.Exec(ctx, dialect.WriteShard(d, b, f, locked.Shard, next, witness), b.Args()...)
	return err
}

// ULIDProblem takes columns that keep bytes as bytes.
func (Dialect) ULIDProblem(c *dialect.Column) string {
	if c.Kind != dialect.Binary {
		return "is declared " + strconv.Quote(c.Type) + ": declare it BLOB"
	}
	return ""
}

// ULIDUp makes nothing: SQLite has no functions of a database's own.
func (Dialect) ULIDUp(*dialect.Feed) []dialect.Step { return nil }

// ULIDDown removes nothing.
func (Dialect) ULIDDown(*dialect.Feed) []dialect.Step { return nil }

// ULIDProblems is about functions.
func (Dialect) ULIDProblems(context.Context, dialect.Querier, *dialect.Feed) (missing, other []string, err error) {
	return nil, nil, nil
}
