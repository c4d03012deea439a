package dialect

import (
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Names says where rowfeed's own tables are: in a schema (empty means the database's default) and under a
// prefix.
type Names struct {
	Schema string
	Prefix string
}

// Table returns the name of one of rowfeed's own tables. base is, for example, "sequences" or "changes_kv".
func (n Names) Table(base string) feedtype.TableName {
	return feedtype.TableName{Schema: n.Schema, Name: n.Prefix + base}
}

// Values of feeds.state.
const (
	StateActive    = "active"    // the feed is ready
	StateElsewhere = "elsewhere" // the feed is ready, and a publisher that is not rowfeed's gives its positions
)

// Column is one column of a source table.
type Column struct {
	Name string `json:"name"`
	// Type is the column's type as the database spells it.
	Type string `json:"type"`
	// Decl declares a column that holds and compares the same values: type, character set, collation.
	Decl string        `json:"decl,omitempty"`
	Kind feedtype.Kind `json:"kind"`
	// Stored is the name of a key column in rowfeed's tables. It differs from Name only if rowfeed uses Name
	// for a column of its own.
	Stored string `json:"stored,omitempty"`
	// Collate follows a reference to the column wherever keys are compared or ordered. It is set on databases
	// where an index may have another collation than its column.
	Collate string `json:"collate,omitempty"`
	// Operators is the schema of the operators by which the index of the key compares values. It is set if the
	// operators' names alone could find other ones, such as those of text for citext. Otherwise it is empty.
	Operators string `json:"operators,omitempty"`
	// Exact says, for a key column, that equal values have equal text. If it is false, one key can have two
	// spellings ('fred' and 'FRED', 1.0 and 1.00). Readers, dead letters and shards tell keys apart by their
	// text. So entries show the spelling that was recorded first, for as long as rowfeed's tables have the key.
	Exact bool `json:"exact,omitempty"`
	// MayBeNull says that the column is the primary key, and that the database accepts NULL in it all the same. Rows
	// with NULL have no key: they are not recorded, and Check and Status report them.
	MayBeNull bool `json:"may_be_null,omitempty"`
	Nullable  bool `json:"-"`
	// NoArithmetic says that the database does not calculate with the column's values, although they are integers.
	NoArithmetic bool `json:"-"`
	// NoKey says why the column cannot be part of a key. It is empty if the column can.
	NoKey string `json:"-"`
	// NoPosition says why a column named feed_sync_id cannot hold positions, and what to do. It is empty if the
	// column can.
	NoPosition string `json:"-"`
	// FitPosition are statements that remove the cause of NoPosition, for example a unique index. It is empty if only a
	// change of the column itself could remove it.
	FitPosition string `json:"-"`
	// Generated says that the database gives the column its values, and that statements cannot write others.
	Generated bool `json:"-"`
	// Virtual says that the value is computed at each read. Triggers see NULL instead.
	Virtual bool `json:"-"`
	// Default is the expression that OR REPLACE writes in place of a NULL. It is empty if there is none.
	Default string `json:"-"`
}

// ForReaders returns what readers of the feed are told of the column.
func (c Column) ForReaders() feedtype.Column {
	return feedtype.Column{Name: c.Name, Type: c.Type, Kind: c.Kind}
}

// reserved are the names of rowfeed's own columns in changes_<feed>, positions_<feed>, outbox_<feed> and
// feed_<feed>.
var reserved = map[string]bool{
	"seq": true, "kind": true, "changed_at": true, "feed_sync_id": true, "shard": true,
	"order_sequence": true, "time_hint": true, "appended_at": true, "ulid": true,
	"bucket": true, "deleted": true, "hidden": true, "published_at": true,
	// hidden columns of a SQLite table
	"rowid": true, "oid": true, "_rowid_": true,
	// system columns of a PostgreSQL table
	"tableoid": true, "xmin": true, "cmin": true, "xmax": true, "cmax": true, "ctid": true,
}

// StoredName returns the name of a key column in rowfeed's tables.
func StoredName(column string) string {
	if reserved[strings.ToLower(column)] {
		return "key_" + column
	}
	return column
}

// Index is a unique index of a source table.
type Index struct {
	Name    string
	Primary bool
	Columns []IndexColumn
	Partial bool   // the index has a WHERE clause
	Hidden  bool   // the database maintains the index, but no statement may use it
	Made    string // changes when the index is made again, on databases where pages check it
}

// IndexColumn is a column of an index. Name is empty if it is an expression.
type IndexColumn struct {
	Name string
	// Collation is the quoted collation of the index, on databases where it may differ from the column's.
	// Elsewhere it is empty. Exact says that this collation never takes two different texts for equal.
	Collation string
	Exact     bool
}

// Names returns the names of the index's columns. It is false if one of them is an expression.
func (ix Index) Names() ([]string, bool) {
	names := make([]string, len(ix.Columns))
	for i, c := range ix.Columns {
		if c.Name == "" {
			return nil, false
		}
		names[i] = c.Name
	}
	return names, true
}

// Table is what the database's catalog says of a source table.
type Table struct {
	Name    feedtype.TableName // with the schema in which it was found
	Columns []Column
	// AnyCase says that names of columns are compared without regard to case.
	AnyCase bool
	Unique  []Index // the primary key comes first
	// Partitions are the partitions of a partitioned table, at every level.
	Partitions []Partition
	// Refusals say why the table cannot be the source of a feed. Each of them says what to do.
	Refusals []string
	// Indexes are the names of all usable indexes. Unfinished are the names of indexes that no query can use,
	// because the statement that made them failed.
	Indexes, Unfinished []string
	// OnUpdate are the triggers, rowfeed's or not, that fire when a row's position is written.
	OnUpdate []string
	// Untriggered says what can change rows of the table without firing a trigger.
	Untriggered []string
	// RowID is the name of a hidden unique column that statements can write. It is empty if there is none.
	RowID string
	// Signature changes whenever the table's columns change. See PageRows.Signature.
	Signature string
}

// Partition is a table below a partitioned one.
type Partition struct {
	Name feedtype.TableName
	// Attached identifies this attachment of the partition. It changes if the partition, or a table between it
	// and the partitioned table, is detached and attached again. It is empty for a partition that has
	// partitions of its own.
	Attached string
}

// NewPartition is a partition that was added after FeedUp, and lacks what FeedUp makes on each partition.
type NewPartition struct {
	Partition
	Owner string // the quoted role that owns the partition
	// Lacks says which right is missing to add the partition to the feed. Grant is the statement that grants
	// it. Both are empty if no right is missing.
	Lacks, Grant string
	// ByOwner says that the only thing missing is membership in the role that owns the partition.
	ByOwner bool
	Steps   []Step // they add the partition to the feed
}

// Column returns the column of this name, or nil.
func (t *Table) Column(name string) *Column {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return &t.Columns[i]
		}
	}
	return nil
}

// PrimaryKey returns the primary key, or nil.
func (t *Table) PrimaryKey() *Index {
	for i := range t.Unique {
		if t.Unique[i].Primary {
			return &t.Unique[i]
		}
	}
	return nil
}

// Feed is what the dialects know of a feed.
type Feed struct {
	Name    string
	Names   Names
	Source  feedtype.TableName
	Key     []Column
	Columns []Column // the delivered ones
	Capture feedtype.Capture
	// Primary says that the key is the source's primary key.
	Primary bool
	// Added are the columns that rowfeed added to the source, with capture "column".
	Added []string
	// Fence says that triggers of the source refuse a position that the feed's publisher does not give, with capture
	// "column".
	Fence bool
	// Moved says that the feed had capture "column" before, and has capture "trigger" now. The source's column of
	// positions, and of data shards, is not delivered.
	Moved bool
	// Moving says that the feed's table of positions does not have all positions yet. Those of other keys are in rows.
	Moving bool
	// Elsewhere is the row of a sequence that a publisher which is not rowfeed's advances, with capture "column". It is
	// nil if rowfeed gives the positions.
	Elsewhere *SequenceRow
	// DataShards is the number of data shards; 0 means 1.
	DataShards int
	// ULIDs are the columns of ULID and shard in the table that [Feed.ULIDTable] names. In blocking mode writers
	// insert them with their rows. Nil if a publisher gives positions from a sequence.
	ULIDs *ULIDColumns
	// OwnShard is the source's column that holds a row's data shard, which only the table's owner writes. If it is
	// empty, publishers compute data shards from keys.
	OwnShard string
	// RecordShard is the source's column that holds the outbox shard of a row, for the records of triggers and
	// of back-fill. If it is empty, they are in shard 0.
	RecordShard string
	// Outbox says that the ULIDs are in a table of the feed's own, which gets them when the records of its
	// outbox are moved. Writers then do not wait for each other.
	Outbox bool

	kept *keep // see Keep
}

// SequenceRow is a row of a table of sequences that is not rowfeed's. The table has the columns name and value.
type SequenceRow struct {
	Table feedtype.TableName
	Name  string
}

// ULIDColumns are the columns with a row's ULID and its shard. Both together are unique.
type ULIDColumns struct {
	Position, Shard Column
	Index           string // the name of the unique index of shard and ULID when the table was described
	IndexMade       string `json:"-"` // see [Index].Made
}

// ExactKey tells whether equal keys always have equal text. See [Column].Exact.
func (f *Feed) ExactKey() bool {
	return !slices.ContainsFunc(f.Key, func(c Column) bool { return !c.Exact })
}

// KeyedBy tells whether a unique index has exactly the columns of the key, covers all rows, and compares values
// as the feed does.
func (f *Feed) KeyedBy(ix Index) bool {
	names, ok := ix.Names()
	if !ok || ix.Partial || len(names) != len(f.Key) {
		return false
	}
	for _, c := range f.Key {
		i := slices.Index(names, c.Name)
		if i < 0 || c.Collate != "" && c.Collate != " COLLATE "+ix.Columns[i].Collation {
			return false
		}
	}
	return true
}

// StoredKey returns the names of the key columns in rowfeed's tables.
func (f *Feed) StoredKey() []string {
	names := make([]string, len(f.Key))
	for i, c := range f.Key {
		names[i] = c.Stored
	}
	return names
}

// Changes is the feed's table of changes.
func (f *Feed) Changes() feedtype.TableName { return f.Names.Table("changes_" + f.Name) }

// ClosedChanges is the name that [Placing.CloseChanges] gives to the table of changes, on a database where a lock would
// not last.
func (f *Feed) ClosedChanges() feedtype.TableName { return f.Names.Table("closed_" + f.Name) }

// Positions is the feed's table of positions.
func (f *Feed) Positions() feedtype.TableName { return f.Names.Table("positions_" + f.Name) }

// Records is the feed's outbox. Writers append records; the transaction that moves a record to its place
// deletes it.
func (f *Feed) Records() feedtype.TableName { return f.Names.Table("outbox_" + f.Name) }

// Placed is the table with the places of an outbox feed. A place is the shard and the ULID of a key.
func (f *Feed) Placed() feedtype.TableName { return f.Names.Table("feed_" + f.Name) }

// ULIDTable is the table whose rows hold the feed's ULIDs.
func (f *Feed) ULIDTable() feedtype.TableName {
	if f.Outbox {
		return f.Placed()
	}
	return f.Source
}

// Batch is the table with the keys that a publisher is placing, on databases where capture "column" needs one.
func (f *Feed) Batch() feedtype.TableName { return f.Names.Table("batch_" + f.Name) }

// Tables returns the names of all tables that the feed may have.
func (f *Feed) Tables() []feedtype.TableName {
	if f.Outbox {
		return []feedtype.TableName{f.Records(), f.Placed()}
	}
	if f.ULIDs != nil {
		return nil
	}
	tables := []feedtype.TableName{f.Changes(), f.Positions()}
	if f.InRows() {
		tables = append(tables, f.Batch())
	}
	return tables
}

// Routine returns the name of a function of the feed's triggers.
func (f *Feed) Routine(suffix string) feedtype.TableName {
	return feedtype.TableName{Schema: f.Names.Schema, Name: f.Object(suffix)}
}

// Object returns the name of a trigger, function or index of the feed.
func (f *Feed) Object(suffix string) string { return f.Names.Prefix + f.Name + "_" + suffix }

// These columns of the user's table belong to capture "column".
const (
	// PositionColumn holds a row's position. It is NULL while the row waits for a position.
	PositionColumn = "feed_sync_id"
	// ShardColumn holds a row's data shard.
	ShardColumn = "shard"
)

// InRows tells whether a column of the row itself holds the row's position. This is so with capture "column".
// The feed's table of positions then has only the keys whose latest position is not in a row: keys that were
// deleted, hidden or republished.
func (f *Feed) InRows() bool { return f.Capture == feedtype.CaptureColumn }

// ReadsRows tells whether rows hold positions that the feed's table of positions does not have. This is so if
// publishers write positions into rows (InRows), and while positions are being moved out of them.
func (f *Feed) ReadsRows() bool { return f.InRows() || f.Moving }
