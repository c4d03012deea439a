package sqlserver

import (
	"context"
	"database/sql"
	_ "embed" // for describe.sql
	"errors"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed describe.sql
var describeFile string

var describe = dialect.NewStatements(describeFile)

// Describe implements [dialect.Core]. There is nothing to say of writes without triggers: cascades of foreign keys
// fire them, and what does not (TRUNCATE, SWITCH, bulk loads without FIRE_TRIGGERS) can happen to every table.
func (d database) Describe(ctx context.Context, q dialect.Querier, name feedtype.TableName) (*dialect.Table, error) {
	t := &dialect.Table{AnyCase: true}
	named := dialect.Args{"table": dialect.Qualified(syntax, name)}
	var kind string
	var inMemory, temporal, external, files, shipped int
	err := dialect.One(ctx, q, syntax, statement(describe, "table_facts"), named, &t.Name.Schema, &t.Name.Name, &kind,
		&inMemory, &temporal, &external, &files, &shipped, &t.Signature)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("table %s: %w", name, dialect.ErrNoTable)
	}
	if err != nil {
		return nil, err
	}
	if shipped != 0 || strings.EqualFold(t.Name.Schema, "sys") {
		t.Refusals = []string{dialect.SystemTable}
		return t, nil
	}
	refuse := func(when bool, why string) {
		if when {
			t.Refusals = append(t.Refusals, why)
		}
	}
	refuse(kind == "V", "it is a view, which has no rows of its own; make the feed of its table")
	refuse(kind != "V" && kind != "U", "it is not a table ("+kind+"); make feeds of tables")
	refuse(inMemory != 0, "it is memory-optimized, and only natively compiled triggers fire on it")
	refuse(temporal == 1, "it has the former rows of a temporal table; make the feed of that table")
	refuse(external != 0, "it is an external table: writes elsewhere fire no trigger here")
	refuse(files != 0, "it is a FileTable, which Windows can write without firing a trigger")
	lacks, err := d.lacks(ctx, q)
	if err != nil {
		return nil, err
	}
	if lacks != nil {
		t.Refusals = append(t.Refusals, lacks.String())
	}
	if t.Columns, err = d.columns(ctx, q, named); err != nil {
		return nil, err
	}
	if t.Unique, err = d.uniqueIndexes(ctx, q, named); err != nil {
		return nil, err
	}
	if t.OnUpdate, err = dialect.All(ctx, q, syntax, statement(describe, "update_triggers"), named,
		scanName); err != nil {
		return nil, err
	}
	_, err = dialect.All(ctx, q, syntax, statement(describe, "indexes"), named,
		func(rows dialect.Rows) (none struct{}, err error) {
			var index string
			var disabled int
			err = rows.Scan(&index, &disabled)
			if disabled == 0 {
				t.Indexes = append(t.Indexes, index)
			} else {
				t.Unfinished = append(t.Unfinished, index)
			}
			return none, err
		})
	return t, err
}

func (d database) columns(ctx context.Context, q dialect.Querier, table dialect.Args) ([]dialect.Column, error) {
	return dialect.All(ctx, q, syntax, statement(describe, "columns"), table,
		func(rows dialect.Rows) (dialect.Column, error) {
			var c dialect.Column
			var base, collation, filled string
			var length, precision, scale, identity int
			err := rows.Scan(&c.Name, &base, &length, &precision, &scale, &collation, &c.Nullable, &c.Generated,
				&filled, &identity)
			c.Type = declared(base, length, precision, scale)
			c.Decl = c.Type
			if base == "timestamp" { // a table has only one, and the server fills it
				c.Decl, c.Generated = "binary(8)", true
			}
			if collation != "" {
				c.Decl += collateClause + collation
			}
			c.Kind, c.Exact, c.NoKey = kindOf(base), isExact(base, collation), unkeyed(base, c.Type)
			c.Virtual = false // triggers see computed columns
			switch {
			case base != "bigint":
				c.NoPosition = "is " + c.Type + ": make it bigint"
			case filled != "" && !strings.EqualFold(filled, "(NULL)"):
				c.NoPosition = "has a default, " + filled + ", but rows must wait for their position with NULL: " +
					"drop the default"
			case identity != 0 || c.Generated:
				c.NoPosition = "is filled by the server, but rows must wait for their position with NULL: " +
					"make it a plain column"
			}
			return c, err
		})
}

// declared returns a type as a declaration spells it. A length of -1 means max. The length of nchar is in bytes.
func declared(base string, length, precision, scale int) string {
	switch base {
	case "nchar", "nvarchar":
		if length > 0 {
			length /= 2
		}
	case "char", "varchar", "binary", "varbinary":
	case "decimal", "numeric":
		return fmt.Sprintf("%s(%d,%d)", base, precision, scale)
	case "time", "datetime2", "datetimeoffset":
		return fmt.Sprintf("%s(%d)", base, scale)
	default:
		return base
	}
	if length < 0 {
		return base + "(max)"
	}
	return fmt.Sprintf("%s(%d)", base, length)
}

func (d database) uniqueIndexes(ctx context.Context, q dialect.Querier, table dialect.Args) (all []dialect.Index,
	err error) {
	_, err = dialect.All(ctx, q, syntax, statement(describe, "unique_indexes"), table,
		func(rows dialect.Rows) (none struct{}, err error) {
			var index, column string
			var primary, filtered bool
			if err := rows.Scan(&index, &primary, &filtered, &column); err != nil {
				return none, err
			}
			if len(all) == 0 || all[len(all)-1].Name != index {
				all = append(all, dialect.Index{Name: index, Primary: primary, Partial: filtered})
			}
			ix := &all[len(all)-1]
			ix.Columns = append(ix.Columns, dialect.IndexColumn{Name: column}) // it has the collation of its column
			return none, nil
		})
	return all, err
}
