package sqlserver

import (
	"context"
	"database/sql"
	_ "embed" // for schema.sql
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
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

// WithSchemaLock implements [dialect.Core] by one transaction with a lock by name. It refuses a database that lacks a
// requirement: without row versions, for example, no arrangement of locks keeps rowfeed's guarantees.
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
	lacks, err := d.lacks(ctx, q)
	if err != nil {
		return err
	}
	if lacks != nil {
		return &feedtype.Error{Code: feedtype.Refused, Object: lacks.object, Cause: lacks.cause, Next: lacks.next}
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

// lack is a requirement of rowfeed that a server or database does not meet.
type lack struct{ object, cause, next string }

func (l *lack) String() string { return l.object + ": " + l.cause + ": " + l.next }

// oldestVersion is that of SQL Server 2017, the first with CREATE OR ALTER, STRING_AGG and CURRENT_TRANSACTION_ID.
const oldestVersion = 14

// lacks returns the first requirement that is not met, or nil.
func (d database) lacks(ctx context.Context, q dialect.Querier) (*lack, error) {
	var name, delayed string
	var committed, snapshot, level, edition, version int
	if err := dialect.One(ctx, q, syntax, statement(schema, "requirements"), nil, &name, &committed, &snapshot, &level,
		&delayed, &edition, &version); err != nil {
		return nil, err
	}
	const azure = 5 // the first edition that is a service
	object, alter := "database "+name, "run ALTER DATABASE "+quote(name)+" SET "
	switch {
	case edition < azure && version < oldestVersion:
		return &lack{"the server", fmt.Sprintf("its version is %d; rowfeed needs SQL Server 2017 (version %d) or later",
			version, oldestVersion), "upgrade SQL Server"}, nil
	case level < 130:
		return &lack{object, fmt.Sprintf("its compatibility level is %d; rowfeed needs 130, for OPENJSON", level),
			alter + "COMPATIBILITY_LEVEL = 130, or a higher level"}, nil
	case committed != 1:
		return &lack{object, "it does not keep the versions of rows that readers need: READ_COMMITTED_SNAPSHOT is off",
			alter + "READ_COMMITTED_SNAPSHOT ON WITH ROLLBACK IMMEDIATE; this ends all open transactions"}, nil
	case snapshot != 1:
		return &lack{object, "it does not keep the versions of rows that readers need: ALLOW_SNAPSHOT_ISOLATION is off",
			alter + "ALLOW_SNAPSHOT_ISOLATION ON; this needs no interruption"}, nil
	}
	if forgetful(delayed) != nil {
		return &lack{object, "a power failure can undo what readers have seen: DELAYED_DURABILITY is FORCED",
			alter + "DELAYED_DURABILITY = ALLOWED"}, nil
	}
	return nil, nil
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
