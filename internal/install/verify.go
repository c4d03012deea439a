package install

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/history"
)

// Verify compares the feed's triggers and tables with what they should be, and
// answers one sentence for each difference, sorted. By what parts of the feed are read is
// a question of its own: see VerifyParts. So is a TRUNCATE of new partitions: see VerifyPartitions.
func (f *Feed) Verify(ctx context.Context) ([]string, error) {
	_, problems, err := f.verify(ctx)
	return problems, err
}

// verify is Verify, and answers the table too, nil where this login is not shown it.
func (f *Feed) verify(ctx context.Context) (*dialect.Table, []string, error) {
	r := f.Record.Load()
	table, err := catalog.DescribeSource(ctx, f.Store, f.Store.On(), r)
	if errors.Is(err, feedtype.Refused) && f.DB.readsOthers(ctx) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	problems, err := f.DB.verify(ctx, f.Store.On(), r, table)
	if err != nil {
		return nil, nil, f.Fail("verify its triggers", err)
	}
	return table, problems, nil
}

// VerifyWithPartitions is Verify, and tells whether the table has partitions to follow.
func (f *Feed) VerifyWithPartitions(ctx context.Context) (problems []string, partitioned bool, err error) {
	table, problems, err := f.verify(ctx)
	return problems, err == nil && hasPartitions(f.Record.Load(), table), err
}

// readsOthers tells of a login that was granted some feeds, and is not shown the tables of others: these
// are none of its business.
func (db *Database) readsOthers(ctx context.Context) bool {
	all, err := catalog.Load(ctx, db.Store, db.On(), "")
	var granted []string
	for _, r := range all {
		granted = append(append(granted, r.Grants.Writers...), r.Grants.Readers...)
	}
	shown := true
	if err == nil {
		shown, err = db.Dialect.Shown(ctx, db.On(), granted)
	}
	return err == nil && !shown
}

// verify adds to the mode's findings what has become of the table itself: it may
// have turned into one that feed add would refuse. A login that is not shown all that there is
// finds nothing wrong: whoever publishes does.
func (db *Database) verify(ctx context.Context, q dialect.Querier, r *catalog.Record, table *dialect.Table) ([]string,
	error) {
	if shown, err := db.Dialect.Shown(ctx, q, slices.Concat(r.Grants.Writers, r.Grants.Readers)); err != nil || !shown {
		return nil, err
	}
	kind, err := kindOf(r)
	if err != nil {
		return nil, err
	}
	problems, err := kind.verify(ctx, db, q, r, table)
	if err != nil {
		return nil, err
	}
	var unfit *feedtype.Error
	if _, refused := asAdded(r, db.Dialect, table); errors.As(refused, &unfit) {
		problems = append(problems, unfit.Cause+"; "+unfit.Next)
	}
	if r.Regrant {
		problems = append(problems, "its writers and readers may lack rights on what was made anew")
	}
	slices.Sort(problems)
	return problems, nil
}

// asAdded is the record that AddFeed would make of the feed's table as it is now, or the error with which
// it would refuse the table: since the feed was added the key's index may have been dropped, or a column of
// the key have become nullable. It runs no statement.
func asAdded(r *catalog.Record, d dialect.Dialect, table *dialect.Table) (*catalog.Record, error) {
	spec := feedtype.FeedSpec{Name: r.Name, Mode: r.Mode, Capture: r.Capture, Key: catalog.KeyNames(r.Key),
		Columns:    r.Columns,
		DataShards: r.DataShards, ShardColumn: r.ShardColumn, AcceptUntriggered: r.AcceptUntriggered}
	if r.State != catalog.StateActive { // only back-fill reads the times of rows
		spec.TimeColumn = r.TimeColumn
	}
	now, err := r, r.MayBeSoWide(d, table)
	// Where rows hold their ULIDs they are found by these, at which blocking.verify looks, and a key may come twice.
	byULID := r.PositionColumn() != "" && len(table.Refusals) == 0
	if !byULID {
		now, err = newRecord(d, spec, table)
	}
	if err == nil && !byULID && !slices.ContainsFunc(table.Unique, r.Feed(dialect.Names{}).KeyedBy) {
		err = &feedtype.Error{
			Code: feedtype.Refused,
			Cause: "its unique index on (" + strings.Join(catalog.KeyNames(r.Key), ", ") +
				") has another collation than the feed's key",
			Next: "create a unique index on just these columns with the former collation",
		}
	}
	var refused *feedtype.Error
	if !errors.As(err, &refused) {
		return now, err
	}
	return nil, r.BecameUnfit(refused)
}

// elsewhere is a problem of a feed whose writers or readers give positions, and ask for no
// identity: the database is of another one. What a replica is nobody asks.
func (db *Database) elsewhere(ctx context.Context, q dialect.Querier, r *catalog.Record) ([]string, error) {
	if db.Replica {
		return nil, nil
	}
	identity, err := db.Dialect.Identity(ctx, q, db.Names)
	if errors.Is(err, dialect.ErrReadOnly) {
		return nil, nil
	}
	var changed *feedtype.Error
	if errors.As(history.SameDatabase(r, identity), &changed) {
		return []string{changed.Cause + ": " + changed.Next}, nil
	}
	return nil, err
}

// Diagnose finds out the error of a statement that failed where the feed's table, or what rowfeed has made for it, is
// not as the statement needs it; nil where nothing is known to be wrong with them.
func (db *Database) Diagnose(ctx context.Context, f *catalog.Feed, doing string, err error) error {
	r := f.Record.Load()
	table, failed := catalog.DescribeSource(ctx, f.Store, f.Store.On(), r)
	if errors.Is(failed, feedtype.Refused) {
		return failed
	}
	if failed != nil {
		return nil
	}
	problems, failed := db.verify(ctx, f.Store.On(), r, table)
	if failed != nil || len(problems) == 0 {
		return nil
	}
	if _, unfit := asAdded(r, f.Store.Dialect, table); unfit != nil {
		var refused *feedtype.Error
		if errors.As(unfit, &refused) {
			refused.Err = err
		}
		return unfit
	}
	return &feedtype.Error{
		Code:   feedtype.Refused,
		Object: feedtype.FeedObject(f.Name),
		Cause:  doing + ": " + strings.Join(problems, "; "),
		Err:    err,
		Next:   "run `rowfeed feed upgrade " + f.Name + "`",
	}
}
