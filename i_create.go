package rowfeed

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// AddFeed makes a feed of a table, also of a live one with rows: triggers first,
// then the keys of the rows as changes, in batches that go on where they broke off
// when AddFeed is called again. With the same spec a second call changes nothing;
// with another one it fails with code Conflict and names the differences. progress
// may be nil; it is told the number of rows recorded so far by this call, or, where keys
// keep their positions and get data shards ([FeedSpec.Adopt], or a feed that is being
// divided anew), the number of keys looked at.
func (db *DB) AddFeed(ctx context.Context, spec FeedSpec, progress func(rows int64)) (*Feed, error) {
	spec = spec.withDefaults()
	if err := spec.validate(); err != nil {
		return nil, err
	}
	source, err := parseTable(spec.Table)
	if err != nil {
		return nil, err
	}
	if err := db.store.RequireSchema(ctx, db.store.On()); err != nil {
		return nil, err
	}
	for whole := false; !whole && err == nil; {
		err = db.store.WithSchemaLock(ctx, "feed add "+spec.Name, func(q dialect.Querier) (err error) {
			whole, err = db.createFeed(ctx, q, spec, source)
			return err
		})
	}
	if err != nil {
		return nil, db.store.Fail(feedtype.FeedObject(spec.Name), "add", err)
	}
	f, err := db.Feed(ctx, spec.Name)
	if err != nil {
		return nil, err
	}
	if err := f.catalog.Reload(ctx); err != nil {
		return nil, err
	}
	if err := f.fill(ctx, progress); err != nil {
		return nil, err
	}
	if err := f.giveShards(ctx, f.DataShards(), progress); err != nil {
		return nil, err
	}
	f.Wake()
	return f, nil
}

// createFeed makes everything but the changes of the rows that are there, or a part of
// it that must be committed before it is called again for the rest. Every step can be
// repeated, for databases where DDL commits by itself.
func (db *DB) createFeed(ctx context.Context, q dialect.Querier, spec FeedSpec, source feedtype.TableName) (whole bool, err error) {
	table, err := catalog.DescribeTable(ctx, db.store, q, source)
	if err != nil || len(table.Refusals) > 0 {
		err = firstError(db.perhapsDotted(ctx, q, spec.Table, source), err)
	}
	if err != nil {
		return false, err
	}
	if err := db.mustNotBeOurs(ctx, q, table.Name); err != nil {
		return false, err
	}
	spec = spec.untyped(table)
	r, err := newRecord(db.store.Dialect, spec, table)
	if err != nil {
		return false, err
	}
	known, err := catalog.Load(ctx, db.store, q, spec.Name)
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
			return false, &feedtype.Error{Code: feedtype.Conflict, Object: feedtype.FeedObject(spec.Name), Cause: "it exists with other settings: " + strings.Join(diffs, "; "),
				Next: "take another name, or drop the feed first"}
		}
		switch known[0].State {
		case catalog.StateDropping:
			return false, &feedtype.Error{Code: feedtype.Conflict, Object: feedtype.FeedObject(spec.Name), Cause: "it is being dropped", Next: "run `rowfeed feed drop " + spec.Name + "` again, then add it"}
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
		if err := firstError(db.mustBeAlone(ctx, q, r), db.leaveOurs(ctx, q, table)); err != nil {
			return false, err
		}
		if err := planColumns(r, table); err != nil {
			return false, err
		}
		if exists {
			// Cursors of the dropped feed must not be taken for cursors of this one.
			var now int64
			if err := dialect.QueryRow(ctx, q, "SELECT "+db.store.Dialect.Now(), nil, &now); err != nil {
				return false, err
			}
			r.Generation = max(now/1_000_000, known[0].Generation+1)
		}
		if former, err = db.adopt(ctx, q, r, spec); err != nil {
			return false, err
		}
		// What FeedUp refuses must leave no record where statements commit by themselves.
		if _, err := modeOf(r).up(db, r, table); err != nil {
			return false, err
		}
		if err := db.mustBeFree(ctx, q, r.Feed(db.store.Names)); err != nil {
			return false, err
		}
		if err := modeOf(r).admit(ctx, db, q, r); err != nil {
			return false, err
		}
		if r.Identity, err = db.store.Dialect.Identity(ctx, q, db.store.Names); err != nil {
			return false, err
		}
		b := dialect.NewBuilder(db.store.Dialect)
		if _, err := q.Exec(ctx, r.Save(b, db.store.Table("feeds"), db.store.Names.Schema, exists, db.store.Dialect.Now()), b.Args()...); err != nil {
			return false, err
		}
	}
	var sequences int64
	b := dialect.NewBuilder(db.store.Dialect)
	err = dialect.QueryRow(ctx, q, "SELECT count(*) FROM "+db.store.Table("sequences")+" WHERE name = "+b.Arg(spec.Name), b.Args(), &sequences)
	if err != nil {
		return false, err
	}
	if sequences == 0 {
		b := dialect.NewBuilder(db.store.Dialect)
		if _, err := q.Exec(ctx, insertSequence(b, db.store.Table("sequences"), spec.Name, former.first, db.store.Dialect.Now()), b.Args()...); err != nil {
			return false, err
		}
	}
	if sequences > 0 && r.Adopt {
		// An earlier try broke off, and the former publisher may have gone on since.
		b := dialect.NewBuilder(db.store.Dialect)
		if _, err := q.Exec(ctx, "UPDATE "+db.store.Table("sequences")+" SET value = "+b.Arg(former.first)+", version = version + 1 WHERE name = "+b.Arg(spec.Name)+
			" AND value < "+b.Arg(former.first), b.Args()...); err != nil {
			return false, err
		}
	}
	if err := db.saveCursors(ctx, q, r, former.cursors); err != nil {
		return false, err
	}
	steps, err := modeOf(r).up(db, r, table)
	if err != nil {
		return false, err
	}
	if i := slices.IndexFunc(steps, func(s dialect.Step) bool { return s.Commit }); i >= 0 {
		return false, run(ctx, q, steps[:i+1])
	}
	if err := run(ctx, q, steps); err != nil {
		return false, err
	}
	state, err := modeOf(r).begin(ctx, db, q, r)
	if err != nil {
		return false, err
	}
	return true, db.setState(ctx, q, spec.Name, state)
}

// perhapsDotted says so when "a.b" cannot be taken as a table b in a schema a, but there
// is a table whose name holds the dot.
func (db *DB) perhapsDotted(ctx context.Context, q dialect.Querier, text string, source feedtype.TableName) error {
	if source.Schema == "" || strings.Contains(text, `"`) {
		return nil
	}
	whole, err := db.store.Dialect.Describe(ctx, q, feedtype.TableName{Name: text})
	if err != nil || len(whole.Refusals) > 0 {
		return nil // what is known already is the better answer
	}
	quoted := `"` + text + `"`
	return &feedtype.Error{Code: feedtype.Refused, Object: fmt.Sprintf("table %q", text), Cause: fmt.Sprintf("read as table %q in schema %q it cannot be followed, but there is a table of the whole name", source.Name, source.Schema),
		Next: "write the name in double quotes, and those in single ones for a shell: --table '" + quoted + "'"}
}

func (db *DB) feedUp(r *catalog.Record, table *dialect.Table) ([]dialect.Step, error) {
	steps, err := db.store.Dialect.FeedUp(r.Feed(db.store.Names), table)
	if err != nil {
		return nil, &feedtype.Error{Code: feedtype.Refused, Object: fmt.Sprintf("table %q", table.Name.String()), Cause: "no triggers can be made", Err: err}
	}
	return steps, nil
}

// mustBeFree refuses names that are taken: with another prefix, or none, a table of
// the user's own may have the name, and must not be taken for rowfeed's.
func (db *DB) mustBeFree(ctx context.Context, q dialect.Querier, f *dialect.Feed) error {
	for _, name := range f.Tables() {
		_, err := db.store.Dialect.Describe(ctx, q, name)
		if err == nil {
			return &feedtype.Error{Code: feedtype.Conflict, Object: fmt.Sprintf("table %q", name.String()), Cause: "it exists already, and is not of a feed",
				Next: "give the feed another name, or rowfeed's tables another --prefix"}
		}
		if db.store.Dialect.Classify(err) != dialect.ClassUndefined {
			return err
		}
	}
	if f.ULIDs == nil {
		return nil
	}
	missing, _, err := db.store.Dialect.ULIDProblems(ctx, q, f)
	if err == nil && len(missing) < len(db.store.Dialect.ULIDDown(f)) {
		err = &feedtype.Error{Code: feedtype.Conflict, Object: fmt.Sprintf("functions %s and %s", f.LockRoutine(), f.ULIDRoutine()), Cause: "one of them exists already, and is not of a feed",
			Next: "give the feed another name, or rowfeed's tables another --prefix"}
	}
	return err
}

// mustNotBeOurs refuses a feed of rowfeed's own tables: publishing it would be a
// change of it.
func (db *DB) mustNotBeOurs(ctx context.Context, q dialect.Querier, source feedtype.TableName) error {
	var ours []feedtype.TableName
	for _, base := range ownTables {
		ours = append(ours, db.store.Names.Table(base))
	}
	records, err := catalog.Load(ctx, db.store, q, "")
	if err != nil {
		return err
	}
	for _, r := range records {
		ours = append(ours, r.Feed(db.store.Names).Tables()...)
	}
	if slices.Contains(ours, source) {
		return &feedtype.Error{Code: feedtype.Refused, Object: fmt.Sprintf("table %q", source.String()), Cause: "it is one of rowfeed's own", Next: "make feeds of your tables"}
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
func (db *DB) setState(ctx context.Context, q dialect.Querier, name, state string) error {
	b := dialect.NewBuilder(db.store.Dialect)
	_, err := q.Exec(ctx, "UPDATE "+db.store.Table("feeds")+" SET state = "+b.Arg(state)+", fill_after = NULL WHERE name = "+b.Arg(name), b.Args()...)
	return err
}

// DropFeed removes a feed's triggers and tables; the source table stays as it was
// before AddFeed. The feed's name and generation are kept, so that a feed of the
// same name refuses old cursors. Dropping it again does nothing.
func (db *DB) DropFeed(ctx context.Context, name string) error {
	if err := feedtype.ValidName(name); err != nil {
		return err
	}
	if err := db.store.RequireSchema(ctx, db.store.On()); err != nil {
		return err
	}
	err := db.store.WithSchemaLock(ctx, "feed drop "+name, func(q dialect.Querier) error {
		known, err := catalog.Load(ctx, db.store, q, name)
		if err != nil {
			return err
		}
		if len(known) == 0 {
			return &feedtype.Error{Code: feedtype.UnknownFeed, Object: feedtype.FeedObject(name), Cause: "there is no such feed", Next: "`rowfeed feed list` shows the feeds"}
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
		table, err := db.store.Dialect.Describe(ctx, q, known[0].Source)
		if err != nil && db.store.Dialect.Classify(err) != dialect.ClassUndefined {
			return err
		}
		if err := db.revokeAll(ctx, q, known[0]); err != nil {
			return err
		}
		if err := modeOf(known[0]).down(ctx, db, q, known[0], table); err != nil {
			return err
		}
		b := dialect.NewBuilder(db.store.Dialect)
		if _, err := q.Exec(ctx, "DELETE FROM "+db.store.Table("sequences")+" WHERE name = "+b.Arg(name), b.Args()...); err != nil {
			return err
		}
		return db.setState(ctx, q, name, catalog.StateDropped)
	})
	db.mu.Lock()
	delete(db.feeds, name)
	db.mu.Unlock()
	return db.store.Fail(feedtype.FeedObject(name), "drop", err)
}
