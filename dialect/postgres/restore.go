package postgres

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
)

// identity returns an expression for the identity. It has the system identifier of the cluster, the timeline,
// the oid of the database, and the oid of the table of sequences. Every promotion and every recovery to a point
// in time begins a new timeline. A dump that is restored makes the table again, with another oid.
func (d Dialect) identity(n dialect.Names) string {
	return "'system ' || (SELECT system_identifier FROM pg_control_system()) ||\n" +
		"  ', timeline ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) ||\n" +
		"  ', database ' || (SELECT oid FROM pg_database WHERE datname = current_database()) ||\n" +
		"  ', table ' || " + d.Literal(dialect.Qualified(d, n.Table("sequences"))) + "::regclass::oid"
}

// IdentitySQL implements [dialect.Publish]. The functions that only a primary accepts are not called on a
// standby.
func (d Dialect) IdentitySQL(n dialect.Names) string {
	return "CASE WHEN NOT pg_is_in_recovery() THEN " + d.identity(n) + " END"
}

// Identity implements [dialect.Publish].
func (d Dialect) Identity(ctx context.Context, q dialect.Querier, n dialect.Names) (string, error) {
	var id *string
	err := dialect.QueryRow(ctx, q, "SELECT "+d.IdentitySQL(n), nil, &id)
	if err != nil {
		return "", err
	}
	if id == nil {
		return "", dialect.ErrReadOnly
	}
	return *id, nil
}
