package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// Verifier compares one feed's objects with what the feed needs.
type Verifier struct {
	*catalog.Feed
	DB *Database
}

// Verify compares the feed's triggers and tables with what they should be, and returns one sentence for each
// difference, sorted. catalog.Feed.VerifyParts checks the index for parts of the feed, Partitions.VerifyPartitions the
// TRUNCATE triggers of new partitions.
func (f *Verifier) Verify(ctx context.Context) ([]string, error) {
	_, problems, err := f.verify(ctx)
	return problems, err
}

// NullKeys says how many rows have NULL in a key column that the database does not keep NULL out of. It is empty if
// there are none. No reader gets these rows.
func (f *Verifier) NullKeys(ctx context.Context) (problem string, err error) {
	return f.DB.nullKeys(ctx, f.Store.On(), f.Record.Load())
}

// maxNullKeys bounds the count of rows without a key.
const maxNullKeys = 1000

func (db *Database) nullKeys(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord) (string, error) {
	i := slices.IndexFunc(r.Key, func(c dialect.Column) bool { return c.MayBeNull })
	if i < 0 {
		return "", nil
	}
	var n int64
	syntax := db.Dialect.Syntax
	err := dialect.One(ctx, q, syntax, statements.For(syntax, r.Feed(db.Names), "count_null_keys"),
		dialect.Args{"count": int64(maxNullKeys)}, &n)
	if err != nil || n == 0 {
		return "", err
	}
	count := strconv.FormatInt(n, 10)
	if n == maxNullKeys {
		count += " or more"
	}
	return fmt.Sprintf("rows with NULL in key column %q: %s; no reader gets them, since NULL equals no value",
		r.Key[i].Name, count), nil
}

// verify also returns the table, or nil if this login cannot see it.
func (f *Verifier) verify(ctx context.Context) (*dialect.Table, []string, error) {
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

// tellOutside reports rows that no part of the feed has. They do not keep a server from being ready.
func (f *Verifier) tellOutside(ctx context.Context) {
	problem, err := f.OutsideShards(ctx)
	if err == nil && problem != "" {
		err = feedError(feedtype.Refused, f.Name,
			"run `rowfeed check "+f.Name+"`, which finds all such rows", "%s", problem)
	}
	if err != nil {
		f.Trouble(err)
	}
}

// VerifyWithPartitions also reports what Foreign finds, and returns whether the table has partitions to follow. It
// reports what OutsideShards finds to the Observer.
func (f *Verifier) VerifyWithPartitions(ctx context.Context) (problems []string, partitioned bool, err error) {
	table, problems, err := f.verify(ctx)
	if err == nil && table != nil {
		var foreign []string
		foreign, err = f.Foreign(ctx)
		problems = append(problems, foreign...)
		f.tellOutside(ctx)
	}
	return problems, err == nil && hasPartitions(f.Record.Load(), table), err
}

// verify returns what is wrong with the feed's objects and with the table, which may have changed so that feed add
// would refuse it. It returns nothing if this login cannot see all objects. Publishers can see them, and report the
// problems.
func (db *Database) verify(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord,
	table *dialect.Table) ([]string, error) {
	accounts := slices.Concat(r.Grants.Writers, r.Grants.Readers)
	if visible, err := db.partsVisible(ctx, q, accounts); err != nil || !visible {
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
	if _, refused := recordAsAdded(r, db.Dialect, table); errors.As(refused, &unfit) {
		problems = append(problems, unfit.Cause+"; "+unfit.Next)
	}
	if r.Regrant {
		problems = append(problems, "its writers and readers may lack rights on objects that an upgrade has recreated")
	}
	slices.Sort(problems)
	return problems, nil
}

// recordAsAdded returns the record that adding the feed to its table would make now, or the error that would refuse the
// table. The key's index may have been dropped, or a key column may have become nullable. It runs no statement.
func recordAsAdded(r *catalog.FeedRecord, d *dialect.Dialect, table *dialect.Table) (*catalog.FeedRecord, error) {
	spec := feedtype.FeedSpec{Name: r.Name, Mode: r.Mode, Capture: r.Capture, Key: catalog.KeyNames(r.Key),
		Columns:    r.Columns,
		DataShards: r.DataShards, ShardColumn: r.ShardColumn, AcceptUntriggered: r.AcceptUntriggered}
	if r.State != catalog.StateActive { // the time column is needed until back-fill is complete
		spec.TimeColumn = r.TimeColumn
	}
	now, err := r, r.MayBeSoWide(d, table)
	// In mode blocking pages find rows by their ULIDs, which blocking.verify checks. The key need not be unique.
	byULID := r.PositionColumn() != "" && len(table.Refusals) == 0
	if !byULID {
		now, err = newRecord(d, spec, table, r.Added...)
	}
	if err == nil && !byULID {
		for i := range now.Key {
			if now.Key[i].MayBeNull && !r.Key[i].MayBeNull { // the triggers would fail the writers of such rows
				err = mayBeNull(table.Name, now.Key[i].Name)
			}
		}
	}
	if err == nil && !byULID && !slices.ContainsFunc(table.Unique, r.Feed(dialect.Names{}).KeyedBy) {
		err = &feedtype.Error{
			Code: feedtype.Refused,
			Cause: "its unique index on (" + strings.Join(catalog.KeyNames(r.Key), ", ") +
				") does not have the collation of the feed's key",
			Next: "create a unique index on exactly these columns with the former collation",
		}
	}
	var refused *feedtype.Error
	if !errors.As(err, &refused) {
		return now, err
	}
	return nil, r.BecameUnfit(refused)
}

// Diagnose explains the error of a failed statement if the feed's table or rowfeed's objects are not as the statement
// needs them. It returns nil if it finds nothing wrong with them.
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
	if _, unfit := recordAsAdded(r, f.Store.Dialect, table); unfit != nil {
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
