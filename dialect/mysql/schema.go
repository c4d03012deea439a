package mysql

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// tableOptions end the definition of rowfeed's tables. In DYNAMIC rows, an index can have keys as long as the
// source's, whatever innodb_default_row_format says.
const tableOptions = " ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"

// CurrentSchema implements [dialect.Schema]. It returns the connection's database. Names in a trigger are
// looked up in the trigger's own database, so it must be known.
func (Dialect) CurrentSchema(ctx context.Context, q dialect.Querier) (string, error) {
	if q == nil {
		return "", nil
	}
	var schema sql.NullString
	err := dialect.QueryRow(ctx, q, "SELECT DATABASE()", nil, &schema)
	if err == nil && schema.String == "" {
		err = errors.New("the connection has no current database: name one in the database URL, or give --schema")
	}
	return schema.String, err
}

// Migrations implements [dialect.Schema]. DDL commits by itself, so every statement can be repeated, and the
// version's row is written last.
func (d Dialect) Migrations(n dialect.Names) []dialect.Migration {
	table := func(base string) string { return dialect.Qualified(d, n.Table(base)) }
	name := func(size string) string { return " varchar(" + size + ") CHARACTER SET ascii COLLATE ascii_bin" }
	return []dialect.Migration{{
		Version: 1,
		Title:   "feeds and sequences",
		Up: []string{
			"CREATE TABLE IF NOT EXISTS " + table("schema_version") + ` (
  version int NOT NULL PRIMARY KEY,
  applied_at bigint NOT NULL
)` + tableOptions,
			"CREATE TABLE IF NOT EXISTS " + table("sequences") + ` (
  name` + name("255") + ` NOT NULL PRIMARY KEY,
  value bigint NOT NULL,
  version bigint NOT NULL,
  updated_at bigint NOT NULL
)` + tableOptions,
			"CREATE TABLE IF NOT EXISTS " + table("feeds") + ` (
  name` + name("39") + ` NOT NULL PRIMARY KEY,
  mode` + name("20") + ` NOT NULL,
  capture` + name("20") + ` NOT NULL,
  state` + name("20") + ` NOT NULL,
  generation bigint NOT NULL,
  source_schema varchar(64) NULL,
  source_table varchar(64) NOT NULL,
  key_columns longtext NOT NULL,
  delivered_columns longtext NULL,
  options longtext NOT NULL,
  data_shards int NOT NULL DEFAULT 1,
  shard_column varchar(64) NULL,
  tombstones_seconds bigint NOT NULL,
  tombstones_below bigint NOT NULL DEFAULT 0,
  database_identity varchar(255) NULL,
  fill_after longtext NULL,
  created_at bigint NOT NULL
)` + tableOptions,
			"INSERT IGNORE INTO " + table("schema_version") + " (version, applied_at) VALUES (1, " + d.Now() + ")",
		},
		Down: []string{
			"DROP TABLE IF EXISTS " + table("feeds"),
			"DROP TABLE IF EXISTS " + table("sequences"),
			"DROP TABLE IF EXISTS " + table("schema_version"),
		},
	}, d.consumerTables(table), d.flushTable(table), d.leaseTable(table), d.letterShards(n, table),
		d.cursorFailures(n, table), d.shardTable(table), d.accessTables(table),
		dialect.OwnSchema(d, n), dialect.Failures(d, n, d.once(n)),
		dialect.Terms(d, n, d.once(n), func(base, columns string) string {
			return "CREATE TABLE IF NOT EXISTS " + table(base) + " (\n  feed" + name("39") + " NOT NULL," + columns +
				")" + tableOptions
		})}
}

// SchemaVersion implements [dialect.Schema].
func (d Dialect) SchemaVersion(ctx context.Context, q dialect.Querier, n dialect.Names) (int, error) {
	var version sql.NullInt64
	err := dialect.QueryRow(ctx, q, "SELECT MAX(version) FROM "+dialect.Qualified(d, n.Table("schema_version")),
		nil, &version)
	if number, _ := dialect.CodeField(err, "Number"); number == errNoSuchTable {
		return 0, nil
	}
	return int(version.Int64), err
}

// schemaLockSeconds is how long a second change of the schema waits for the first.
const schemaLockSeconds = 10

const (
	ddlLockSeconds = 1 // how long DDL may make writers wait behind it
	releaseTimeout = 5 * time.Second
)

// WithSchemaLock implements [dialect.Schema] by a named lock of the server, on a connection of its own. It
// releases the lock even if ctx has ended. It closes the connection if it cannot restore the session's
// settings.
func (d Dialect) WithSchemaLock(ctx context.Context, db *sql.DB, n dialect.Names,
	fn func(dialect.Querier) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	q := dialect.On(conn)
	var (
		lockWait   string
		mode       string
		autocommit bool
		gotten     sql.NullInt64
		refused    sql.NullString
		database   sql.NullString
	)
	err = dialect.QueryRow(ctx, q,
		"SELECT @@SESSION.lock_wait_timeout, @@SESSION.sql_mode, @@SESSION.autocommit, DATABASE(), "+unfit, nil,
		&lockWait, &mode, &autocommit, &database, &refused)
	if err == nil {
		err = refuseMode(refused)
	}
	if err != nil {
		return err
	}
	if !autocommit {
		return errors.New("autocommit is off in this session: open the pool without that setting, " +
			"or rowfeed reads old snapshots and its own rows stay uncommitted")
	}
	lock := lockName(n)
	err = dialect.QueryRow(ctx, q, "SELECT GET_LOCK(?, ?)", []any{lock, schemaLockSeconds}, &gotten)
	if err != nil {
		return err
	}
	if gotten.Int64 != 1 {
		return &serverError{errLockWaitTimeout,
			fmt.Sprintf("another session is changing rowfeed's tables in %s (lock %s)", n.Schema, lock)}
	}
	defer func() {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		_, failed := q.Exec(after, fmt.Sprintf("SET SESSION lock_wait_timeout = %s, sql_mode = '%s'", lockWait, mode))
		if failed == nil {
			failed = d.use(after, q, database.String)
		}
		if failed == nil {
			_, failed = q.Exec(after, "DO RELEASE_LOCK('"+lock+"')")
		}
		if failed != nil {
			// closes the connection, which releases the lock
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
	}()
	if _, err := q.Exec(ctx, fmt.Sprintf("SET SESSION lock_wait_timeout = %d", ddlLockSeconds)); err != nil {
		return err
	}
	return fn(q)
}

// use makes database the session's current one again: see triggerSession. A session cannot go back to having
// none, so then the connection is closed.
func (d Dialect) use(ctx context.Context, q dialect.Querier, database string) error {
	var now sql.NullString
	if err := dialect.QueryRow(ctx, q, "SELECT DATABASE()", nil, &now); err != nil || now.String == database {
		return err
	}
	if database == "" {
		return driver.ErrBadConn
	}
	_, err := q.Exec(ctx, "USE "+d.Quote(database))
	return err
}

// lockName returns a name of at most 64 characters, the server's limit. Names of locks are global to the
// server, so it contains a hash of database and prefix.
func lockName(n dialect.Names) string {
	sum := sha256.Sum256([]byte(n.Schema + "\x00" + n.Prefix))
	return "rowfeed." + hex.EncodeToString(sum[:16])
}

// Moved implements [dialect.Schema]: a table with triggers cannot be moved to another database.
func (Dialect) Moved(context.Context, dialect.Querier, *dialect.Feed) (now feedtype.TableName, ok bool, err error) {
	return now, false, nil
}

// OtherSchemas implements [dialect.Schema]: no database can be renamed.
func (Dialect) OtherSchemas(context.Context, dialect.Querier, dialect.Names) ([]string, error) {
	return nil, nil
}
