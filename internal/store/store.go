package store

import (
	"database/sql"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Store is a database and the names of rowfeed's tables in it. It runs statements and transactions, and explains
// errors.
type Store struct {
	SQL      *sql.DB
	Dialect  *dialect.Dialect
	Names    dialect.Names
	Home     string // the schema of the connection, which holds sources named without a schema
	Observer *feedtype.Observer
	Tracer   feedtype.Tracer
	Quotas   Quotas
	// Replica, NoPublish and UnsafeDurability are documented in rowfeed.Config.
	Replica, NoPublish, UnsafeDurability bool

	statements statements
}

// Publishes tells whether this process may publish.
func (s *Store) Publishes() bool { return !s.Replica && !s.NoPublish }

// On returns a Querier that runs each statement in its own transaction, on any connection of the pool.
func (s *Store) On() dialect.Querier { return dialect.On(s.SQL) }

// Table returns the quoted name of one of rowfeed's own tables.
func (s *Store) Table(base string) string {
	return dialect.Qualified(s.Dialect.Syntax, s.Names.Table(base))
}

// OrNull returns text, or nil for NULL if it is empty.
func OrNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// Seconds converts microseconds to seconds.
func Seconds(micros int64) float64 {
	return (time.Duration(micros) * time.Microsecond).Seconds()
}
