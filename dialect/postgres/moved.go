package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// OtherSchemas implements [dialect.Schema].
func (d Dialect) OtherSchemas(ctx context.Context, q dialect.Querier, n dialect.Names) ([]string, error) {
	return dialect.All(ctx, q, d, statement(capture, "other_schemas"), dialect.Args{
		"own": n.Schema, "feeds": n.Table("feeds").Name, "version": n.Table("schema_version").Name,
	}, func(rows dialect.Rows) (schema string, err error) { return schema, rows.Scan(&schema) })
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
