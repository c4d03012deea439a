package console

import (
	"context"
	"encoding/json"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
)

// Data is what pages show of a database and change in it, besides rows: those come through
// the Catalog, under its rights. [Of] makes one of a DB, whose methods most of these are.
type Data struct {
	Feeds   Feeds
	Lists   Lists
	Actions Actions
}

// Feeds tells about feeds.
type Feeds interface {
	// FeedNames lists all feeds, Info describes one, Backlog is what waits in it.
	FeedNames(ctx context.Context) ([]string, error)
	Info(ctx context.Context, feed string) (*rowfeed.Info, error)
	Backlog(ctx context.Context, feed string, limit int) (admin.Backlog, error)
	// Blocked tells who holds a feed up.
	Blocked(ctx context.Context, feed string) (Blocked, error)
}

// Lists tells about what else is in the database.
type Lists interface {
	Consumers(ctx context.Context, id rowfeed.ConsumerID) ([]admin.ConsumerStatus, error)
	CurrentLeases(ctx context.Context) ([]*rowfeed.LeaseStatus, error)
	DeadLetters(ctx context.Context, id rowfeed.ConsumerID, key json.RawMessage) ([]rowfeed.DeadLetter, error)
	// Acts are what the audit log has.
	Acts(ctx context.Context, before int64, limit int) ([]admin.Act, error)
}

// Actions changes a database.
type Actions interface {
	PauseConsumer(ctx context.Context, id rowfeed.ConsumerID) (int64, error)
	ResumeConsumer(ctx context.Context, id rowfeed.ConsumerID) (int64, error)
	SeekConsumer(ctx context.Context, id rowfeed.ConsumerID, to rowfeed.Cursor) (int64, error)
	ResetConsumer(ctx context.Context, id rowfeed.ConsumerID) (int64, error)
	RetryDeadLetters(ctx context.Context, id rowfeed.ConsumerID, key json.RawMessage) (int64, error)
	DropDeadLetters(ctx context.Context, id rowfeed.ConsumerID, key json.RawMessage) (int64, error)
	ReleaseLease(ctx context.Context, name string, epoch int64) (*rowfeed.LeaseStatus, error)
	// Audited does something in an operator's name, with the act in the audit log.
	Audited(ctx context.Context, act admin.Act, do func(context.Context) error) error
	// Republish gives a key, as people write it, a new position.
	Republish(ctx context.Context, feed, key string) error
}

// Blocked is who holds a feed up: open transactions, and for a feed with ULIDs the holders of
// its shards with those who wait for them, of which Told says how much the database tells.
type Blocked struct {
	Blockers []admin.Blocker
	Unseen   *admin.Unseen // of Blockers
	Shards   []admin.ShardStatus
	Told     string
}
