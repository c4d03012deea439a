package postgres

import (
	"context"
	"database/sql"
	_ "embed" // for schema.sql
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed schema.sql
var schemaFile string

var schema = dialect.NewStatements(schemaFile)

// CurrentSchema implements [dialect.Schema].
func (d Dialect) CurrentSchema(ctx context.Context, q dialect.Querier) (name string, err error) {
	if q == nil {
		return "public", nil
	}
	err = dialect.One(ctx, q, d, statement(schema, "current_schema"), nil, &name)
	return name, err
}

// Migrations implements [dialect.Schema].
func (d Dialect) Migrations(n dialect.Names) []dialect.Migration {
	return []dialect.Migration{dialect.FirstMigration(d, n, schema)}
}

// SchemaVersion implements [dialect.Schema].
func (d Dialect) SchemaVersion(ctx context.Context, q dialect.Querier, n dialect.Names) (int, error) {
	there, err := schema.Render(d, n, "has_schema")
	if err != nil {
		return 0, err
	}
	var exists bool
	if err := dialect.One(ctx, q, d, there, nil, &exists); err != nil || !exists {
		return 0, err
	}
	newest, err := schema.Render(d, n, "version")
	if err != nil {
		return 0, err
	}
	var version sql.NullInt64
	err = dialect.One(ctx, q, d, newest, nil, &version)
	return int(version.Int64), err
}

// WithSchemaLock implements [dialect.Schema] by one transaction with an advisory lock.
func (d Dialect) WithSchemaLock(ctx context.Context, db *sql.DB, n dialect.Names,
	fn func(dialect.Querier) error) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	q := dialect.On(tx)
	bound := statement(schema, "bound_schema_changes").String() + "; " + text("durable")
	if _, err := q.Exec(ctx, bound); err != nil {
		return err
	}
	if _, err := dialect.Exec(ctx, q, d, statement(schema, "lock_schema"),
		dialect.Args{"lock": "rowfeed schema " + n.Schema + "." + n.Prefix}); err != nil {
		return err
	}
	if err := fn(q); err != nil {
		return err
	}
	return tx.Commit()
}

// signature returns an expression for the table's columns in the snapshot of the statement.
func signature(relation string) string {
	return `COALESCE((SELECT string_agg(a.attname::text || ' ' || a.atttypid::text || ' ' || a.atttypmod::text, ',' ` +
		`ORDER BY a.attnum)
  FROM pg_catalog.pg_attribute a WHERE a.attrelid = ` + relation + ` AND a.attnum > 0 AND NOT a.attisdropped), '')`
}

// Describe implements [dialect.Schema].
func (d Dialect) Describe(ctx context.Context, q dialect.Querier, t feedtype.TableName) (*dialect.Table, error) {
	table := &dialect.Table{}
	var (
		oid                              int64
		kind, persistence                string
		policies, hasChildren, isTrigger bool
	)
	err := dialect.QueryRow(ctx, q, `SELECT c.oid::bigint, n.nspname::text, c.relname::text, c.relkind::text, `+
		`c.relpersistence::text,
  row_security_active(c.oid), EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhparent = c.oid), `+signature("c.oid")+`
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)`,
		[]any{dialect.Qualified(d, t)}, &oid, &table.Name.Schema, &table.Name.Name, &kind, &persistence, &policies,
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
	refuse(!isTrigger && kind != "v" && kind != "m" && kind != "f", "it is no table (relkind "+kind+")")
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
	if table.Indexes, err = indexNames(ctx, q, oid, true); err != nil {
		return nil, err
	}
	if table.Unfinished, err = indexNames(ctx, q, oid, false); err != nil {
		return nil, err
	}
	if c := table.FindColumn(dialect.PositionColumn); c != nil {
		if c.NoPosition, err = noPosition(ctx, q, oid); err != nil {
			return nil, err
		}
	}
	if table.OnUpdate, err = updateTriggers(ctx, q, oid); err != nil {
		return nil, err
	}
	return table, d.describeUnique(ctx, q, oid, table)
}

func (Dialect) describePartitions(ctx context.Context, q dialect.Querier, oid int64, table *dialect.Table) error {
	// Attaching a partition again writes another row of pg_inherits, whose xmin differs.
	_, err := dialect.QueryAll(ctx, q, `SELECT n.nspname::text, c.relname::text, c.relkind::text, `+
		`c.relpersistence::text,
  CASE WHEN c.relkind = 'p' THEN '' ELSE c.oid::text || (SELECT string_agg('.' || i.xmin::text, '' ORDER BY i.inhrelid)
    FROM pg_partition_ancestors(c.oid) a JOIN pg_inherits i ON i.inhrelid = a.relid) END
FROM pg_partition_tree($1::bigint::oid::regclass) p JOIN pg_class c ON c.oid = p.relid JOIN pg_namespace n `+
		`ON n.oid = c.relnamespace
WHERE p.level > 0 ORDER BY 1, 2`, []any{oid}, func(rows dialect.Rows) (struct{}, error) {
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

// describeColumns reads the columns, and the base types of domains. It gives names of types their schema,
// unless that is pg_catalog, whatever the session's search_path. With quote_all_identifiers, format_type quotes
// even the names of built-in types.
func (d Dialect) describeColumns(ctx context.Context, q dialect.Querier, oid int64) ([]dialect.Column, error) {
	return dialect.QueryAll(ctx, q, `WITH RECURSIVE chain AS (
  SELECT a.attnum, a.atttypid AS oid FROM pg_attribute a WHERE a.attrelid = $1::bigint::oid AND a.attnum > 0 `+
		`AND NOT a.attisdropped
  UNION ALL
  SELECT c.attnum, t.typbasetype FROM chain c JOIN pg_type t ON t.oid = c.oid WHERE t.typtype = 'd'
)
SELECT a.attname::text, CASE WHEN e.typnamespace <> 'pg_catalog'::regnamespace AND pg_type_is_visible(e.oid) THEN `+
		`quote_ident(en.nspname) || '.' ELSE '' END ||
    format_type(a.atttypid, a.atttypmod), e.typnamespace = 'pg_catalog'::regnamespace, a.attnotnull,
  b.typname::text, b.typnamespace = 'pg_catalog'::regnamespace, b.typcategory::text, t.typtype = 'd' `+
		`AND b.typtype IN ('e', 'r', 'm'),
  COALESCE((SELECT pn.nspname::text FROM pg_opclass k
    JOIN pg_am m ON m.oid = k.opcmethod AND m.amname = 'btree'
    JOIN pg_amop o ON o.amopfamily = k.opcfamily AND o.amopstrategy = 3 AND o.amoplefttype = k.opcintype `+
		`AND o.amoprighttype = k.opcintype
    JOIN pg_operator p ON p.oid = o.amopopr JOIN pg_namespace pn ON pn.oid = p.oprnamespace
    WHERE k.opcintype = b.oid AND k.opcdefault AND pn.nspname <> 'pg_catalog'), ''),
  CASE WHEN a.attcollation <> t.typcollation THEN quote_ident(cn.nspname) || '.' || quote_ident(co.collname) `+
		`ELSE '' END,
  COALESCE(co.collisdeterministic, true), a.attgenerated::text <> '' OR a.attidentity::text = 'a', `+
		`a.attgenerated::text = 'v'
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_type e ON e.oid = CASE WHEN t.typcategory = 'A' AND t.typelem <> 0 THEN t.typelem ELSE t.oid END
JOIN pg_namespace en ON en.oid = e.typnamespace
JOIN chain c ON c.attnum = a.attnum
JOIN pg_type b ON b.oid = c.oid AND b.typtype <> 'd'
LEFT JOIN pg_collation co ON co.oid = a.attcollation
LEFT JOIN pg_namespace cn ON cn.oid = co.collnamespace
WHERE a.attrelid = $1::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum`, []any{oid}, func(rows dialect.Rows) (dialect.Column, error) {
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
			c.NoKey = "has a composite type, of which a value with a NULL in it is neither NULL nor NOT NULL"
		}
		if unequal {
			c.NoKey = "has a domain over an enum or a range as its type, which PostgreSQL's operators do not take"
		}
		c.Kind = kindOf(base, category)
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

// MaxColumns implements [dialect.Schema]: the server's MaxTupleAttributeNumber and MaxHeapAttributeNumber.
func (Dialect) MaxColumns() (answered, declared int) { return 1664, 1600 }

// KeyColumn implements [dialect.Schema]. It knows the common names of types. A column of any other type is read
// as text, which loses nothing but the kind.
func (Dialect) KeyColumn(name, declaration string) dialect.Column {
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

// describeUnique reads the valid unique indexes. It counts a column as an expression in two cases. The index
// has another collation than the column, so joins would not use it. Or the index has an operator class that is
// not the default, whose equality may differ from that of rowfeed's tables.
func (Dialect) describeUnique(ctx context.Context, q dialect.Querier, oid int64, table *dialect.Table) error {
	type part struct {
		index, column    string
		made             string
		primary, partial bool
	}
	parts, err := dialect.QueryAll(ctx, q, `SELECT c.relname::text, c.oid::text, i.indisprimary, i.indpred IS NOT NULL,
  CASE WHEN k.attnum = 0 OR (x.coll <> 0 AND x.coll <> a.attcollation)
    OR NOT oc.opcdefault AND oc.opcname NOT IN ('text_pattern_ops', 'varchar_pattern_ops', 'bpchar_pattern_ops')
  THEN '' ELSE a.attname::text END
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY k(attnum, n)
JOIN LATERAL unnest(i.indcollation::oid[]) WITH ORDINALITY x(coll, n) ON x.n = k.n
JOIN LATERAL unnest(i.indclass::oid[]) WITH ORDINALITY o(class, n) ON o.n = k.n
JOIN pg_opclass oc ON oc.oid = o.class
LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE i.indrelid = $1::bigint::oid AND i.indisunique AND i.indisvalid AND k.n <= i.indnkeyatts
ORDER BY NOT i.indisprimary, c.relname, k.n`, []any{oid}, func(rows dialect.Rows) (p part, err error) {
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

// Takeovers implements [dialect.Schema]. There are none: a role that owns a function cannot be dropped.
func (Dialect) Takeovers(context.Context, dialect.Querier, *dialect.Feed, *dialect.Table) ([]string, error) {
	return nil, nil
}

// Strays implements [dialect.Schema]. There are none: a dump names the schema of every object.
func (Dialect) Strays(context.Context, dialect.Querier, *dialect.Feed, *dialect.Table) ([]string, error) {
	return nil, nil
}
