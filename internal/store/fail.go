package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// SchemaVersion returns the version of rowfeed's tables, 0 if there are none. It refuses tables of a newer rowfeed.
func (s *Store) SchemaVersion(ctx context.Context, q dialect.Querier) (int, error) {
	current, err := s.Dialect.SchemaVersion(ctx, q, s.Names)
	if err != nil {
		return 0, err
	}
	all := s.Dialect.Migrations(s.Names)
	if newest := all[len(all)-1].Version; current > newest {
		return 0, &feedtype.Error{Code: feedtype.SchemaVersion, Object: "rowfeed's tables",
			Cause: fmt.Sprintf("they have version %d, this rowfeed knows up to %d", current, newest),
			Next:  "use a newer rowfeed"}
	}
	return current, nil
}

// RequireSchema returns NotInitialized or SchemaVersion unless rowfeed's tables exist in the version that it needs.
func (s *Store) RequireSchema(ctx context.Context, q dialect.Querier) error {
	current, err := s.SchemaVersion(ctx, q)
	if err != nil {
		return s.Fail("rowfeed's tables", "read the schema version", err)
	}
	all := s.Dialect.Migrations(s.Names)
	switch newest := all[len(all)-1].Version; {
	case current == 0:
		missing := &feedtype.Error{Code: feedtype.NotInitialized, Object: "database",
			Cause: fmt.Sprintf("it has no table %s", s.Names.Table("feeds")),
			Next:  "run `rowfeed init` (with the same --prefix and --schema)"}
		homes, err := s.Dialect.OtherSchemas(ctx, q, s.Names)
		if err == nil && len(homes) > 0 {
			missing.Cause += fmt.Sprintf(", but other schemas have rowfeed's tables: %s", strings.Join(homes, ", "))
			missing.Next = fmt.Sprintf("if the schema was renamed, give its name with --schema (%s), and run "+
				"`rowfeed feed upgrade` with it for each feed; else %s", homes[0], missing.Next)
		}
		return missing
	case current < newest:
		return &feedtype.Error{Code: feedtype.SchemaVersion, Object: "rowfeed's tables",
			Cause: fmt.Sprintf("they have version %d, this rowfeed needs %d", current, newest),
			Next:  "run `rowfeed init`, which upgrades them"}
	}
	return nil
}

// FailOwn is Fail for statements on rowfeed's own tables that did not check first whether the tables exist.
func (s *Store) FailOwn(ctx context.Context, object, doing string, err error) error {
	if err != nil && s.Dialect.Classify(err) == dialect.ClassUndefined {
		if missing := s.RequireSchema(ctx, s.On()); missing != nil {
			return missing
		}
	}
	return s.Fail(object, doing, err)
}

// Fail turns a database error into an Error by its class. It returns an Error unchanged.
func (s *Store) Fail(object, doing string, err error) error {
	var known *feedtype.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %s: %w", object, doing, err)
	}
	e := &feedtype.Error{Code: feedtype.Failed, Object: object, Cause: doing, Err: err}
	switch s.Dialect.Classify(err) {
	case dialect.ClassConnection:
		e.Code, e.Next = feedtype.Unavailable, "check that the database runs and can be reached, then try again"
	case dialect.ClassRetry, dialect.ClassLockTimeout:
		e.Code, e.Next = feedtype.Locked, "other transactions hold the locks; `rowfeed status` names them; try again"
	case dialect.ClassPermission:
		e.Code = feedtype.Refused
		e.Next = "grant the missing right to rowfeed's database user (`rowfeed feed grant` gives a feed's writers " +
			"and readers theirs); if the database is a file, let the process's user write the file and its directory"
	case dialect.ClassReadOnly:
		e.Code = feedtype.ReadOnly
		e.Next = "connect to the primary, or wait until this server is one; " +
			"`rowfeed serve --replica` answers pages from a replica"
	case dialect.ClassFull:
		e.Code, e.Next = feedtype.Unavailable, "free space for the database, then try again; nothing was lost"
	}
	return e
}
