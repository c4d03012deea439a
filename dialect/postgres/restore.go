package postgres

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
)

// identity is the cluster's id, the timeline, which every promotion and every
// recovery to a point in time begins anew, the database, and the table of sequences,
// which a dump that is restored makes anew.
func (d Dialect) identity(n dialect.Names) string {
	return "'system ' || (SELECT system_identifier FROM pg_control_system()) ||\n" +
		"  ', timeline ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) ||\n" +
		"  ', database ' || (SELECT oid FROM pg_database WHERE datname = current_database()) ||\n" +
		"  ', table ' || " + d.Literal(dialect.Qualified(d, n.Table("sequences"))) + "::regclass::oid"
}

// IdentitySQL asks a standby nothing that only a primary knows.
func (d Dialect) IdentitySQL(n dialect.Names) string {
	return "CASE WHEN NOT pg_is_in_recovery() THEN " + d.identity(n) + " END"
}

// Identity is that of a primary.
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
