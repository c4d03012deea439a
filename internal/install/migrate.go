package install

import (
	"context"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Schema makes and removes rowfeed's own tables of one database.
type Schema struct{ *store.Store }

// Migrate creates rowfeed's tables or brings them to the newest version, and returns the versions that it has applied.
// Concurrent calls are safe: the schema lock lets them run one after the other.
func (db *Schema) Migrate(ctx context.Context) (applied []int, err error) {
	err = db.WithSchemaLock(ctx, "migrate", func(q dialect.Querier) error {
		applied = nil
		current, err := db.SchemaVersion(ctx, q)
		if err != nil {
			return err
		}
		if err := db.refuseForeignTables(ctx, q, current); err != nil {
			return err
		}
		for _, m := range db.Dialect.Migrations(db.Names) {
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
	return applied, db.Fail("rowfeed's tables", "migrate", err)
}

// PrintMigrate returns the script that makes rowfeed's own tables. See rowfeed.PrintMigrate.
func PrintMigrate(d *dialect.Dialect, names dialect.Names) ([]dialect.Step, error) {
	db, err := withoutConnection(d, names)
	if err != nil {
		return nil, err
	}
	steps, last := d.Frame()
	for _, m := range d.Migrations(db.Names) {
		for _, s := range m.Up {
			steps = append(steps, dialect.Step{Note: fmt.Sprintf("version %d: %s", m.Version, m.Title), SQL: s})
		}
	}
	return append(steps, last...), nil
}

// ownTables are the tables that all feeds share, in the order of their creation.
var ownTables = []string{"schema_version", "sequences", "feeds", "cursors", "dead_letters", "processed", "flushes",
	"leases", "shards", "consumers", "tokens", "audit", "terms"}

// refuseForeignTables refuses to migrate if a table of the user has the name of one of rowfeed's. Where each DDL
// statement commits, an interrupted migration leaves tables of rowfeed. They are recognized by a column that only
// rowfeed's table has, and the first two by the table schema_version, which is made before them.
func (db *Schema) refuseForeignTables(ctx context.Context, q dialect.Querier, current int) error {
	if current > 0 {
		return nil
	}
	first, err := db.find(ctx, q, "schema_version")
	if err != nil {
		return err
	}
	for _, own := range []struct{ base, column string }{
		{"sequences", ""}, {"feeds", ""},
		{"cursors", "shard_count"}, {"dead_letters", "key_digest"}, {"processed", "processed_at"},
		{"flushes", "flush_count"}, {"leases", "renewals"}, {"shards", "ulid_high"}, {"consumers", "shard_count"},
		{"tokens", "sha256"}, {"audit", "outcome"}, {"terms", "upto"},
	} {
		table, err := db.find(ctx, q, own.base)
		if err != nil {
			return err
		}
		made := own.column == "" && first != nil ||
			own.column != "" && table != nil && table.Column(own.column) != nil
		if table != nil && !made {
			return tableError(feedtype.Conflict, db.Names.Table(own.base),
				"give rowfeed's tables another --prefix, or another --schema",
				"it already exists, and is not rowfeed's")
		}
	}
	return nil
}

// find describes one of rowfeed's tables. It returns nil if there is no table of this name.
func (db *Schema) find(ctx context.Context, q dialect.Querier, base string) (*dialect.Table, error) {
	table, err := db.Dialect.Describe(ctx, q, db.Names.Table(base))
	if err != nil && db.Dialect.Classify(err) == dialect.ClassUndefined {
		return nil, nil
	}
	return table, err
}

// feedsLeft returns the names of the feeds. There are none if an interrupted MigrateDown has dropped their table.
func (db *Schema) feedsLeft(ctx context.Context, q dialect.Querier) ([]string, error) {
	if table, err := db.find(ctx, q, "feeds"); err != nil || table == nil {
		return nil, err
	}
	return store.All(ctx, db.Store, q, statements, "feeds_left", dialect.Args{"dropped": catalog.StateDropped},
		func(rows dialect.Rows) (name string, err error) { return name, rows.Scan(&name) })
}

// MigrateDown removes rowfeed's own tables. It refuses to while feeds exist.
func (db *Schema) MigrateDown(ctx context.Context) error {
	err := db.WithSchemaLock(ctx, "migrate down", func(q dialect.Querier) error {
		current, err := db.SchemaVersion(ctx, q)
		if err != nil {
			return err
		}
		if current == 0 { // there are no tables, or those that an interrupted MigrateDown has left
			if table, err := db.find(ctx, q, "schema_version"); err != nil || table == nil {
				return err
			}
		}
		names, err := db.feedsLeft(ctx, q)
		if err != nil {
			return err
		}
		if len(names) > 0 {
			return &feedtype.Error{
				Code:   feedtype.Conflict,
				Object: "rowfeed's tables",
				Cause:  "there are feeds: " + strings.Join(names, ", "),
				Next:   "drop them first with `rowfeed feed drop NAME`",
			}
		}
		all := db.Dialect.Migrations(db.Names)
		for i := len(all) - 1; i >= 0; i-- {
			for _, s := range all[i].Down {
				if _, err := q.Exec(ctx, s); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return db.Fail("rowfeed's tables", "migrate down", err)
}

// Migrations lists all versions, and tells which of them the database has.
func (db *Schema) Migrations(ctx context.Context) ([]feedtype.MigrationStatus, error) {
	current, err := db.SchemaVersion(ctx, db.On())
	if err != nil {
		return nil, db.Fail("rowfeed's tables", "read the schema version", err)
	}
	var all []feedtype.MigrationStatus
	for _, m := range db.Dialect.Migrations(db.Names) {
		all = append(all, feedtype.MigrationStatus{Version: m.Version, Title: m.Title, Applied: m.Version <= current})
	}
	return all, nil
}
