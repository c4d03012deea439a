package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// Upgrader repairs what Verifier finds.
type Upgrader struct {
	*catalog.Feed
	DB         *Database
	Verifier   *Verifier
	Partitions *Partitions
	// PublishVisible publishes the changes that are visible now.
	PublishVisible func(context.Context) error
	// SetProblems reports problems to this process's publisher of the feed.
	SetProblems func([]string)
}

// Upgrade repairs the feed's triggers and tables if they differ from what this version of rowfeed would make. Capture
// continues without a gap. It returns one sentence for each difference that it has repaired. It does not find changes
// that were made while a trigger was missing. Check finds them, and Repair records those that it can. For partitions
// that were attached or removed, Upgrade records the keys itself.
func (f *Upgrader) Upgrade(ctx context.Context) (mended []string, err error) {
	err = f.Store.WithSchemaLock(ctx, "feed upgrade "+f.Name, func(q dialect.Querier) error {
		// The feed may have been dropped while this waited for the lock.
		if err := f.Reload(ctx); err != nil {
			return err
		}
		r, renamed, err := f.DB.findMovedTable(ctx, q, f.Record.Load())
		if err != nil {
			return err
		}
		fresh, err := f.Partitions.newPartitions(ctx, q, r)
		if err == nil {
			err = f.Partitions.refuseWithoutRights(fresh...)
		}
		if err != nil {
			return err
		}
		if mended, err = f.mend(ctx, q, r); err != nil {
			return err
		}
		taken, err := f.Partitions.makeTriggers(ctx, q, r, fresh)
		if err != nil {
			return err
		}
		mended = slices.Concat(mended, renamed, taken)
		problem, err := f.mendParts(ctx, q)
		if err == nil && problem != "" {
			mended = append(mended, problem)
		}
		return err
	})
	if err == nil {
		err = f.Reload(ctx)
	}
	if err == nil {
		_, err = f.Partitions.followPartitions(ctx)
	}
	if err != nil {
		return nil, f.Explain(ctx, "upgrade", err)
	}
	left, err := f.Verifier.Verify(ctx)
	if err == nil && len(left) > 0 {
		err = feedError(feedtype.Failed, f.Name, "repair it by hand, then run `rowfeed feed upgrade "+f.Name+
			"` again", "%s", "the upgrade could not repair this: "+strings.Join(left, "; "))
	}
	f.SetProblems(left)
	mended = slices.DeleteFunc(mended, func(problem string) bool { return slices.Contains(left, problem) })
	slices.Sort(mended)
	return mended, err
}

// mend compares the feed's objects with what they should be, and repairs them. The caller holds the schema lock.
func (f *Upgrader) mend(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord) (mended []string, err error) {
	table, err := catalog.DescribeSource(ctx, f.Store, q, r)
	if err != nil {
		return nil, err
	}
	if mended, err = f.DB.verify(ctx, q, r, table); err != nil {
		return nil, err
	}
	if owners := f.Store.Dialect.Owners; owners != nil {
		taken, err := owners.Takeovers(ctx, q, r.Feed(f.Store.Names), table)
		if err != nil {
			return nil, err
		}
		mended = append(mended, taken...)
	}
	if len(mended) == 0 {
		return nil, nil
	}
	// The types of the key's columns may have changed.
	now := *r
	now.Key = slices.Clone(r.Key)
	for i, c := range now.Key {
		current := table.Column(c.Name)
		if !c.Exact && c.Decl != current.Decl && c.Operators == current.Operators {
			mended = append(mended, fmt.Sprintf("key column %q was %s and is %s: "+
				"values that were one key can be two keys now, "+
				"and `rowfeed repair %s` publishes both", c.Name, c.Decl, current.Decl, f.Name))
		}
		c.Type, c.Decl, c.Kind, c.Operators = current.Type, current.Decl, current.Kind, current.Operators
		c.Exact = current.Exact && (c.Collate == "" || c.Exact)
		now.Key[i] = c
	}
	if fresh, err := recordAsAdded(r, f.Store.Dialect, table); err == nil {
		now.PrimaryKey = fresh.PrimaryKey
	}
	// Objects that are recreated lose their rights. The record notes that first, so that an interrupted upgrade is
	// completed by the next one even if each statement commits.
	if now.Regrant = !now.Grants.IsZero(); now.Regrant {
		if err := f.DB.saveOptions(ctx, q, &now); err != nil {
			return nil, err
		}
	}
	err = kinds[r.Mode].mend(ctx, f.DB, q, &now, table)
	var refusal *dialect.Refusal
	if errors.As(err, &refusal) {
		err = feedError(feedtype.Refused, f.Name, refusal.Next, "%s", refusal.Cause)
	}
	if err != nil {
		return nil, err
	}
	if err := grantAgain(ctx, f.DB, q, &now); err != nil {
		return nil, err
	}
	now.Regrant = false
	if err := f.DB.saveOptions(ctx, q, &now); err != nil {
		return nil, err
	}
	key, err := json.Marshal(now.Key)
	if err != nil {
		return nil, err
	}
	_, err = f.Store.Exec(ctx, q, statements, "set_key_columns", dialect.Args{"key": string(key), "feed": f.Name})
	return mended, err
}

// findMovedTable returns the record with the current schema of the feed's table, and saves it: the schema may have been
// renamed.
func (db *Database) findMovedTable(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord) (
	_ *catalog.FeedRecord, told []string, err error,
) {
	now := *r
	_, err = db.Dialect.Describe(ctx, q, r.Source)
	switch {
	case err != nil && db.Dialect.Classify(err) == dialect.ClassUndefined:
		source, moved, err := catalog.Moved(ctx, db.Store, q, r)
		if err != nil || !moved {
			return r, nil, err
		}
		told = append(told, fmt.Sprintf("its table %s is now table %s", r.Source, source))
		now.Source = source
	case err != nil:
		return nil, nil, err
	default:
		return r, nil, nil
	}
	schema := now.Source.Schema
	if schema == db.Names.Schema {
		schema = "" // as FeedRecord.Save does
	}
	_, err = db.Exec(ctx, q, statements, "set_source_schema", dialect.Args{"schema": schema, "feed": r.Name})
	return &now, told, err
}

// mendParts recreates the index by bucket if it differs, and returns what was wrong.
func (f *Upgrader) mendParts(ctx context.Context, q dialect.Querier) (problem string, err error) {
	r := f.Record.Load()
	if problem, err = f.VerifyPartsOn(ctx, q, r); err != nil || problem == "" {
		return "", err
	}
	steps, err := f.Store.Dialect.BucketIndex(ctx, q, r.Feed(f.Store.Names))
	if err != nil {
		return "", err
	}
	return problem, run(ctx, q, steps)
}
