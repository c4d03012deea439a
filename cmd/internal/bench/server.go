package bench

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
)

// Server is the database that was measured, and how it keeps what it has committed.
type Server struct {
	Kind    string `json:"kind"` // the dialect's name
	Version string `json:"version"`
	// Durable says that rowfeed takes a commit here for safe after a power cut.
	Durable bool `json:"durable"`
	// Settings are those of a session as rowfeed opens it.
	Settings map[string]string `json:"settings"`
}

// server asks for version and settings.
func (r *run) server(ctx context.Context) (Server, error) {
	s := Server{Kind: r.d.Name(), Durable: r.durable, Settings: map[string]string{}}
	all := append([]setting{{"version", r.flavour.version}}, r.flavour.settings...)
	for _, one := range all {
		var value sql.NullString
		if err := r.pool.QueryRowContext(ctx, one.query).Scan(&value); err != nil {
			return s, r.fail("read the setting "+one.name, err)
		}
		s.Settings[one.name] = value.String
	}
	s.Version = s.Settings["version"]
	delete(s.Settings, "version")
	return s, nil
}

// refuse refuses databases to which nothing is to be written, before anything is: a replica,
// and a server that may forget commits, unless unsafe accepts it.
func (s *site) refuse(ctx context.Context, unsafe bool) error {
	if err := s.follows(ctx); err != nil {
		return s.fail("ask whether it takes writes", err)
	}
	forgets, err := s.forgets(ctx)
	if err != nil {
		return s.fail("ask whether its commits last", err)
	}
	s.durable = forgets == nil
	if forgets != nil && !unsafe {
		return &rowfeed.Error{Code: rowfeed.UnsafeDurability, Object: s.object(),
			Cause: "rowfeed would not publish here, " +
				"since a power cut could take back positions that consumers have stored",
			Err:  forgets,
			Next: "change the setting, or measure it as it is with --unsafe-durability"}
	}
	return nil
}

// follows answers dialect.ErrReadOnly, or what there is of its class, on a server that takes no
// writes: the user of a bench may be one whom it does not stop.
func (s *site) follows(ctx context.Context) error {
	if s.flavour.standby != "" {
		var follows bool
		if err := s.pool.QueryRowContext(ctx, s.flavour.standby).Scan(&follows); err != nil || !follows {
			return err
		}
		return dialect.ErrReadOnly
	}
	_, err := s.d.Identity(ctx, dialect.On(s.pool), s.names())
	return err
}

// names are those of no tables: what is asked before there are any does not need them.
func (s *site) names() dialect.Names { return dialect.Names{Schema: s.schema, Prefix: stem} }

// forgets tells why a commit of a publisher could be forgotten; nil where it cannot.
func (s *site) forgets(ctx context.Context) (forgets, err error) {
	tx, err := s.pool.BeginTx(ctx, s.d.TxOptions(dialect.ForPublish))
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	q := dialect.On(tx)
	for _, setting := range s.d.Settings(dialect.ForPublish, s.names()) {
		// tables come later
		if _, err := q.Exec(ctx, setting); err != nil && s.d.Classify(err) != dialect.ClassUndefined {
			return nil, err
		}
	}
	err = s.d.Durability(ctx, q)
	if s.d.Classify(err) != dialect.ClassOther || ctx.Err() != nil {
		return nil, err
	}
	return err, nil
}

// fail says what a database's error means to whoever runs a bench.
func (s *site) fail(doing string, err error) error {
	e := &rowfeed.Error{Code: rowfeed.Failed, Object: s.object(), Cause: doing, Err: err}
	switch s.d.Classify(err) {
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
			"others were in the way for too long: try again when the database has less to do"
	}
	if ctxErr := contextError(err); ctxErr != nil {
		return fmt.Errorf("%s: %s: %w", e.Object, doing, ctxErr)
	}
	return e
}
