package rowfeed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// The states of a dead letter.
const (
	// LetterAside is a key that waits for an operator.
	LetterAside = "aside"
	// LetterRetry is a key that its consumer will try again.
	LetterRetry = "retry"
)

// keyDigest stands for a key of any length.
func keyDigest(key []byte) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:])
}

// DeadLetter is a key that a consumer has set aside.
type DeadLetter struct {
	Consumer   string          `json:"consumer"`
	Feed       string          `json:"feed"`
	Shard      int             `json:"shard"`      // of the consumer
	DataShard  *int64          `json:"data_shard"` // of the feed; nil of one that is older than tables version 5
	Key        json.RawMessage `json:"key"`
	Generation int64           `json:"generation"` // 0: the consumer has begun again since, and the key has not come
	Position   string          `json:"position"`   // of the latest version
	Op         feedtype.Op     `json:"op"`         // Delete also where a whole new pass came without the key
	State      string          `json:"state"`      // LetterAside or LetterRetry
	Attempts   int64           `json:"attempts"`   // made with it
	Collapsed  int64           `json:"collapsed"`  // later versions that have joined it
	Error      string          `json:"error"`      // of the last attempt
	FirstAt    time.Time       `json:"first_at"`
	LastAt     time.Time       `json:"last_at"`
}

// DeadLetters lists a consumer's dead letters, the oldest first; those of every
// consumer where id names none. key, where it is not nil, is one key, as JSON object.
func (db *consumers) DeadLetters(ctx context.Context, id ConsumerID, key json.RawMessage) ([]DeadLetter, error) {
	if err := db.store.RequireSchema(ctx, db.store.On()); err != nil {
		return nil, err
	}
	b := dialect.NewBuilder(db.store.Dialect)
	all, err := dialect.QueryAll(ctx, db.store.On(), "SELECT consumer, feed, shard, data_shard, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at FROM "+
		db.store.Table("dead_letters")+" WHERE "+whereID(b, id)+" ORDER BY consumer, feed, shard, first_at, key_digest", b.Args(), func(rows dialect.Rows) (l DeadLetter, err error) {
		var text string
		var first, last int64
		err = rows.Scan(&l.Consumer, &l.Feed, &l.Shard, &l.DataShard, &text, &l.Generation, &l.Position, &l.Op, &l.State, &l.Attempts, &l.Collapsed, &l.Error, &first, &last)
		l.Generation = max(l.Generation, 0)
		l.Key, l.FirstAt, l.LastAt = json.RawMessage(text), time.UnixMicro(first).UTC(), time.UnixMicro(last).UTC()
		return l, err
	})
	if err != nil {
		return nil, db.store.Fail(id.String(), "read its dead letters", err)
	}
	all = slices.DeleteFunc(all, func(l DeadLetter) bool { return key != nil && !SameKey(l.Key, key) })
	if key != nil && len(all) == 0 {
		return nil, &feedtype.Error{Code: feedtype.UnknownConsumer, Object: id.String(), Cause: "there is no dead letter with key " + string(key),
			Next: "`rowfeed dead list` shows those there are"}
	}
	return all, nil
}

// SameKey tells whether two JSON objects are one key, however they are written.
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

// RetryDeadLetters asks the consumer to try keys again: one, or all where key is nil.
// The consumer does so in its own loop, with each row as it is then; a key that fails
// again stays aside. It answers how many dead letters there are to retry.
func (db *consumers) RetryDeadLetters(ctx context.Context, id ConsumerID, key json.RawMessage) (int64, error) {
	return db.changeLetters(ctx, id, key, "retry", func(tx dialect.Querier, l DeadLetter) (int64, error) {
		b := dialect.NewBuilder(db.store.Dialect)
		return tx.Exec(ctx, "UPDATE "+db.store.Table("dead_letters")+" SET state = "+b.Arg(LetterRetry)+", last_at = "+db.store.Dialect.Now()+" WHERE "+whereLetter(b, l), b.Args()...)
	})
}

// DropDeadLetters gives keys up: one, or all where key is nil. Their versions so far
// are never handed over; the next one is again.
func (db *consumers) DropDeadLetters(ctx context.Context, id ConsumerID, key json.RawMessage) (int64, error) {
	return db.changeLetters(ctx, id, key, "drop", func(tx dialect.Querier, l DeadLetter) (int64, error) {
		b := dialect.NewBuilder(db.store.Dialect)
		n, err := tx.Exec(ctx, "DELETE FROM "+db.store.Table("dead_letters")+" WHERE "+whereLetter(b, l), b.Args()...)
		if err != nil || n == 0 {
			return n, err
		}
		// The cursor's row comes second, as in the consumer, so that the two cannot wait
		// for each other.
		b = dialect.NewBuilder(db.store.Dialect)
		_, err = tx.Exec(ctx, "UPDATE "+db.store.Table("cursors")+" SET aside = aside - 1, version = version + 1 WHERE consumer = "+b.Arg(l.Consumer)+
			" AND feed = "+b.Arg(l.Feed)+" AND shard = "+b.Arg(l.Shard), b.Args()...)
		return n, err
	})
}

func whereLetter(b *dialect.Builder, l DeadLetter) string {
	return "consumer = " + b.Arg(l.Consumer) + " AND feed = " + b.Arg(l.Feed) + " AND shard = " + b.Arg(l.Shard) + " AND key_digest = " + b.Arg(keyDigest(l.Key))
}

// changeLetters changes dead letters, each in a transaction of its own: a consumer at
// work is held up by one of them at most.
func (db *consumers) changeLetters(ctx context.Context, id ConsumerID, key json.RawMessage, doing string, fn func(dialect.Querier, DeadLetter) (int64, error)) (total int64, err error) {
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
		err := db.store.InTx(ctx, dialect.ForRecord, doing+" a dead letter", func(tx dialect.Querier) (err error) {
			if _, err = db.lockWhole(ctx, tx, ConsumerID{Consumer: l.Consumer, Feed: l.Feed}); err == nil {
				n, err = fn(tx, l)
			}
			return err
		})
		if err != nil {
			return total, db.store.Fail(id.String(), doing+" a dead letter", err)
		}
		total += n
	}
	return total, nil
}
