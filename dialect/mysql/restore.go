package mysql

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
)

// identity is what a server knows of itself: the id that its administrator gave it,
// and on MySQL the one that it made for its data folder. (MariaDB takes the part that
// is for MySQL 8 for a comment.)
const identity = "CONCAT('server_id ', @@GLOBAL.server_id /*!80000 , ', server_uuid ', @@GLOBAL.server_uuid */)"

// readOnly is asked, not tried: rowfeed's user may have the right to write to a
// replica all the same, which would part it from its primary.
const readOnly = "@@GLOBAL.read_only"

// identityHere is NULL on a server that is read-only. Newer ones say ON and OFF, older ones 1 and 0,
// which are compared as text: an UPDATE takes no number of OFF.
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
