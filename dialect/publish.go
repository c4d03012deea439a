package dialect

import (
	"context"
	"database/sql"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Publish are the operations of a publisher, roughly in the order in which it uses them.
type Publish interface {
	// TxOptions and Settings are for the begin of a transaction with this purpose. TxOptions has the isolation
	// level. Settings are statements that run first in the transaction, for durability, bounds on idling, and
	// query plans. They end with the transaction, or Restore returns the statement to run after it.
	TxOptions(p Purpose) *sql.TxOptions
	Settings(p Purpose, n Names) []string
	Restore(p Purpose) string
	// Unlocked is a clause that makes a SELECT leave out rows that another transaction has locked; "" if the database
	// locks no rows.
	Unlocked() string
	// Durability returns an error if a power failure could undo a commit of this connection. The error names
	// the setting to change.
	Durability(ctx context.Context, q Querier) error
	// Identity identifies this database, as far as the server knows: it differs from that of every other
	// database, and changes with a failover or a restore. It is empty if the server knows nothing. The error is
	// of class [ClassReadOnly] on a server that accepts no writes.
	Identity(ctx context.Context, q Querier, n Names) (string, error)
	// IdentitySQL returns an expression for the same. It is NULL on a server that accepts no writes. It is
	// empty if the server knows nothing.
	IdentitySQL(n Names) string
	// SeqsGrow tells whether a new seq is always greater than all seqs of transactions that have ended, and is
	// never given twice. Then a scan can leave out ranges that were published. That helps on databases where a
	// scan has to step over deleted changes for as long as an old snapshot exists. If it is false, every Seqs
	// is all numbers.
	SeqsGrow() bool
	// Writers returns the open transactions that may have drawn the seq of a change, or the number of a record,
	// that is not visible yet. Every transaction that had drawn one when Writers was called, and has not ended,
	// is among them. told is false if the database cannot tell, or does not tell this login.
	Writers(ctx context.Context, q Querier, f *Feed) (open []Writer, told bool, err error)
	// HasChanges tells whether a change waits among some seqs. It takes one round trip and no locks. A
	// publisher asks it before it opens a transaction.
	HasChanges(ctx context.Context, q Querier, f *Feed, among Seqs) (bool, error)
	// ScanRanges returns the ranges of a primary-key column that a scan for changes or records has to read. Each of
	// them follows the table's name in a query of its own. Together these queries find every number that is
	// among the given ones.
	ScanRanges(column string, among Seqs) []string
	// Stamp returns a query for a text that changes with every commit to the database, of any session and to
	// any table. It is "" if the database has nothing that is cheap enough. The text is empty if this server
	// cannot tell.
	Stamp() string
	// LockSequence locks the feed's row of the sequences table until the transaction ends. This row lock makes
	// positions visible in increasing order.
	LockSequence(ctx context.Context, tx Querier, f *Feed) (Sequence, error)
	// PublishBatch does all of the following in one statement, on databases where that is faster: it publishes
	// up to limit changes among some seqs, and advances the sequence. If the database does not do so, or the
	// changes have different kinds, OK is false in the result, and nothing was written.
	PublishBatch(ctx context.Context, tx Querier, f *Feed, seq Sequence, generation int64, among Seqs,
		limit int) (BatchResult, error)
	// TakeChanges reads up to limit changes among some seqs, in the order of their seqs, from one snapshot and
	// without locks.
	TakeChanges(ctx context.Context, tx Querier, f *Feed, among Seqs, limit int) ([]Change, error)
	// AssignPositions upserts the keys of the assignments into the feed's table of positions. There must be at
	// least one assignment, and their positions must be consecutive. AssignPositions looks up which rows exist.
	// It leaves out a key that has neither a row nor a position. A hidden key keeps its position and stays
	// hidden, unless the kind of its assignment asks for more. publishedAt is in microseconds since the Unix
	// epoch.
	AssignPositions(ctx context.Context, tx Querier, f *Feed, as []Assignment, publishedAt int64) error
	// PlaceRows gives positions to up to limit rows whose position is NULL: base + 1, base + 2 and so on, in
	// key order. If after is not nil, it begins above that key. It skips rows that other transactions have
	// locked, and changes nothing else of a row. It deletes the entries of these keys in the feed's table of
	// positions, except those of hidden keys. If the feed is sharded, shard returns the data shard of a row's
	// key, which the same statement writes.
	//
	// PlaceRows returns the number of rows, and the key of the last one. For a feed that is not [Feed.InRows]
	// it returns 0.
	PlaceRows(ctx context.Context, tx Querier, f *Feed, after []any, limit int, base int64,
		shard func(key []any) (int, error)) (n int, last []any, err error)
	// ResetRows sets the position of each row (alias t) that satisfies a condition to NULL, and changes nothing
	// else of the row. It returns the number of rows.
	ResetRows(ctx context.Context, tx Querier, f *Feed, where string, args []any) (int64, error)
	// SetShards writes the data shards of the keys that have these positions, and returns how many it has
	// written. Without rows it writes into the feed's table of positions, with the buckets. With rows it writes
	// into the source, and skips rows that other transactions have locked. Each given shard must differ from
	// the present one.
	SetShards(ctx context.Context, tx Querier, f *Feed, rows bool, places []Sharded) (int64, error)
	// DeleteChanges deletes exactly the changes with these seqs, which are ascending. It locks no other change.
	// It returns how many it has deleted.
	DeleteChanges(ctx context.Context, tx Querier, f *Feed, seqs []int64) (int64, error)
}

// Purpose is what a transaction is for. See [Publish].TxOptions.
type Purpose int

const (
	// ForPublish is a publisher's transaction: READ COMMITTED and durable.
	ForPublish Purpose = iota
	// ForMove is ForPublish for moving the records of an outbox. Such transactions must not wait long for each
	// other. If no setting of the database ends with the transaction, [Moving].Bounded bounds the wait.
	ForMove
	// ForRecord writes change records or rowfeed's own rows: READ COMMITTED and durable.
	ForRecord
	// ForRepair is ForRecord for statements that read a whole table, which may take any time.
	ForRepair
	// ForRead reads pages: READ COMMITTED, read-only.
	ForRead
	// ForCheck reads everything in one snapshot: REPEATABLE READ, read-only.
	ForCheck
	// ForConsume is the transaction that a consumer's handler gets: READ COMMITTED and durable. On a database
	// with a single write lock it holds that lock. It has no settings that would affect the handler's
	// statements.
	ForConsume
)

// Sequence is a feed's row of the sequences table, read under its lock. Times are in microseconds since the
// Unix epoch.
type Sequence struct {
	Value     int64         // the highest position given
	Version   int64         // the number of advances, which is the optimistic lock
	Term      feedtype.Term // of the last advance; 0 if none is known
	UpdatedAt int64         // when Value was last advanced
	Now       int64         // the time of the database's clock
	Identity  string        // as [Publish].Identity returns it; empty on databases that know nothing
}

// Writer is an open transaction of another session.
type Writer struct {
	// Session identifies the session. It belongs to no other session while the transaction is open.
	Session string
	// Transaction identifies the transaction. It is empty if the session is running a statement that may have
	// drawn a seq, and its transaction has no name yet.
	Transaction string
	// Orphan says that the transaction has no session any more, or has another name than before, as after a
	// restart of the server. It may be any transaction that was listed before under other names.
	Orphan bool
}

// ChangeKind is what a change record asks for.
type ChangeKind int

const (
	// Changed says that the key was written. A hidden key stays hidden.
	Changed ChangeKind = 0
	// Republished asks for a new position, and shows the key again if it was hidden.
	Republished ChangeKind = 1
	// Unpublished hides the key: consumers get a delete.
	Unpublished ChangeKind = 2
	// Placed asks for a new position, also for a hidden key, which stays hidden. If changes of one key are
	// published together, Republished and Unpublished win over it.
	Placed ChangeKind = 3
)

// Change is one record of changes_<feed>.
type Change struct {
	Seq  int64
	Kind ChangeKind
	// Key holds the values of the key columns. Different keys have different values. Equal keys may have values
	// that are spelled differently, if the collation of the key takes them for equal.
	Key []any
}

// BatchResult is the result of [Publish].PublishBatch.
type BatchResult struct {
	OK       bool
	Changes  int     // how many were read
	Deleted  int     // how many of these were still present and were deleted
	Keys     int     // how many different keys they had; the sequence was advanced by this number
	Advanced bool    // false if another publisher has advanced the sequence, or the generation is another
	Seqs     []int64 // the seqs that were deleted, ascending
}

// Assignment gives a position to the key of one change.
type Assignment struct {
	Seq      int64 // the change that names the key; it must not be deleted yet
	Position int64
	Shard    int
	Kind     ChangeKind
}
