package postgres

import (
	"context"
	"database/sql"
	_ "embed" // for schema.sql

	"github.com/rowfeed/rowfeed/dialect"
)

//go:embed schema.sql
var schemaFile string

var schema = dialect.NewStatements(schemaFile)

// CurrentSchema implements [dialect.Core].
func (d database) CurrentSchema(ctx context.Context, q dialect.Querier) (name string, err error) {
	if q == nil {
		return "public", nil
	}
	err = dialect.One(ctx, q, syntax, statement(schema, "current_schema"), nil, &name)
	return name, err
}

// SchemaVersion implements [dialect.Core].
func (d database) SchemaVersion(ctx context.Context, q dialect.Querier, n dialect.Names) (int, error) {
	var exists bool
	if err := dialect.One(ctx, q, syntax, named(schema, n, "has_schema"), nil, &exists); err != nil || !exists {
		return 0, err
	}
	var version sql.NullInt64
	err := dialect.One(ctx, q, syntax, named(schema, n, "version"), nil, &version)
	return int(version.Int64), err
}

// OtherSchemas implements [dialect.Renames].
func (d database) OtherSchemas(ctx context.Context, q dialect.Querier, n dialect.Names) ([]string, error) {
	return dialect.All(ctx, q, syntax, statement(schema, "other_schemas"), dialect.Args{
		"own": n.Schema, "feeds": n.Table("feeds").Name, "version": n.Table("schema_version").Name,
	}, func(rows dialect.Rows) (schema string, err error) { return schema, rows.Scan(&schema) })
}

// WithSchemaLock implements [dialect.Core] by one transaction with an advisory lock.
func (d database) WithSchemaLock(ctx context.Context, db *sql.DB, n dialect.Names,
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
	if _, err := dialect.Exec(ctx, q, syntax, statement(schema, "lock_schema"),
		dialect.Args{"lock": "rowfeed schema " + n.Schema + "." + n.Prefix}); err != nil {
		return err
	}
	if err := fn(q); err != nil {
		return err
	}
	return tx.Commit()
}
