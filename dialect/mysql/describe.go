package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Describe implements [dialect.Schema]. An empty schema means the connection's current database.
func (d Dialect) Describe(ctx context.Context, q dialect.Querier, name feedtype.TableName) (*dialect.Table, error) {
	t := &dialect.Table{AnyCase: true}
	var schema, table, kind, engine, binlogFormat sql.NullString
	var binlog bool
	err := dialect.QueryRow(ctx, q, `SELECT `+asBytes("t.TABLE_SCHEMA")+`, `+asBytes("t.TABLE_NAME")+
		`, t.TABLE_TYPE, t.ENGINE, @@GLOBAL.log_bin, @@GLOBAL.binlog_format
FROM information_schema.TABLES t
WHERE t.TABLE_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND t.TABLE_NAME = ?`, []any{name.Schema, name.Name},
		&schema, &table, &kind, &engine, &binlog, &binlogFormat)
	if err == sql.ErrNoRows {
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
	if t.Unique, err = uniqueIndexes(ctx, q, t.Name); err != nil {
		return nil, err
	}
	if t.Indexes, err = indexNames(ctx, q, t.Name); err != nil {
		return nil, err
	}
	if t.OnUpdate, err = updateTriggers(ctx, q, t.Name); err != nil {
		return nil, err
	}
	if err := checkCharset(ctx, q, t); err != nil {
		return nil, err
	}
	if t.Untriggered, err = cascades(ctx, q, t.Name); err != nil {
		return nil, err
	}
	err = dialect.QueryRow(ctx, q, "SELECT "+d.signature(t.Name), nil, &t.Signature)
	return t, err
}

// systemSchemas are the databases whose tables belong to the server.
var systemSchemas = []string{"mysql", "information_schema", "performance_schema", "sys"}

// checkCharset refuses a connection whose character set would garble statements about the table.
func checkCharset(ctx context.Context, q dialect.Querier, t *dialect.Table) error {
	var charset string
	if err := dialect.QueryRow(ctx, q, "SELECT @@SESSION.character_set_client", nil, &charset); err != nil {
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

// whole ends a query whose rows the session's sql_select_limit would cut. A feed would then lack columns, or an
// open transaction would look as if it had ended.
const whole = " LIMIT 18446744073709551615"

func (d Dialect) columns(ctx context.Context, q dialect.Querier, name feedtype.TableName) ([]dialect.Column, error) {
	return dialect.QueryAll(ctx, q, `SELECT `+asBytes("COLUMN_NAME")+`, `+asBytes("COLUMN_TYPE")+
		`, DATA_TYPE, IS_NULLABLE, CHARACTER_SET_NAME, COLLATION_NAME,
  COLUMN_DEFAULT, GENERATION_EXPRESSION
FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION`+whole,
		[]any{name.Schema, name.Name}, func(rows dialect.Rows) (dialect.Column, error) {
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
				c.NoPosition = "has a value of its own, " + filled +
					", where a row must wait with NULL: drop its default"
			}
			return c, nil
		})
}

// MaxColumns implements [dialect.Schema]: the limits of an answer, and of a table of InnoDB.
func (Dialect) MaxColumns() (answered, declared int) { return 4096, 1017 }

// KeyColumn implements [dialect.Schema]. The declaration does not tell the collation, which is the database's
// default. So no text counts as exact.
func (Dialect) KeyColumn(name, declaration string) dialect.Column {
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

// hiddenIndex tells whether an index is INVISIBLE (MySQL) or IGNORED (MariaDB). Statements that name it fail.
// Each server takes the other's part for a comment.
const hiddenIndex = "0 /*!80000 + (IS_VISIBLE = 'NO') */ /*M!100600 + (IGNORED = 'YES') */"

// uniqueIndexes leaves out the column ROW END. In MariaDB's system-versioned tables it is part of every key,
// and the same for all current rows.
func uniqueIndexes(ctx context.Context, q dialect.Querier, name feedtype.TableName) ([]dialect.Index, error) {
	var all []dialect.Index
	_, err := dialect.QueryAll(ctx, q, `SELECT `+asBytes("INDEX_NAME")+`, `+asBytes("COLUMN_NAME")+
		`, SUB_PART, INDEX_TYPE, `+hiddenIndex+`
FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND NON_UNIQUE = 0 AND COALESCE(COLUMN_NAME, '') NOT IN (
  SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? `+
		`AND GENERATION_EXPRESSION = 'ROW END')
ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX`+
		whole, []any{name.Schema, name.Name, name.Schema,
		name.Name}, func(rows dialect.Rows) (none struct{}, err error) {
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

// cascades returns the foreign keys that change rows of the table. InnoDB does that without firing triggers.
func cascades(ctx context.Context, q dialect.Querier, name feedtype.TableName) ([]string, error) {
	return dialect.QueryAll(ctx, q, `SELECT CONSTRAINT_NAME, REFERENCED_TABLE_NAME, DELETE_RULE, UPDATE_RULE
FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE CONSTRAINT_SCHEMA = ? AND TABLE_NAME = ?
  AND (DELETE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT') OR UPDATE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT'))
ORDER BY CONSTRAINT_NAME`+whole, []any{name.Schema, name.Name}, func(rows dialect.Rows) (string, error) {
		v, err := dialect.ScanStrings(rows, 4)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("foreign key %s to %s changes rows by itself (ON DELETE %s, ON UPDATE %s)", v[0], v[1],
			v[2], v[3]), nil
	})
}

// signature returns a subquery for the table's columns: their number, and the sum of hashes over position,
// name, type and character set. GROUP_CONCAT would be cut at group_concat_max_len. A statement that has opened
// the table holds its metadata lock, so the columns cannot change while it runs.
func (d Dialect) signature(t feedtype.TableName) string {
	return `(SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/',
    ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0))
  FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ` + d.Literal(t.Schema) + ` AND TABLE_NAME = ` +
		d.Literal(t.Name) + `)`
}
