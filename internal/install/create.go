package install

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// Create makes everything that a feed needs but the changes, or the places, of the rows that are there: see
// Feed.Complete. What is there already it leaves alone, unless it was made with another spec.
func (db *Database) Create(ctx context.Context, spec feedtype.FeedSpec) error {
	spec, err := checkSpec(spec)
	if err != nil {
		return err
	}
	source, err := parseTable(spec.Table)
	if err != nil {
		return err
	}
	if err := db.RequireSchema(ctx, db.On()); err != nil {
		return err
	}
	for whole := false; !whole && err == nil; {
		err = db.WithSchemaLock(ctx, "feed add "+spec.Name, func(q dialect.Querier) (err error) {
			whole, err = db.createFeed(ctx, q, spec, source)
			return err
		})
	}
	return db.Fail(feedtype.FeedObject(spec.Name), "add", err)
}

// createFeed makes everything but the changes of the rows that are there, or a part of
// it that must be committed before it is called again for the rest. Every step can be
// repeated, for databases where DDL commits by itself.
func (db *Database) createFeed(ctx context.Context, q dialect.Querier, spec feedtype.FeedSpec,
	source feedtype.TableName) (whole bool, err error) {
	table, err := catalog.DescribeTable(ctx, db.Store, q, source)
	if err != nil || len(table.Refusals) > 0 {
		err = cmp.Or(db.perhapsDotted(ctx, q, spec.Table, source), err)
	}
	if err != nil {
		return false, err
	}
	if err := db.mustNotBeOurs(ctx, q, table.Name); err != nil {
		return false, err
	}
	spec = untyped(spec, table)
	r, err := newRecord(db.Dialect, spec, table)
	if err != nil {
		return false, err
	}
	known, err := catalog.Load(ctx, db.Store, q, spec.Name)
	if err != nil {
		return false, err
	}
	exists := len(known) > 0
	var former adopted
	if exists && known[0].State != catalog.StateDropped {
		if err := known[0].Unreadable; err != nil {
			return false, err
		}
		if diffs := differences(known[0], r); len(diffs) > 0 {
			return false, feedError(feedtype.Conflict, spec.Name, "take another name, or drop the feed first",
				"it exists with other settings: %s", strings.Join(diffs, "; "))
		}
		switch known[0].State {
		case catalog.StateDropping:
			return false, feedError(feedtype.Conflict, spec.Name, "run `rowfeed feed drop "+spec.Name+
				"` again, then add it", "it is being dropped")
		case catalog.StateCreating:
			r.Added = known[0].Added // the table may have them by now
			r.Generation = known[0].Generation
			if former, err = db.adopt(ctx, q, r, spec); err != nil {
				return false, err
			}
		default:
			return true, nil
		}
	} else {
		if err := cmp.Or(db.mustBeAlone(ctx, q, r), db.leaveOurs(ctx, q, table)); err != nil {
			return false, err
		}
		if err := planColumns(r, table); err != nil {
			return false, err
		}
		if exists {
			// Cursors of the dropped feed must not be taken for cursors of this one.
			var now int64
			if err := dialect.QueryRow(ctx, q, "SELECT "+db.Dialect.Now(), nil, &now); err != nil {
				return false, err
			}
			r.Generation = max(now/1_000_000, known[0].Generation+1)
		}
		if former, err = db.adopt(ctx, q, r, spec); err != nil {
			return false, err
		}
		// What FeedUp refuses must leave no record where statements commit by themselves.
		if _, err := kinds[r.Mode].up(db, r, table); err != nil {
			return false, err
		}
		if err := db.mustBeFree(ctx, q, r.Feed(db.Names)); err != nil {
			return false, err
		}
		if err := kinds[r.Mode].admit(ctx, db, q, r); err != nil {
			return false, err
		}
		if r.Identity, err = db.Dialect.Identity(ctx, q, db.Names); err != nil {
			return false, err
		}
		b := dialect.NewBuilder(db.Dialect)
		if _, err := q.Exec(ctx, r.Save(b, db.Table("feeds"), db.Names.Schema, exists, db.Dialect.Now()),
			b.Args()...); err != nil {
			return false, err
		}
	}
	var sequences int64
	b := dialect.NewBuilder(db.Dialect)
	err = dialect.QueryRow(ctx, q, "SELECT count(*) FROM "+db.Table("sequences")+" WHERE name = "+b.Arg(spec.Name),
		b.Args(), &sequences)
	if err != nil {
		return false, err
	}
	if sequences == 0 {
		b := dialect.NewBuilder(db.Dialect)
		if _, err := q.Exec(ctx, insertSequence(b, db.Table("sequences"), spec.Name, former.first, db.Dialect.Now()),
			b.Args()...); err != nil {
			return false, err
		}
	}
	if sequences > 0 && r.Adopt {
		// An earlier try broke off, and the former publisher may have gone on since.
		b := dialect.NewBuilder(db.Dialect)
		if _, err := q.Exec(ctx, "UPDATE "+db.Table("sequences")+" SET value = "+b.Arg(former.first)+
			", version = version + 1 WHERE name = "+b.Arg(spec.Name)+
			" AND value < "+b.Arg(former.first), b.Args()...); err != nil {
			return false, err
		}
	}
	if err := db.saveCursors(ctx, q, r, former.cursors); err != nil {
		return false, err
	}
	steps, err := kinds[r.Mode].up(db, r, table)
	if err != nil {
		return false, err
	}
	if i := slices.IndexFunc(steps, func(s dialect.Step) bool { return s.Commit }); i >= 0 {
		return false, run(ctx, q, steps[:i+1])
	}
	if err := run(ctx, q, steps); err != nil {
		return false, err
	}
	state, err := kinds[r.Mode].begin(ctx, db, q, r)
	if err != nil {
		return false, err
	}
	return true, db.setState(ctx, q, spec.Name, state)
}

// perhapsDotted says so when "a.b" cannot be taken as a table b in a schema a, but there
// is a table whose name holds the dot.
func (db *Database) perhapsDotted(ctx context.Context, q dialect.Querier, text string,
	source feedtype.TableName) error {
	if source.Schema == "" || strings.Contains(text, `"`) {
		return nil
	}
	whole, err := db.Dialect.Describe(ctx, q, feedtype.TableName{Name: text})
	if err != nil || len(whole.Refusals) > 0 {
		return nil // what is known already is the better answer
	}
	quoted := `"` + text + `"`
	return &feedtype.Error{
		Code:   feedtype.Refused,
		Object: fmt.Sprintf("table %q", text),
		Cause: fmt.Sprintf("read as table %q in schema %q it cannot be followed, but "+
			"there is a table of the whole name",
			source.Name, source.Schema),
		Next: "write the name in double quotes, and those in single ones for a shell: --table '" + quoted + "'",
	}
}

func (db *Database) feedUp(r *catalog.Record, table *dialect.Table) ([]dialect.Step, error) {
	steps, err := db.Dialect.FeedUp(r.Feed(db.Names), table)
	if err != nil {
		return nil, &feedtype.Error{
			Code:   feedtype.Refused,
			Object: fmt.Sprintf("table %q", table.Name.String()),
			Cause:  "no triggers can be made",
			Err:    err,
		}
	}
	return steps, nil
}

// mustBeFree refuses names that are taken: with another prefix, or none, a table of
// the user's own may have the name, and must not be taken for rowfeed's.
func (db *Database) mustBeFree(ctx context.Context, q dialect.Querier, f *dialect.Feed) error {
	for _, name := range f.Tables() {
		_, err := db.Dialect.Describe(ctx, q, name)
		if err == nil {
			return tableError(feedtype.Conflict, name,
				"give the feed another name, or rowfeed's tables another --prefix",
				"it exists already, and is not of a feed")
		}
		if db.Dialect.Classify(err) != dialect.ClassUndefined {
			return err
		}
	}
	if f.ULIDs == nil {
		return nil
	}
	missing, _, err := db.Dialect.ULIDProblems(ctx, q, f)
	if err == nil && len(missing) < len(db.Dialect.ULIDDown(f)) {
		err = &feedtype.Error{
			Code:   feedtype.Conflict,
			Object: fmt.Sprintf("functions %s and %s", f.LockRoutine(), f.ULIDRoutine()),
			Cause:  "one of them exists already, and is not of a feed",
			Next:   "give the feed another name, or rowfeed's tables another --prefix",
		}
	}
	return err
}

// mustNotBeOurs refuses a feed of rowfeed's own tables: publishing it would be a
// change of it.
func (db *Database) mustNotBeOurs(ctx context.Context, q dialect.Querier, source feedtype.TableName) error {
	var ours []feedtype.TableName
	for _, base := range ownTables {
		ours = append(ours, db.Names.Table(base))
	}
	records, err := catalog.Load(ctx, db.Store, q, "")
	if err != nil {
		return err
	}
	for _, r := range records {
		ours = append(ours, r.Feed(db.Names).Tables()...)
	}
	if slices.Contains(ours, source) {
		return tableError(feedtype.Refused, source, "make feeds of your tables", "it is one of rowfeed's own")
	}
	return nil
}

func run(ctx context.Context, q dialect.Querier, steps []dialect.Step) error {
	for _, s := range steps {
		if _, err := q.Exec(ctx, s.SQL); err != nil {
			return fmt.Errorf("%s: %w", s.Note, err)
		}
	}
	return nil
}

// setState is for those who hold the schema lock.
func (db *Database) setState(ctx context.Context, q dialect.Querier, name, state string) error {
	b := dialect.NewBuilder(db.Dialect)
	_, err := q.Exec(ctx, "UPDATE "+db.Table("feeds")+" SET state = "+b.Arg(state)+", fill_after = NULL WHERE name = "+
		b.Arg(name), b.Args()...)
	return err
}

// Drop removes what Create has made. See rowfeed.DB.DropFeed.
func (db *Database) Drop(ctx context.Context, name string) error {
	if err := feedtype.ValidName(name); err != nil {
		return err
	}
	if err := db.RequireSchema(ctx, db.On()); err != nil {
		return err
	}
	err := db.WithSchemaLock(ctx, "feed drop "+name, func(q dialect.Querier) error {
		known, err := catalog.Load(ctx, db.Store, q, name)
		if err != nil {
			return err
		}
		if len(known) == 0 {
			return feedError(feedtype.UnknownFeed, name, "`rowfeed feed list` shows the feeds", "there is no such feed")
		}
		if known[0].State == catalog.StateDropped {
			return nil
		}
		if known[0].Unreadable != nil {
			return known[0].Unreadable
		}
		// Where DDL commits by itself a drop that breaks off must not pass for a feed.
		if err := db.setState(ctx, q, name, catalog.StateDropping); err != nil {
			return err
		}
		table, err := db.Dialect.Describe(ctx, q, known[0].Source)
		if err != nil && db.Dialect.Classify(err) != dialect.ClassUndefined {
			return err
		}
		if err := db.revokeAll(ctx, q, known[0]); err != nil {
			return err
		}
		if err := kinds[known[0].Mode].down(ctx, db, q, known[0], table); err != nil {
			return err
		}
		b := dialect.NewBuilder(db.Dialect)
		if _, err := q.Exec(ctx, "DELETE FROM "+db.Table("sequences")+" WHERE name = "+b.Arg(name),
			b.Args()...); err != nil {
			return err
		}
		return db.setState(ctx, q, name, catalog.StateDropped)
	})
	return db.Fail(feedtype.FeedObject(name), "drop", err)
}
