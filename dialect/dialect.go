// Package dialect declares what a database must provide to rowfeed, and the structs that the dialects share
// with their callers.
//
// Each database implements the interfaces in its own package: dialect/sqlite, dialect/postgres, dialect/mysql.
// None of these imports the root package or internal packages. SQL that differs between databases only in
// spelling is written once, by the callers or in this package, with the helpers of [Spelling] and [Builder].
// What only one database has (locks, snapshots, triggers, types) is in that database's package.
//
// Values are exchanged in a form that loses nothing: see [feedtype.Kind].
package dialect

import (
	"context"
	"database/sql"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Dialect is everything that rowfeed asks of a database.
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

// Spelling is how a database spells the parts of SQL statements.
type Spelling interface {
	// Name returns "sqlite", "postgres" or "mysql".
	Name() string
	// Quote quotes one identifier.
	Quote(ident string) string
	// Placeholder returns the n-th parameter of a statement, n from 1.
	Placeholder(n int) string
	// Literal quotes a string as a literal.
	Literal(text string) string
	// Inline returns a parameter's value as text of the statement, on databases where a statement without
	// parameters saves a round trip. ok is false if the value must be sent as a parameter.
	Inline(v any) (text string, ok bool)
	// RowValues tells whether the database uses an index for (a, b) > (?, ?).
	RowValues() bool
	// Frame returns the statements before and after those of a printed script. With them the script has its
	// full effect or none, or it can be run again, and it never blocks writers for long.
	Frame() (first, last []Step)
	// Terminate ends a statement in a script for the database's own client.
	Terminate(statement string) string
	// Now returns an expression for the database's own clock: an integer, microseconds since the Unix epoch. It
	// depends neither on the session's time zone nor on the start of the transaction.
	Now() string
	// Value returns an expression that reads ref, a reference to column c. It loses nothing, whatever the
	// driver's settings. The driver returns a Go value in the raw form of c.Kind.
	Value(c Column, ref string) string
	// Param wraps a placeholder. A value that Value has read of column c is then the same value in the
	// statement.
	Param(c Column, placeholder string) string
	// InsertNew returns an INSERT into a quoted table. It does nothing if a row has the same values in the key
	// columns. It waits for an open transaction that inserts such a row, and never makes the transaction
	// unusable. The rows affected are 1 or 0.
	InsertNew(table string, columns, values, key []string) string
	// Upsert returns an INSERT of rows into a quoted table. If a row has the same key, Upsert sets all its
	// columns. The key is the columns of one unique index of the table. A value that another row has in another
	// unique index is an error of class [ClassDuplicate], unless the database turns that row into the new one.
	Upsert(table string, columns []string, rows [][]string, key []string) string
	// Store wraps a placeholder for a value from elsewhere that is written into column c. Dates and times are
	// text, such as 2006-01-02 15:04:05.999999; those with a time zone are in UTC. The database refuses a value
	// that does not fit the column, as far as its settings say so.
	Store(c Column, placeholder string) string
}

// Schema describes tables, and makes and removes the objects of feeds.
type Schema interface {
	// CurrentSchema returns the schema in which unqualified names are found and made, on databases whose
	// triggers must name it. Elsewhere it is empty. If q is nil, it is the one of a new database.
	CurrentSchema(ctx context.Context, q Querier) (string, error)
	// Migrations returns the versions of rowfeed's own tables, oldest first.
	Migrations(n Names) []Migration
	// WithSchemaLock runs fn on one connection, under the lock for changes of rowfeed's schema. A second caller
	// waits. If DDL is transactional, fn runs in one transaction, which is committed if fn returns nil. Waits
	// for other sessions' locks are bounded. If such a wait fails, the error is of class [ClassLockTimeout],
	// and nothing was changed; without transactional DDL, all that was done can be repeated.
	WithSchemaLock(ctx context.Context, db *sql.DB, n Names, fn func(Querier) error) error
	// SchemaVersion returns the newest version, or 0 if rowfeed's tables do not exist.
	SchemaVersion(ctx context.Context, q Querier, n Names) (int, error)
	// Describe reads a table's description from the catalog. The error is of class [ClassUndefined] if the
	// table does not exist.
	Describe(ctx context.Context, q Querier, t feedtype.TableName) (*Table, error)
	// MaxColumns returns the maximum number of columns in the answer of a statement, and in a table.
	MaxColumns() (answered, declared int)
	// KeyColumn returns what Describe would say of a column with this declaration, as far as that tells. It is
	// for printing scripts without a server.
	KeyColumn(name, declaration string) Column
	// FeedUp returns the statements that make a feed's tables and triggers. If they fail half-way, running them
	// all again completes them. For an outbox feed these are its two tables, and triggers that append records.
	FeedUp(f *Feed, t *Table) ([]Step, error)
	// FeedDown returns the statements that remove what FeedUp has made. t is the source table as it is now, or
	// nil if it does not exist any more.
	FeedDown(f *Feed, t *Table) []Step
	// Verify compares a feed's triggers and tables with what FeedUp would make. It returns one sentence for
	// each difference, except for what NewPartitions returns.
	Verify(ctx context.Context, q Querier, f *Feed, t *Table) ([]string, error)
	// NewPartitions returns the partitions that were added after FeedUp, for a feed with capture "trigger". It
	// is for databases that copy only row triggers to a new partition.
	NewPartitions(ctx context.Context, q Querier, f *Feed, t *Table) ([]NewPartition, error)
	// TriggerNames returns the names that a feed's triggers may have.
	TriggerNames(f *Feed) []string
	// Repair returns the statements that correct what Verify found. At no moment while they run is a change
	// left uncaptured.
	Repair(ctx context.Context, q Querier, f *Feed, t *Table) ([]Step, error)
	// Takeovers returns one sentence for each trigger and routine of the feed that an upgrade makes again although
	// Verify accepts it. Such an object runs with the rights of another login, and q's login cannot see whether
	// that login has them. Or, on MariaDB, the statement that made it names its database.
	Takeovers(ctx context.Context, q Querier, f *Feed, t *Table) ([]string, error)
	// Strays returns one sentence for each trigger on another table that writes into this feed's tables. A copy of
	// the feed's table has such triggers if rowfeed's tables are in another schema. It also returns one for each
	// trigger of the feed that would become a stray one if a dump of its schema were loaded under another name.
	Strays(ctx context.Context, q Querier, f *Feed, t *Table) ([]string, error)
	// Moved searches for the feed's table, which is not where the feed's record says. ok says that it was found
	// in another schema.
	Moved(ctx context.Context, q Querier, f *Feed) (now feedtype.TableName, ok bool, err error)
	// Homes returns the other schemas that have rowfeed's tables with this prefix, on databases where a schema
	// can be renamed.
	Homes(ctx context.Context, q Querier, n Names) ([]string, error)
	// BucketIndex returns the statements that make the index by bucket on the feed's table of positions if the
	// feed needs it ([Feed.ByBucket]), or remove it if the feed does not. There are none if nothing is to be
	// changed.
	BucketIndex(ctx context.Context, q Querier, f *Feed) ([]Step, error)
	// DeleteRow returns the statements that delete a row and record its delete. They run in one transaction,
	// each with the key as its parameters.
	DeleteRow(f *Feed) []string
}

// Publish are the operations of a publisher, roughly in the order in which it uses them.
type Publish interface {
	// TxOptions and Settings are for the begin of a transaction with this purpose. TxOptions has the isolation
	// level. Settings are statements that run first in the transaction, for durability, bounds on idling, and
	// query plans. They end with the transaction.
	TxOptions(p Purpose) *sql.TxOptions
	Settings(p Purpose, n Names) []string
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
	// Which returns the ranges of a primary-key column that a scan for changes or records has to read. Each of
	// them follows the table's name in a query of its own. Together these queries find every number that is
	// among the given ones.
	Which(column string, among Seqs) []string
	// Stamp returns a query for a text that changes with every commit to the database, of any session and to
	// any table. It is "" if the database has nothing that is cheap enough. The text is empty if this server
	// cannot tell.
	Stamp() string
	// LockSequence locks the feed's row of the sequences table until the transaction ends. This row lock makes
	// positions visible in increasing order.
	LockSequence(ctx context.Context, tx Querier, f *Feed) (Sequence, error)
	// PublishAlike does all of the following in one statement, on databases where that is faster: it publishes
	// up to limit changes among some seqs, and advances the sequence. If the database does not do so, or the
	// changes have different kinds, OK is false in the result, and nothing was written.
	PublishAlike(ctx context.Context, tx Querier, f *Feed, seq Sequence, generation int64, among Seqs,
		limit int) (Alike, error)
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

// Rest classifies errors, and tells operators what waits and for whom.
type Rest interface {
	// Blockers returns the open transactions that may hold back changes of the feed, oldest first: those that
	// wrote to it, as far as the database tells. For a feed with ULIDs they are those that may have locked a
	// shard without being known to Holders. unseen says what the database, or this login, cannot see of them.
	// It is nil if nothing is missing.
	Blockers(ctx context.Context, q Querier, f *Feed) (found []Blocker, unseen *Unseen, err error)
	// Holders returns the shards of a feed with ULIDs that transactions have locked or wait for, in ascending
	// order, and which locks the database tells. If the login may not see them, there are none, and the error
	// is of class [ClassPermission] and names the missing right.
	Holders(ctx context.Context, q Querier, f *Feed) ([]Holding, Told, error)
	// EndHolder ends the session of the holder that Holders has returned. It returns false if the holder's
	// transaction has ended by itself. The error wraps errors.ErrUnsupported on databases without sessions. It
	// is of class [ClassPermission], and names the missing right, if the login may not end the session.
	EndHolder(ctx context.Context, q Querier, f *Feed, h Holding) (bool, error)
	// Backlog counts the changes or records that wait, up to limit, and returns the age of the oldest one in
	// microseconds. With a shard, the age is of the oldest record in that shard of an outbox. The count is always
	// of all shards.
	Backlog(ctx context.Context, q Querier, f *Feed, limit int, shard ...int) (count, ageMicros int64, err error)
	// Classify returns the class of a driver's error, as its code tells.
	Classify(err error) Class
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
	Value     int64  // the highest position given
	Version   int64  // the number of advances, which is the optimistic lock
	UpdatedAt int64  // when Value was last advanced
	Now       int64  // the time of the database's clock
	Identity  string // as [Publish].Identity returns it; empty on databases that know nothing
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

// Alike is the result of [Publish].PublishAlike.
type Alike struct {
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
	Key      []any
	Values   []any // the values of Feed.Columns, valid only if Present
}

// Blocker is an open transaction that may hold back changes.
type Blocker struct {
	Session   string // the database's name of the connection
	User      string
	Host      string
	AgeMicros int64  // the age of the transaction; -1 if unknown
	Statement string // the current or the last statement; "" if unknown
	Scope     string // what the transaction has done: for example "wrote to the feed", "wrote to some table"
}

// Unseen says what cannot be seen of the transactions that hold changes back.
type Unseen struct {
	Cause string // what cannot be seen, and why
	Next  string // what to run or to do about it
}
