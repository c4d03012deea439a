package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Moved implements [dialect.Schema]. It finds the table by the feed's trigger, which stays on the table if a
// schema is renamed. For a feed without triggers it searches rowfeed's own schema, if the former schema does
// not exist any more.
func (d Dialect) Moved(
	ctx context.Context, q dialect.Querier, f *dialect.Feed,
) (now feedtype.TableName, ok bool, err error) {
	found, err := dialect.QueryAll(ctx, q, `SELECT n.nspname::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = $1::text AND c.relkind IN ('r', 'p') AND n.nspname <> $2::text
  AND CASE WHEN $5::boolean THEN EXISTS (SELECT 1 FROM pg_trigger g JOIN pg_proc p ON p.oid = g.tgfoid
      JOIN pg_namespace o ON o.oid = p.pronamespace
    WHERE g.tgrelid = c.oid AND g.tgparentid = 0 AND p.proname = $3::text AND o.nspname = $4::text)
  ELSE n.nspname = $4::text AND NOT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $2::text) END`,
		[]any{f.Source.Name, f.Source.Schema, f.Object("capture"), f.Names.Schema,
			f.Capture == feedtype.CaptureTrigger},
		func(rows dialect.Rows) (schema string, err error) { return schema, rows.Scan(&schema) })
	if err != nil || len(found) != 1 {
		return now, false, err
	}
	return feedtype.TableName{Schema: found[0], Name: f.Source.Name}, true, nil
}

// OtherSchemas implements [dialect.Schema]. It wants to see two of rowfeed's tables in a schema, so that it does not
// mistake a user's table for one of them.
func (d Dialect) OtherSchemas(ctx context.Context, q dialect.Querier, n dialect.Names) ([]string, error) {
	return dialect.QueryAll(ctx, q, `SELECT s.nspname::text FROM pg_namespace s WHERE s.nspname <> $1::text
  AND 2 = (SELECT count(*) FROM pg_class c
    WHERE c.relnamespace = s.oid AND c.relkind = 'r' AND c.relname IN ($2::text, $3::text))
ORDER BY 1 LIMIT 5`, []any{n.Schema, n.Table("feeds").Name, n.Table("schema_version").Name},
		func(rows dialect.Rows) (schema string, err error) { return schema, rows.Scan(&schema) })
}

// formerSchema returns the schema that a function's body names for one of rowfeed's tables, if that is not the
// table's present schema. If a schema is renamed, its functions move with it, but their bodies stay as they
// are.
func (d Dialect) formerSchema(body string, table feedtype.TableName) string {
	before, _, found := strings.Cut(body, "."+d.Quote(table.Name))
	if !found || !strings.HasSuffix(before, `"`) {
		return ""
	}
	before = strings.ReplaceAll(strings.TrimSuffix(before, `"`), `""`, "\x00")
	schema := strings.ReplaceAll(before[strings.LastIndexByte(before, '"')+1:], "\x00", `"`)
	if schema == table.Schema {
		return ""
	}
	return schema
}

// differs says why a function is not the one that rowfeed makes.
func (d Dialect) differs(
	f *dialect.Feed, function, body string, table feedtype.TableName, otherwise, consequence string,
) string {
	former := d.formerSchema(body, table)
	if former == "" {
		return otherwise
	}
	return fmt.Sprintf("function %s names schema %s, and rowfeed's tables are in schema %s, as when the schema was "+
		"renamed: %s; run `rowfeed feed upgrade %s --schema %s`",
		function, former, f.Names.Schema, consequence, f.Name, f.Names.Schema)
}
