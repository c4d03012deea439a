package rowfeed

import (
	"context"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Key is the values of a feed's key columns, in the key's order: int64, string,
// []byte or whatever else the driver takes for the column.
type Key []any

// Record records, inside the caller's transaction, that the keys were written: what
// triggers do, for feeds with capture "app". (With capture "column" it is for what no
// statement can say, such as the old key of a row whose key changes.) Call it in the transaction that writes
// the rows, for every key written, inserted or deleted; for a changed key with both.
func (f *Feed) Record(ctx context.Context, tx Tx, keys ...Key) error {
	return f.recordKeys(ctx, tx, dialect.Changed, keys)
}

// Republish asks, inside the caller's transaction, for new positions for the keys:
// consumers receive them again, as they are then. Hidden keys are shown again. It
// appends change records and locks nothing.
func (f *Feed) Republish(ctx context.Context, tx Tx, keys ...Key) error {
	return f.recordKeys(ctx, tx, dialect.Republished, keys)
}

// Unpublish hides the keys, inside the caller's transaction: once published,
// consumers get a delete, and changes of the rows stay hidden until Republish.
func (f *Feed) Unpublish(ctx context.Context, tx Tx, keys ...Key) error {
	return f.recordKeys(ctx, tx, dialect.Unpublished, keys)
}

// LockRequest says what Feed.Lock is to take.
type LockRequest struct {
	// Shards are those that the transaction is going to insert rows into, any numbers. Take
	// all of them at once: transactions that take shards one by one, in different orders,
	// deadlock. Default: shard 0.
	Shards []int
	// Hint is the time that the ULIDs are to have. An earlier one than the shard's ULIDs
	// have come to is not followed: time does not go back within a shard. One more than a
	// minute ahead of the database's clock is refused. Default: the database's clock.
	Hint time.Time
	// Wait is the longest wait for transactions that have the shards, on the server, for all
	// of them together; whole seconds where the database counts in seconds, on SQLite a tenth of
	// one at least. PostgreSQL bounds the wait in the queue and that for the shard each. When it has
	// run out the error has the code Locked, and says who has the shard and whether the transaction
	// can go on. Default: Config.LockWait, else 10 s, or less where the session's own setting is less. NoBound
	// leaves it to that setting.
	Wait time.Duration
	// Idle is how long the transaction may sit idle between its statements from here to its
	// end, while others wait for it: then the server ends it, and its connection. That is
	// PostgreSQL's; elsewhere nothing is set, and a session that is not bounded so tightly itself is refused
	// (errors.ErrUnsupported). Default: Config.LockIdle, else one minute where the server can. NoBound
	// leaves it to the session's settings. A tighter one of the session's own always holds.
	Idle time.Duration
}

// NoBound as LockRequest.Wait or Idle leaves the bound to the session's own settings.
const NoBound time.Duration = -1

// OutboxRecord says that a row was inserted.
type OutboxRecord struct {
	Shard int // any number
	// Hint is the time that the entry's ULID is to have, where the shard has not come to a
	// later one; it is no later than the time at which the record is moved. Default: that time.
	Hint time.Time
	Key  Key
}

// Retention is how long the feed's entries are kept.
func (f *Feed) Retention() feedtype.Retention { return f.catalog.Record.Load().Retain }

// DefaultTombstones is how long deletes are kept when a FeedSpec does not say.
const DefaultTombstones = 30 * 24 * time.Hour

// FeedSpec says what a feed is made of.
type FeedSpec struct {
	Name string
	// Table is the source: "t", "schema.t", or with quotes where names hold dots:
	// `"odd.schema"."odd.table"`.
	Table string
	// Mode is ModeSequence, also when empty, ModeBlocking or ModeOutbox.
	Mode string
	// PositionColumn is, with ModeBlocking, the table's column that holds a row's ULID, and
	// ShardColumn the integer column that says which shard the row is in. A unique index
	// has both, in the order shard, ULID.
	PositionColumn string
	// Capture is CaptureTrigger when empty; with ModeOutbox it is CaptureApp.
	Capture dialect.Capture
	// Key names the columns of a unique index; default: the primary key. For printing
	// without a server each is written with its type, "id:bigint"; so are the columns that
	// modes blocking and outbox name.
	Key []string
	// Columns are those delivered; default: every column that the table has at the time
	// of a fetch.
	Columns []string
	// DataShards is the number of data shards, among which the keys are divided by a
	// checksum, see [ShardOf]; 1 to MaxDataShards, default 1. 1024 is a good choice for a
	// feed that is to be read in parallel. Another number later begins a new generation.
	DataShards int
	// ShardColumn is an integer column of the key that gives the data shard, modulo
	// DataShards, in place of the checksum. (With ModeBlocking see PositionColumn. With ModeOutbox
	// it is any integer column: the shard of the records that triggers and back-fill
	// make; without it that is 0.)
	ShardColumn string
	// TimeColumn is, with ModeOutbox, the column with the times that rows placed behind
	// the head are to have, see [Feed.BackFill].
	TimeColumn string
	// Tombstones is how long deletes are kept after their publication, with ModeSequence; default
	// 30 days.
	Tombstones time.Duration
	// Retain is how long entries are kept, with ModeOutbox; the zero value keeps them for ever.
	Retain feedtype.Retention
	// AcceptTriggers accepts, with capture "column", that triggers of the table fire when
	// a row's position is written.
	AcceptTriggers bool
	// Adopt keeps the positions in the table's own column feed_sync_id, with capture
	// "column". The sequence begins at the highest of them.
	Adopt bool
	// AdoptSequence is a former table of sequences, with columns name and value, from
	// whose value the sequence goes on where that is higher: TABLE for the row named as
	// the feed, or TABLE:NAME.
	AdoptSequence string
	// AdoptCursors is a former table of cursors, with columns name (the consumer's) and
	// value or position, the last that it has consumed, from which its consumers go on;
	// with a column feed, those whose feed has this feed's name.
	AdoptCursors string
	// AcceptUntriggered accepts that some writes fire no trigger (cascading foreign keys
	// on MySQL and MariaDB) and are found by check and repair only.
	AcceptUntriggered bool
}
