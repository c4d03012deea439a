package ulid

import (
	"database/sql"

	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// isolations are the levels that an application's transaction may have.
func isolations(x *suite.Env) []sql.IsolationLevel {
	if x.Family() == "sqlite" {
		return []sql.IsolationLevel{sql.LevelDefault}
	}
	return []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}
}
