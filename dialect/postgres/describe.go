package postgres

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

var catalogs = dialect.NewStatements(describeFile)

// signature returns an expression for the table's columns in the snapshot of the statement.
func signature(relation string) string {
	return dialect.NewScript(syntax).Fill(statement(catalogs, "signature"),
		dialect.Args{"relation": dialect.SQL(relation)})
}

// Describe implements [dialect.Core].
func (d database) Describe(ctx context.Context, q dialect.Querier, t feedtype.TableName) (*dialect.Table, error) {
	table := &dialect.Table{}
	var (
		oid                              int64
		kind, persistence                string
		policies, hasChildren, isTrigger bool
	)
	err := dialect.One(ctx, q, syntax, statement(catalogs, "table"), dialect.Args{"table": dialect.Qualified(syntax, t),
		"relation": dialect.SQL("c.oid")}, &oid, &table.Name.Schema, &table.Name.Name, &kind, &persistence, &policies,
		&hasChildren, &table.Signature)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%w: %s", dialect.ErrNoTable, t)
	}
	if err != nil {
		return nil, err
	}
	if table.Name.Schema == "information_schema" || strings.HasPrefix(table.Name.Schema, "pg_") {
		table.Refusals = []string{dialect.SystemTable}
		return table, nil
	}
	refuse := func(when bool, why string) {
		if when {
			table.Refusals = append(table.Refusals, why)
		}
	}
	refuse(kind == "v" || kind == "m", "it is a view, which has no rows of its own; make the feed of its table")
	refuse(kind == "f", "it is a foreign table: writes on the other server fire no trigger here; make the feed there")
	isTrigger = kind == "r" || kind == "p"
	refuse(!isTrigger && kind != "v" && kind != "m" && kind != "f", "it is not a table (relkind "+kind+")")
	refuse(persistence == "u", "it is unlogged: a crash empties it without firing a trigger; "+
		"make it logged with ALTER TABLE … SET LOGGED")
	refuse(persistence == "t", "it is a temporary table, which ends with its session")
	refuse(policies, "row security policies hide rows from this user, and a hidden row would look like a deleted "+
		"one; use a role with BYPASSRLS or the table's owner")
	refuse(hasChildren && kind == "r", "other tables inherit from it, and their rows fire no trigger of it; "+
		"make feeds of the children, or use partitioning")
	if kind == "p" {
		if err := d.describePartitions(ctx, q, oid, table); err != nil {
			return nil, err
		}
	}
	if table.Columns, err = d.describeColumns(ctx, q, oid); err != nil {
		return nil, err
	}
	if table.Indexes, err = d.names(ctx, q, "indexes", dialect.Args{"oid": oid, "valid": true}); err != nil {
		return nil, err
	}
	if table.Unfinished, err = d.names(ctx, q, "indexes", dialect.Args{"oid": oid, "valid": false}); err != nil {
		return nil, err
	}
	if c := table.FindColumn(dialect.PositionColumn); c != nil {
		if c.NoPosition, c.FitPosition, err = d.noPosition(ctx, q, oid); err != nil {
			return nil, err
		}
	}
	if table.OnUpdate, err = d.names(ctx, q, "triggers_on_update", dialect.Args{"oid": oid}); err != nil {
		return nil, err
	}
	return table, d.describeUnique(ctx, q, oid, table)
}

// names runs one of the queries for names.
func (d database) names(ctx context.Context, q dialect.Querier, query string, args dialect.Args) ([]string, error) {
	return dialect.All(ctx, q, syntax, statement(catalogs, query), args,
		func(rows dialect.Rows) (name string, err error) { return name, rows.Scan(&name) })
}

// noPosition says why the column feed_sync_id cannot hold positions, and for a unique index which statements make it a
// partial one.
func (d database) noPosition(ctx context.Context, q dialect.Querier, oid int64) (why, fit string, err error) {
	var kind, filled, unique string
	err = dialect.One(ctx, q, syntax, statement(catalogs, "position_column"), dialect.Args{"oid": oid},
		&kind, &filled, &unique)
	switch {
	case kind != "":
		why = "is " + kind + ": make it bigint"
	case filled != "":
		why = "has a default, " + filled + ", but rows must wait for their position with NULL: drop the default"
	case unique != "":
		why = "is in the unique index " + unique + ", so publishers wait for transactions with foreign keys to " +
			"its rows: make that index partial, WHERE feed_sync_id IS NOT NULL"
		err = dialect.One(ctx, q, syntax, statement(catalogs, "fit_unique_index"), dialect.Args{"index": unique}, &fit)
	}
	return why, fit, err
}

func (d database) describePartitions(ctx context.Context, q dialect.Querier, oid int64, table *dialect.Table) error {
	_, err := dialect.All(ctx, q, syntax, statement(catalogs, "partitions"), dialect.Args{"oid": oid}, func(
		rows dialect.Rows) (struct{}, error) {
		var p dialect.Partition
		var kind, persistence string
		err := rows.Scan(&p.Name.Schema, &p.Name.Name, &kind, &persistence, &p.Attached)
		name := p.Name
		table.Partitions = append(table.Partitions, p)
		if kind == "f" {
			table.Refusals = append(table.Refusals, "its partition "+name.String()+
				" is a foreign table: writes on the other server fire no trigger here")
		}
		if persistence == "u" {
			table.Refusals = append(table.Refusals, "its partition "+name.String()+
				" is unlogged: a crash empties it without firing a trigger")
		}
		return struct{}{}, err
	})
	return err
}

// describeColumns reads the columns. Names of types have their schema, unless that is pg_catalog.
func (d database) describeColumns(ctx context.Context, q dialect.Querier, oid int64) ([]dialect.Column, error) {
	return dialect.All(ctx, q, syntax, statement(catalogs, "columns"), dialect.Args{"oid": oid}, func(
		rows dialect.Rows) (dialect.Column, error) {
		var (
			c                             dialect.Column
			base, category, collation     string
			notNull, builtin, determinate bool
			servers, unequal              bool
		)
		if err := rows.Scan(&c.Name, &c.Type, &servers, &notNull, &base, &builtin, &category, &unequal, &c.Operators,
			&collation, &determinate, &c.Generated, &c.Virtual); err != nil {
			return c, err
		}
		if servers && !strings.HasPrefix(c.Type, `"char"`) {
			c.Type = strings.TrimPrefix(strings.ReplaceAll(c.Type, `"`, ""), "pg_catalog.")
		}
		c.Nullable = !notNull
		c.Decl = c.Type
		if collation != "" {
			c.Decl += " COLLATE " + collation
		}
		if !builtin {
			base = "" // a type of this name in another schema
		}
		if category == "C" {
			c.NoKey = "has a composite type: a value that contains a NULL is neither NULL nor NOT NULL"
		}
		if unequal {
			c.NoKey = "has a domain over an enum or a range as its type, which PostgreSQL's operators do not accept"
		}
		c.Kind, c.NoArithmetic = kindOf(base, category), base == "oid"
		c.Exact = (isExact(base, c.Type) || category == "E") && determinate // each value of an enum has one text
		return c, nil
	})
}

func kindOf(base, category string) feedtype.Kind {
	if category == "A" {
		return feedtype.JSON
	}
	switch base {
	case "int2", "int4", "int8", "oid":
		return feedtype.Integer
	case "float4":
		return feedtype.Float32
	case "float8":
		return feedtype.Float64
	case "bool":
		return feedtype.Boolean
	case "numeric", "money":
		return feedtype.Decimal
	case "bytea":
		return feedtype.Binary
	case "json", "jsonb":
		return feedtype.JSON
	case "date":
		return feedtype.Date
	case "time", "timetz":
		return feedtype.Time
	case "timestamp":
		return feedtype.Timestamp
	case "timestamptz":
		return feedtype.TimestampTZ
	}
	return feedtype.Text
}

// keyColumn is [dialect.Codec].KeyColumn. It knows the common names of types. A column of any other type is read
// as text, which loses nothing but the kind.
func keyColumn(name, declaration string) dialect.Column {
	c := dialect.Column{Name: name, Type: declaration, Decl: declaration}
	base := baseName(declaration)
	c.Kind, c.Exact = kindOf(base, ""), isExact(base, declaration)
	return c
}

// baseName returns the catalog's name of a type from a declaration.
func baseName(declaration string) string {
	word, _, _ := strings.Cut(strings.ToLower(declaration), "(")
	base := strings.TrimSpace(word)
	if short, ok := spellings[base]; ok {
		base = short
	}
	return base
}

// spellings are the standard's names of types, for which the catalog has other ones.
var spellings = map[string]string{
	"smallint": "int2", "integer": "int4", "int": "int4", "bigint": "int8", "boolean": "bool", "real": "float4",
	"double precision": "float8", "decimal": "numeric", "character varying": "varchar", "character": "bpchar",
	"char":                        "bpchar",
	"timestamp without time zone": "timestamp", "timestamp with time zone": "timestamptz",
	"time without time zone": "time", "time with time zone": "timetz",
}

// exact are the base types whose equal values have equal text, so that keys can be told apart by their text.
var exact = map[string]bool{
	"int2": true, "int4": true, "int8": true, "oid": true, "text": true, "varchar": true, "uuid": true, "bool": true,
	"bytea": true, "bit": true, "varbit": true, "date": true, "time": true, "timetz": true, "timestamp": true,
	"timestamptz": true, "inet": true, "cidr": true, "macaddr": true, "macaddr8": true, "money": true, "char": true,
}

// isExact adds types whose declared length or scale gives equal values the same text. In numeric, 1.0 equals
// 1.00; a numeric(10,2) can only hold 1.00.
func isExact(base, declared string) bool {
	return exact[base] || slices.ContainsFunc([]string{"numeric(", "decimal(", "character(", "char("},
		func(sized string) bool {
			return strings.HasPrefix(strings.ToLower(declared), sized)
		})
}

// describeUnique reads the valid unique indexes.
func (d database) describeUnique(ctx context.Context, q dialect.Querier, oid int64, table *dialect.Table) error {
	type part struct {
		index, column    string
		made             string
		primary, partial bool
	}
	parts, err := dialect.All(ctx, q, syntax, statement(catalogs, "unique_indexes"), dialect.Args{"oid": oid}, func(
		rows dialect.Rows) (p part, err error) {
		return p, rows.Scan(&p.index, &p.made, &p.primary, &p.partial, &p.column)
	})
	if err != nil {
		return err
	}
	for _, p := range parts {
		n := len(table.Unique)
		if n == 0 || table.Unique[n-1].Name != p.index {
			table.Unique = append(table.Unique, dialect.Index{Name: p.index, Primary: p.primary, Partial: p.partial,
				Made: p.made})
			n++
		}
		ix := &table.Unique[n-1]
		ix.Columns = append(ix.Columns, dialect.IndexColumn{Name: strings.Clone(p.column)})
	}
	return nil
}
