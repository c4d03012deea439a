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
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

//go:embed schema.sql
var schemaFile string

var schema = dialect.NewStatements(schemaFile)

// CurrentSchema implements [dialect.Core]. It returns the connection's database.
func (d database) CurrentSchema(ctx context.Context, q dialect.Querier) (string, error) {
	if q == nil {
		return "", nil
	}
	var name sql.NullString
	err := dialect.One(ctx, q, syntax, statement(schema, "current_schema"), nil, &name)
	if err == nil && name.String == "" {
		err = errors.New("the connection has no current database: name one in the database URL, or give --schema")
	}
	return name.String, err
}

// statement returns a statement that depends on nothing.
func statement(file *dialect.Statements, name string) dialect.Statement {
	type key struct {
		file *dialect.Statements
		name string
	}
	if st, ok := rendered.Load(key{file, name}); ok {
		return st.(dialect.Statement)
	}
	st, err := file.Render(syntax, dialect.Names{}, name)
	if err != nil {
		panic(err)
	}
	rendered.Store(key{file, name}, st)
	return st
}

var rendered sync.Map

// text is the text of a statement that depends on nothing, and has no arguments.
func text(file *dialect.Statements, name string) string { return statement(file, name).String() }

// SchemaVersion implements [dialect.Core].
func (d database) SchemaVersion(ctx context.Context, q dialect.Querier, n dialect.Names) (int, error) {
	newest, err := schema.Render(syntax, n, "version")
	if err != nil {
		return 0, err
	}
	var version sql.NullInt64
	err = dialect.One(ctx, q, syntax, newest, nil, &version)
	if number, _ := dialect.CodeField(err, "Number"); number == errNoSuchTable {
		return 0, nil
	}
	return int(version.Int64), err
}

// schemaLockSeconds is how long a second change of the schema waits for the first.
const schemaLockSeconds = 10

const (
	ddlLockSeconds = 1 // how long a DDL statement may wait for a table; writers wait behind it
	releaseTimeout = 5 * time.Second
)

// WithSchemaLock implements [dialect.Core] by a named lock of the server, on a connection of its own. It
// releases the lock even if ctx has ended. It closes the connection if it cannot restore the session's
// settings.
func (d database) WithSchemaLock(ctx context.Context, db *sql.DB, n dialect.Names,
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
	err = dialect.One(ctx, q, syntax, statement(schema, "session_settings"), dialect.Args{"unfit": dialect.SQL(unfit)},
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
	err = dialect.One(ctx, q, syntax, statement(schema, "lock_schema"),
		dialect.Args{"lock": lock, "seconds": schemaLockSeconds}, &gotten)
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
		_, failed := dialect.Exec(after, q, syntax, statement(schema, "restore_session"),
			dialect.Args{"wait": dialect.SQL(lockWait), "mode": dialect.SQL("'" + mode + "'")})
		if failed == nil {
			failed = d.use(after, q, database.String)
		}
		if failed == nil {
			_, failed = dialect.Exec(after, q, syntax, statement(schema, "unlock_schema"), dialect.Args{"lock": lock})
		}
		if failed != nil {
			// closes the connection, which releases the lock
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
	}()
	if _, err := dialect.Exec(ctx, q, syntax, statement(schema, "bound_schema_changes"),
		dialect.Args{"seconds": ddlLockSeconds}); err != nil {
		return err
	}
	return fn(q)
}

// together is [dialect.Dialect].Together.
func together(ctx context.Context, q dialect.Querier, fn func() error) error {
	if _, err := dialect.Exec(ctx, q, syntax, statement(schema, "begin_together"), nil); err != nil {
		return err
	}
	err := fn()
	if err == nil {
		_, err = dialect.Exec(ctx, q, syntax, statement(schema, "commit_together"), nil)
	}
	if err != nil {
		// The caller's context may have ended. The connection must not keep the transaction.
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		_, failed := dialect.Exec(after, q, syntax, statement(schema, "roll_back_together"), nil)
		err = errors.Join(err, failed)
	}
	return err
}

// use makes database the session's current one again: see triggerSession. A session cannot go back to having
// none, so then the connection is closed.
func (d database) use(ctx context.Context, q dialect.Querier, database string) error {
	var now sql.NullString
	err := dialect.One(ctx, q, syntax, statement(schema, "current_schema"), nil, &now)
	if err != nil || now.String == database {
		return err
	}
	if database == "" {
		return driver.ErrBadConn
	}
	_, err = dialect.Exec(ctx, q, syntax, statement(capture, "use"),
		dialect.Args{"database": dialect.SQL(quote(database))})
	return err
}

// lockName returns a name of at most 64 characters, the server's limit. Names of locks are global to the
// server, so it contains a hash of database and prefix.
func lockName(n dialect.Names) string {
	sum := sha256.Sum256([]byte(n.Schema + "\x00" + n.Prefix))
	return "rowfeed." + hex.EncodeToString(sum[:16])
}
