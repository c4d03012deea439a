package console

import (
	"context"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Data reads and changes what pages show of a database, except rows, which come from the catalog. [Of] returns the Data
// of a DB.
type Data struct {
	Feeds   Feeds
	Lists   Lists
	Actions Actions
}

// Feeds reads the state of feeds.
type Feeds interface {
	// FeedNames lists all feeds. Info describes a feed, and Backlog counts its changes that wait to be published.
	FeedNames(ctx context.Context) ([]string, error)
	Info(ctx context.Context, feed string) (*rowfeed.Info, error)
	Backlog(ctx context.Context, feed string, limit int) (admin.Backlog, error)
	// Blocked returns the transactions that block a feed.
	Blocked(ctx context.Context, feed string) (Blocked, error)
}

// Lists reads consumers, leases, dead letters and the audit log.
type Lists interface {
	Consumers(ctx context.Context, id rowfeed.ConsumerID) ([]admin.ConsumerStatus, error)
	// Failing returns what keeps failing: publishers, consumers and relays.
	Failing(ctx context.Context) ([]admin.Failing, error)
	CurrentLeases(ctx context.Context) ([]*rowfeed.LeaseStatus, error)
	DeadLetters(ctx context.Context, q rowfeed.LetterQuery) (feedtype.LetterPage, error)
	GroupDeadLetters(ctx context.Context, q rowfeed.LetterQuery) ([]feedtype.LetterGroup, error)
	LetterRow(ctx context.Context, l rowfeed.DeadLetter) (*rowfeed.Entry, error)
	// Acts returns acts of the audit log, the newest first: those with an id below before, or all if before is 0.
	Acts(ctx context.Context, before int64, limit int) ([]admin.Act, error)
}

// Actions changes a database.
type Actions interface {
	PauseConsumer(ctx context.Context, id rowfeed.ConsumerID) (int64, error)
	ResumeConsumer(ctx context.Context, id rowfeed.ConsumerID) (int64, error)
	SeekConsumer(ctx context.Context, id rowfeed.ConsumerID, to rowfeed.Cursor) (int64, error)
	PreviewSeek(ctx context.Context, id rowfeed.ConsumerID, to rowfeed.Cursor) (admin.CursorMove, error)
	ResetConsumer(ctx context.Context, id rowfeed.ConsumerID) (int64, error)
	CountDeadLetters(ctx context.Context, q rowfeed.LetterQuery) (int64, error)
	RetryDeadLetters(ctx context.Context, q rowfeed.LetterQuery, progress func(int64)) (int64, error)
	DropDeadLetters(ctx context.Context, q rowfeed.LetterQuery, progress func(int64)) (int64, error)
	ReleaseLease(ctx context.Context, name string, epoch int64) (*rowfeed.LeaseStatus, error)
	// Audited records act in the audit log, calls do and records the outcome.
	Audited(ctx context.Context, act admin.Act, do func(context.Context) error) error
	// Republish gives a key a new position. The key is written as users type it.
	Republish(ctx context.Context, feed, key string) error
}

// Blocked has the transactions that block a feed. For a feed with ULIDs Shards has the holder of each shard and the
// sessions that wait for it. Told says which of them the database names: admin.HoldersAll, and so on.
type Blocked struct {
	Blockers []admin.Blocker
	Unseen   *admin.Unseen // why Blockers may be incomplete
	Shards   []admin.ShardStatus
	Told     string
}
