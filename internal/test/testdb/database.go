package testdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"
)

// Database is a new, empty database of one test. It is dropped at the end of the test, even if connections are open.
type Database struct {
	Engine
	// URL has rowfeed's form: sqlite:/path/test.db, postgres://postgres@127.0.0.1:15432/test_3?sslmode=disable,
	// mysql://root@127.0.0.1:13306/test_3 (also for MariaDB).
	URL  string
	Name string // test_3; for SQLite the file's path

	server *Server // nil on SQLite
	t      testing.TB
	once   sync.Once
	admin  *sql.DB
}

// New makes a database, on the shared server if the engine is a server.
func (e Engine) New(t testing.TB) *Database {
	t.Helper()
	if e.HasServer() {
		return e.Server(t).NewDatabase(t)
	}
	path := filepath.Join(t.TempDir(), "test.db")
	return &Database{Engine: e, Name: path, URL: "sqlite:" + path, t: t}
}

// startedAt tells the databases of this process on a lent server from those of others, and from those that were left.
var startedAt = time.Now().Unix()

// NewDatabase makes a database on this server.
func (s *Server) NewDatabase(t testing.TB) *Database {
	t.Helper()
	return s.NewDatabaseWith(t, "")
}

// NewDatabaseWith makes a database with further options of CREATE DATABASE.
func (s *Server) NewDatabaseWith(t testing.TB, options string) *Database {
	t.Helper()
	name := fmt.Sprintf("test_%d", s.next.Add(1))
	if s.Engine.lent() {
		name = fmt.Sprintf("rowfeed_%d_%d_%s", startedAt, os.Getpid(), name)
	}
	create := "CREATE DATABASE " + name
	if s.Engine.Family == "postgres" {
		// Copying files took 10 ms. The default, copying through the log, took 24 ms.
		create += " TEMPLATE template0 STRATEGY FILE_COPY"
	}
	statements := []string{create + " " + options}
	if s.Engine == SQLServer {
		statements = append(statements, "ALTER DATABASE "+name+" SET READ_COMMITTED_SNAPSHOT ON",
			"ALTER DATABASE "+name+" SET ALLOW_SNAPSHOT_ISOLATION ON")
	}
	for _, statement := range statements {
		if err := s.administer(statement); err != nil {
			t.Fatalf("testdb: %s: %v", statement, err)
		}
	}
	t.Cleanup(func() {
		if err := s.drop(name); err != nil {
			t.Errorf("testdb: drop %s: %v", name, err)
		}
	})
	return &Database{Engine: s.Engine, Name: name, URL: s.url(name), server: s, t: t}
}

// Server returns the server of the database, or nil for SQLite.
func (d *Database) Server() *Server { return d.server }

// Admin returns the pool for the test's own SQL. The pool has the rights of a superuser, accepts several statements in
// one string, and is closed at the end of the test.
func (d *Database) Admin() *sql.DB {
	d.t.Helper()
	d.once.Do(func() {
		// Wait long for other writers of a SQLite file.
		db, err := openURL(d.URL, nil, "multiStatements=true",
			fmt.Sprintf("_pragma=busy_timeout(%d)", patience.Milliseconds()))
		if err != nil {
			d.t.Fatal(err)
		}
		d.t.Cleanup(func() { _ = db.Close() })
		d.admin = db
	})
	return d.admin
}

// Exec runs SQL through Admin. An error fails the test.
func (d *Database) Exec(t testing.TB, query string, args ...any) {
	t.Helper()
	if _, err := d.Admin().ExecContext(context.Background(), query, args...); err != nil {
		t.Fatalf("%s: %v\n%s", d.Engine.Name, err, query)
	}
}

// OpenTapped opens a pool whose statements the hooks observe and control. params are parameters of the driver, as
// "name=value". On SQLite, transactions begin immediate by default. The pool is closed at the end of the test.
func (d *Database) OpenTapped(t testing.TB, h Hooks, params ...string) *sql.DB {
	t.Helper()
	db, err := OpenURL(d.URL, h, params...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// OpenURL is OpenTapped for a process without a Database: the child of CrashChild.
func OpenURL(rawURL string, h Hooks, params ...string) (*sql.DB, error) {
	return openURL(rawURL, &h, append([]string{"_txlock=immediate"}, params...)...)
}

// openURL opens a pool on a database URL, tapped if h is not nil. It drops empty parameters, and those of other
// engines' drivers.
func openURL(rawURL string, h *Hooks, params ...string) (*sql.DB, error) {
	params = slices.DeleteFunc(slices.Clone(params), func(p string) bool { return p == "" })
	connector, err := connector(rawURL, params)
	if err != nil {
		return nil, fmt.Errorf("testdb: %s: %w", rawURL, err)
	}
	if h != nil {
		connector = Tap(connector, *h)
	}
	return sql.OpenDB(connector), nil
}

func connector(rawURL string, params []string) (driver.Connector, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	switch u.Scheme {
	case "sqlite":
		query := url.Values{"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)"}}
		for _, p := range params {
			name, value, _ := strings.Cut(p, "=")
			if strings.HasPrefix(p, "_pragma=busy_timeout(") {
				query["_pragma"][0] = value // of two values the driver uses the first
			} else if name == "_pragma" {
				query.Add(name, value)
			} else if strings.HasPrefix(name, "_") {
				query.Set(name, value)
			}
		}
		return sqlite.NewConnector("file:" + u.Opaque + u.Path + "?" + query.Encode())
	case "postgres":
		query := u.Query()
		for _, p := range params {
			if name, value, _ := strings.Cut(p, "="); name != "multiStatements" && !strings.HasPrefix(name, "_") {
				query.Set(name, value)
			}
		}
		u.RawQuery = query.Encode()
		config, err := pgx.ParseConfig(u.String())
		if err != nil {
			return nil, err
		}
		return stdlib.GetConnector(*config), nil
	case "mysql":
		var kept []string
		for _, p := range params {
			if !strings.HasPrefix(p, "_") {
				kept = append(kept, p)
			}
		}
		config, err := mysql.ParseDSN(fmt.Sprintf("%s@tcp(%s)%s?%s",
			u.User.Username(), u.Host, u.Path, strings.Join(kept, "&")))
		if err != nil {
			return nil, err
		}
		config.Logger = &mysql.NopLogger{} // a killed server is expected
		return mysql.NewConnector(config)
	case "sqlserver":
		return sqlServerConnector(u, params)
	}
	return nil, fmt.Errorf("unknown scheme %q", u.Scheme)
}

// url returns the URL of one of the server's databases. For "" it is the database that always exists.
func (s *Server) url(database string) string {
	if s.Engine == SQLServer {
		u, _ := lentServer(database) // newServer has seen its errors
		return u
	}
	if s.Engine.Family == "postgres" {
		if database == "" {
			database = "postgres"
		}
		return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.Port, database)
	}
	return fmt.Sprintf("mysql://root@127.0.0.1:%d/%s", s.Port, database)
}

// administer runs a statement outside of all tests' databases.
func (s *Server) administer(statement string) error {
	db, err := openURL(s.url(""), nil)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err = db.ExecContext(ctx, statement)
	return err
}

// drop drops a database, and closes all connections to it. If the server was killed or is paused, drop does nothing:
// the database is removed with the server's folder.
func (s *Server) drop(name string) error {
	s.mu.Lock()
	running := s.cmd != nil && s.paused == nil
	s.mu.Unlock()
	if s.Engine == SQLServer {
		return s.dropSQLServer(name)
	}
	if !running {
		return nil
	}
	db, err := openURL(s.url(""), nil)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	disconnect, force := disconnectMySQL, ""
	if s.Engine.Family == "postgres" {
		disconnect, force = disconnectPostgres, " WITH (FORCE)"
	}
	for {
		if err = disconnect(ctx, db, name); err == nil {
			_, err = db.ExecContext(ctx, "DROP DATABASE IF EXISTS "+name+force)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond) // PostgreSQL itself waits five seconds for sessions to end, and no longer
	}
}

// disconnectPostgres ends all connections to a database. DROP DATABASE would do it, too, but it checks only every 100
// ms whether they have ended.
func disconnectPostgres(ctx context.Context, db *sql.DB, name string) error {
	for range 500 {
		var left int
		err := db.QueryRowContext(ctx,
			"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = $1", name).Scan(&left)
		if err != nil || left == 0 {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
	return nil // DROP DATABASE will report the remaining connections
}

// disconnectMySQL ends all connections to a database. An open transaction would lock its tables, and DROP DATABASE
// would wait.
func disconnectMySQL(ctx context.Context, db *sql.DB, name string) error {
	// While a statement with binary literals runs, MySQL may fail to list all statements (3854).
	ids, err := sessionsOf(ctx, db, name)
	for try := 1; err != nil && try < 100 && ctx.Err() == nil; try++ {
		ids, err = sessionsOf(ctx, db, name)
	}
	if err != nil {
		return err
	}
	for _, id := range ids {
		_, _ = db.ExecContext(ctx, fmt.Sprintf("KILL %d", id)) // it may have ended by itself
	}
	return nil
}

// sessionsOf returns the connections to a database.
func sessionsOf(ctx context.Context, db *sql.DB, name string) (ids []int64, err error) {
	rows, err := db.QueryContext(ctx, "SELECT id FROM information_schema.processlist WHERE db = ?", name)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}
