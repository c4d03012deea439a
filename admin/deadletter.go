package admin

import (
	"context"
	"encoding/json"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/consume"
)

// ConsumerShardCount returns the number of shards of a consumer, 1 if it does not exist. See
// rowfeed.Consumer.ShardCount.
func (db *Admin) ConsumerShardCount(ctx context.Context, consumer, feed string) (int, error) {
	return db.consumers.ConsumerShardCount(ctx, consumer, feed)
}

// ConsumerEpoch returns the highest epoch under which a consumer's cursors were ever claimed, dropped ones included; 0
// if there was none. Programs that set RelayConsumer.Epoch themselves pass it to Lease.Above: receivers that refuse
// lower epochs then accept what is delivered next.
func (db *Admin) ConsumerEpoch(ctx context.Context, consumer, feed string) (int64, error) {
	return db.consumers.ConsumerEpoch(ctx, consumer, feed)
}

// DeadLetters lists dead letters, the oldest first. Empty fields of id select all; key selects one key, as a JSON
// object, unless it is nil.
func (db *Admin) DeadLetters(
	ctx context.Context, id feedtype.ConsumerID, key json.RawMessage,
) ([]feedtype.DeadLetter, error) {
	return db.consumers.DeadLetters(ctx, id, key)
}

// RetryDeadLetters asks a consumer to retry one key, or all if key is nil. The consumer does so in its own loop, with
// the rows as they are then. A key that fails again stays a dead letter. It returns the number of dead letters to
// retry.
func (db *Admin) RetryDeadLetters(ctx context.Context, id feedtype.ConsumerID, key json.RawMessage) (int64, error) {
	return db.consumers.RetryDeadLetters(ctx, id, key)
}

// DropDeadLetters deletes the dead letter of one key, or all if key is nil, and returns how many. The consumer never
// receives the versions of the key so far; it receives the next version again.
func (db *Admin) DropDeadLetters(ctx context.Context, id feedtype.ConsumerID, key json.RawMessage) (int64, error) {
	return db.consumers.DropDeadLetters(ctx, id, key)
}

// PurgeProcessed deletes the processed ids up to a cursor, whose entries cannot come again, and those of older
// generations. It returns how many. With feedtype.Beginning it uses the cursor of the consumer of this name in this
// database.
func (db *Admin) PurgeProcessed(
	ctx context.Context, consumer, feed string, upTo feedtype.Cursor,
) (total int64, err error) {
	return db.consumers.PurgeProcessed(ctx, consumer, feed, upTo)
}

// SameKey tells whether two JSON objects are the same key. Their white space and the order of their members may differ.
func SameKey(a, b json.RawMessage) bool { return consume.SameKey(a, b) }
