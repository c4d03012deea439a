package store

import (
	"context"
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
	switch {
	case current > dialect.NewestVersion:
		return 0, &feedtype.Error{Code: feedtype.SchemaVersion, Object: "rowfeed's tables",
			Cause: fmt.Sprintf("they have version %d, this rowfeed knows up to %d", current, dialect.NewestVersion),
			Next:  "use a newer rowfeed"}
	case current > 0 && current < dialect.FirstVersion:
		return 0, &feedtype.Error{Code: feedtype.SchemaVersion, Object: "rowfeed's tables",
			Cause: fmt.Sprintf("they have version %d, of before the first release, and this rowfeed knows %d to %d",
				current, dialect.FirstVersion, dialect.NewestVersion),
			Next: "with the rowfeed that made them, drop the feeds and run `rowfeed migrate down`; then run " +
				"`rowfeed init` with this one, and add the feeds again"}
	}
	return current, nil
}

// RequireSchema returns NotInitialized or SchemaVersion unless rowfeed's tables exist in the version that it needs.
func (s *Store) RequireSchema(ctx context.Context, q dialect.Querier) error {
	current, err := s.SchemaVersion(ctx, q)
	if err != nil {
		return s.Fail("rowfeed's tables", "read the schema version", err)
	}
	switch {
	case current == 0:
		missing := &feedtype.Error{Code: feedtype.NotInitialized, Object: "database",
			Cause: fmt.Sprintf("it has no table %s", s.Names.Table("feeds")),
			Next:  "run `rowfeed init` (with the same --prefix and --schema)"}
		var homes []string
		if s.Dialect.Renames != nil {
			homes, err = s.Dialect.Renames.OtherSchemas(ctx, q, s.Names)
		}
		if err == nil && len(homes) > 0 {
			missing.Cause += fmt.Sprintf(", but other schemas have rowfeed's tables: %s", strings.Join(homes, ", "))
			missing.Next = fmt.Sprintf("if the schema was renamed, give its name with --schema (%s), and run "+
				"`rowfeed feed upgrade` with it for each feed; else %s", homes[0], missing.Next)
		}
		return missing
	case current < dialect.NewestVersion:
		return &feedtype.Error{Code: feedtype.SchemaVersion, Object: "rowfeed's tables",
			Cause: fmt.Sprintf("they have version %d, this rowfeed needs %d", current, dialect.NewestVersion),
			Next:  "run `rowfeed init`, which upgrades them"}
	}
	return nil
}
