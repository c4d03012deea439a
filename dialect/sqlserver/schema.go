package sqlserver

import (
	"context"
	"database/sql"
	_ "embed" // for schema.sql
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

//go:embed schema.sql
var schemaFile string

var schema = dialect.NewStatements(schemaFile)

// CurrentSchema implements [dialect.Core].
func (d database) CurrentSchema(ctx context.Context, q dialect.Querier) (name string, err error) {
	if q == nil {
		return "dbo", nil
	}
	err = dialect.One(ctx, q, syntax, statement(schema, "current_schema"), nil, &name)
	return name, err
}

// SchemaVersion implements [dialect.Core].
func (d database) SchemaVersion(ctx context.Context, q dialect.Querier, n dialect.Names) (int, error) {
	var version sql.NullInt64
	err := dialect.One(ctx, q, syntax, rendered(schema, n, "version"), nil, &version)
	return int(version.Int64), err
}

// WithSchemaLock implements [dialect.Core] by one transaction with a lock by name. It refuses a database without row
// versions: no arrangement of locks keeps rowfeed's guarantees there.
func (d database) WithSchemaLock(ctx context.Context, db *sql.DB, n dialect.Names,
	fn func(dialect.Querier) error) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	q := dialect.On(tx)
	if _, err := q.Exec(ctx, statement(schema, "bound_schema_changes").String()); err != nil {
		return err
	}
	missing, err := d.rowVersions(ctx, q)
	if err == nil && missing != "" {
		err = fmt.Errorf("the database is not set up for rowfeed: %s", missing)
	}
	if err != nil {
		return err
	}
	if _, err := dialect.Exec(ctx, q, syntax, statement(schema, "lock_schema"),
		dialect.Args{"lock": "rowfeed schema " + n.Schema + "." + n.Prefix}); err != nil {
		return err
	}
	if err := fn(q); err != nil {
		return err
	}
	return tx.Commit()
}

// leastLevel is the compatibility level from which on OPENJSON is known.
const leastLevel = 130

// rowVersions returns what to run so that the database keeps row versions, and knows all that statements use. It is
// empty if the database does.
func (d database) rowVersions(ctx context.Context, q dialect.Querier) (missing string, err error) {
	var committed, snapshot, level int
	var database string
	err = dialect.One(ctx, q, syntax, statement(schema, "row_versions"), nil, &committed, &snapshot, &level, &database)
	switch {
	case err != nil || committed == 1 && snapshot == 1 && level >= leastLevel:
		return "", err
	case level < leastLevel:
		return fmt.Sprintf("run ALTER DATABASE %s SET COMPATIBILITY_LEVEL = %d", quote(database), leastLevel), nil
	case committed != 1:
		return "run ALTER DATABASE " + quote(database) + " SET READ_COMMITTED_SNAPSHOT ON WITH ROLLBACK IMMEDIATE, " +
			"which needs the database for a moment", nil
	}
	return "run ALTER DATABASE " + quote(database) + " SET ALLOW_SNAPSHOT_ISOLATION ON", nil
}

// OtherSchemas implements [dialect.Renames].
func (d database) OtherSchemas(ctx context.Context, q dialect.Querier, n dialect.Names) ([]string, error) {
	return dialect.All(ctx, q, syntax, statement(schema, "other_schemas"), dialect.Args{
		"own": n.Schema, "feeds": n.Table("feeds").Name, "version": n.Table("schema_version").Name}, scanName)
}

// scanName scans a column of names.
func scanName(rows dialect.Rows) (name string, err error) { return name, rows.Scan(&name) }

// keyColumn is [dialect.Codec].KeyColumn. Without COLLATE in the declaration, the collation is the database's default.
func keyColumn(name, declaration string) dialect.Column {
	base, declared := baseType(declaration), declaration
	i := strings.Index(strings.ToUpper(declaration), collateClause)
	if i >= 0 {
		declared = declaration[:i]
		declaration = declared + collateClause + strings.TrimSpace(declaration[i+len(collateClause):])
	}
	return dialect.Column{Name: name, Type: declared, Decl: declaration, Kind: kindOf(base),
		Exact: isExact(base, collationOf(declaration)), NoKey: unkeyed(base, declared)}
}
