package bench

import (
	"context"
	"regexp"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

const (
	// stem begins the prefix of every run. Four more characters tell the runs apart. A longer prefix would be
	// refused by rowfeed.
	stem = "rfbench"
	// marker is the table in which a run describes itself. A run makes it first and drops it last, so that a set of
	// tables without it belongs to no run.
	marker = "run"
)

var prefixPattern = regexp.MustCompile(`^` + stem + `[a-z0-9]{4}_`)

// object is a table or another object that a run has made.
type object struct{ kind, name string }

// objects returns what exists with a prefix, in the order in which to drop it: functions and sequences after the tables
// whose triggers call them, the marker last.
func (db *database) objects(ctx context.Context, prefix string) (all []object, err error) {
	var last []object
	for _, list := range append([]others{{"TABLE", db.flavour.tables}}, db.flavour.others...) {
		names, err := dialect.QueryAll(ctx, dialect.On(db.pool), list.query, []any{db.schema},
			func(rows dialect.Rows) (name string, err error) {
				return name, rows.Scan(&name)
			})
		if err != nil {
			return nil, db.explain("list tables", err)
		}
		for _, name := range names {
			switch {
			case name == prefix+marker:
				last = append(last, object{list.kind, name})
			case strings.HasPrefix(name, prefix):
				all = append(all, object{list.kind, name})
			}
		}
	}
	return append(all, last...), nil
}

func (db *database) drop(ctx context.Context, o object) error {
	ctx, cancel := context.WithTimeout(ctx, dropTimeout)
	defer cancel()
	_, err := db.pool.ExecContext(ctx,
		"DROP "+o.kind+" "+dialect.Qualified(db.dialect.Syntax, feedtype.TableName{Schema: db.schema, Name: o.name}))
	return err
}
