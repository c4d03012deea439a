package sqlserver

import (
	"context"
	"database/sql"
	_ "embed" // for describe.sql
	"errors"
	"fmt"
	"slices"
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
	if err := d.describeUnique(ctx, q, named, t); err != nil {
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
			c.Generated = c.Generated || identity != 0
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
			case c.Generated:
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

// describeUnique reads the unique indexes. NULLs are equal in a unique index of SQL Server. So an index with the column
// of positions accepts only one row that waits, unless it also has all columns of another unique index.
func (d database) describeUnique(ctx context.Context, q dialect.Querier, named dialect.Args, t *dialect.Table) error {
	drops := make(map[string]string)
	_, err := dialect.All(ctx, q, syntax, statement(describe, "unique_indexes"), named,
		func(rows dialect.Rows) (none struct{}, err error) {
			var index, column string
			var primary, filtered, constraint bool
			if err := rows.Scan(&index, &primary, &filtered, &constraint, &column); err != nil {
				return none, err
			}
			if n := len(t.Unique); n == 0 || t.Unique[n-1].Name != index {
				t.Unique = append(t.Unique, dialect.Index{Name: index, Primary: primary, Partial: filtered})
				drops[index] = "DROP INDEX " + quote(index) + " ON " + dialect.Qualified(syntax, t.Name)
				if constraint {
					drops[index] = "ALTER TABLE " + dialect.Qualified(syntax, t.Name) +
						" DROP CONSTRAINT " + quote(index)
				}
			}
			ix := &t.Unique[len(t.Unique)-1]
			ix.Columns = append(ix.Columns, dialect.IndexColumn{Name: column}) // it has the collation of its column
			return none, nil
		})
	position := t.FindColumn(dialect.PositionColumn)
	if err != nil || position == nil {
		return err
	}
	for _, ix := range t.Unique {
		covers := func(key dialect.Index) bool { return !key.Partial && !has(key, position.Name) && hasAll(ix, key) }
		if !ix.Partial && has(ix, position.Name) && !slices.ContainsFunc(t.Unique, covers) &&
			position.NoPosition == "" {
			position.NoPosition = "is in the unique index " + ix.Name + ", which accepts only one row that waits " +
				"with NULL: drop that index"
			position.FitPosition = drops[ix.Name]
		}
	}
	return nil
}

// has tells whether an index has a column.
func has(ix dialect.Index, column string) bool {
	return slices.ContainsFunc(ix.Columns, func(c dialect.IndexColumn) bool { return c.Name == column })
}

// hasAll tells whether an index has all columns of another one.
func hasAll(ix, other dialect.Index) bool {
	return !slices.ContainsFunc(other.Columns, func(c dialect.IndexColumn) bool { return !has(ix, c.Name) })
}
