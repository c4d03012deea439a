package store

import (
	"database/sql"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Store is the database with the names of rowfeed's tables. It runs statements and transactions, and explains errors.
type Store struct {
	SQL      *sql.DB
	Dialect  dialect.Dialect
	Names    dialect.Names
	Home     string // the connection's schema: where a source is that names none
	Observer *feedtype.Observer
	Tracer   feedtype.Tracer
	// Replica, NoPublish and UnsafeDurability are those of rowfeed.Config.
	Replica, NoPublish, UnsafeDurability bool
}

// Publishes tells whether this process may give positions.
func (s *Store) Publishes() bool { return !s.Replica && !s.NoPublish }

// On runs statements on the pool, each in a transaction of its own.
func (s *Store) On() dialect.Querier { return dialect.On(s.SQL) }

// Table quotes one of rowfeed's own tables.
func (s *Store) Table(base string) string { return dialect.Qualified(s.Dialect, s.Names.Table(base)) }

func OrNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func Seconds(micros int64) float64 {
	return (time.Duration(micros) * time.Microsecond).Seconds()
}
