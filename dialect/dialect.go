// Package dialect is the contract that a database fulfils for rowfeed, and the
// small structs that the root package and the dialects share.
//
// Dependencies point one way: the root package calls the interfaces declared
// here, each database implements them in its own package (dialect/sqlite,
// dialect/postgres, dialect/mysql), and none of those imports the root. SQL
// that differs between databases only in spelling is written once, in the root
// or in this package, on the helpers of [Spelling] and [Builder]; everything
// that is a decision of one database (locks, snapshots, triggers, types) lives
// in that database's package and nowhere else.
//
// Values cross the contract in a lossless form: see [Kind].
package dialect

import (
	"context"
	"database/sql"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Dialect is everything rowfeed asks of a database.
type Dialect interface {
	Spelling
	Schema
	Publish
	Read
	ULID
	Roles
	Moving
	Rest
}

// Spelling is how a database writes the small things of SQL.
type Spelling interface {
	// Name is the dialect's name in messages and in the feeds table: "sqlite",
	// "postgres", "mysql".
	Name() string
	// Quote quotes one identifier.
	Quote(ident string) string
	// Placeholder is the n-th parameter of a statement, n from 1.
	Placeholder(n int) string
	// Literal quotes a string as a literal, for printed scripts.
	Literal(text string) string
	// Inline writes a parameter's value into the statement itself, on databases where
	// that spares a round trip; ok is false for a value that goes beside the statement.
	Inline(v any) (text string, ok bool)
	// RowValues tells whether an index answers (a, b) > (?, ?).
	RowValues() bool
	// Frame are the statements before and after those of a printed script, so that it is
	// done whole or can be run again, and disturbs no writer.
	Frame() (first, last []Step)
	// Terminate ends a statement in a script, as the database's own client reads one.
	Terminate(statement string) string
	// Now is an expression for the database's own clock, as an integer: microseconds
	// since the Unix epoch. It follows neither the session's time zone nor the start
	// of the transaction.
	Now() string
	// Value is an expression that reads ref, a reference to column c, without loss
	// and whatever the driver's settings: a Go value of c.Kind's raw form comes out.
	Value(c Column, ref string) string
	// Param wraps a placeholder so that what Value read of column c goes back in as
	// the same value.
	Param(c Column, placeholder string) string
	// InsertNew is an INSERT into a quoted table that does nothing where a row has the
	// same values in the key columns, waits for an open transaction that inserts one,
	// and leaves the transaction in order; the rows affected tell, 1 or 0.
	InsertNew(table string, columns, values, key []string) string
	// Upsert is an INSERT of rows into a quoted table that sets all columns where a row
	// has the same key, the columns of one of its unique indexes. A value that another row
	// has in another unique index is an error of class [ClassDuplicate], unless that row
	// becomes the new one.
	Upsert(table string, columns []string, rows [][]string, key []string) string
	// Store wraps a placeholder for a value that comes from elsewhere and is written into
	// column c: text for dates and times, those with a zone in UTC, as in 2006-01-02
	// 15:04:05.999999. What does not fit the column is refused, not bent, as far as the
	// database's own settings go.
	Store(c Column, placeholder string) string
}

// Schema describes tables and makes and removes what feeds need.
type Schema interface {
	// CurrentSchema is the schema in which unqualified names are looked up and made, on
	// databases where triggers need it spelled out; empty elsewhere. With q nil it is
	// that of a fresh database.
	CurrentSchema(ctx context.Context, q Querier) (string, error)
	// Migrations are rowfeed's own tables, version by version, oldest first.
	Migrations(n Names) []Migration
	// WithSchemaLock runs fn on one connection while holding the lock under which
	// rowfeed's schema is changed; a second caller waits. Where DDL is transactional,
	// fn runs in one transaction, which commits when fn answers nil. Waiting for other
	// sessions' locks is bounded; the error is then of class [ClassLockTimeout] and
	// nothing (or, without transactional DDL, nothing that cannot be repeated) has
	// happened.
	WithSchemaLock(ctx context.Context, db *sql.DB, n Names, fn func(Querier) error) error
	// SchemaVersion answers 0 when rowfeed's tables do not exist.
	SchemaVersion(ctx context.Context, q Querier, n Names) (int, error)
	// Describe reads what the catalog says of a table. It answers an error of class
	// [ClassUndefined] when there is no such table.
	Describe(ctx context.Context, q Querier, t feedtype.TableName) (*Table, error)
	// MaxColumns are the most columns that a statement can answer, and that a table can have.
	MaxColumns() (answered, declared int)
	// KeyColumn is what Describe would say of a column declared so, as far as the
	// declaration tells; for printing without a server.
	KeyColumn(name, declaration string) Column
	// FeedUp are the statements that make a feed's tables and triggers, each
	// repeatable: running the list again after it broke off anywhere completes it. Of a feed
	// with an outbox these are its two tables, and a trigger that appends records.
	FeedUp(f *Feed, t *Table) ([]Step, error)
	// FeedDown are the statements that remove what FeedUp made. t is the source table
	// as it is now, nil when it is gone.
	FeedDown(f *Feed, t *Table) []Step
	// Verify compares a feed's triggers and tables with what FeedUp would make, and
	// answers one sentence for each difference, none when all is in place. What NewPartitions
	// answers is left out.
	Verify(ctx context.Context, q Querier, f *Feed, t *Table) ([]string, error)
	// NewPartitions are the partitions that came after FeedUp, of a feed whose changes are captured by triggers, on
	// databases where only triggers for rows come to a new partition by themselves.
	NewPartitions(ctx context.Context, q Querier, f *Feed, t *Table) ([]NewPartition, error)
	// TriggerNames are the names that a feed's triggers may have.
	TriggerNames(f *Feed) []string
	// Repair are the statements that mend what Verify found, without a moment in which
	// a change goes uncaptured.
	Repair(ctx context.Context, q Querier, f *Feed, t *Table) ([]Step, error)
	// Takeovers is one sentence for each of a feed's triggers and routines that Verify has nothing against, but that runs
	// with the rights of another login, of which q's login is not told whether it has them. Upgrade makes them anew.
	Takeovers(ctx context.Context, q Querier, f *Feed, t *Table) ([]string, error)
	// Strays is one sentence for each trigger of another table that writes into the feed's, as a copy of the feed's
	// table has them where rowfeed's tables are in another schema.
	Strays(ctx context.Context, q Querier, f *Feed, t *Table) ([]string, error)
	// Moved looks for the feed's table, which is not where its record says: ok tells that it is in another schema by now.
	Moved(ctx context.Context, q Querier, f *Feed) (now feedtype.TableName, ok bool, err error)
	// Homes are other schemas that have tables of rowfeed's with this prefix, where a schema can be renamed.
	Homes(ctx context.Context, q Querier, n Names) ([]string, error)
	// BucketIndex are the statements that make the positions' index by bucket where the
	// feed is read by it ([Feed.ByBucket]), or remove it where it is not; none where it is
	// so already.
	BucketIndex(ctx context.Context, q Querier, f *Feed) ([]Step, error)
	// DeleteRow are the statements that delete a row and have its delete published, to
	// be run in one transaction with the key as parameters of each.
	DeleteRow(f *Feed) []string
}

// Publish are the operations of one publishing transaction, in their order.
type Publish interface {
	// TxOptions and Settings open a transaction for a purpose: the isolation level, and
	// statements that run first in it (durability, bounds on idling, plan settings).
	// The settings end with the transaction.
	TxOptions(p Purpose) *sql.TxOptions
	Settings(p Purpose, n Names) []string
	// Durability answers an error when a commit on this connection could be forgotten
	// after a power cut, and says which setting to change.
	Durability(ctx context.Context, q Querier) error
	// Identity tells this database from every other, also from its own past or future
	// after a failover, as far as the server knows; it is empty where it knows nothing.
	// The answer is an error of class [ClassReadOnly] on a server that takes no writes.
	Identity(ctx context.Context, q Querier, n Names) (string, error)
	// IdentitySQL is an expression for the same, NULL on a server that takes no writes; empty
	// where nothing is known.
	IdentitySQL(n Names) string
	// SeqsGrow tells whether a seq is never given twice, nor below those given before by
	// transactions that are over. Then looks may leave out what was published already: it is
	// for databases where deleted changes are walked over for as long as somebody has an old
	// snapshot. Where it is false a Seqs is always all numbers.
	SeqsGrow() bool
	// Writers are the open transactions that may have drawn seqs for changes of theirs, or numbers for records, which
	// nobody else sees yet: every one that had drawn any when Writers was called is among them.
	// told is false where the database, or the login's rights, cannot tell.
	Writers(ctx context.Context, q Querier, f *Feed) (open []Writer, told bool, err error)
	// HasChanges is the cheap question that comes before a publishing transaction, in
	// one round trip and without locks: whether a change waits among some seqs.
	HasChanges(ctx context.Context, q Querier, f *Feed, among Seqs) (bool, error)
	// Which says among which numbers, of a column that is the primary key, a look for changes or records looks: each answer behind the name of
	// their table makes a look by itself, and together they are all.
	Which(column string, among Seqs) []string
	// Stamp is a query for a text that is another one whenever a commit has become visible
	// since, whoever made it and to whatever table; "" where nothing as cheap tells. So is the
	// text where this server cannot tell.
	Stamp() string
	// LockSequence locks the feed's row of the sequences table until the transaction
	// ends. The row lock is what makes positions visible in increasing order.
	LockSequence(ctx context.Context, tx Querier, f *Feed) (Sequence, error)
	// PublishAlike does in one statement, where a database is quicker so, all of what follows
	// for up to limit changes among some seqs, and advances the sequence. Where it does not, or
	// where these changes are not of one kind, the answer is not OK, and nothing was written.
	PublishAlike(ctx context.Context, tx Querier, f *Feed, seq Sequence, generation int64, among Seqs, limit int) (Alike, error)
	// TakeChanges reads up to limit changes among some seqs, in seq order, in one snapshot,
	// without locks.
	TakeChanges(ctx context.Context, tx Querier, f *Feed, among Seqs, limit int) ([]Change, error)
	// AssignPositions upserts the keys of the assignments, one at least, with consecutive
	// positions, into the feed's positions.
	// It looks up which rows exist; a key that has neither a row nor a position is left
	// out, a hidden one keeps its position, and stays hidden, unless the assignment's kind
	// says otherwise.
	// publishedAt is in microseconds since the Unix epoch.
	AssignPositions(ctx context.Context, tx Querier, f *Feed, as []Assignment, publishedAt int64) error
	// PlaceRows locks up to limit rows that wait (their position is NULL) in key order,
	// above a key where one is given, skipping those that other transactions hold, and
	// gives them the positions above base, one after the other, changing nothing else of
	// the row. What the feed's positions said of their keys is forgotten, except of
	// hidden ones. It answers how many rows there were and the last one's key. For feeds
	// that are [Feed.InRows]; 0 otherwise. Where the feed is sharded, shard answers the
	// data shard of a row's key, which is written in the statement that writes the position.
	PlaceRows(ctx context.Context, tx Querier, f *Feed, after []any, limit int, base int64, shard func(key []any) (int, error)) (n int, last []any, err error)
	// ResetRows sets the positions of the rows (alias t) for which a condition holds to
	// NULL, changing nothing else of them, and answers how many.
	ResetRows(ctx context.Context, tx Querier, f *Feed, where string, args []any) (int64, error)
	// SetShards writes the data shards of the keys that stand at these positions, and
	// nothing else of them, and answers how many: in the feed's table of positions, with
	// their buckets, or with rows in the source, where rows that other transactions hold
	// are passed over. The shards must be others than those that are there.
	SetShards(ctx context.Context, tx Querier, f *Feed, rows bool, places []Sharded) (int64, error)
	// DeleteChanges deletes exactly the changes of the given seqs (ascending), locks no
	// other record, and answers how many there were.
	DeleteChanges(ctx context.Context, tx Querier, f *Feed, seqs []int64) (int64, error)
}

// Read answers pages.
type Read interface {
	// ReadPage reads a page together with the head it belongs to, so that every
	// position up to that head is either on the page, filtered by the query, or at or
	// below q.After.
	ReadPage(ctx context.Context, db *sql.DB, f *Feed, q PageQuery) (*PageRows, error)
	// Flush writes a little of rowfeed's own, so that tx's commit puts everything on the
	// disk that could be seen when tx began. Only databases that answer pages with
	// Unflushed have anything to write.
	Flush(ctx context.Context, tx Querier, n Names) error
	// FlushAlone is Flush as one statement on a pool, committed when it is answered. False
	// means that it was not: where nobody can tell, nothing is written.
	FlushAlone(ctx context.Context, pool Querier, n Names) (bool, error)
}

// Rest is what fits nowhere else.
type Rest interface {
	// Blockers lists the open transactions that may hold back changes of the feed,
	// oldest first: those that wrote to it, as far as the database tells. Of a feed with ULIDs they are those
	// that may have a shard, and of which Holders cannot say so. Where the database, or the login's rights,
	// keep some of them or what they do from being told, unseen says so; it is nil where nothing is.
	Blockers(ctx context.Context, q Querier, f *Feed) (found []Blocker, unseen *Unseen, err error)
	// Holders are the shards of a feed with ULIDs that transactions have or wait for, in
	// ascending order, and how much it is that the database tells. Where the login may not see them it is
	// nothing, with an error of class [ClassPermission] that names the right.
	Holders(ctx context.Context, q Querier, f *Feed) ([]Holding, Told, error)
	// EndHolder ends the session of a shard's holder, as Holders answered it, unless its
	// transaction is over by now: then it answers false. The error wraps
	// errors.ErrUnsupported where sessions cannot be ended, and is of class
	// [ClassPermission], and names the right, where the login may not.
	EndHolder(ctx context.Context, q Querier, f *Feed, h Holding) (bool, error)
	// Backlog counts the changes or records waiting, up to limit, and gives the age of the
	// oldest in microseconds, in one shard of an outbox where one is named.
	Backlog(ctx context.Context, q Querier, f *Feed, limit int, shard ...int) (count, ageMicros int64, err error)
	// Classify says what kind of error the driver answered, by its code alone.
	Classify(err error) Class
}

// Purpose says what a transaction is for; see [Publish.TxOptions].
type Purpose int

const (
	// ForPublish is a publisher's transaction: READ COMMITTED and durable.
	ForPublish Purpose = iota
	// ForMove is ForPublish for the movers of an outbox, who are not to wait for each other for
	// long; where a setting cannot end with the transaction see [Moving.Bounded].
	ForMove
	// ForRecord writes change records or rowfeed's own rows: READ COMMITTED and durable.
	ForRecord
	// ForRepair is ForRecord for statements that read a whole table, however long it takes.
	ForRepair
	// ForRead reads pages: READ COMMITTED, read-only.
	ForRead
	// ForCheck reads everything in one snapshot: REPEATABLE READ, read-only.
	ForCheck
	// ForConsume hands an application's transaction to a consumer's handler: READ
	// COMMITTED and durable, with the write lock where a database has only one, and
	// without settings that the handler's own statements would notice.
	ForConsume
)

// Sequence is a feed's row of the sequences table, as locked. Times are in
// microseconds since the Unix epoch.
type Sequence struct {
	Value     int64  // the highest position given
	Version   int64  // counts every advance; the optimistic lock
	UpdatedAt int64  // when Value was last advanced
	Now       int64  // the database's clock
	Identity  string // as [Publish.Identity] answers it
}

// Writer is an open transaction of somebody else's.
type Writer struct {
	// Session is who runs it, and nobody else as long as it is open.
	Session string
	// Transaction is its name, which no other one has. It is empty of a session that is at a
	// statement which may have drawn a seq, and whose transaction has no name yet.
	Transaction string
	// Orphan says that its session is gone, or another since the server was restarted: it may be
	// any that was open before under other names.
	Orphan bool
}

// ChangeKind tells what a change record asks for.
type ChangeKind int

const (
	// Changed says that the key was written. Hidden keys stay hidden.
	Changed ChangeKind = 0
	// Republished asks for a new position and shows the key again if it was hidden.
	Republished ChangeKind = 1
	// Unpublished hides the key: consumers get a delete.
	Unpublished ChangeKind = 2
	// Placed asks for a new position, which a hidden key gets, too, and stays hidden. It is
	// no wish: among changes of one key that are published together a wish holds.
	Placed ChangeKind = 3
)

// Change is one record of changes_<feed>.
type Change struct {
	Seq  int64
	Kind ChangeKind
	// Key holds the key columns' values. Different keys never have equal values; equal
	// keys may differ in spelling where the key's collation says so.
	Key []any
}

// Alike is what became of changes that were published by one statement.
type Alike struct {
	OK       bool
	Changes  int     // how many were read
	Deleted  int     // how many of these were there to be deleted
	Keys     int     // positions given, one for each key
	Advanced bool    // the sequence was; not where somebody else did, or the generation is another
	Seqs     []int64 // those deleted, ascending
}

// Assignment gives a position to the key of one change.
type Assignment struct {
	Seq      int64 // the change that names the key; it has not been deleted yet
	Position int64
	Shard    int
	Kind     ChangeKind
}

// PageQuery asks for the positions above After, in order.
type PageQuery struct {
	After feedtype.Position
	// Mark leaves out tombstones at or below it: the consumer started at the beginning
	// when the head stood there, and has never seen the rows they speak of.
	Mark     feedtype.Position
	Limit    int
	MaxBytes int // the page ends early, after at least one row, when its values exceed this
	// From and To are the half-open range of data shards that is asked for; 0 and 0 for
	// the whole feed.
	From, To int
	// Shard is the one that is asked for, of a feed that has [Feed.ULIDs].
	Shard int
	// Among are the numbers that records waiting in an outbox may have.
	Among Seqs
	// AnyDatabase says that a database of another identity than the feed's will do, as a
	// replica is. Else a page of a feed with ULIDs has no signature there.
	AnyDatabase bool
	// Unserved are the states of a feed in which a part must not be served: its page then
	// has no signature. At least one, where From and To are set, or parts are taken from a page
	// of the whole feed. With an outbox they are those in which
	// rows are being placed behind the head; see PageRows.Filling.
	Unserved []string
	// Sorted has the database sort the page, which is otherwise read in the order in which its
	// positions are found, and read again if that was not theirs.
	Sorted bool
}

// PageRows is a page as the database answered it.
type PageRows struct {
	Generation      int64
	TombstonesBelow feedtype.Position
	// EntriesBelow is the position up to which entries were purged, or may be one day: nothing is
	// shown at or below it, and a cursor below it may lack some.
	EntriesBelow feedtype.Position
	// Head is the highest position that the page could show, Given the highest that may
	// have been given by then. They differ only where rows hold ULIDs.
	Head, Given feedtype.Position
	// Filling says that rows are being placed behind the head of the shard: below LiveFrom,
	// or anywhere where that is zero, there may be more of them soon.
	Filling  bool
	LiveFrom feedtype.Position
	Shard    int // the one that was asked for, where each is a feed by itself
	// Waiting says that records of the shard waited in the feed's outbox when the head was
	// read: what had been moved to its place by then is on the page.
	Waiting   bool
	Signature string // the source table's columns at the time of the page; empty: see PageQuery.AnyDatabase and Unserved
	Rows      []PageRow
	Truncated bool // MaxBytes ended the page
	Cut       bool // the page ended before its limit, and there may be more
	// Unflushed says that the database shows commits before they are on its disk: a
	// crash could take back what the page shows, until a Flush has been committed.
	Unflushed bool
	// Forgetful says why a Flush would not help: the setting that must be changed. Nil
	// where commits last.
	Forgetful error
}

// PageRow is one position with its row as it is now.
type PageRow struct {
	Position feedtype.Position
	Shard    int
	Deleted  bool
	Hidden   bool
	Present  bool // the source table has the row
	Key      []any
	Values   []any // of Feed.Columns; meaningless when not Present
}

// Blocker is an open transaction that may hold back changes.
type Blocker struct {
	Session   string // how the database names the connection
	User      string
	Host      string
	AgeMicros int64  // of the transaction; -1 where nobody tells
	Statement string // the current or last statement; "" where nobody tells
	Scope     string // what is known: "wrote to the feed", "wrote to some table"
}

// Unseen says that not everything is told of who holds changes back.
type Unseen struct {
	Cause string // what is not told, and why
	Next  string // what to run, or to do, so that it is
}
