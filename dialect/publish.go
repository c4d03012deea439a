package dialect

import (
	"context"
	"database/sql"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Publishing are the operations of a publisher, roughly in the order in which it uses them.
type Publishing interface {
	// HasChanges tells whether a change waits whose seq is in among. It takes one round trip and no locks. A
	// publisher calls it before it opens a transaction.
	HasChanges(ctx context.Context, q Querier, f *Feed, among Seqs) (bool, error)
	// LockSequence locks the feed's row of the sequences table until the transaction ends. This row lock makes
	// positions visible in increasing order.
	LockSequence(ctx context.Context, tx Querier, f *Feed) (Sequence, error)
	// TakeChanges reads up to limit changes whose seqs are in among, in the order of their seqs, from one snapshot
	// and without locks.
	TakeChanges(ctx context.Context, tx Querier, f *Feed, among Seqs, limit int) ([]Change, error)
	// AssignPositions upserts the keys of the assignments into the feed's table of positions. There must be at
	// least one assignment, and their positions must be consecutive. AssignPositions looks up which rows exist.
	// It leaves out a key that has neither a row nor a position. A key that [Unpublished] has hidden keeps its
	// position and stays hidden, unless the kind of its assignment is not [Changed]. publishedAt is in
	// microseconds since the Unix epoch.
	AssignPositions(ctx context.Context, tx Querier, f *Feed, as []Assignment, publishedAt int64) error
	// DeleteChanges deletes exactly the changes with these seqs, which are ascending. It locks no other change.
	// It returns how many it has deleted.
	DeleteChanges(ctx context.Context, tx Querier, f *Feed, seqs []int64) (int64, error)
	// DeleteRow returns the statements that delete a row and record its delete. They run in one transaction,
	// each with the key as its parameters.
	DeleteRow(f *Feed) []string
}

// Batches is for databases where one statement for a batch is faster than several.
type Batches interface {
	// PublishBatch does all of the following in one statement, on databases where that is faster: it publishes
	// up to limit changes whose seqs are in among, and advances the sequence. If the database does not do so, or the
	// changes have different kinds, OK is false in the result, and nothing was written.
	PublishBatch(ctx context.Context, tx Querier, f *Feed, seq Sequence, generation int64, among Seqs,
		limit int) (BatchResult, error)
}

// Gaps is for databases on which a new seq is always greater than all seqs of transactions that have ended, and is
// never given twice. Then a scan can leave out ranges that were published. That helps where a scan has to step over
// deleted changes for as long as an old snapshot exists. On the others, every Seqs is all numbers.
type Gaps interface {
	// Writers returns the open transactions that may have drawn the seq of a change, or the number of a record,
	// that is not visible yet. Every transaction that had drawn one when Writers was called, and has not ended,
	// is among them. told is false if the database cannot tell, or does not tell this login.
	Writers(ctx context.Context, q Querier, f *Feed) (open []Writer, told bool, err error)
}

// Beginning is what the begin of a transaction needs.
type Beginning struct {
	Options *sql.TxOptions // with the isolation level
	// First are the statements that run first in the transaction, for durability, bounds on idling, and query plans.
	// They end with the transaction, or After is the statement to run after it.
	First []string
	After string
}

// Purpose is what a transaction is for. See [Core].Begin.
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
	Identity  string        // as [Core].Identity returns it; empty on databases that know nothing
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

// BatchResult is the result of [Batches].PublishBatch.
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
