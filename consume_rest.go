package rowfeed

import (
	"context"
	"errors"

	"github.com/rowfeed/rowfeed/dialect"
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
	return errors.As(err, &entry) || errors.Is(err, TombstonesExpired)
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
		if noted := one.noteFailure(ctx, err); noted != nil && ctx.Err() == nil {
			one.trouble(noted)
		}
		if err := one.pause(ctx, one.backoff(restAttempts)); err != nil {
			return err
		}
	}
}

// restAttempts makes a backoff that has come to its maximum.
const restAttempts = 21

// noteFailure stores why a shard rests, for operators: see ConsumerStatus.Failure. Every
// later write of the cursor takes it away.
func (r *consuming) noteFailure(ctx context.Context, why error) error {
	db := r.c.DB
	return db.inTx(ctx, dialect.ForRecord, "note why a shard rests", func(tx dialect.Querier) error {
		b := dialect.NewBuilder(db.d)
		_, err := tx.Exec(ctx, "UPDATE "+db.table("cursors")+" SET failure = "+b.Arg(letterText(why))+", version = version + 1"+
			" WHERE consumer = "+b.Arg(r.c.Name)+" AND feed = "+b.Arg(r.feed)+" AND shard = "+b.Arg(r.shard)+
			" AND shard_count = "+b.Arg(r.count)+" AND epoch = "+b.Arg(r.epoch), b.Args()...)
		return err
	})
}
