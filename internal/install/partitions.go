package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/gap"
	"github.com/rowfeed/rowfeed/internal/publish"
	"github.com/rowfeed/rowfeed/internal/store"
	"github.com/rowfeed/rowfeed/internal/ulidfeed"
)

// PostgreSQL copies the row trigger to a new partition, but not the trigger for TRUNCATE. No trigger fires for the rows
// that ATTACH, DETACH and DROP bring or remove. So a publisher compares the table's partitions with those in the feed's
// record. It makes the missing triggers, and records the keys whose rows were added or removed without a trigger. Then
// it saves the new partitions in the record.

// followBatch is the number of keys or positions that one step of following partitions reads.
const followBatch = 2000

// attached has the partitions that the last comparison found unchanged, and the sequence's value before that
// comparison. head is never below [catalog.Partitions.Head] in the feed's record, which is saved less often.
type attached struct {
	as   *catalog.Partitions
	head int64
}

// Partitions follows the partitions of one feed's table.
type Partitions struct {
	*catalog.Feed
	DB       *Database
	Recorder *publish.Recorder
	Rows     *OutboxRows

	mu       sync.Mutex
	attached attached
}

// VerifyPartitions returns one sentence for each new partition that lacks the trigger for TRUNCATE. Verify does not
// report these, since other writes to the partition are captured.
func (f *Partitions) VerifyPartitions(ctx context.Context) ([]string, error) {
	fresh, err := f.newPartitions(ctx, f.Store.On(), f.Record.Load())
	if errors.Is(err, feedtype.Refused) && f.DB.readsOthers(ctx) {
		return nil, nil // Verify ignores it too
	}
	var problems []string
	for _, p := range fresh {
		if p.Lacks != "" && !p.ByOwner {
			problems = append(problems, f.refuseWithoutRights(p).Error())
			continue
		}
		problems = append(problems, uncaptured(p)+". A publisher whose login is a member of the role "+p.Owner+
			" makes the trigger within a minute; `rowfeed feed upgrade "+f.Name+"` as such a login does it at once")
	}
	return problems, err
}

func uncaptured(p dialect.NewPartition) string {
	return fmt.Sprintf("partition %s has no trigger for TRUNCATE, so a TRUNCATE of this partition is not captured; "+
		"other writes to it are", p.Name)
}

func (f *Partitions) newPartitions(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord) (
	[]dialect.NewPartition, error,
) {
	if f.Store.Dialect.Partitions == nil || r.Capture != feedtype.CaptureTrigger || r.State == catalog.StateMoving {
		return nil, nil
	}
	table, err := catalog.DescribeSource(ctx, f.Store, q, r)
	if err != nil {
		return nil, err
	}
	fresh, err := f.Store.Dialect.Partitions.NewPartitions(ctx, q, r.Feed(f.Store.Names), table)
	return fresh, f.Fail("look for new partitions", err)
}

// FollowPartitions makes the triggers that new partitions lack, and records the keys whose rows were added or removed
// with partitions. Publishers call it.
func (f *Partitions) FollowPartitions(ctx context.Context) {
	err := f.addTriggers(ctx)
	if err == nil {
		_, err = f.followPartitions(ctx)
	}
	if err != nil && ctx.Err() == nil {
		f.Trouble(err)
	}
}

// addTriggers makes the trigger of each new partition in a transaction of its own. So its locks block writers of one
// partition at a time, and for no longer than WithSchemaLock waits for a lock. It returns the first error.
func (f *Partitions) addTriggers(ctx context.Context) error {
	r := f.Record.Load()
	fresh, err := f.newPartitions(ctx, f.Store.On(), r)
	if err != nil {
		return err
	}
	var first error
	for _, p := range fresh {
		err := f.refuseWithoutRights(p)
		if err == nil {
			err = f.Store.Dialect.WithSchemaLock(ctx, f.Store.SQL, f.Store.Names, func(q dialect.Querier) error {
				_, err := f.makeTriggers(ctx, q, r, []dialect.NewPartition{p})
				return err
			})
		}
		if err != nil && f.Store.Dialect.Classify(err) == dialect.ClassLockTimeout {
			err = &feedtype.Error{
				Code:   feedtype.Locked,
				Object: feedtype.FeedObject(f.Name),
				Err:    err,
				Cause:  uncaptured(p) + ": its trigger was not made, since other transactions hold locks on it",
				Next:   "wait: the publisher tries again within a minute",
			}
		}
		first = cmp.Or(first, f.Fail("make the trigger of partition "+p.Name.String(), err))
	}
	return first
}

// refuseWithoutRights refuses partitions whose trigger this login has no right to make.
func (f *Partitions) refuseWithoutRights(fresh ...dialect.NewPartition) error {
	for _, p := range fresh {
		if p.Lacks == "" {
			continue
		}
		next := "run `" + p.Grant + "`; then the publisher makes the trigger"
		if p.ByOwner {
			next += ". Or run `rowfeed feed upgrade " + f.Name + "` as a member of " + p.Owner
		}
		return feedError(feedtype.Refused, f.Name, next, "%s: %s", uncaptured(p), p.Lacks)
	}
	return nil
}

// makeTriggers makes the triggers that new partitions lack. It lists the partitions as Taken in the feed's record, so
// that followPartitions searches for missed changes. It returns one sentence for each trigger.
func (f *Partitions) makeTriggers(ctx context.Context, q dialect.Querier, of *catalog.FeedRecord,
	fresh []dialect.NewPartition) (taken []string, err error) {
	if len(fresh) == 0 {
		return nil, nil
	}
	records, err := catalog.Load(ctx, f.Store, q, f.Name)
	if err != nil {
		return nil, err
	}
	if len(records) == 0 || records[0].Gone() {
		return nil, f.Reload(ctx)
	}
	r := records[0]
	if r.Generation != of.Generation || r.Source != of.Source {
		return nil, f.Reload(ctx) // the feed was added again since its partitions were read
	}
	known := catalog.Partitions{}
	if r.Partitions != nil {
		known = *r.Partitions
	} else if table, err := catalog.DescribeSource(ctx, f.Store, q, r); err != nil {
		return nil, err
	} else {
		known.Attached = attachedOf(table) // an earlier version has made the feed, and listed none
	}
	for _, p := range fresh {
		if err := run(ctx, q, p.Steps); err != nil {
			return nil, err
		}
		if i := slices.Index(known.Attached, p.Attached); i >= 0 { // its trigger existed, and was dropped
			known.Attached, known.Head = slices.Delete(slices.Clone(known.Attached), i, i+1), 0
		}
		if p.Attached != "" && !slices.Contains(known.Taken, p.Attached) {
			known.Taken = append(slices.Clone(known.Taken), p.Attached)
		}
		taken = append(taken, uncaptured(p))
	}
	r.Partitions = &known
	return taken, f.DB.saveOptions(ctx, q, r)
}

// followPartitions records the keys whose rows were added or removed with partitions since the record's list was saved,
// and returns how many. It does nothing while a partition lacks its trigger.
func (f *Partitions) followPartitions(ctx context.Context) (total int64, err error) {
	if err := f.Reload(ctx); err != nil {
		return 0, err
	}
	r := f.Record.Load()
	head, err := f.sequenceValue(ctx) // before the partitions are read, see catalog.Partitions.Head
	if err != nil {
		return 0, err
	}
	table, err := catalog.DescribeSource(ctx, f.Store, f.Store.On(), r)
	if err != nil || !hasPartitions(r, table) {
		return 0, err
	}
	fresh, err := f.Store.Dialect.Partitions.NewPartitions(ctx, f.Store.On(), r.Feed(f.Store.Names), table)
	if err != nil || len(fresh) > 0 {
		return 0, f.Fail("look for new partitions", err)
	}
	now := &catalog.Partitions{Attached: attachedOf(table), Head: head}
	known := r.Partitions
	if known == nil {
		return 0, f.savePartitions(ctx, r, now)
	}
	if slices.Equal(known.Attached, now.Attached) && len(known.Taken) == 0 {
		f.mu.Lock()
		f.attached = attached{known, head}
		f.mu.Unlock()
		return 0, nil
	}
	for _, p := range table.Partitions {
		if p.Attached == "" || slices.Contains(known.Attached, p.Attached) {
			continue
		}
		n, err := f.recordAttached(ctx, r, p)
		total += n
		if err != nil {
			return total, f.partitionsFail(ctx, err)
		}
	}
	if !r.Outbox() {
		to, err := f.publishedUpTo(ctx)
		if err != nil {
			return total, err
		}
		n, err := f.recordVanished(ctx, f.followedTo(known, now), to)
		total += n
		if err != nil {
			return total, f.partitionsFail(ctx, err)
		}
	}
	return total, f.savePartitions(ctx, r, now)
}

// partitionsFail explains a missing right to record keys, which publishers need only to follow partitions.
func (f *Partitions) partitionsFail(ctx context.Context, err error) error {
	const doing = "record the keys of partitions that were attached, detached, dropped or truncated"
	if f.Store.Dialect.Classify(err) != dialect.ClassPermission {
		return f.Explain(ctx, doing, err)
	}
	return &feedtype.Error{
		Code:   feedtype.Refused,
		Object: feedtype.FeedObject(f.Name),
		Cause:  doing,
		Err:    err,
		Next: "run `rowfeed feed upgrade " + f.Name + "` as the login that made the feed; " +
			"or let the publisher do it: grant it INSERT on " + f.DialectFeed().Written().String() +
			" and SELECT on the table's partitions",
	}
}

// followedTo returns a position: the rows of all new partitions get positions above it. It is 0 if a partition is gone,
// because its rows can have any position.
func (f *Partitions) followedTo(known, now *catalog.Partitions) int64 {
	gone := func(p string) bool { return !slices.Contains(now.Attached, p) }
	if slices.ContainsFunc(slices.Concat(known.Attached, known.Taken), gone) {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if known.Equal(f.attached.as) {
		return max(known.Head, f.attached.head)
	}
	return known.Head
}

func (f *Partitions) sequenceValue(ctx context.Context) (value int64, err error) {
	if f.Record.Load().PublishedElsewhere {
		return 0, nil // the feed follows no partitions, and rowfeed has no sequence for it
	}
	err = f.Store.One(ctx, f.Store.On(), statements, "sequence_value", dialect.Args{"feed": f.Name}, &value)
	return value, f.Fail("read its sequence", err)
}

// publishedUpTo waits for the current publishing pass, and returns the sequence's value after it. Later passes no
// longer see the rows of partitions that are gone.
func (f *Partitions) publishedUpTo(ctx context.Context) (value int64, err error) {
	err = f.Store.InTx(ctx, dialect.ForRecord, "follow the partitions of "+f.Name, func(tx dialect.Querier) error {
		seq, err := f.Store.Dialect.LockSequence(ctx, tx, f.DialectFeed())
		value = seq.Value
		return err
	})
	return value, f.Fail("read its sequence", err)
}

// recordAttached records the keys of all rows of a partition, also of keys that have a position: the partition can be a
// rewritten copy of a former one, with other rows under the same keys.
func (f *Partitions) recordAttached(ctx context.Context, r *catalog.FeedRecord, p dialect.Partition) (
	total int64, err error,
) {
	// A feed whose source is the partition, and whose changes are recorded for this feed.
	of := *r
	of.Source = p.Name
	part := f.withRecord(&of)
	if r.Outbox() {
		err := f.Rows.RefuseAfterPurge(ctx, f.Store.On(), "record the rows of partition "+p.Name.String())
		if errors.Is(err, feedtype.Refused) {
			f.Trouble(err) // reported once: only an operator knows which rows to record
			return 0, nil
		} else if err != nil {
			return 0, err
		}
		return part.Rows.RecordMissing(ctx)
	}
	for after, more := []any(nil), true; more; {
		var last []any
		n, err := f.followStep(ctx, func(tx dialect.Querier) (n int64, err error) {
			n, last, err = part.Recorder.RecordRange(ctx, tx, "", after, followBatch, dialect.Changed)
			return n, err
		})
		total += n
		if err != nil {
			return total, err
		}
		after, more = last, last != nil
	}
	return total, nil
}

// withRecord returns the same feed with another record and its own gap tracking.
func (f *Partitions) withRecord(r *catalog.FeedRecord) *Partitions {
	feed := &catalog.Feed{Name: f.Name, Store: f.Store, Gone: f.Gone}
	feed.SetRecord(r)
	recorder := &publish.Recorder{Feed: feed, Wake: f.Recorder.Wake}
	known := f.Rows.Outbox
	outbox := &ulidfeed.Outbox{Feed: feed, History: known.History, Watch: known.Watch, Gaps: gap.New(feed)}
	rows := &OutboxRows{Feed: feed, Recorder: recorder, Outbox: outbox}
	part := &Partitions{Feed: feed, DB: f.DB, Recorder: recorder, Rows: rows}
	feed.Diagnose = func(ctx context.Context, doing string, err error) error {
		return f.DB.Diagnose(ctx, feed, doing, err)
	}
	return part
}

// recordVanished records the keys whose row is gone, among the positions above one and up to another that are not
// deletes.
func (f *Partitions) recordVanished(ctx context.Context, above, to int64) (total int64, err error) {
	for above < to {
		last := to
		n, err := f.followStep(ctx, func(tx dialect.Querier) (n int64, err error) {
			n, last, err = f.recordVanishedBatch(ctx, tx, above, to)
			return n, err
		})
		total += n
		if err != nil {
			return total, err
		}
		above = last
	}
	return total, nil
}

// recordVanishedBatch is one step of recordVanished. last is the highest position that it has read.
func (f *Partitions) recordVanishedBatch(ctx context.Context, tx dialect.Querier, above, to int64) (
	n, last int64, err error,
) {
	err = dialect.One(ctx, tx, f.Store.Dialect.Syntax, f.Statement(statements, "end_of_batch"),
		dialect.Args{"above": above, "to": to, "count": int64(followBatch)}, &last)
	if err != nil {
		return 0, 0, err
	}
	s := f.Store.Dialect.Syntax
	n, err = dialect.Exec(ctx, tx, s, f.Statement(statements, "record_vanished"),
		s.Uncut(dialect.Args{"above": above, "to": last}))
	return n, last, err
}

// followStep runs one transaction, and then pauses for as long as it took, to load the database half of the time at
// most.
func (f *Partitions) followStep(ctx context.Context, step func(dialect.Querier) (int64, error)) (n int64, err error) {
	begun := time.Now()
	err = f.Store.InTx(ctx, dialect.ForRecord, "follow the partitions of "+f.Name,
		func(tx dialect.Querier) (err error) {
			n, err = step(tx)
			return err
		})
	if err != nil {
		return 0, err
	}
	if n > 0 {
		f.Recorder.Wake()
	}
	return n, store.Pause(ctx, time.Since(begun))
}

// savePartitions saves a new list of partitions, unless the record has changed since it was read. Then the next call of
// followPartitions compares again.
func (f *Partitions) savePartitions(ctx context.Context, read *catalog.FeedRecord, now *catalog.Partitions) error {
	err := f.Store.WithSchemaLock(ctx, "follow the partitions of "+f.Name, func(q dialect.Querier) error {
		records, err := catalog.Load(ctx, f.Store, q, f.Name)
		if err != nil || len(records) == 0 || records[0].Gone() || records[0].Generation != read.Generation ||
			!records[0].Partitions.Equal(read.Partitions) {
			return err
		}
		records[0].Partitions = now
		return f.DB.saveOptions(ctx, q, records[0])
	})
	if err == nil {
		err = f.Reload(ctx)
	}
	return f.Fail("save its partitions", err)
}
