package admin

import (
	"context"
	"encoding/json"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/consume"
)

// ConsumerShardCount is the number of shards that a consumer has, 1 where it is new: see
// Consumer.ShardCount.
func (db *Admin) ConsumerShardCount(ctx context.Context, consumer, feed string) (int, error) {
	return db.consumers.ConsumerShardCount(ctx, consumer, feed)
}

// ConsumerEpoch is the highest epoch under which a consumer's cursors were ever claimed,
// also those that were dropped; 0 if there was none. It is for Lease.Above of whoever sets
// Consumer.Epoch: receivers that refuse lower epochs then take what is delivered next.
func (db *Admin) ConsumerEpoch(ctx context.Context, consumer, feed string) (int64, error) {
	return db.consumers.ConsumerEpoch(ctx, consumer, feed)
}

// DeadLetters lists a consumer's dead letters, the oldest first; those of every
// consumer where id names none. key, where it is not nil, is one key, as JSON object.
func (db *Admin) DeadLetters(
	ctx context.Context, id feedtype.ConsumerID, key json.RawMessage,
) ([]feedtype.DeadLetter, error) {
	return db.consumers.DeadLetters(ctx, id, key)
}

// RetryDeadLetters asks the consumer to try keys again: one, or all where key is nil.
// The consumer does so in its own loop, with each row as it is then; a key that fails
// again stays aside. It answers how many dead letters there are to retry.
func (db *Admin) RetryDeadLetters(ctx context.Context, id feedtype.ConsumerID, key json.RawMessage) (int64, error) {
	return db.consumers.RetryDeadLetters(ctx, id, key)
}

// DropDeadLetters gives keys up: one, or all where key is nil. Their versions so far
// are never handed over; the next one is again.
func (db *Admin) DropDeadLetters(ctx context.Context, id feedtype.ConsumerID, key json.RawMessage) (int64, error) {
	return db.consumers.DropDeadLetters(ctx, id, key)
}

// PurgeProcessed forgets the processed ids up to a cursor, behind which no entry can
// come again, and those of older generations. Without a cursor (Beginning) it is that
// of the consumer of this name in this database. It answers how many there were.
func (db *Admin) PurgeProcessed(
	ctx context.Context, consumer, feed string, upTo feedtype.Cursor,
) (total int64, err error) {
	return db.consumers.PurgeProcessed(ctx, consumer, feed, upTo)
}

// SameKey tells whether two JSON objects are one key, however they are written.
func SameKey(a, b json.RawMessage) bool { return consume.SameKey(a, b) }
