// Package open turns database URLs into connection pools. It is the only importer
// of database drivers, so that everything else works with any driver of a database.
//
//	sqlite:path.db                      sqlite:///absolute/path.db?_pragma=cache_size(-64000)
//	postgres://user:pass@host:port/db   parameters as pgx knows them
//	                                    ?default_query_exec_mode=exec behind a pooler in transaction mode
//	mysql://user:pass@host:port/db      or ?socket=/path; parameters as go-sql-driver knows them
//
// In every form, characters that mean something in a URL are percent-encoded where
// they are part of a name or a password. No error of this package shows a password.
package open

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/mysql"
	"github.com/rowfeed/rowfeed/dialect/postgres"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/internal/tap"
)

// Forms names the URLs that are understood, for messages.
const Forms = "sqlite:path.db, postgres://user:password@host:5432/database or mysql://user:password@host:3306/database"

// Options of Open; the zero value is good.
type Options struct {
	// MustExist refuses a SQLite file that does not exist instead of creating it.
	MustExist bool
	// Tap, where it is set, sees every statement of the pool.
	Tap *tap.Hooks
}

// connectTimeout bounds a connection attempt where the URL sets no bound.
const connectTimeout = 10 * time.Second

// database is a URL taken apart.
type database struct {
	dialect dialect.Dialect
	where   string // what is connected to: host:port, or a path
	connect func() (driver.Connector, error)
	// connections bounds the pool. As many may idle, for so long (0: for ever): rowfeed's
	// bursts are short and frequent, and a connection costs more than it weighs.
	connections int
	idle        time.Duration
	// advise says what is the matter and what to do when a connection cannot be made.
	// Nil: the general advice.
	advise func(error) (cause, next string)
}

// Open opens a pool on the database and connects once, so that a wrong URL or an
// absent server is told here. The error is a *rowfeed.Error.
func Open(ctx context.Context, url string, o Options) (*sql.DB, dialect.Dialect, error) {
	d, err := parse(url, o)
	if err != nil {
		return nil, nil, err
	}
	object := "database " + Redact(url)
	pool, err := d.open(o)
	if err != nil {
		return nil, nil, &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "db", Object: object,
			Cause: "its URL cannot be used", Err: Scrub(url, err), Next: "write it like " + Forms}
	}
	if err := pool.PingContext(ctx); err != nil {
		pool.Close()
		if ctx.Err() != nil {
			return nil, nil, fmt.Errorf("%s: connect: %w", object, ctx.Err())
		}
		e := &rowfeed.Error{Code: rowfeed.Failed, Object: object, Cause: "no connection to " + d.where,
			Err:  Scrub(url, err),
			Next: "check the URL's names and password, and the rights of its user"}
		if d.dialect.Classify(err) == dialect.ClassConnection {
			e.Code, e.Next = rowfeed.Unavailable,
				"check that the database runs there and can be reached, then try again"
		}
		if d.advise != nil {
			e.Cause, e.Next = d.advise(err)
		}
		var known *rowfeed.Error
		if errors.As(err, &known) {
			return nil, nil, known
		}
		return nil, nil, e
	}
	return pool, d.dialect, nil
}

// Dialect is the URL's dialect, without a connection.
func Dialect(url string) (dialect.Dialect, error) {
	scheme, _, _ := strings.Cut(url, ":")
	switch strings.ToLower(scheme) {
	case "sqlite":
		return sqlite.New(), nil
	case "postgres", "postgresql":
		return postgres.New(), nil
	case "mysql", "mariadb":
		return mysql.New(), nil
	}
	_, err := parse(url, Options{})
	return nil, err
}

func parse(url string, o Options) (*database, error) {
	scheme, rest, ok := strings.Cut(url, ":")
	switch strings.ToLower(scheme) {
	case "sqlite":
		if ok {
			return parseSQLite(url, rest, o)
		}
	case "postgres", "postgresql":
		return parsePostgres(url)
	case "mysql", "mariadb":
		return parseMySQL(url)
	case "sqlserver":
		return nil, &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "db", Object: "database " + Redact(url),
			Cause: "SQL Server is not supported in this version", Err: errors.ErrUnsupported, Next: "use " + Forms}
	}
	e := malformed(url, "it is no database URL")
	if !strings.Contains(url, ":") && strings.ContainsAny(url, "./") {
		e.Next = "for a SQLite file write sqlite:" + url
	}
	return nil, e
}

// malformed never quotes a parser's message: it may hold a part of the password.
func malformed(url, cause string) *rowfeed.Error {
	return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "db", Object: fmt.Sprintf("database %q", Redact(url)),
		Cause: cause, Next: "write it like " + Forms}
}

// open makes the pool; nothing is connected yet.
func (d *database) open(o Options) (*sql.DB, error) {
	connector, err := d.connect()
	if err != nil {
		return nil, err
	}
	if o.Tap != nil {
		connector = tap.Connector(connector, *o.Tap)
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(d.connections)
	pool.SetMaxIdleConns(d.connections)
	pool.SetConnMaxIdleTime(d.idle)
	return pool, nil
}
