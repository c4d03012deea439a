package feedtype

import "time"

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
	Capture Capture
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
	// the head are to have, see rowfeed.DB.Admin.
	TimeColumn string
	// Tombstones is how long deletes are kept after their publication, with ModeSequence; default
	// 30 days.
	Tombstones time.Duration
	// Retain is how long entries are kept, with ModeOutbox; the zero value keeps them for ever.
	Retain Retention
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
