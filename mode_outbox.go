package rowfeed

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

// outbox is the mode whose positions are ULIDs that whoever reads first gives to the records
// of an outbox. A shard is read as with mode blocking.
type outbox struct{ blocking }

// moveBatch is how many records one transaction moves.
const moveBatch = 500

func (outbox) complete(d dialect.Dialect, r *record, _ FeedSpec, _ *dialect.Table) error {
	r.ULIDs = &dialect.ULIDColumns{Position: d.OwnULID(), Shard: dialect.Column{Name: "shard", Type: "bigint", Kind: dialect.Integer}, Index: "PRIMARY"}
	return nil
}

func (outbox) describe(dialect.Dialect, *dialect.Feed, *dialect.Table) error { return nil }

func (outbox) up(db *DB, r *record, _ *dialect.Table) ([]dialect.Step, error) {
	return db.d.OutboxUp(r.feed(db.names)), nil
}

func (outbox) down(ctx context.Context, db *DB, q dialect.Querier, r *record, _ *dialect.Table) error {
	if err := run(ctx, q, db.d.OutboxDown(r.feed(db.names))); err != nil {
		return err
	}
	b := dialect.NewBuilder(db.d)
	_, err := q.Exec(ctx, "DELETE FROM "+db.table("shards")+" WHERE feed = "+b.Arg(r.Name), b.Args()...)
	return err
}

func (outbox) begin(context.Context, *DB, dialect.Querier, *record) (string, error) {
	return stateActive, nil
}

// verify looks whether the tables are there.
func (outbox) verify(ctx context.Context, db *DB, q dialect.Querier, r *record, _ *dialect.Table) (problems []string, err error) {
	for _, name := range r.feed(db.names).Tables() {
		_, err := db.d.Describe(ctx, q, name)
		switch {
		case err == nil:
		case db.d.Classify(err) == dialect.ClassUndefined:
			problems = append(problems, "table "+name.String()+" is missing")
		default:
			return nil, err
		}
	}
	return problems, nil
}

func (outbox) mend(ctx context.Context, db *DB, q dialect.Querier, r *record, _ *dialect.Table) error {
	return run(ctx, q, db.d.OutboxUp(r.feed(db.names)))
}

// fill moves a batch of a shard's records, in one transaction: under the lock of the shard, so
// that records stand in the order in which they were written, whoever moves them. The cheap question comes
// first and takes no lock.
func (outbox) fill(ctx context.Context, f *Feed, shard int) (moved int, err error) {
	if f.db.cfg.Replica {
		return 0, nil
	}
	d, feed := f.db.d, f.dialectFeed()
	waiting, err := dialect.TakeRecords(ctx, f.db.on(), d, feed, shard, 1)
	if err != nil || len(waiting) == 0 {
		return 0, f.settle(ctx, "look into its outbox", err)
	}
	var next dialect.ULIDState
	started := time.Now()
	err = f.db.inTx(ctx, dialect.ForPublish, "move records of "+f.name, func(tx dialect.Querier) error {
		if err := f.assertDurable(ctx, tx); err != nil {
			return err
		}
		row, err := d.LockShard(ctx, tx, feed, shard)
		if err != nil {
			return err
		}
		// A statement of its own behind the lock: it sees what the one before has left.
		records, err := dialect.TakeRecords(ctx, tx, d, feed, shard, moveBatch)
		if err != nil {
			return err
		}
		if len(records) == 0 {
			return errNothing
		}
		placed, seqs := make([]dialect.Moved, len(records)), make([]int64, len(records))
		now := time.UnixMicro(row.Now).UnixMilli()
		next = row.ULIDState
		for i, r := range records {
			hint := now
			if r.HintMillis != nil {
				hint = min(*r.HintMillis, now) // the writer is gone: nobody could be refused
			}
			var random dialect.ULIDRandom
			rand.Read(random[:])
			var first dialect.ULIDState
			if first, next, err = next.Take(hint, random, 1); err != nil {
				return err
			}
			seqs[i], placed[i] = r.Seq, dialect.Moved{Seq: r.Seq, Position: first.Position()}
		}
		if err := d.PlaceRecords(ctx, tx, feed, shard, placed); err != nil {
			return err
		}
		n, err := d.DeleteRecords(ctx, tx, feed, seqs)
		if err == nil && n != int64(len(seqs)) {
			err = errors.New("somebody else deletes from " + feed.Records().String())
		}
		if err != nil {
			return err
		}
		moved = len(seqs)
		return d.AdvanceShard(ctx, tx, feed, row, next, row.Witness)
	})
	if errors.Is(err, errNothing) {
		return 1, nil // somebody else has moved them: read again
	}
	if err != nil {
		return 0, f.settle(ctx, "move records of its outbox", err)
	}
	f.db.watch.tell(watchKey{f.name, true, shard}, standing{f.Generation(), next.Given()})
	f.db.cfg.Observer.published(PublishEvent{Feed: f.name, Changes: moved, Keys: moved, Generation: f.Generation(), Took: time.Since(started)})
	return moved, nil
}

// pass moves a batch of every shard.
func (m outbox) pass(ctx context.Context, f *Feed, _ int, _ bool) (PublishEvent, error) {
	e := PublishEvent{Feed: f.name, Generation: f.Generation()}
	shards, err := dialect.QueryAll(ctx, f.db.on(), "SELECT DISTINCT shard FROM "+dialect.Qualified(f.db.d, f.dialectFeed().Records()), nil,
		func(rows dialect.Rows) (shard int, err error) { return shard, rows.Scan(&shard) })
	if err != nil {
		return e, f.settle(ctx, "look into its outbox", err)
	}
	for _, shard := range shards {
		n, err := m.fill(ctx, f, shard)
		if err != nil {
			return e, err
		}
		e.Changes, e.Keys = e.Changes+n, e.Keys+n
	}
	return e, nil
}

func (m outbox) publishVisible(ctx context.Context, f *Feed) error {
	for {
		if e, err := m.pass(ctx, f, 0, false); err != nil || e.Changes == 0 {
			return err
		}
	}
}

// OutboxRecord says that a row was inserted.
type OutboxRecord struct {
	Shard int // any number
	// Hint is the time that the entry's ULID is to have, where the shard has not come to a
	// later one; it is no later than the time at which the record is moved. Default: that time.
	Hint time.Time
	Key  Key
}

// AppendOutbox appends a record to the outbox of a feed with ModeOutbox, in the transaction that
// inserts the row. It waits for nobody.
func (f *Feed) AppendOutbox(ctx context.Context, tx Tx, record OutboxRecord) error {
	feed := f.dialectFeed()
	if !feed.Outbox {
		return &Error{Code: Refused, Object: feedObject(f.name), Cause: "it has no outbox", Err: errors.ErrUnsupported, Next: "write to the table"}
	}
	if err := f.checkKey(record.Key); err != nil {
		return err
	}
	var hint any
	if !record.Hint.IsZero() {
		hint = record.Hint.UnixMilli()
	}
	_, err := tx.Exec(ctx, dialect.AppendRecord(f.db.d, feed), append([]any{record.Shard, hint}, record.Key...)...)
	if err != nil {
		return f.keyError(record.Key, "append a record to its outbox", err)
	}
	return nil
}
