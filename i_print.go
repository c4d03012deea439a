package rowfeed

import (
	"context"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/store"
)

// PrintFeed is the script that AddFeed would run, for a database that is not at
// hand and has rowfeed's tables: the types of the columns that the spec names come from it ("id:bigint"),
// and what only the table itself tells (its other indexes, cascades, partitions) is left out, so
// that nothing refuses a table that AddFeed would refuse; Feed.Verify finds most of that. With ModeOutbox
// the rows that are there already get their places from AddFeed with the same spec, or from
// Feed.BackFill.
func PrintFeed(d dialect.Dialect, cfg *Config, spec FeedSpec) ([]dialect.Step, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	full := cfg.withDefaults()
	spec = spec.withDefaults()
	if err := firstError(full.validate(), spec.validate()); err != nil {
		return nil, err
	}
	db, err := absent(d, full)
	if err != nil {
		return nil, err
	}
	r, table, err := db.declaredRecord(spec)
	if err != nil {
		return nil, err
	}
	if spec.Adopt {
		return nil, feedtype.Invalid("adopt", "what to adopt only the table itself tells: run feed add with the server")
	}
	if err := planColumns(r, table); err != nil {
		return nil, err
	}
	up, err := modeOf(r).up(db, r, table)
	if err != nil {
		return nil, err
	}
	begin, state, note, err := modeOf(r).script(db, r)
	if err != nil {
		return nil, err
	}
	set := "state = " + d.Literal(state)
	if identity := d.IdentitySQL(db.store.Names); identity != "" {
		set += ", database_identity = " + identity
	}
	first, last := d.Frame()
	return slices.Concat(first, []dialect.Step{
		{Note: "the feed's record", SQL: r.Save(dialect.NewScript(d), db.store.Table("feeds"), db.store.Names.Schema, false, d.Now())},
		{Note: "its sequence", SQL: insertSequence(dialect.NewScript(d), db.store.Table("sequences"), r.Name, 0, d.Now())},
	}, up, begin, []dialect.Step{
		{Note: note, SQL: "UPDATE " + db.store.Table("feeds") + " SET " + set + " WHERE name = " + d.Literal(r.Name)},
	}, last), nil
}

// absent is a database that is not at hand: it spells statements, and runs none.
func absent(d dialect.Dialect, cfg Config) (*DB, error) {
	home, err := d.CurrentSchema(context.Background(), nil)
	db := &DB{store: &store.Store{Dialect: d, Names: dialect.Names{Schema: cfg.Schema, Prefix: cfg.Prefix}, Home: home}, cfg: cfg}
	if db.store.Names.Schema == "" {
		db.store.Names.Schema = home
	}
	return db, err
}

// declaredRecord makes a feed's record of what the spec alone says of the table.
func (db *DB) declaredRecord(spec FeedSpec) (*catalog.Record, *dialect.Table, error) {
	source, err := parseTable(spec.Table)
	if err != nil {
		return nil, nil, err
	}
	if len(spec.Key) == 0 {
		return nil, nil, feedtype.Invalid("key", "without a server the key columns and their types must be given, like --key id:bigint")
	}
	if source.Schema == "" {
		source.Schema = db.store.Home
	}
	t := &declared{d: db.store.Dialect, Table: dialect.Table{Name: source}}
	var index dialect.Index
	spec.Key = slices.Clone(spec.Key)
	for i, text := range spec.Key {
		if spec.Key[i], err = t.column("key", text); err != nil {
			return nil, nil, err
		}
		c := t.Column(spec.Key[i])
		index.Columns = append(index.Columns, dialect.IndexColumn{Name: c.Name, Collation: strings.TrimPrefix(c.Collate, " COLLATE "), Exact: c.Exact})
	}
	t.Unique = []dialect.Index{index}
	if err := modes[spec.Mode].declare(t, &spec); err != nil {
		return nil, nil, err
	}
	columns := spec.Columns
	spec.Columns = nil // not to be looked up
	r, err := newRecord(db.store.Dialect, spec, &t.Table)
	if err != nil {
		return nil, nil, err
	}
	r.Columns = columns
	return r, &t.Table, nil
}

// declared is a table as a spec tells of it.
type declared struct {
	d dialect.Dialect
	dialect.Table
}

// column puts a column into the table that is given as name:type, and answers its name. One
// that is there already needs no type.
func (t *declared) column(param, text string) (string, error) {
	name, declaration, typed := strings.Cut(text, ":")
	there := t.Column(name)
	switch {
	case !typed && there != nil:
		return name, nil
	case !typed:
		return "", feedtype.Invalid(param, "%q has no type; without a server write it like id:bigint", text)
	case there != nil && !strings.EqualFold(there.Type, declaration):
		return "", feedtype.Invalid(param, "%q is given with two types, %s and %s", name, there.Type, declaration)
	case there != nil:
		return name, nil
	}
	c := t.d.KeyColumn(name, declaration)
	if err := checkDeclaration(param, name, declaration, c.Kind); err != nil {
		return "", err
	}
	t.Columns = append(t.Columns, c)
	return name, nil
}
