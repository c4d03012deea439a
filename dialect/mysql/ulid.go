package mysql

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

// shardTable has the state of each shard with ULIDs, and where back-fill places rows: below live_from,
// a time in milliseconds, if that is not 0; filled_by is the run that came first.
func (d Dialect) shardTable(table func(base string) string) dialect.Migration {
	return dialect.Migration{
		Version: 7,
		Title:   "shards with ULIDs",
		Up: []string{
			"CREATE TABLE IF NOT EXISTS " + table("shards") + ` (
  feed varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  shard bigint NOT NULL,
  time_ms bigint NOT NULL,
  ulid_high bigint NOT NULL,
  ulid_low bigint NOT NULL,
  witness varchar(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  live_from bigint NOT NULL DEFAULT 0,
  filled_by bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (feed, shard)
)` + tableOptions,
			"INSERT IGNORE INTO " + table("schema_version") + " (version, applied_at) VALUES (7, " + d.Now() + ")",
		},
		Down: []string{
			"DROP TABLE IF EXISTS " + table("shards"),
			"DELETE FROM " + table("schema_version") + " WHERE version = 7",
		},
	}
}

// LockShard implements [dialect.ULID]. The upsert locks the row, be it there or not: under
// REPEATABLE READ an UPDATE or a locking read of a row that is missing takes the gap, and two
// transactions that make the rows of different shards then deadlock. Nothing but a savepoint
// tells whether there is a transaction: by itself it would be gone after its statement.
func (d Dialect) LockShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int) (dialect.Shard, error) {
	if err := d.mustBeInTransaction(ctx, tx); err != nil {
		return dialect.Shard{}, err
	}
	b := dialect.NewBuilder(d)
	if _, err := tx.Exec(ctx, dialect.NewShard(d, b, f, shard)+" ON DUPLICATE KEY UPDATE witness = witness", b.Args()...); err != nil {
		return dialect.Shard{}, err
	}
	b = dialect.NewBuilder(d)
	return dialect.ScanShard(ctx, tx, shard, dialect.ReadShard(d, b, f, shard)+" FOR UPDATE", b.Args())
}

func (d Dialect) mustBeInTransaction(ctx context.Context, tx dialect.Querier) error {
	if _, err := tx.Exec(ctx, "SAVEPOINT rowfeed_lock"); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "RELEASE SAVEPOINT rowfeed_lock")
	if d.Classify(err) == dialect.ClassUndefined {
		err = dialect.ErrNoTransaction
	}
	return err
}

// TakeShard implements [dialect.ULID] by the feed's procedure: one statement, where LockShard
// and AdvanceShard are five.
func (d Dialect) TakeShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int, hintMillis int64, word string) (first dialect.ULIDState, err error) {
	var hint any
	if hintMillis != 0 {
		hint = hintMillis
	}
	err = dialect.QueryRow(ctx, tx, "CALL "+dialect.Qualified(d, f.Take())+"(?, ?, ?)", []any{shard, hint, word}, &first.TimeMillis, &first.High, &first.Low)
	switch number, _ := dialect.CodeField(err, "Number"); number {
	case errSignalled:
		err = dialect.ErrNoTransaction
	case errHintAhead:
		err = dialect.ErrHintAhead
	}
	return first, err
}

// Witness implements [dialect.ULID]. It needs no lock: what a transaction has written it sees,
// whatever its snapshot, and nobody else writes its words.
func (d Dialect) Witness(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int) (witness string, err error) {
	if err := d.mustBeInTransaction(ctx, tx); err != nil {
		return "", err
	}
	b := dialect.NewBuilder(d)
	err = dialect.QueryRow(ctx, tx, dialect.ReadWitness(d, b, f, shard), b.Args(), &witness)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return witness, err
}

// AdvanceShard implements [dialect.ULID].
func (d Dialect) AdvanceShard(ctx context.Context, tx dialect.Querier, f *dialect.Feed, locked dialect.Shard, next dialect.ULIDState, witness string) error {
	b := dialect.NewBuilder(d)
	_, err := tx.Exec(ctx, dialect.WriteShard(d, b, f, locked.Shard, next, witness), b.Args()...)
	return err
}

// ULIDProblem implements [dialect.ULID]. MariaDB's uuid is not ordered as its bytes stand.
func (Dialect) ULIDProblem(c *dialect.Column) string {
	if strings.ToLower(c.Type) != "binary(16)" {
		return "is " + c.Type + ": make it binary(16)"
	}
	return ""
}

// holders are the transactions that have shards, which MySQL's performance schema lists lock
// by lock. MariaDB has no such list.
func (d Dialect) holders(ctx context.Context, q dialect.Querier, f *dialect.Feed) ([]dialect.Blocker, error) {
	shards := f.Names.Table("shards")
	return blockers(ctx, q, `SELECT DISTINCT th.PROCESSLIST_ID, th.PROCESSLIST_USER, th.PROCESSLIST_HOST, `+trxAge+`, COALESCE(th.PROCESSLIST_INFO, ''),
  CONCAT('holds shard ', TRIM(SUBSTRING_INDEX(l.LOCK_DATA, ',', -1)))
FROM performance_schema.data_locks l
JOIN performance_schema.threads th ON th.THREAD_ID = l.THREAD_ID
JOIN information_schema.INNODB_TRX x ON x.trx_mysql_thread_id = th.PROCESSLIST_ID
WHERE l.OBJECT_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND l.OBJECT_NAME = ? AND l.LOCK_TYPE = 'RECORD' AND l.LOCK_STATUS = 'GRANTED'
  AND l.INDEX_NAME = 'PRIMARY' AND l.LOCK_DATA LIKE ? AND th.PROCESSLIST_ID <> CONNECTION_ID()
ORDER BY 4 DESC, 6`, shards.Schema, shards.Name, "'"+strings.ReplaceAll(f.Name, "_", "\\_")+"', %")
}
