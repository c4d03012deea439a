package consume

import (
	"context"
	"errors"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// entryError is the error of an entry that cannot be handled, where nothing is passed over
// (OnFailure: Stop).
type entryError struct{ err error }

func (e *entryError) Error() string { return e.err.Error() }
func (e *entryError) Unwrap() error { return e.err }

// concernsShardAlone tells whether an error that ends the work on a shard says nothing of
// the others.
func concernsShardAlone(err error) bool {
	var entry *entryError
	return errors.As(err, &entry) || errors.Is(err, feedtype.TombstonesExpired) || errors.Is(err, feedtype.EntriesExpired)
}

// waitsAlone tells the same of errors that pass: a shard that is a
// feed by itself is tried again while its worker goes on with others.
func waitsAlone(err error) bool {
	return errors.Is(err, feedtype.ConsumerPaused) || errors.Is(err, feedtype.Locked) || errors.Is(err, feedtype.Filling)
}

// workOrRest is work on one of several shards. One whose entry cannot be handled rests, under
// its lease, and is tried again now and then: if its error ended the instance, the shard's
// next one would end as well, and so on, until nobody worked on any.
func (r *consuming) workOrRest(ctx, until context.Context, shard int, epoch int64) error {
	one, err := r.one(until, shard, epoch)
	if err != nil {
		return err
	}
	for {
		err := one.run(ctx)
		if err == nil || ctx.Err() != nil || !concernsShardAlone(err) {
			return err
		}
		one.row = nil
		one.trouble(err)
		if err := one.rest(ctx, err); err != nil {
			return err
		}
	}
}

// rest notes why the shard stands still, and waits until it is to be tried again: after
// Retry.MaxBackoff, or when the database says that it should not rest any more.
func (r *consuming) rest(ctx context.Context, why error) error {
	noted, err := r.noteFailure(ctx, why)
	switch {
	case err == nil && !noted:
		return nil // moved since it was tried: it does not rest where it stands now
	case err != nil && ctx.Err() == nil:
		r.trouble(err)
	}
	_, most := r.backoffs()
	for left := store.Jitter(most); left > 0 && r.until.Err() == nil; {
		step := min(left, store.Jitter(pausedPoll))
		left -= step
		if err := r.pause(ctx, step); err != nil {
			return err
		}
		wanted, err := r.isWanted(ctx)
		if wanted {
			return nil
		}
		if err := r.survive(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// isWanted tells whether somebody has written the cursor of a shard that rests, such as
// an operator who has moved or paused it, or has asked for the release of a dead letter.
// Where the consumer has another number of shards by now it answers that conflict: the
// others wait for this instance's leases.
func (r *consuming) isWanted(ctx context.Context) (bool, error) {
	row, err := r.loadCursor(ctx)
	switch {
	case err != nil:
		return false, err
	case row.version != r.version:
		return true, nil
	case row.Aside == 0 || !row.Value.Settled():
		return false, nil
	}
	db := r.c.DB
	b := dialect.NewBuilder(db.Store.Dialect)
	var releases int
	err = dialect.QueryRow(ctx, db.Store.On(), "SELECT COUNT(*) FROM "+r.lettersTable()+" WHERE consumer = "+b.Arg(r.c.Name)+
		" AND feed = "+b.Arg(r.feed)+" AND shard = "+b.Arg(r.shard)+" AND state = "+b.Arg(feedtype.LetterRetry), b.Args(), &releases)
	return releases > 0, err
}

// noteFailure stores why a shard rests, for operators: see ConsumerStatus.Failure. It does
// so only where the cursor is still as it was tried, and says whether it was. What moves or
// pauses the cursor takes it away.
func (r *consuming) noteFailure(ctx context.Context, why error) (noted bool, err error) {
	db := r.c.DB
	err = db.Store.InTx(ctx, dialect.ForRecord, "note why a shard rests", func(tx dialect.Querier) error {
		b := dialect.NewBuilder(db.Store.Dialect)
		query := "UPDATE " + db.Store.Table("cursors") + " SET failure = " + b.Arg(letterText(why)) + ", version = version + 1" +
			" WHERE consumer = " + b.Arg(r.c.Name) + " AND feed = " + b.Arg(r.feed) + " AND shard = " + b.Arg(r.shard) +
			" AND shard_count = " + b.Arg(r.count) + " AND version = " + b.Arg(r.version)
		if r.epoch != 0 { // without a lease the cursor may have an epoch of before
			query += " AND epoch = " + b.Arg(r.epoch)
		}
		n, err := tx.Exec(ctx, query, b.Args()...)
		noted = n == 1
		return err
	})
	if err == nil && noted {
		r.version++
	}
	return noted, err
}
