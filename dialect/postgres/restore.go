package postgres

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
)

// IdentitySQL implements [dialect.Publish].
func (d Dialect) IdentitySQL(n dialect.Names) string {
	st, err := publishing.Render(d, n, "identity")
	if err != nil {
		panic(err)
	}
	return st.String()
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
