package dialect

import (
	"context"
	"database/sql"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Read reads pages.
type Read interface {
	// ReadPage reads a page together with its head. Every position up to that head is on the page, is excluded
	// by the query, or is not above q.After; if the limit ends the page, this holds up to the page's last
	// position.
	ReadPage(ctx context.Context, db *sql.DB, f *Feed, q PageQuery) (*PageRows, error)
	// Flush writes a few bytes into a table of rowfeed. The commit of tx then puts everything on the disk that
	// was visible when tx began. Only a database that returns pages with Unflushed has anything to write.
	Flush(ctx context.Context, tx Querier, n Names) error
	// FlushAlone does a Flush by one statement on a pool. True means that the statement is committed. If the
	// database cannot tell that it would be, FlushAlone writes nothing and returns false.
	FlushAlone(ctx context.Context, pool Querier, n Names) (bool, error)
}

// PageQuery asks for the positions above After, in ascending order.
type PageQuery struct {
	After feedtype.Position
	// Mark excludes tombstones up to this position. The consumer started at the beginning when the head was at
	// Mark, so it has never seen the deleted rows.
	Mark     feedtype.Position
	Limit    int
	MaxBytes int // the page ends early, after at least one row, if its values are larger than this
	// From and To are the half-open range of data shards to read. Both are 0 for the whole feed.
	From, To int
	// Shard is the shard to read, for a feed with [Feed].ULIDs.
	Shard int
	// Among are the numbers that waiting records of an outbox may have.
	Among Seqs
	// AnyDatabase allows a database with another identity than the feed's, such as a replica. Without it, a
	// page of a feed with ULIDs has an empty signature there.
	AnyDatabase bool
	// Unserved are states of the feed. In such a state, a page for a part of the feed has an empty signature.
	// It must not be empty if From and To are set, or if parts are cut from a page of the whole feed. For an
	// outbox feed they are instead the states in which rows are placed behind the head: see PageRows.Filling.
	Unserved []string
	// Sorted makes the database sort the page. Otherwise the page is read in the order in which the database
	// finds its positions, and is read again, sorted, if that was not ascending.
	Sorted bool
}

// PageRows is a page as the database has returned it.
type PageRows struct {
	Generation      int64
	TombstonesBelow feedtype.Position
	// EntriesBelow is the position up to which entries were purged, or may be purged in the future. No entry at
	// or below it is shown. A cursor below it may have missed entries.
	EntriesBelow feedtype.Position
	// Head is the highest position that the page could show. Given is the highest position that may have been
	// given by then. They differ only for feeds with ULIDs.
	Head, Given feedtype.Position
	Term        feedtype.Term // of Given, from the same row; 0 if none is known, and for feeds with ULIDs
	// Filling says that rows are being placed behind the head of the shard. More of them may appear below
	// LiveFrom, or anywhere if LiveFrom is zero.
	Filling  bool
	LiveFrom feedtype.Position
	Shard    int // the shard that was asked for, of a feed with ULIDs
	// Waiting says that records of the shard waited in the outbox when the head was read. Records that had been
	// moved by then are on the page.
	Waiting bool
	// Signature identifies the columns of the source table when the page was read. It is empty if the page must
	// not be shown: see PageQuery.AnyDatabase and PageQuery.Unserved.
	Signature string
	Rows      []PageRow
	Truncated bool // MaxBytes has ended the page
	Cut       bool // the page ended before its limit, and there may be more rows
	// Unflushed says that the database shows commits before they are on its disk. A crash could undo what the
	// page shows, until a Flush was committed.
	Unflushed bool
	// Forgetful is not nil if even a Flush cannot make commits durable. It names the setting that must be
	// changed.
	Forgetful error
}

// PageRow is one position, with the present content of its row.
type PageRow struct {
	Position feedtype.Position
	Shard    int
	Deleted  bool
	Hidden   bool
	Present  bool // the source table has the row
	// PublishedAt is in microseconds since the Unix epoch; 0 if a row of the source holds the position, and with ULIDs.
	PublishedAt int64
	Key         []any
	Values      []any // the values of Feed.Columns, valid only if Present
}
