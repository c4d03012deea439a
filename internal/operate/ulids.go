package operate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/ulidfeed"
)

func (ulidKind) repair(_ context.Context, f *Checker) (int64, error) {
	return 0, &feedtype.Error{
		Code:   feedtype.Refused,
		Object: feedtype.FeedObject(f.Name),
		Cause:  "repair: rows are only appended and have their own positions, so there is nothing to record",
		Err:    errors.ErrUnsupported,
		Next:   "run `rowfeed check " + f.Name + "`: each finding says what to do",
	}
}

// check finds ULIDs that were never given: those above the state of their shard, which is read after them.
func (ulidKind) check(ctx context.Context, f *Checker) ([]admin.Finding, error) {
	feed, err := f.ulidsNow(ctx)
	if feed == nil {
		return nil, err
	}
	findings, err := f.checkULIDs(ctx, feed)
	if err != nil || len(findings) > 0 { // such values cannot be compared with the state
		return findings, f.Explain(ctx, "check its ULIDs", err)
	}
	findings = []admin.Finding{}
	d, q := f.Store.Dialect, f.Store.On()
	err = ulidfeed.EachShard(ctx, d, q, feed, func(shard int, last feedtype.Position) error {
		b := dialect.NewBuilder(d.Syntax)
		state, err := dialect.ScanShard(ctx, q, shard, dialect.ReadShard(d.Syntax, b, feed, shard), b.Args())
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if given := state.Given(); last.Above(given) {
			findings = append(findings, admin.Finding{Rule: admin.RuleULID, Problem: fmt.Sprintf(
				"shard %d has a row with ULID %s, and rowfeed has given none above %s. The ULID was taken under a "+
					"savepoint that was rolled back, or was made by another program: correct that program. The next "+
					"lock continues above the ULID, so the feed needs no repair; but readers that have seen the row "+
					"have missed rows that were written below it meanwhile", shard, last, given)})
		}
		return nil
	})
	return findings, f.Explain(ctx, "check its ULIDs", err)
}

// check also finds rows that will have no entry. Rows whose entries were purged look the same, so after a purge a note
// says that they were not checked.
func (m outboxKind) check(ctx context.Context, f *Checker) ([]admin.Finding, error) {
	findings, err := m.ulidKind.check(ctx, f)
	if err != nil {
		return nil, err
	}
	if f.Record.Load().State == catalog.StateFilling {
		return append(findings, admin.Finding{Rule: admin.RulePlace, Problem: "its rows are being placed, " +
			"and rows without a place were not searched for: if back-fill was interrupted, run " +
			"`rowfeed feed backfill " + f.Name + "` to continue it"}), nil
	}
	d, feed := f.Store.Dialect, f.DialectFeed()
	var rows []admin.Finding
	err = f.Store.InTx(ctx, dialect.ForCheck, "check "+f.Name, func(tx dialect.Querier) (err error) {
		if err := f.Install.Rows.RefuseAfterPurge(ctx, tx, "check"); errors.Is(err, feedtype.Refused) {
			rows = []admin.Finding{{Rule: admin.RulePlace, Note: true,
				Problem: "rows that lack a record were not searched for, since entries were purged. " +
					f.Install.Rows.HowToRecord()}}
			return nil
		} else if err != nil {
			return err
		}
		unplaced := func(b *dialect.Builder) string { return dialect.Unplaced(d.Syntax, b, feed, "", nil) }
		rows, err = f.findKeys(ctx, tx, "find_rows", unplaced,
			admin.Finding{Rule: admin.RulePlace, Problem: "its row has neither a place nor a record waiting"})
		return err
	})
	return append(findings, rows...), f.Fail("check", err)
}

// ulidsNow is the feed with its columns as they are in the table now: their types may have changed. It is nil if they
// cannot have ULIDs any more, which Verify reports.
func (f *Checker) ulidsNow(ctx context.Context) (*dialect.Feed, error) {
	feed, r := f.DialectFeed(), f.Record.Load()
	if feed.Outbox {
		return feed, nil
	}
	table, err := catalog.DescribeSource(ctx, f.Store, f.Store.On(), r)
	if err != nil {
		return nil, err
	}
	position, shard := table.FindColumn(r.ULIDs.Position.Name), table.FindColumn(r.ULIDs.Shard.Name)
	if position == nil || shard == nil || !catalog.HoldsIntegers(shard) || f.Store.Dialect.ULIDProblem(position) != "" {
		return nil, nil
	}
	now := *feed
	now.ULIDs = &dialect.ULIDColumns{Position: *position, Shard: *shard}
	return &now, nil
}

// checkULIDs finds rows whose columns have no valid ULID or shard.
func (f *Checker) checkULIDs(ctx context.Context, feed *dialect.Feed) (findings []admin.Finding, err error) {
	from := catalog.WithoutULID(f.Store.Dialect, feed)
	if from == "" {
		return nil, nil
	}
	err = f.Store.InTx(ctx, dialect.ForCheck, "check "+f.Name, func(tx dialect.Querier) (err error) {
		findings, err = f.findKeys(ctx, tx, "find_rows", func(*dialect.Builder) string { return from },
			admin.Finding{Rule: admin.RuleBytes,
				Problem: fmt.Sprintf("%q holds no ULID of 16 bytes, or %q no integer: "+
					"pages fail, or leave the row out. Correct the row, or delete it",
					feed.ULIDs.Position.Name, feed.ULIDs.Shard.Name)})
		return err
	})
	return findings, err
}

func (outboxKind) repair(ctx context.Context, f *Checker) (int64, error) {
	return f.Install.Rows.RecordMissing(ctx)
}
