// Package open turns database URLs into connection pools. It is the only importer of database drivers, so that
// everything else works with any driver of a database.
//
//	sqlite:path.db                      sqlite:///absolute/path.db?_pragma=cache_size(-64000)
//	postgres://user:pass@host:port/db   with pgx's parameters;
//	                                    ?default_query_exec_mode=exec behind a pooler in transaction mode
//	mysql://user:pass@host:port/db      or ?socket=/path; with go-sql-driver's parameters
//	sqlserver://user:pass@host:port/db  with go-mssqldb's parameters, such as encrypt=true or
//	                                    ApplicationIntent=ReadOnly; for an instance host/instance?database=db
//
// In all forms, characters with a meaning in URLs are percent-encoded in names and passwords. No error of this
// package shows a password.
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
	"github.com/rowfeed/rowfeed/dialect/sqlserver"
	"github.com/rowfeed/rowfeed/internal/tap"
)

// Forms lists the forms of URLs, for messages.
const Forms = "sqlite:path.db, postgres://user:password@host:5432/database, " +
	"mysql://user:password@host:3306/database or sqlserver://user:password@host:1433/database"

// Options are the options of Open. The zero value is valid.
type Options struct {
	// MustExist refuses a SQLite file that does not exist instead of creating it.
	MustExist bool
	// Tap, if set, sees every statement of the pool.
	Tap *tap.Hooks
}

// connectTimeout bounds a connection attempt if the URL sets no bound.
const connectTimeout = 10 * time.Second

// database is a parsed URL.
type database struct {
	dialect *dialect.Dialect
	where   string // host:port, or a path
	connect func() (driver.Connector, error)
	// connections limits the pool. The same number may be idle, for the given time (0: no limit): rowfeed needs
	// connections in short and frequent bursts, and opening one is expensive.
	connections int
	idle        time.Duration
	// advise explains why a connection cannot be made, and what to do. If it is nil, or returns no next step, the error
	// has the general advice of Open.
	advise func(error) (cause, next string)
}

// Open opens a pool on the database and connects once, so that a wrong URL or an unavailable server is reported at
// once. The error is a *rowfeed.Error.
func Open(ctx context.Context, url string, o Options) (*sql.DB, *dialect.Dialect, error) {
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
			if cause, next := d.advise(err); next != "" {
				e.Cause, e.Next = cause, next
			}
		}
		var known *rowfeed.Error
		if errors.As(err, &known) {
			return nil, nil, known
		}
		return nil, nil, e
	}
	return pool, d.dialect, nil
}

// Dialect returns the URL's dialect without connecting.
func Dialect(url string) (*dialect.Dialect, error) {
	scheme, _, _ := strings.Cut(url, ":")
	switch strings.ToLower(scheme) {
	case "sqlite":
		return sqlite.New(), nil
	case "postgres", "postgresql":
		return postgres.New(), nil
	case "mysql", "mariadb":
		return mysql.New(), nil
	case "sqlserver":
		return sqlserver.New(), nil
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
		return parseSQLServer(url)
	}
	e := malformed(url, "it is not a database URL")
	if strings.Contains(url, "@tcp(") || strings.Contains(url, "@unix(") {
		e.Cause = "it is a DSN of Go's driver for MySQL, not a URL"
		e.Next = "write mysql://user:password@host:3306/database; a socket is its parameter socket=PATH"
	}
	if !strings.ContainsAny(url, ":=") && strings.ContainsAny(url, "./") {
		e.Next = "for a SQLite file write sqlite:" + url
	}
	return nil, e
}

// malformed never quotes a parser's message, which may contain a part of the password.
func malformed(url, cause string) *rowfeed.Error {
	return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "db", Object: fmt.Sprintf("database %q", Redact(url)),
		Cause: cause, Next: "write it like " + Forms}
}

// open makes the pool without connecting.
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
