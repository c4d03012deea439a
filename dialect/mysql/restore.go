package mysql

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
)

// identity is an expression for the identity: the server_id, which the administrator sets, and on MySQL the
// server_uuid, which the server makes for its data directory. MariaDB takes the part for MySQL 8 for a comment.
const identity = "CONCAT('server_id ', @@GLOBAL.server_id /*!80000 , ', server_uuid ', @@GLOBAL.server_uuid */)"

// readOnly is the variable that tells whether the server accepts writes. rowfeed does not try a write: its user
// may have the right to write to a replica, which would make the replica differ from its primary.
const readOnly = "@@GLOBAL.read_only"

// identityHere is identity, or NULL on a server that is read-only. Newer servers answer ON and OFF, older ones
// 1 and 0. Both are compared as text, because in an UPDATE the conversion of OFF to a number would fail.
const identityHere = "CASE WHEN CAST(" + readOnly + " AS CHAR) IN ('0', 'OFF') THEN " + identity + " END"

func isReadOnly(value string) bool { return value != "0" && value != "OFF" }

// Identity implements [dialect.Publish].
func (Dialect) Identity(ctx context.Context, q dialect.Querier, _ dialect.Names) (string, error) {
	var id, locked string
	err := dialect.QueryRow(ctx, q, "SELECT "+identity+", "+readOnly, nil, &id, &locked)
	if err == nil && isReadOnly(locked) {
		err = dialect.ErrReadOnly
	}
	return id, err
}

// IdentitySQL implements [dialect.Publish].
func (Dialect) IdentitySQL(dialect.Names) string { return identityHere }
