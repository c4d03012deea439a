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

// Create makes everything that a feed needs, except for recording or placing the rows that the table already has:
// [Filler.Complete] does that. It continues a creation that was interrupted. It changes nothing if the feed exists with
// the same spec, and refuses a feed that exists with another.
func (db *Database) Create(ctx context.Context, spec feedtype.FeedSpec) error {
	spec, err := checkSpec(spec)
	if err != nil {
		return err
	}
	source, err := catalog.ParseTable(spec.Table)
	if err != nil {
		return err
	}
	if err := db.RequireSchema(ctx, db.On()); err != nil {
		return err
	}
	for complete := false; !complete && err == nil; {
		err = db.WithSchemaLock(ctx, "feed add "+spec.Name, func(q dialect.Querier) (err error) {
			c := &creation{db: db, q: q, spec: spec}
			complete, err = c.run(ctx, source)
			return err
		})
	}
	return db.Fail(feedtype.FeedObject(spec.Name), "add", err)
}

// creation is one attempt to create a feed, under the schema lock. Every step can be repeated: on MySQL, MariaDB and
// others each DDL statement commits, so an attempt that fails can leave some of its objects behind.
type creation struct {
	db     *Database
	q      dialect.Querier
	spec   feedtype.FeedSpec
	table  *dialect.Table
	record *catalog.FeedRecord
	known  *catalog.FeedRecord // the record that the catalog has of this name, or nil
	adopted
}

// run does the steps in their order. It returns false if the objects made so far must be committed before the next ones
// can be made. The caller then commits, and starts another attempt.
func (c *creation) run(ctx context.Context, source feedtype.TableName) (complete bool, err error) {
	if err := c.describe(ctx, source); err != nil {
		return false, err
	}
	if c.known != nil && c.known.State != catalog.StateDropped {
		if exists, err := c.resume(ctx); err != nil || exists {
			return exists, err
		}
	} else if err := c.register(ctx); err != nil {
		return false, err
	}
	if err := c.saveSequence(ctx); err != nil {
		return false, err
	}
	if err := saveCursors(ctx, c.db, c.q, c.record, c.cursors); err != nil {
		return false, err
	}
	return c.makeObjects(ctx)
}

// describe reads the table and the catalog, and makes the record that the spec asks for.
func (c *creation) describe(ctx context.Context, source feedtype.TableName) (err error) {
	c.table, err = catalog.DescribeTable(ctx, c.db.Store, c.q, source)
	if err != nil || len(c.table.Refusals) > 0 {
		err = cmp.Or(c.suggestQuotes(ctx, source), err)
	}
	if err != nil {
		return err
	}
	if err := c.refuseOwnTable(ctx); err != nil {
		return err
	}
	c.spec = withoutTypes(c.spec, c.table)
	if c.record, err = newRecord(c.db.Dialect, c.spec, c.table); err != nil {
		return err
	}
	known, err := catalog.Load(ctx, c.db.Store, c.q, c.spec.Name)
	if err == nil && len(known) > 0 {
		c.known = known[0]
	}
	return err
}

// resume continues a creation that was interrupted. It returns true if the feed is already complete.
func (c *creation) resume(ctx context.Context) (exists bool, err error) {
	if c.known.Unreadable != nil {
		return false, c.known.Unreadable
	}
	if diffs := differences(c.known, c.record); len(diffs) > 0 {
		return false, feedError(feedtype.Conflict, c.spec.Name, "use another name, or drop the feed first",
			"it exists with other settings: %s", strings.Join(diffs, "; "))
	}
	switch c.known.State {
	case catalog.StateDropping:
		return false, feedError(feedtype.Conflict, c.spec.Name,
			"run `rowfeed feed drop "+c.spec.Name+"` again, then add it", "it is being dropped")
	case catalog.StateCreating:
		c.record.Added = c.known.Added // the table may have these columns by now
		c.record.Generation, c.record.Dropped = c.known.Generation, c.known.Dropped
		if c.adopted, err = adopt(ctx, c.db, c.q, c.record, c.spec); err != nil || c.record.FormerValue == nil {
			return false, err
		}
		now := *c.known // the former publisher may have continued
		now.FormerValue = c.record.FormerValue
		return false, c.db.saveOptions(ctx, c.q, &now)
	}
	return true, nil
}

// register refuses what a new feed cannot have, and saves its record before anything else is made.
func (c *creation) register(ctx context.Context) (err error) {
	db, q, r := c.db, c.q, c.record
	err = cmp.Or(c.refuseSharedPositions(ctx), ignoreOwnTriggers(ctx, db, q, c.table))
	if err != nil {
		return err
	}
	if err := planColumns(r, c.table); err != nil {
		return err
	}
	if nulls, err := db.nullKeys(ctx, q, r); err != nil || nulls != "" {
		return cmp.Or(err, error(&feedtype.Error{Code: feedtype.Refused, Cause: nulls,
			Object: fmt.Sprintf("table %q", r.Source.String()),
			Next:   "give these rows keys, or delete them; then run the command again"}))
	}
	if err := c.continueDropped(ctx); err != nil {
		return err
	}
	if c.adopted, err = adopt(ctx, db, q, r, c.spec); err != nil {
		return err
	}
	if err := db.keepsShards(ctx, q, r, c.table); err != nil {
		return err
	}
	// If each statement commits, a table that the dialect refuses must leave no record.
	if _, err := kinds[r.Mode].up(db, r, c.table); err != nil {
		return err
	}
	if err := c.refuseTakenNames(ctx); err != nil {
		return err
	}
	if err := kinds[r.Mode].admit(ctx, db, q, r); err != nil {
		return err
	}
	if r.Identity, err = db.Dialect.Identity(ctx, q, db.Names); err != nil {
		return err
	}
	b := dialect.NewBuilder(db.Dialect.Syntax)
	save := r.Save(db.Store, c.known != nil)(b)
	_, err = q.Exec(ctx, save, b.Args()...)
	return err
}

// saveSequence makes the feed's row of the sequences table. If the row exists from an attempt that failed, it raises
// the sequence to what the feed adopts: the former publisher may have continued since that attempt.
func (c *creation) saveSequence(ctx context.Context) error {
	db, feed := c.db, c.spec.Name
	if before := c.record.Dropped; before.Continues() && before.Below > 0 {
		_, err := db.Exec(ctx, c.q, statements, "set_tombstones_below",
			dialect.Args{"below": before.Below, "feed": feed})
		if err != nil {
			return err
		}
	}
	var n int64
	if c.record.PublishedElsewhere {
		return nil // pages read the sequence of the other publisher
	}
	err := db.One(ctx, c.q, statements, "count_sequences", dialect.Args{"feed": feed}, &n)
	if err != nil || n > 0 && !c.record.Adopt {
		return err
	}
	save := "insert_sequence"
	if n > 0 {
		save = "raise_sequence"
	}
	_, err = db.Exec(ctx, c.q, statements, save, dialect.Args{"feed": feed, "value": c.first})
	return err
}

// makeObjects makes tables, triggers and functions, and sets the state that follows. It returns false after a step
// that has to be committed before the next.
func (c *creation) makeObjects(ctx context.Context) (complete bool, err error) {
	kind := kinds[c.record.Mode]
	steps, err := kind.up(c.db, c.record, c.table)
	if err != nil {
		return false, err
	}
	if i := slices.IndexFunc(steps, func(s dialect.Step) bool { return s.Commit }); i >= 0 {
		return false, run(ctx, c.q, steps[:i+1])
	}
	if err := run(ctx, c.q, steps); err != nil {
		return false, err
	}
	state, err := kind.begin(ctx, c.db, c.q, c.record)
	if err != nil {
		return false, err
	}
	return true, c.db.setState(ctx, c.q, c.spec.Name, state)
}

// suggestQuotes returns an error that says how to write the name "a.b" if schema a has no table b, but a table has the
// name "a.b".
func (c *creation) suggestQuotes(ctx context.Context, source feedtype.TableName) error {
	text := c.spec.Table
	if source.Schema == "" || strings.Contains(text, `"`) {
		return nil
	}
	dotted, err := c.db.Dialect.Describe(ctx, c.q, feedtype.TableName{Name: text})
	if err != nil || len(dotted.Refusals) > 0 {
		return nil // the caller's error is the better answer
	}
	next := "write the name in double quotes, and those in single ones for a shell: --table '\"" + text + "\"'"
	return tableError(feedtype.Refused, feedtype.TableName{Name: text}, next,
		"read as table %q in schema %q it cannot be followed, but there is a table of the whole name",
		source.Name, source.Schema)
}

// refuseTakenNames refuses a feed whose tables or functions would have the names of existing ones. With another prefix,
// or none, these can be the user's.
func (c *creation) refuseTakenNames(ctx context.Context) error {
	db, q, f := c.db, c.q, c.record.Feed(c.db.Names)
	for _, name := range f.Tables() {
		_, err := db.Dialect.Describe(ctx, q, name)
		if err == nil {
			return tableError(feedtype.Conflict, name,
				"give the feed another name, or rowfeed's tables another --prefix",
				"it already exists, and does not belong to a feed")
		}
		if db.Dialect.Classify(err) != dialect.ClassUndefined {
			return err
		}
	}
	if f.ULIDs == nil {
		return nil
	}
	routines := db.Dialect.Routines
	if routines == nil {
		return nil
	}
	missing, _, err := routines.ULIDProblems(ctx, q, f)
	executed := 0
	for _, right := range routines.LockRights(f) {
		if right.Privilege == "EXECUTE" {
			executed++
		}
	}
	if err == nil && len(missing) < executed {
		err = &feedtype.Error{
			Code:   feedtype.Conflict,
			Object: fmt.Sprintf("functions %s and %s", f.LockRoutine(), f.ULIDRoutine()),
			Cause:  "one of these functions already exists, and does not belong to a feed",
			Next:   "give the feed another name, or rowfeed's tables another --prefix",
		}
	}
	return err
}

// refuseOwnTable refuses a feed of one of rowfeed's tables, which publishing that feed would change.
func (c *creation) refuseOwnTable(ctx context.Context) error {
	db, source := c.db, c.table.Name
	var ours []feedtype.TableName
	for _, base := range ownTables {
		ours = append(ours, db.Names.Table(base))
	}
	records, err := catalog.Load(ctx, db.Store, c.q, "")
	if err != nil {
		return err
	}
	for _, r := range records {
		ours = append(ours, r.Feed(db.Names).Tables()...)
	}
	if slices.Contains(ours, source) {
		return tableError(feedtype.Refused, source, "make feeds of your own tables", "it is one of rowfeed's tables")
	}
	return nil
}

// refuseSharedPositions refuses a second feed that would keep its positions in the same rows.
func (c *creation) refuseSharedPositions(ctx context.Context) error {
	r := c.record
	if r.Capture != feedtype.CaptureColumn && r.Capture != feedtype.CaptureNone {
		return nil
	}
	all, err := catalog.Load(ctx, c.db.Store, c.q, "")
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(other *catalog.FeedRecord) bool {
		return other.Name != r.Name && other.State != catalog.StateDropped && other.Source == r.Source &&
			(other.Capture == r.Capture || other.Moved && r.Capture == feedtype.CaptureColumn)
	})
	if i < 0 {
		return nil
	}
	return tableError(feedtype.Conflict, r.Source, "read that feed, or make the second feed with --capture trigger",
		"its rows already hold the positions of feed %q", all[i].Name)
}
