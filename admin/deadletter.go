package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"

	"github.com/rowfeed/rowfeed/feedtype"
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

// DeadLetters returns a page of dead letters: of each shard of a consumer the oldest first.
func (db *Admin) DeadLetters(ctx context.Context, q feedtype.LetterQuery) (feedtype.LetterPage, error) {
	return db.consumers.DeadLetters(ctx, q)
}

// CountDeadLetters returns the number of dead letters that a query selects, on all pages.
func (db *Admin) CountDeadLetters(ctx context.Context, q feedtype.LetterQuery) (int64, error) {
	return db.consumers.CountDeadLetters(ctx, q)
}

// GroupDeadLetters groups dead letters by consumer, feed and error, the largest groups first. Errors that differ only
// in numbers are one group. It reads all letters that the query selects.
func (db *Admin) GroupDeadLetters(ctx context.Context, q feedtype.LetterQuery) ([]feedtype.LetterGroup, error) {
	return db.consumers.GroupDeadLetters(ctx, q)
}

// LetterRow returns the entry that a retry of a dead letter delivers: the row with its present content, or the content
// that the feed has stored. It returns nil if the row is deleted, if a newer version has not reached the letter
// yet, or if the consumer has restarted. If the feed is not in this database, the error has the code UnknownFeed.
func (db *Admin) LetterRow(ctx context.Context, l feedtype.DeadLetter) (*feedtype.Entry, error) {
	f, err := db.feed(ctx, l.Feed)
	if err != nil || l.Generation == 0 || l.Op == feedtype.Delete {
		return nil, err
	}
	position, err := feedtype.ParsePosition(l.Position)
	if err != nil {
		return nil, err
	}
	before := feedtype.CursorState{Generation: l.Generation, Position: position.Before()}
	var req feedtype.Request
	if f.ShardsAreFeeds() && l.DataShard != nil {
		req.Shards = feedtype.One(int(*l.DataShard))
	} else {
		before.Mark = position // does not ask for deletes, which the feed may have purged
	}
	req.After, req.Limit = before.Cursor(), 1
	page, err := f.Fetch(ctx, req)
	if err != nil || len(page.Entries) == 0 || page.Entries[0].Position != l.Position {
		return nil, err
	}
	return &page.Entries[0], nil
}

// RetryDeadLetters asks consumers to retry the selected keys. A consumer does so in its own loop, with the rows as they
// are then. A key that fails again stays a dead letter. It returns the number of dead letters to retry. An empty query
// selects the dead letters of all consumers; Limit has no effect. progress may be nil; it is called with the number so
// far. Letters are changed in batches: if it fails, call it again.
func (db *Admin) RetryDeadLetters(
	ctx context.Context, q feedtype.LetterQuery, progress func(letters int64),
) (int64, error) {
	return db.consumers.RetryDeadLetters(ctx, q, progress)
}

// DropDeadLetters deletes the selected dead letters, and returns how many. The consumer never receives the versions of
// their keys so far; it receives the next version again. Query, progress and batches are those of RetryDeadLetters.
func (db *Admin) DropDeadLetters(
	ctx context.Context, q feedtype.LetterQuery, progress func(letters int64),
) (int64, error) {
	return db.consumers.DropDeadLetters(ctx, q, progress)
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
