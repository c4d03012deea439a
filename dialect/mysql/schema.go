package mysql

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	_ "embed" // for schema.sql
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed schema.sql
var schemaFile string

var schema = dialect.NewStatements(schemaFile)

// CurrentSchema implements [dialect.Schema]. It returns the connection's database.
func (d Dialect) CurrentSchema(ctx context.Context, q dialect.Querier) (string, error) {
	if q == nil {
		return "", nil
	}
	var name sql.NullString
	err := dialect.One(ctx, q, d, statement(schema, "current_schema"), nil, &name)
	if err == nil && name.String == "" {
		err = errors.New("the connection has no current database: name one in the database URL, or give --schema")
	}
	return name.String, err
}

// statement returns a statement that depends on nothing.
func statement(file *dialect.Statements, name string) dialect.Statement {
	st, err := file.Render(New(), dialect.Names{}, name)
	if err != nil {
		panic(err)
	}
	return st
}

// Migrations implements [dialect.Schema].
func (d Dialect) Migrations(n dialect.Names) []dialect.Migration {
	return []dialect.Migration{dialect.FirstMigration(d, n, schema)}
}

// SchemaVersion implements [dialect.Schema].
func (d Dialect) SchemaVersion(ctx context.Context, q dialect.Querier, n dialect.Names) (int, error) {
	newest, err := schema.Render(d, n, "version")
	if err != nil {
		return 0, err
	}
	var version sql.NullInt64
	err = dialect.One(ctx, q, d, newest, nil, &version)
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
