package rowfeed

import (
	"context"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// MigrationStatus is one version of rowfeed's own tables.
type MigrationStatus struct {
	Version int    `json:"version"`
	Title   string `json:"title"`
	Applied bool   `json:"applied"`
}

// Migrate creates rowfeed's tables or brings them to the newest version, and
// answers the versions applied. Several callers at once are safe: they take turns.
func (db *DB) Migrate(ctx context.Context) (applied []int, err error) {
	err = db.store.withSchemaLock(ctx, "migrate", func(q dialect.Querier) error {
		applied = nil
		current, err := db.store.schemaVersion(ctx, q)
		if err != nil {
			return err
		}
		if err := db.mustBeOurs(ctx, q, current); err != nil {
			return err
		}
		for _, m := range db.store.d.Migrations(db.store.names) {
			if m.Version <= current {
				continue
			}
			for _, s := range m.Up {
				if _, err := q.Exec(ctx, s); err != nil {
					return fmt.Errorf("version %d (%s): %w", m.Version, m.Title, err)
				}
			}
			applied = append(applied, m.Version)
		}
		return nil
	})
	return applied, db.store.fail("rowfeed's tables", "migrate", err)
}

// ownTables are rowfeed's own tables beside those of the feeds, the first to be made
// first.
var ownTables = []string{"schema_version", "sequences", "feeds", "cursors", "dead_letters", "processed", "flushes", "leases", "shards", "consumers", "tokens", "audit"}

// mustBeOurs refuses to take tables of the user's own for rowfeed's. A version that
// broke off where statements commit by themselves has left tables of ours: the first
// version is known by its schema_version, which is made first, the later ones by a
// column that no table made by somebody else has by chance.
func (db *DB) mustBeOurs(ctx context.Context, q dialect.Querier, current int) error {
	find := func(base string) (*dialect.Table, error) {
		table, err := db.store.d.Describe(ctx, q, db.store.names.Table(base))
		if err != nil && db.store.d.Classify(err) == dialect.ClassUndefined {
			return nil, nil
		}
		return table, err
	}
	taken := func(base string) error {
		return &feedtype.Error{Code: feedtype.Conflict, Object: fmt.Sprintf("table %q", db.store.names.Table(base).String()), Cause: "it exists already, and is not rowfeed's",
			Next: "give rowfeed's tables another --prefix, or another --schema"}
	}
	first, err := find("schema_version")
	if err != nil {
		return err
	}
	for _, base := range []string{"sequences", "feeds"} {
		if first != nil {
			break
		}
		if table, err := find(base); err != nil {
			return err
		} else if table != nil {
			return taken(base)
		}
	}
	for _, later := range []struct {
		version      int
		base, column string
	}{{2, "cursors", "shard_count"}, {2, "dead_letters", "key_digest"}, {2, "processed", "processed_at"}, {3, "flushes", "flush_count"}, {4, "leases", "renewals"}, {7, "shards", "ulid_high"}, {7, "consumers", "shard_count"}, {8, "tokens", "sha256"}, {8, "audit", "outcome"}} {
		if current >= later.version {
			continue
		}
		if table, err := find(later.base); err != nil {
			return err
		} else if table != nil && table.Column(later.column) == nil {
			return taken(later.base)
		}
	}
	return nil
}

// MigrateDown removes rowfeed's own tables. It refuses while feeds exist.
func (db *DB) MigrateDown(ctx context.Context) error {
	err := db.store.withSchemaLock(ctx, "migrate down", func(q dialect.Querier) error {
		current, err := db.store.schemaVersion(ctx, q)
		if err != nil || current == 0 {
			return err
		}
		records, err := db.loadRecords(ctx, q, "")
		if err != nil {
			return err
		}
		var names []string
		for _, r := range records {
			if r.State != stateDropped {
				names = append(names, r.Name)
			}
		}
		if len(names) > 0 {
			return &feedtype.Error{Code: feedtype.Conflict, Object: "rowfeed's tables", Cause: "there are feeds: " + strings.Join(names, ", "),
				Next: "drop them first with `rowfeed feed drop NAME`"}
		}
		all := db.store.d.Migrations(db.store.names)
		for i := len(all) - 1; i >= 0; i-- {
			if all[i].Version > current {
				continue
			}
			for _, s := range all[i].Down {
				if _, err := q.Exec(ctx, s); err != nil {
					return err
				}
			}
		}
		return nil
	})
	db.forgetFeeds()
	return db.store.fail("rowfeed's tables", "migrate down", err)
}

// Migrations lists every version and whether the database has it.
func (db *DB) Migrations(ctx context.Context) ([]MigrationStatus, error) {
	current, err := db.store.schemaVersion(ctx, db.store.on())
	if err != nil {
		return nil, db.store.fail("rowfeed's tables", "read the schema version", err)
	}
	var all []MigrationStatus
	for _, m := range db.store.d.Migrations(db.store.names) {
		all = append(all, MigrationStatus{m.Version, m.Title, m.Version <= current})
	}
	return all, nil
}

// schemaVersion refuses tables of a newer rowfeed.
func (s *store) schemaVersion(ctx context.Context, q dialect.Querier) (int, error) {
	current, err := s.d.SchemaVersion(ctx, q, s.names)
	if err != nil {
		return 0, err
	}
	all := s.d.Migrations(s.names)
	if newest := all[len(all)-1].Version; current > newest {
		return 0, &feedtype.Error{Code: feedtype.SchemaVersion, Object: "rowfeed's tables",
			Cause: fmt.Sprintf("they have version %d, this rowfeed knows up to %d", current, newest),
			Next:  "use a newer rowfeed"}
	}
	return current, nil
}

// requireSchema answers NotInitialized or SchemaVersion unless the tables are there.
func (s *store) requireSchema(ctx context.Context, q dialect.Querier) error {
	current, err := s.schemaVersion(ctx, q)
	if err != nil {
		return s.fail("rowfeed's tables", "read the schema version", err)
	}
	all := s.d.Migrations(s.names)
	switch newest := all[len(all)-1].Version; {
	case current == 0:
		missing := &feedtype.Error{Code: feedtype.NotInitialized, Object: "database",
			Cause: fmt.Sprintf("it has no table %s", s.names.Table("feeds")),
			Next:  "run `rowfeed init` (with the same --prefix and --schema)"}
		homes, err := s.d.Homes(ctx, q, s.names)
		if err == nil && len(homes) > 0 {
			missing.Cause += fmt.Sprintf(", but other schemas have rowfeed's tables: %s", strings.Join(homes, ", "))
			missing.Next = fmt.Sprintf("if the schema was renamed, give its name with --schema (%s), and run "+
				"`rowfeed feed upgrade` with it for each feed; else %s", homes[0], missing.Next)
		}
		return missing
	case current < newest:
		return &feedtype.Error{Code: feedtype.SchemaVersion, Object: "rowfeed's tables",
			Cause: fmt.Sprintf("they have version %d, this rowfeed needs %d", current, newest), Next: "run `rowfeed init`, which upgrades them"}
	}
	return nil
}

// failOwn is fail for what was asked of rowfeed's own tables without looking first whether
// they are there.
func (s *store) failOwn(ctx context.Context, object, doing string, err error) error {
	if err != nil && s.d.Classify(err) == dialect.ClassUndefined {
		if missing := s.requireSchema(ctx, s.on()); missing != nil {
			return missing
		}
	}
	return s.fail(object, doing, err)
}

// withSchemaLock retries while other sessions' locks are in the way: each try waits
// a second at most, so that nobody queues behind rowfeed for longer.
func (s *store) withSchemaLock(ctx context.Context, doing string, fn func(dialect.Querier) error) error {
	const tries = 60
	for attempt := 1; ; attempt++ {
		err := s.d.WithSchemaLock(ctx, s.sql, s.names, fn)
		class := s.d.Classify(err)
		if err == nil || attempt == tries || class != dialect.ClassLockTimeout && class != dialect.ClassRetry {
			return err
		}
		s.observer.Retried(feedtype.RetryEvent{Doing: doing, Attempt: attempt, Err: err})
		if err := pause(ctx, backoff(attempt)); err != nil {
			return err
		}
	}
}
