package mysql

import (
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// OwnULID implements [dialect.ULID].
func (Dialect) OwnULID() dialect.Column {
	return dialect.Column{Name: "ulid", Type: "binary(16)", Decl: "binary(16)", Kind: feedtype.Binary}
}
