package feedtype

import "time"

// DefaultTombstones is how long deletes are kept if FeedSpec.Tombstones is 0.
const DefaultTombstones = 30 * 24 * time.Hour

// FeedSpec holds the settings of a new feed.
type FeedSpec struct {
	// Name is the name of the feed: a lower-case letter, then up to 38 of a-z, 0-9 and '_'.
	Name string
	// Table is the source table: "t" or "schema.t". Quote names that contain dots: `"odd.schema"."odd.table"`.
	Table string
	// Mode is ModeSequence (the default), ModeBlocking or ModeOutbox.
	Mode string
	// PositionColumn, with ModeBlocking, is the table's column that holds a row's ULID. ShardColumn is then the
	// integer column that holds the row's shard. The table needs a unique index of both, in the order shard, ULID.
	PositionColumn string
	// Capture is how changes are recorded. Default: CaptureTrigger, CaptureApp with ModeOutbox, and CaptureNone with
	// ModeBlocking.
	Capture Capture
	// Key names the columns of a unique index. Default: the primary key. To print a script without a server, give
	// each column with its type: "id:bigint". The same holds for ShardColumn, PositionColumn and TimeColumn.
	Key []string
	// Columns are the delivered columns. Default: every column that the table has at the time of a fetch.
	Columns []string
	// DataShards is the number of data shards, 1 to MaxDataShards. Default 1. A checksum of the key determines its
	// data shard, see [ShardOf]. 1024 is a good choice for a feed that is to be read in parallel. With 1 a feed has
	// 1024 parts, too, and each of its readers reads all rows. The number can be changed later: cursors of the whole
	// feed stay valid.
	DataShards int
	// ShardColumn is an integer column that determines the data shard instead of the checksum. A column of the key does
	// so modulo DataShards. Any other column must be NOT NULL, and its values are the data shards: 0 to DataShards - 1.
	// Only the table's owner writes it. With ModeBlocking see PositionColumn. With ModeOutbox it is any integer column:
	// the shard of the records that triggers and the back-fill create. Without it their shard is 0.
	ShardColumn string
	// TimeColumn, with ModeOutbox, is the column with the times of rows that the back-fill places before the live
	// entries. See BackFill of package admin's Feed.
	TimeColumn string
	// Tombstones is how long deletes are kept after their publication, with ModeSequence. Default: 30 days.
	Tombstones time.Duration
	// Retain is how long entries are kept, with ModeOutbox. The zero value keeps them for ever.
	Retain Retention
	// AcceptTriggers, with capture "column", accepts that triggers of the table fire when the publisher writes a
	// row's position.
	AcceptTriggers bool
	// Fence, with capture "column", makes triggers on the table that refuse every value of feed_sync_id, except NULL,
	// that the feed's publisher does not give. A former publisher that still runs then fails with an error that names
	// rowfeed and the feed. Without them, rows that it gives positions can be missed by readers.
	Fence bool
	// PublishedElsewhere, with capture "column", says that a publisher of your own gives the positions, and goes on to
	// do so: rowfeed serves the feed, and gives none. It implies Adopt and requires AdoptSequence, the row that this
	// publisher advances in the transaction in which it gives positions: a page shows positions up to the committed
	// value of the row. Deletes are not published.
	PublishedElsewhere bool
	// Adopt, with capture "column", keeps the positions in the table's own column feed_sync_id. The sequence begins
	// at the highest of them.
	Adopt bool
	// AdoptSequence is a former table of sequences, with the columns name and value. The feed's sequence continues
	// from its value if that is higher. It is written as TABLE for the row with the feed's name, or as TABLE:NAME.
	AdoptSequence string
	// AdoptCursors is a former table of cursors. Its columns are name (of the consumer) and value or position, the
	// last position that the consumer has processed. The consumers continue from there. If the table has a column
	// feed, only the rows with this feed's name count.
	AdoptCursors string
	// AcceptUntriggered accepts that some writes fire no trigger: cascading foreign keys on MySQL and MariaDB. Only
	// check and repair find these changes.
	AcceptUntriggered bool
}
