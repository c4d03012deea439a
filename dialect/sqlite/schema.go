package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	_ "embed" // for schema.sql
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed schema.sql
var schemaFile string

var schema = dialect.NewStatements(schemaFile)

// CurrentSchema implements [dialect.Core]. A trigger can neither write into another database file nor name one.
func (database) CurrentSchema(context.Context, dialect.Querier) (string, error) { return "", nil }

// SchemaVersion implements [dialect.Core].
func (d database) SchemaVersion(ctx context.Context, q dialect.Querier, n dialect.Names) (int, error) {
	t := n.Table("schema_version")
	if !isMain(t.Schema) {
		return 0, &feedtype.Error{Code: feedtype.InvalidRequest, Param: "schema",
			Object: fmt.Sprintf("schema %q", t.Schema),
			Cause:  "on SQLite, rowfeed's tables are in the main database", Next: "leave --schema out"}
	}
	var tables int
	err := dialect.One(ctx, q, syntax, statement(schema, "has_schema"), dialect.Args{"table": t.Name}, &tables)
	if err != nil || tables == 0 {
		return 0, err
	}
	newest, err := schema.Render(syntax, n, "version")
	if err != nil {
		return 0, err
	}
	var version sql.NullInt64
	err = dialect.One(ctx, q, syntax, newest, nil, &version)
	return int(version.Int64), err
}

func isMain(schema string) bool { return schema == "" || strings.EqualFold(schema, "main") }

// WithSchemaLock implements [dialect.Core] by one transaction, which has the write lock from its begin.
func (d database) WithSchemaLock(ctx context.Context, db *sql.DB, _ dialect.Names,
	fn func(dialect.Querier) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	q := dialect.On(conn)
	if _, err := dialect.Exec(ctx, q, syntax, statement(schema, "lock_schema"), nil); err != nil {
		return err
	}
	err = fn(q)
	if err == nil {
		_, err = conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		// The caller's context may have ended. The connection must not keep the lock.
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if _, rollback := conn.ExecContext(bounded, "ROLLBACK"); rollback != nil {
			// SQLite has rolled back by itself, as after a full disk, or it cannot roll back. In both cases the
			// connection is closed, which releases any lock that it has.
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
	}
	return err
}

// Describe implements [dialect.Core]. It reads columns and unique indexes from the pragmas.
func (d database) Describe(ctx context.Context, q dialect.Querier, t feedtype.TableName) (*dialect.Table, error) {
	table := &dialect.Table{AnyCase: true}
	if !isMain(t.Schema) {
		table.Name = t
		table.Refusals = []string{"it is not in the main database, and a trigger cannot write from one database " +
			"into another"}
		return table, nil
	}
	if strings.HasPrefix(strings.ToLower(t.Name), "sqlite_") {
		table.Name, table.Refusals = t, []string{dialect.SystemTable}
		return table, nil
	}
	var kind, ddl string
	err := dialect.One(ctx, q, syntax, statement(schema, "table_or_view"), dialect.Args{"table": t.Name}, &kind,
		&table.Name.Name, &ddl)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%w: %s", dialect.ErrNoTable, t.Name)
	}
	if err != nil {
		return nil, err
	}
	table.Signature = ddl
	name := dialect.Args{"table": table.Name.Name}
	var listed string
	var withoutRowid, strict int
	err = dialect.One(ctx, q, syntax, statement(schema, "kind_of_table"), name, &listed, &withoutRowid, &strict)
	if err != nil {
		return nil, err
	}
	switch {
	case kind == "view":
		table.Refusals = append(table.Refusals,
			"it is a view, which has no rows of its own; make the feed of its table")
	case listed != "table":
		table.Refusals = append(table.Refusals, "it is a "+listed+" table, on which triggers do not fire")
	}
	var pk []string
	table.Columns, err = dialect.All(ctx, q, syntax, statement(schema, "columns"), name,
		func(rows dialect.Rows) (c dialect.Column, err error) {
			var notNull, inKey, hidden int
			var otherwise string
			if err := rows.Scan(&c.Name, &c.Type, &notNull, &inKey, &otherwise, &hidden); err != nil {
				return c, err
			}
			c = keyColumn(c.Name, c.Type)
			if notNull == 1 {
				c.Default = otherwise
			}
			c.Generated = hidden != 0
			switch {
			case !strings.Contains(strings.ToUpper(c.Type), "INT"): // the column has another affinity
				c.NoPosition = "is declared " + strconv.Quote(c.Type) + ": declare it INTEGER"
			case hidden != 0:
				c.NoPosition = "is generated, but rows must wait for their position with NULL: make it a plain column"
			case otherwise != "" && !strings.EqualFold(otherwise, "NULL"):
				c.NoPosition = "has a default, " + otherwise +
					", but rows must wait for their position with NULL: leave the default out"
			}
			switch anyType := strings.EqualFold(c.Type, "ANY"); {
			case strict == 1 && anyType:
				c.Decl = "" // in a table that is not STRICT, ANY would turn '1' into 1
			case strict == 1 || anyType:
				c.Exact = true // all values have the column's type
			}
			c.Nullable = notNull == 0
			if inKey > 0 {
				pk = append(pk, c.Name)
				c.Nullable = c.Nullable && withoutRowid == 0
			}
			return c, nil
		})
	if err != nil {
		return nil, err
	}
	if err := d.describeUnique(ctx, q, table, pk); err != nil {
		return nil, err
	}
	table.Indexes, err = dialect.All(ctx, q, syntax, statement(schema, "indexes"), name,
		func(rows dialect.Rows) (name string, err error) { return name, rows.Scan(&name) })
	if err != nil {
		return nil, err
	}
	if table.OnUpdate, err = d.updateTriggers(ctx, q, table.Name.Name); err != nil {
		return nil, err
	}
	if kind == "table" && withoutRowid == 0 && !slices.ContainsFunc(table.Unique, func(ix dialect.Index) bool {
		return ix.Primary && ix.Name == ""
	}) {
		table.RowID = hiddenRowID(table.Columns)
	}
	return table, nil
}

// hiddenRowID returns a name of the rowid that is not a column's name. If there is none, statements cannot
// write the rowid.
func hiddenRowID(columns []dialect.Column) string {
	for _, name := range []string{"rowid", "_rowid_", "oid"} {
		if !slices.ContainsFunc(columns, func(c dialect.Column) bool { return strings.EqualFold(c.Name, name) }) {
			return name
		}
	}
	return ""
}

// keyColumn is [dialect.Codec].KeyColumn. A BLOB column has kind Binary. In all other columns each value has its
// own type. A declaration without a collation gets the explicit default, BINARY.
func keyColumn(name, declaration string) dialect.Column {
	c := dialect.Column{Name: name, Type: declaration, Decl: declaration, Kind: feedtype.Dynamic,
		Exact: exact(declaration)}
	if strings.Contains(strings.ToUpper(declaration), "BLOB") {
		c.Kind = feedtype.Binary
	}
	if !strings.Contains(strings.ToUpper(declaration), "COLLATE") {
		c.Collate = ` COLLATE "BINARY"`
	}
	return c
}

// exact tells whether a column with this declaration stores equal values in one way. A column without affinity
// keeps 1 and 1.0 apart. In a table that is not STRICT, ANY has an affinity. The declaration of a key that was
// given without a table may have a collation.
func exact(declaration string) bool {
	decl := strings.ToUpper(declaration)
	switch {
	case strings.Contains(decl, "COLLATE"):
		return false
	case strings.Contains(decl, "INT"), strings.Contains(decl, "CHAR"), strings.Contains(decl, "CLOB"),
		strings.Contains(decl, "TEXT"):
		return true
	}
	return decl != "" && decl != "ANY" && !strings.Contains(decl, "BLOB")
}

func (d database) describeUnique(ctx context.Context, q dialect.Querier, table *dialect.Table, pk []string) error {
	type listed struct {
		name, origin string
		partial      bool
		made         string
	}
	indexes, err := dialect.All(ctx, q, syntax, statement(schema, "unique_indexes"),
		dialect.Args{"table": table.Name.Name, "index": dialect.SQL("pragma_index_list.name")},
		func(rows dialect.Rows) (l listed, err error) {
			return l, rows.Scan(&l.name, &l.origin, &l.partial, &l.made)
		})
	if err != nil {
		return err
	}
	if len(pk) == 1 && (len(indexes) == 0 || indexes[0].origin != "pk") {
		// An INTEGER PRIMARY KEY is the rowid itself: it has no index of its own, and is never NULL.
		table.Unique = append(table.Unique, dialect.Index{Primary: true,
			Columns: []dialect.IndexColumn{{Name: pk[0], Collation: `"BINARY"`, Exact: true}}})
		table.Column(pk[0]).Nullable = false
	} else if len(pk) == 1 { // without NOT NULL, such a primary key accepts NULL
		c := table.Column(pk[0])
		c.MayBeNull = c.Nullable
	}
	for _, l := range indexes {
		ix := dialect.Index{Name: l.name, Primary: l.origin == "pk", Partial: l.partial, Made: l.made}
		ix.Columns, err = dialect.All(ctx, q, syntax, statement(schema, "index_columns"), dialect.Args{"index": l.name},
			func(rows dialect.Rows) (c dialect.IndexColumn, err error) {
				err = rows.Scan(&c.Name, &c.Collation)
				c.Collation, c.Exact = quote(c.Collation), c.Collation == "BINARY"
				return c, err
			})
		if err != nil {
			return err
		}
		table.Unique = append(table.Unique, ix)
	}
	return nil
}

var (
	triggerHead = regexp.MustCompile(`(?is)^(.*?)\bBEGIN\b`)
	onUpdate    = regexp.MustCompile(`(?i)\bUPDATE\b`)
	onColumns   = regexp.MustCompile(`(?i)\bUPDATE\s+OF\b`)
)

// updateTriggers returns the triggers that fire when feed_sync_id is written. It looks only at the text before
// the triggers' bodies.
func (d database) updateTriggers(ctx context.Context, q dialect.Querier, table string) ([]string, error) {
	type trigger struct{ name, text string }
	all, err := dialect.All(ctx, q, syntax, statement(schema, "triggers"), dialect.Args{"table": table},
		func(rows dialect.Rows) (tr trigger, err error) { return tr, rows.Scan(&tr.name, &tr.text) })
	var names []string
	for _, tr := range all {
		head := triggerHead.FindString(tr.text)
		if onUpdate.MatchString(head) && (!onColumns.MatchString(head) ||
			strings.Contains(strings.ToLower(head), dialect.PositionColumn)) {
			names = append(names, tr.name)
		}
	}
	return names, err
}
