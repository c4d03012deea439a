package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/tap"
)

// database is the database that a run measures.
type database struct {
	url     string
	pool    *sql.DB
	dialect *dialect.Dialect
	flavour flavour
	schema  string // in which everything is made
}

// openDatabase connects to a database. An empty schema means the current one.
func openDatabase(ctx context.Context, url, schema string, hooks *tap.Hooks) (*database, error) {
	pool, d, err := open.Open(ctx, url, open.Options{MustExist: true, Tap: hooks})
	if err != nil {
		return nil, err
	}
	db := &database{url: url, pool: pool, dialect: d, flavour: flavours[d.Name], schema: schema}
	if db.schema == "" {
		if db.schema, err = d.CurrentSchema(ctx, dialect.On(pool)); err != nil {
			pool.Close()
			return nil, db.explain("find the current schema", err)
		}
	}
	return db, nil
}

// writerPool opens a pool with a connection for each writer, as an application would have it.
func (db *database) writerPool(ctx context.Context, writers int) (*sql.DB, error) {
	url := db.url
	if p := db.flavour.parameter; p != "" {
		name, _, _ := strings.Cut(p, "=")
		switch {
		case strings.Contains(url, name+"="): // the user has set it
		case strings.Contains(url, "?"):
			url += "&" + p
		default:
			url += "?" + p
		}
	}
	pool, _, err := open.Open(ctx, url, open.Options{MustExist: true})
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(writers)
	pool.SetMaxIdleConns(writers)
	return pool, nil
}

func (db *database) exec(ctx context.Context, doing, query string) error {
	if _, err := db.pool.ExecContext(ctx, query); err != nil {
		return db.explain(doing, err)
	}
	return nil
}

// describe asks for the version and the settings.
func (db *database) describe(ctx context.Context, durable bool) (Server, error) {
	s := Server{Kind: db.dialect.Name, Durable: durable, Settings: map[string]string{}}
	all := append([]setting{{"version", db.flavour.version}}, db.flavour.settings...)
	for _, setting := range all {
		var value sql.NullString
		if err := db.pool.QueryRowContext(ctx, setting.query).Scan(&value); err != nil {
			return s, db.explain("read the setting "+setting.name, err)
		}
		s.Settings[setting.name] = value.String
	}
	s.Version = s.Settings["version"]
	delete(s.Settings, "version")
	return s, nil
}

// check refuses, before anything is written, a replica and a server that may forget commits. If unsafe is set,
// such a server is accepted, and durable is false.
func (db *database) check(ctx context.Context, unsafe bool) (durable bool, err error) {
	if err := db.checkPrimary(ctx); err != nil {
		return false, db.explain("ask whether it takes writes", err)
	}
	forgets, err := db.forgets(ctx)
	if err != nil {
		return false, db.explain("ask whether its commits last", err)
	}
	if forgets != nil && !unsafe {
		return false, &rowfeed.Error{Code: rowfeed.UnsafeDurability, Object: db.object(),
			Cause: "rowfeed would not publish here, " +
				"since a power cut could take back positions that consumers have stored",
			Err:  forgets,
			Next: "change the setting, or measure it as it is with --unsafe-durability"}
	}
	return forgets == nil, nil
}

// checkPrimary returns dialect.ErrReadOnly, or another error of its class, on a server that takes no writes. The
// user of a bench may be one whose writes the server would not refuse.
func (db *database) checkPrimary(ctx context.Context) error {
	if db.flavour.standby != "" {
		var standby bool
		if err := db.pool.QueryRowContext(ctx, db.flavour.standby).Scan(&standby); err != nil || !standby {
			return err
		}
		return dialect.ErrReadOnly
	}
	_, err := db.dialect.Identity(ctx, dialect.On(db.pool), db.names())
	return err
}

// names are not of existing tables. The questions that a run asks before it makes tables do not need them.
func (db *database) names() dialect.Names { return dialect.Names{Schema: db.schema, Prefix: stem} }

// forgets says why the server could forget a publisher's commit. It is nil if the server cannot.
func (db *database) forgets(ctx context.Context) (forgets, err error) {
	conn, err := db.pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	begin := db.dialect.Begin(dialect.ForPublish, db.names())
	if begin.After != "" {
		defer conn.ExecContext(ctx, begin.After)
	}
	tx, err := conn.BeginTx(ctx, begin.Options)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	q := dialect.On(tx)
	for _, setting := range begin.First {
		// A setting may name tables, which do not exist yet.
		if _, err := q.Exec(ctx, setting); err != nil && db.dialect.Classify(err) != dialect.ClassUndefined {
			return nil, err
		}
	}
	err = db.dialect.Durability(ctx, q)
	if db.dialect.Classify(err) != dialect.ClassOther || ctx.Err() != nil {
		return nil, err
	}
	return err, nil
}

// object names the database in messages, without its password.
func (db *database) object() string { return "database " + open.Redact(db.url) }

// explain adds what a bench was doing to a database's error, and what its user can do.
func (db *database) explain(doing string, err error) error {
	e := &rowfeed.Error{Code: rowfeed.Failed, Object: db.object(), Cause: doing, Err: err}
	switch db.dialect.Classify(err) {
	case dialect.ClassPermission:
		e.Code, e.Next = rowfeed.Refused, "give the user the rights to create and drop tables and triggers there (of "+
			"a file, to write the file and its directory), or name another database on the same server with --db"
	case dialect.ClassReadOnly:
		e.Code, e.Next = rowfeed.ReadOnly, "connect to the primary: a bench writes"
	case dialect.ClassConnection:
		e.Code, e.Next = rowfeed.Unavailable, "check that the database runs and can be reached, then try again"
	case dialect.ClassFull:
		e.Code, e.Next = rowfeed.Unavailable, "free space for the database, or give fewer --rows"
	case dialect.ClassRetry, dialect.ClassLockTimeout:
		e.Code, e.Next = rowfeed.Locked,
			"other transactions held locks for too long: try again when the database has less to do"
	}
	if ctxErr := contextError(err); ctxErr != nil {
		return fmt.Errorf("%s: %s: %w", e.Object, doing, ctxErr)
	}
	return e
}

func contextError(err error) error {
	for _, known := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return known
		}
	}
	return nil
}
