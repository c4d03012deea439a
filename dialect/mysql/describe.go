package mysql

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

var describing = dialect.NewStatements(describeFile)

// Describe implements [dialect.Core]. An empty schema means the connection's current database.
func (d database) Describe(ctx context.Context, q dialect.Querier, name feedtype.TableName) (*dialect.Table, error) {
	t := &dialect.Table{AnyCase: true}
	var schema, table, kind, engine, binlogFormat sql.NullString
	var binlog bool
	err := dialect.One(ctx, q, syntax, statement(describing, "table"), inTable(name),
		&schema, &table, &kind, &engine, &binlog, &binlogFormat)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("table %s: %w", name, dialect.ErrNoTable)
	}
	if err != nil {
		return nil, err
	}
	t.Name = feedtype.TableName{Schema: schema.String, Name: table.String}
	if slices.Contains(systemSchemas, strings.ToLower(t.Name.Schema)) {
		t.Refusals = []string{dialect.SystemTable}
		return t, nil
	}
	t.Refusals = refusals(kind.String, engine.String)
	if binlog && binlogFormat.String == "STATEMENT" {
		t.Refusals = append(t.Refusals,
			"the server writes its binary log in STATEMENT format, which READ COMMITTED transactions cannot: "+
				"set binlog_format to ROW or MIXED")
	}
	if t.Columns, err = d.columns(ctx, q, t.Name); err != nil {
		return nil, err
	}
	if t.Unique, err = d.uniqueIndexes(ctx, q, t.Name); err != nil {
		return nil, err
	}
	if t.Indexes, err = d.indexNames(ctx, q, t.Name); err != nil {
		return nil, err
	}
	t.OnUpdate, err = dialect.All(ctx, q, syntax, statement(describing, "update_triggers"), inTable(t.Name), scanName)
	if err != nil {
		return nil, err
	}
	if err := d.checkCharset(ctx, q, t); err != nil {
		return nil, err
	}
	if t.Untriggered, err = d.cascades(ctx, q, t.Name); err != nil {
		return nil, err
	}
	err = dialect.One(ctx, q, syntax, statement(describing, "ask_signature"), d.literals(t.Name), &t.Signature)
	return t, err
}

// inTable are the arguments of a query about a table.
func inTable(t feedtype.TableName) dialect.Args {
	return dialect.Args{"schema": t.Schema, "table": t.Name}
}

// scanName scans a row of one column.
func scanName(rows dialect.Rows) (string, error) {
	v, err := dialect.ScanStrings(rows, 1)
	return strings.Join(v, ""), err
}

// systemSchemas are the databases whose tables belong to the server.
var systemSchemas = []string{"mysql", "information_schema", "performance_schema", "sys"}

// checkCharset refuses a connection whose character set would garble statements about the table.
func (d database) checkCharset(ctx context.Context, q dialect.Querier, t *dialect.Table) error {
	var charset string
	if err := dialect.One(ctx, q, syntax, statement(describing, "client_charset"), nil, &charset); err != nil {
		return err
	}
	said := t.Name.String()
	for _, c := range t.Columns {
		said += c.Name
	}
	for _, ix := range t.Unique {
		for _, ic := range ix.Columns {
			if c := t.Column(ic.Name); c != nil {
				said += c.Type // the members of an enum
			}
		}
	}
	if !strings.HasPrefix(charset, "utf8") && strings.ContainsFunc(said, func(r rune) bool { return r > 127 }) {
		return fmt.Errorf("names beyond ASCII are garbled on this connection, whose character set is %s: "+
			"open the pool with utf8mb4", charset)
	}
	return nil
}

func refusals(kind, engine string) []string {
	switch kind {
	case "VIEW", "SYSTEM VIEW":
		return []string{"it is a view, which has neither keys nor triggers: make a feed of the tables under it"}
	case "SEQUENCE":
		return []string{"it is a sequence: make feeds of tables"}
	case "TEMPORARY":
		return []string{"it is a temporary table: make feeds of tables that other sessions see"}
	}
	if !strings.EqualFold(engine, "InnoDB") {
		return []string{fmt.Sprintf("its engine is %s, which has no transactions: convert it with ALTER TABLE … "+
			"ENGINE=InnoDB", engine)}
	}
	return nil
}

func (d database) columns(ctx context.Context, q dialect.Querier, name feedtype.TableName) ([]dialect.Column, error) {
	return dialect.All(ctx, q, syntax, statement(describing, "columns"), inTable(name),
		func(rows dialect.Rows) (dialect.Column, error) {
			v, err := dialect.ScanStrings(rows, 8)
			if err != nil {
				return dialect.Column{}, err
			}
			c := dialect.Column{Name: v[0], Type: v[1], Decl: v[1], Kind: kindOf(v[2]), Nullable: v[3] == "YES",
				Generated: v[7] != ""}
			if v[4] != "" {
				c.Decl += charsetClause + v[4] + " COLLATE " + v[5]
			}
			c.Exact = exact(c, strings.ToLower(v[2]), v[5])
			switch filled := v[6] + v[7]; {
			case !strings.EqualFold(v[2], "bigint"):
				c.NoPosition = "is " + c.Type + ": make it BIGINT"
			case filled != "" && !strings.EqualFold(filled, "NULL"): // MariaDB writes NULL for no default
				c.NoPosition = "has a default, " + filled +
					", but rows must wait for their position with NULL: drop the default"
			}
			return c, nil
		})
}

// keyColumn is [dialect.Codec].KeyColumn. The declaration does not tell the collation, which is the database's
// default. So no text counts as exact.
func keyColumn(name, declaration string) dialect.Column {
	base := baseType(declaration)
	c := dialect.Column{Name: name, Type: declaration, Decl: declaration, Kind: kindOf(base)}
	c.Exact = c.Kind != feedtype.Text && exact(c, base, "")
	return c
}

// exact tells whether equal values of a column have equal text.
func exact(c dialect.Column, dataType, collation string) bool {
	switch c.Kind {
	case feedtype.Float32, feedtype.Float64, feedtype.JSON:
		return false // 0 equals -0
	case feedtype.Text:
		switch {
		case dataType == "enum" || dataType == "set" || collation == "":
			return true
		case !strings.HasSuffix(collation, "bin"):
			return false
		}
		// Other collations ignore trailing blanks, but a CHAR does not keep any.
		return dataType == "char" || collation == "binary" ||
			strings.HasSuffix(collation, "nopad_bin") || collation == "utf8mb4_0900_bin"
	}
	return true
}

func (d database) uniqueIndexes(ctx context.Context, q dialect.Querier,
	name feedtype.TableName) (all []dialect.Index, err error) {
	_, err = dialect.All(ctx, q, syntax, statement(describing, "unique_indexes"), inTable(name), func(
		rows dialect.Rows) (none struct{}, err error) {
		v, err := dialect.ScanStrings(rows, 5)
		if err != nil {
			return none, err
		}
		if len(all) == 0 || all[len(all)-1].Name != v[0] {
			all = append(all, dialect.Index{Name: v[0], Primary: v[0] == "PRIMARY", Hidden: v[4] == "1"})
		}
		ix := &all[len(all)-1]
		column := dialect.IndexColumn{Name: v[1]} // an index has the collation of its column
		if v[2] != "" || v[3] == "HASH" {
			// The index is over a prefix of the column or, on MariaDB, over hashes. A lookup by the whole value
			// is then not a lookup by a unique key.
			column.Name = ""
		}
		ix.Columns = append(ix.Columns, column)
		return none, nil
	})
	return all, err
}

func (d database) indexNames(ctx context.Context, q dialect.Querier, t feedtype.TableName) ([]string, error) {
	return dialect.All(ctx, q, syntax, statement(describing, "indexes"), inTable(t), scanName)
}

func (d database) cascades(ctx context.Context, q dialect.Querier, name feedtype.TableName) ([]string, error) {
	return dialect.All(ctx, q, syntax, statement(describing, "cascades"), inTable(name), func(
		rows dialect.Rows) (string, error) {
		v, err := dialect.ScanStrings(rows, 4)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("foreign key %s to %s changes rows by itself (ON DELETE %s, ON UPDATE %s)", v[0], v[1],
			v[2], v[3]), nil
	})
}

// signature returns a subquery for the table's columns.
func (d database) signature(t feedtype.TableName) string {
	return dialect.NewBuilder(syntax).Fill(signature, d.literals(t))
}

var signature = statement(describing, "signature")

// literals are the arguments of a statement that other packages put into theirs.
func (d database) literals(t feedtype.TableName) dialect.Args {
	return dialect.Args{"schema": dialect.SQL(literal(t.Schema)), "table": dialect.SQL(literal(t.Name))}
}
