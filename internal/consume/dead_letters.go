package consume

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// DeadLetters lists dead letters, the oldest first. An id without a consumer lists those of all consumers. A key that
// is not nil selects one key, as a JSON object.
func (db *Consumers) DeadLetters(ctx context.Context, id feedtype.ConsumerID,
	key json.RawMessage) ([]feedtype.DeadLetter, error) {
	if err := db.Store.RequireSchema(ctx, db.Store.On()); err != nil {
		return nil, err
	}
	b := db.builder()
	all, err := dialect.QueryAll(ctx, db.Store.On(), "SELECT consumer, feed, shard, data_shard, key_json, "+
		"generation, position, op, state, attempts, collapsed, error, first_at, last_at FROM "+
		db.table("dead_letters")+" WHERE "+WhereID(b, id)+" ORDER BY consumer, feed, shard, first_at, key_digest",
		b.Args(), func(rows dialect.Rows) (l feedtype.DeadLetter, err error) {
			var text string
			var first, last int64
			err = rows.Scan(&l.Consumer, &l.Feed, &l.Shard, &l.DataShard, &text, &l.Generation, &l.Position, &l.Op,
				&l.State, &l.Attempts, &l.Collapsed, &l.Error, &first, &last)
			l.Generation = max(l.Generation, 0)
			l.Key, l.FirstAt, l.LastAt = json.RawMessage(text), time.UnixMicro(first).UTC(), time.UnixMicro(last).UTC()
			return l, err
		})
	if err != nil {
		return nil, db.Store.Fail(id.String(), "read its dead letters", err)
	}
	all = slices.DeleteFunc(all, func(l feedtype.DeadLetter) bool { return key != nil && !SameKey(l.Key, key) })
	if key != nil && len(all) == 0 {
		return nil, &feedtype.Error{Code: feedtype.UnknownConsumer, Object: id.String(),
			Cause: "there is no dead letter with key " + string(key), Next: "`rowfeed dead list` shows those there are"}
	}
	return all, nil
}

// SameKey reports whether two JSON objects are the same key, independent of order and white space.
func SameKey(a, b json.RawMessage) bool {
	read := func(text json.RawMessage) (members map[string]any) {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&members); err != nil {
			return nil
		}
		return members
	}
	x := read(a)
	return x != nil && reflect.DeepEqual(x, read(b))
}

// RetryDeadLetters asks the consumer to handle one key again, or all keys if key is nil. The consumer does so in its
// own loop, with the current row. A key that fails again stays set aside. It returns the number of dead letters to
// retry.
func (db *Consumers) RetryDeadLetters(ctx context.Context, id feedtype.ConsumerID, key json.RawMessage) (int64, error) {
	return db.changeLetters(ctx, id, key, "retry", func(tx dialect.Querier, l feedtype.DeadLetter) (int64, error) {
		b := db.builder()
		return tx.Exec(ctx, "UPDATE "+db.table("dead_letters")+" SET state = "+b.Arg(feedtype.LetterRetry)+
			", last_at = "+db.now()+" WHERE "+whereLetter(b, l), b.Args()...)
	})
}

// DropDeadLetters deletes the dead letter of one key, or of all keys if key is nil. The versions so far are never
// handed over. The next version is.
func (db *Consumers) DropDeadLetters(ctx context.Context, id feedtype.ConsumerID, key json.RawMessage) (int64, error) {
	return db.changeLetters(ctx, id, key, "drop", func(tx dialect.Querier, l feedtype.DeadLetter) (int64, error) {
		b := db.builder()
		n, err := tx.Exec(ctx, "DELETE FROM "+db.table("dead_letters")+" WHERE "+whereLetter(b, l), b.Args()...)
		if err != nil || n == 0 {
			return n, err
		}
		// Dead letter first, then cursor, as in the consumer: this order prevents deadlocks.
		b = db.builder()
		_, err = tx.Exec(ctx, "UPDATE "+db.table("cursors")+" SET aside = aside - 1, version = version + 1 WHERE "+
			"consumer = "+b.Arg(l.Consumer)+" AND feed = "+b.Arg(l.Feed)+" AND shard = "+b.Arg(l.Shard), b.Args()...)
		return n, err
	})
}

func whereLetter(b *dialect.Builder, l feedtype.DeadLetter) string {
	return "consumer = " + b.Arg(l.Consumer) + " AND feed = " + b.Arg(l.Feed) + " AND shard = " + b.Arg(l.Shard) +
		" AND key_digest = " + b.Arg(keyDigest(l.Key))
}

// changeLetters changes dead letters, each in a transaction of its own, so that it delays a running consumer by at
// most one of them.
func (db *Consumers) changeLetters(ctx context.Context, id feedtype.ConsumerID, key json.RawMessage, doing string,
	fn func(dialect.Querier, feedtype.DeadLetter) (int64, error)) (total int64, err error) {
	if id.Consumer == "" {
		return 0, feedtype.Invalid("consumer", "name the consumer")
	}
	letters, err := db.DeadLetters(ctx, id, key)
	if err == nil && len(letters) == 0 {
		err = db.knowsConsumer(ctx, id)
	}
	if err != nil {
		return 0, err
	}
	for _, l := range letters {
		var n int64
		err := db.Store.InTx(ctx, dialect.ForRecord, doing+" a dead letter", func(tx dialect.Querier) (err error) {
			if _, err = db.LockWhole(ctx, tx, feedtype.ConsumerID{Consumer: l.Consumer, Feed: l.Feed}); err == nil {
				n, err = fn(tx, l)
			}
			return err
		})
		if err != nil {
			return total, db.Store.Fail(id.String(), doing+" a dead letter", err)
		}
		total += n
	}
	return total, nil
}

// ForgetLetterPositions marks the positions of dead letters as positions of an earlier pass. The next pass delivers
// every key that still exists.
func (db *Consumers) ForgetLetterPositions(ctx context.Context, tx dialect.Querier, id feedtype.ConsumerID) error {
	b := db.builder()
	_, err := tx.Exec(ctx, "UPDATE "+db.table("dead_letters")+" SET generation = -ABS(generation), op = "+
		b.Arg(string(feedtype.Upsert))+" WHERE "+WhereID(b, id), b.Args()...)
	return err
}
