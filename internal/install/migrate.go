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
	find := func(base string) (*dialect.Table, error) {
		table, err := db.Dialect.Describe(ctx, q, db.Names.Table(base))
		if err != nil && db.Dialect.Classify(err) == dialect.ClassUndefined {
			return nil, nil
		}
		return table, err
	}
	first, err := find("schema_version")
	if err != nil {
		return err
	}
	for _, own := range []struct{ base, column string }{
		{"sequences", ""}, {"feeds", ""},
		{"cursors", "shard_count"}, {"dead_letters", "key_digest"}, {"processed", "processed_at"},
		{"flushes", "flush_count"}, {"leases", "renewals"}, {"shards", "ulid_high"}, {"consumers", "shard_count"},
		{"tokens", "sha256"}, {"audit", "outcome"}, {"terms", "upto"},
	} {
		table, err := find(own.base)
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

// MigrateDown removes rowfeed's own tables. It refuses to while feeds exist.
func (db *Schema) MigrateDown(ctx context.Context) error {
	err := db.WithSchemaLock(ctx, "migrate down", func(q dialect.Querier) error {
		current, err := db.SchemaVersion(ctx, q)
		if err != nil || current == 0 {
			return err
		}
		// Tables of an older version lack some columns of the records.
		b := dialect.NewBuilder(db.Dialect)
		names, err := dialect.QueryAll(ctx, q, "SELECT name FROM "+db.Table("feeds")+" WHERE state <> "+
			b.Arg(catalog.StateDropped)+" ORDER BY name", b.Args(),
			func(rows dialect.Rows) (name string, err error) { return name, rows.Scan(&name) })
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
