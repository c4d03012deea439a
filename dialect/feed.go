package dialect

import (
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Names says where rowfeed's own tables are: a schema (empty: the database's
// default) and a prefix.
type Names struct {
	Schema string
	Prefix string
}

// Table is the name of one of rowfeed's own tables, such as "sequences" or
// "changes_kv".
func (n Names) Table(base string) feedtype.TableName {
	return feedtype.TableName{Schema: n.Schema, Name: n.Prefix + base}
}

// StateActive is the state of a feed that is ready, in the table of feeds.
const StateActive = "active"

// Column is one column of a source table.
type Column struct {
	Name string `json:"name"`
	// Type is the column's type as the database spells it.
	Type string `json:"type"`
	// Decl is what declares a column that holds and compares the same values: type,
	// character set, collation.
	Decl string        `json:"decl,omitempty"`
	Kind feedtype.Kind `json:"kind"`
	// Stored is the column's name in rowfeed's tables, for key columns. It differs from
	// Name only where Name is one of rowfeed's own column names.
	Stored string `json:"stored,omitempty"`
	// Collate follows a reference to the column wherever keys are compared or ordered,
	// on databases where an index may have another collation than its column.
	Collate string `json:"collate,omitempty"`
	// Operators is the schema of the operators by which the key's index compares, where their names alone might not find
	// them; empty elsewhere. Another operator could be found instead: text's for citext.
	Operators string `json:"operators,omitempty"`
	// Exact says that equal values have equal text, for key columns. Where it is false the
	// database can hold two spellings for one key ('fred' and 'FRED', 1.0 and 1.00). Then
	// entries show the spelling with which rowfeed's tables got the key, for as long as they
	// have it: readers, dead letters and shards tell keys apart by their text.
	Exact    bool `json:"exact,omitempty"`
	Nullable bool `json:"-"`
	// NoKey says why the column cannot be part of a key; empty when it can.
	NoKey string `json:"-"`
	// NoPosition says, of a column feed_sync_id, why it cannot hold positions, with the
	// next step; empty when it can.
	NoPosition string `json:"-"`
	// Generated says that the database itself computes the column's values.
	Generated bool `json:"-"`
	// Virtual says that the value is computed whenever it is read, and that triggers see none.
	Virtual bool `json:"-"`
	// Default is what a NULL becomes under OR REPLACE, an expression; empty without one.
	Default string `json:"-"`
}

// ForReaders is what the feed's readers are told of the column.
func (c Column) ForReaders() feedtype.Column {
	return feedtype.Column{Name: c.Name, Type: c.Type, Kind: c.Kind}
}

// reserved are rowfeed's own column names in changes_<feed> and positions_<feed>.
var reserved = map[string]bool{
	"seq": true, "kind": true, "changed_at": true, "feed_sync_id": true, "shard": true,
	"order_sequence": true, "time_hint": true, "appended_at": true, "ulid": true,
	"bucket": true, "deleted": true, "hidden": true, "published_at": true,
	// hidden columns of a SQLite table
	"rowid": true, "oid": true, "_rowid_": true,
	// system columns of a PostgreSQL table
	"tableoid": true, "xmin": true, "cmin": true, "xmax": true, "cmax": true, "ctid": true,
}

// StoredName is the name that a key column gets in rowfeed's tables.
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
	Partial bool   // has a WHERE clause
	Hidden  bool   // is kept, but no statement may use it
	Made    string // is another one when the index is made anew, on databases where pages ask for it
}

// IndexColumn is a column of an index; Name is empty for an expression.
type IndexColumn struct {
	Name string
	// Collation is that of the index, quoted, on databases where it may differ from the
	// column's; empty elsewhere. Exact then says that it tells all texts apart.
	Collation string
	Exact     bool
}

// Names of the index's columns; false when one of them is an expression.
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

// Table is what the catalog says of a source table.
type Table struct {
	Name    feedtype.TableName // with the schema it was found in
	Columns []Column
	// AnyCase says that names of columns ignore case.
	AnyCase bool
	Unique  []Index // primary key first
	// Partitions are the tables below a partitioned one, at every level.
	Partitions []Partition
	// Refusals say why the table cannot be a feed, each with the next step.
	Refusals []string
	// Indexes are the names of all its indexes; Unfinished those of indexes that no
	// query can use, since what made them broke off.
	Indexes, Unfinished []string
	// OnUpdate are the triggers, of whoever's, that fire when a row's position is written.
	OnUpdate []string
	// Untriggered say what changes the table without firing a trigger.
	Untriggered []string
	// RowID names a hidden unique column that statements can write, where there is one.
	RowID string
	// Signature changes when the table's columns do; see PageRows.Signature.
	Signature string
}

// Partition is a table below a partitioned one.
type Partition struct {
	Name feedtype.TableName
	// Attached tells this partition from every other, and from itself if it is detached and attached again, or a
	// table between it and the partitioned one is. Empty for a partition that has partitions of its own.
	Attached string
}

// NewPartition is a partition that lacks what FeedUp makes on each partition, since it came after FeedUp.
type NewPartition struct {
	Partition
	Owner string // the role that owns it, quoted
	// Lacks says which right is missing to take it in, and Grant is the statement that gives it. Empty where none is.
	Lacks, Grant string
	// ByOwner says that a member of the role that owns the partition lacks nothing.
	ByOwner bool
	Steps   []Step // take it in
}

// Column finds a column by its name; nil when there is none.
func (t *Table) Column(name string) *Column {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return &t.Columns[i]
		}
	}
	return nil
}

// PrimaryKey is the primary key, nil when there is none.
func (t *Table) PrimaryKey() *Index {
	for i := range t.Unique {
		if t.Unique[i].Primary {
			return &t.Unique[i]
		}
	}
	return nil
}

// Feed is a feed as the dialects see it.
type Feed struct {
	Name    string
	Names   Names
	Source  feedtype.TableName
	Key     []Column
	Columns []Column // delivered, as of Signature
	Capture feedtype.Capture
	// Primary says that the key is the source's primary key.
	Primary bool
	// Added are the source's columns that rowfeed made, with capture "column".
	Added []string
	// DataShards is the number of data shards; 0 means 1.
	DataShards int
	// ULIDs are the columns of a table whose rows hold their positions themselves, given by
	// whoever inserts them, by shard. Nil where positions come from a publisher.
	ULIDs *ULIDColumns
	// RecordShard is the source's column that says which shard the records of triggers and of
	// back-fill are in; empty: shard 0.
	RecordShard string
	// Outbox says that the ULIDs are in a table of the feed's own, where the records in its
	// outbox get them. Writers do not wait for each other then.
	Outbox bool
}

// ULIDColumns are columns of the source: the row's ULID and its shard, unique together.
type ULIDColumns struct {
	Position, Shard Column
	Index           string // the unique index of shard and ULID, as the table was described
	IndexMade       string `json:"-"` // see [Index.Made]
}

// ExactKey tells whether equal keys always have equal text; see [Column.Exact].
func (f *Feed) ExactKey() bool {
	return !slices.ContainsFunc(f.Key, func(c Column) bool { return !c.Exact })
}

// KeyedBy tells whether a unique index has the key's columns and no others, of every row, and compares
// them as the feed does.
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

// StoredKey are the names of the key columns in rowfeed's tables.
func (f *Feed) StoredKey() []string {
	names := make([]string, len(f.Key))
	for i, c := range f.Key {
		names[i] = c.Stored
	}
	return names
}

// Changes is the feed's table of changes.
func (f *Feed) Changes() feedtype.TableName { return f.Names.Table("changes_" + f.Name) }

// Positions is the feed's table of positions.
func (f *Feed) Positions() feedtype.TableName { return f.Names.Table("positions_" + f.Name) }

// Records is the outbox of a feed that has one: writers append, whoever moves them deletes.
func (f *Feed) Records() feedtype.TableName { return f.Names.Table("outbox_" + f.Name) }

// Placed is where the keys of records stand that were moved.
func (f *Feed) Placed() feedtype.TableName { return f.Names.Table("feed_" + f.Name) }

// Held is the table whose rows hold the feed's ULIDs.
func (f *Feed) Held() feedtype.TableName {
	if f.Outbox {
		return f.Placed()
	}
	return f.Source
}

// Batch is the feed's table of the keys in one publisher's hands, on databases where
// positions in rows need it.
func (f *Feed) Batch() feedtype.TableName { return f.Names.Table("batch_" + f.Name) }

// Tables are all names of tables that the feed may take.
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

// Object is the name of a trigger, function or index of the feed.
func (f *Feed) Object(suffix string) string { return f.Names.Prefix + f.Name + "_" + suffix }
