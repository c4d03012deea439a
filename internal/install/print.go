package install

import (
	"context"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Print returns the script that creates a feed, without a connection. See rowfeed.PrintFeed.
func Print(d *dialect.Dialect, names dialect.Names, spec feedtype.FeedSpec) ([]dialect.Step, error) {
	spec, err := checkSpec(spec)
	if err != nil {
		return nil, err
	}
	db, err := withoutConnection(d, names)
	if err != nil {
		return nil, err
	}
	r, table, err := db.declaredRecord(spec)
	if err != nil {
		return nil, err
	}
	if spec.Adopt {
		return nil, feedtype.Invalid("adopt",
			"rowfeed must read the table to adopt its positions: run feed add with the server")
	}
	if err := planColumns(r, table); err != nil {
		return nil, err
	}
	up, err := kinds[r.Mode].up(db, r, table)
	if err != nil {
		return nil, err
	}
	begin, state, note, err := kinds[r.Mode].script(db, r)
	if err != nil {
		return nil, err
	}
	set, args := "set_first_state", dialect.Args{"state": state}
	if d.IdentitySQL != nil {
		set, args["identity"] = "set_first_state_and_identity", dialect.SQL(d.IdentitySQL(db.Names))
	}
	feed := r.Feed(db.Names)
	ready := statements.Step(d.Syntax, feed, set, args)
	ready.Note = note
	first, last := d.Frame()
	return slices.Concat(first, []dialect.Step{
		{Note: "the feed's record", SQL: r.Save(db.Store, false)(dialect.NewScript(d.Syntax))},
		statements.Step(d.Syntax, feed, "insert_sequence", dialect.Args{"feed": r.Name, "value": 0}),
	}, up, begin, []dialect.Step{ready}, last), nil
}

// withoutConnection returns a Database that renders statements and cannot run them.
func withoutConnection(d *dialect.Dialect, names dialect.Names) (*Database, error) {
	home, err := d.CurrentSchema(context.Background(), nil)
	db := &Database{&store.Store{Dialect: d, Names: names, Home: home}}
	if db.Names.Schema == "" {
		db.Names.Schema = home
	}
	return db, err
}

// declaredRecord makes a feed's record from what the spec says about the table.
func (db *Database) declaredRecord(spec feedtype.FeedSpec) (*catalog.FeedRecord, *dialect.Table, error) {
	source, err := catalog.ParseTable(spec.Table)
	if err != nil {
		return nil, nil, err
	}
	if len(spec.Key) == 0 {
		return nil, nil, feedtype.Invalid("key",
			"without a server the key columns and their types must be given, like --key id:bigint")
	}
	if source.Schema == "" {
		source.Schema = db.Home
	}
	t := &declared{d: db.Dialect, Table: dialect.Table{Name: source}}
	var index dialect.Index
	spec.Key = slices.Clone(spec.Key)
	for i, text := range spec.Key {
		if spec.Key[i], err = t.column("key", text); err != nil {
			return nil, nil, err
		}
		c := t.Column(spec.Key[i])
		collation := strings.TrimPrefix(c.Collate, " COLLATE ")
		index.Columns = append(index.Columns, dialect.IndexColumn{Name: c.Name, Collation: collation, Exact: c.Exact})
	}
	t.Unique = []dialect.Index{index}
	if err := kinds[spec.Mode].declare(t, &spec); err != nil {
		return nil, nil, err
	}
	columns := spec.Columns
	spec.Columns = nil // newRecord would look for them in the table
	r, err := newRecord(db.Dialect, spec, &t.Table)
	if err != nil {
		return nil, nil, err
	}
	r.Columns = columns
	return r, &t.Table, nil
}
