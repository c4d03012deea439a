package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

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
