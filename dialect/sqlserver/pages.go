package sqlserver

import (
	"context"
	"database/sql"
	_ "embed" // for pages.sql
	"errors"

	"github.com/rowfeed/rowfeed/dialect"
)

//go:embed pages.sql
var pagesFile string

var pages = dialect.NewStatements(pagesFile)

// ReadPage implements [dialect.Pages] by one statement, which has one snapshot. Its transaction only carries
// the settings.
func (d database) ReadPage(ctx context.Context, db *sql.DB, f *dialect.Feed,
	q dialect.PageQuery) (*dialect.PageRows, error) {
	begin := d.Begin(dialect.ForRead, f.Names)
	tx, err := db.BeginTx(ctx, begin.Options)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	on := dialect.On(tx)
	for _, s := range begin.First {
		if _, err := on.Exec(ctx, s); err != nil {
			return nil, err
		}
	}
	q.Sorted = true // FORCE ORDER says nothing of the order of the rows
	page, err := dialect.ReadInOrder(ctx, on, syntax, f, q, dialect.Args{
		"identity": statement(publishing, "set_identity").With(nil)})
	if err != nil {
		return nil, err
	}
	page.EndAtCut(f, q)
	return page, tx.Commit()
}

// OpenChange implements [dialect.Replicas]. The name is the state that the transaction leaves: what READ UNCOMMITTED
// shows, if the committed state, which is read afterwards, is another one.
func (d database) OpenChange(ctx context.Context, db *sql.DB, f *dialect.Feed, shard int) (string, error) {
	var states [2]string
	args := dialect.Args{"feed": f.Name}
	if f.ULIDs != nil {
		args["shard"] = shard
	}
	for i, name := range []string{"open_state_of_head", "state_of_head"} {
		err := dialect.One(ctx, dialect.On(db), syntax, pages.For(syntax, f, name), args, &states[i])
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return "", err
		}
	}
	if states[0] == states[1] {
		return "", nil
	}
	return states[0], nil
}
