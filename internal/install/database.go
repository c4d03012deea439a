package install

import (
	"context"
	_ "embed" // for install.sql
	"errors"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/history"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Database makes, verifies, repairs and removes the feeds of one database.
type Database struct{ *store.Store }

// ErrRecordChanged means that the feed's record has changed since it was read: another process has done this step, or
// has finished the work.
var ErrRecordChanged = errors.New("the feed's record was changed concurrently")

//go:embed install.sql
var file string

var statements = dialect.NewStatements(file)

func (db *Database) feedUp(r *catalog.FeedRecord, table *dialect.Table) ([]dialect.Step, error) {
	steps, err := db.Dialect.FeedUp(r.Feed(db.Names), table)
	if err != nil {
		return nil, &feedtype.Error{
			Code:   feedtype.Refused,
			Object: fmt.Sprintf("table %q", table.Name.String()),
			Cause:  "its triggers cannot be created",
			Err:    err,
		}
	}
	return steps, nil
}

func run(ctx context.Context, q dialect.Querier, steps []dialect.Step) error {
	for _, s := range steps {
		if _, err := q.Exec(ctx, s.SQL); err != nil {
			what, _, _ := strings.Cut(strings.TrimSpace(s.SQL), "\n") // as CREATE TRIGGER with its names
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// setState needs the schema lock.
func (db *Database) setState(ctx context.Context, q dialect.Querier, name, state string) error {
	_, err := db.Exec(ctx, q, statements, "set_state", dialect.Args{"state": state, "feed": name})
	return err
}

// saveOptions saves the options of a record. The caller holds the schema lock and has read the record under it.
func (db *Database) saveOptions(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord) error {
	if r.Unreadable != nil {
		return r.Unreadable // saving would lose the options that this version does not know
	}
	b := dialect.NewBuilder(db.Dialect.Syntax)
	save := r.SaveOptions(db.Store)(b)
	_, err := q.Exec(ctx, save, b.Args()...)
	return err
}

// together runs fn, which contains no DDL, in one transaction of q, the connection of the schema lock.
func (db *Database) together(ctx context.Context, q dialect.Querier, fn func() error) error {
	if db.Dialect.Together == nil {
		return fn()
	}
	return db.Dialect.Together(ctx, q, fn)
}

// readsOthers returns true if this login cannot see all objects, because it has grants for some feeds only. Callers
// then ignore the feeds that it cannot see.
func (db *Database) readsOthers(ctx context.Context) bool {
	all, err := catalog.Load(ctx, db.Store, db.On(), "")
	var granted []string
	for _, r := range all {
		granted = append(append(granted, r.Grants.Writers...), r.Grants.Readers...)
	}
	visible := true
	if err == nil {
		visible, err = db.partsVisible(ctx, db.On(), granted)
	}
	return err == nil && !visible
}

// partsVisible tells whether this login can see the parts of a feed whose rights were granted to these accounts.
func (db *Database) partsVisible(ctx context.Context, q dialect.Querier, granted []string) (bool, error) {
	if db.Dialect.Roles == nil {
		return true, nil
	}
	return db.Dialect.Roles.PartsVisible(ctx, q, granted)
}

// wrongDatabase reports a database whose identity is not the one in the feed's record. It is for modes in which no
// publisher asks for the identity. Replicas are not checked.
func (db *Database) wrongDatabase(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord) ([]string, error) {
	if db.Replica {
		return nil, nil
	}
	identity, err := db.Dialect.Identity(ctx, q, db.Names)
	if errors.Is(err, dialect.ErrReadOnly) {
		return nil, nil
	}
	var changed *feedtype.Error
	if errors.As(history.SameDatabase(r, identity), &changed) {
		return []string{changed.Cause + ": " + changed.Next}, nil
	}
	return nil, err
}

// forgetShards deletes a feed's rows of the table shards.
func (db *Database) forgetShards(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord) error {
	_, err := db.Exec(ctx, q, statements, "drop_shards", dialect.Args{"feed": r.Name})
	return err
}

// feedError is an error about a feed. The format and its arguments are the cause; next says what to do.
func feedError(code feedtype.Code, feed, next, format string, args ...any) error {
	object := feedtype.FeedObject(feed)
	return &feedtype.Error{Code: code, Object: object, Cause: fmt.Sprintf(format, args...), Next: next}
}

// tableError is an error about a table of the user.
func tableError(code feedtype.Code, table feedtype.TableName, next, format string, args ...any) error {
	object := fmt.Sprintf("table %q", table.String())
	return &feedtype.Error{Code: code, Object: object, Cause: fmt.Sprintf(format, args...), Next: next}
}
