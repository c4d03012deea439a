package rowfeed

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

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

func (s FeedSpec) withDefaults() FeedSpec {
	if s.Mode == "" {
		s.Mode = feedtype.ModeSequence
	}
	if m := modes[s.Mode]; m != nil {
		m.defaults(&s)
	}
	if s.DataShards == 0 {
		s.DataShards = 1
	}
	return s
}

// untyped is the spec without the types of its columns: they are for printing without a
// server; here the table tells, also of columns whose names have a colon.
func (s FeedSpec) untyped(table *dialect.Table) FeedSpec {
	s.Key = slices.Clone(s.Key)
	names := []*string{&s.PositionColumn, &s.ShardColumn, &s.TimeColumn}
	for i := range s.Key {
		names = append(names, &s.Key[i])
	}
	for _, name := range names {
		if table.Kept(*name) == nil {
			*name, _, _ = strings.Cut(*name, ":")
		}
	}
	return s
}

func (s FeedSpec) validate() error {
	if err := feedtype.ValidName(s.Name); err != nil {
		return err
	}
	err := s.mayBe(modes[s.Mode])
	var refused *feedtype.Error
	if errors.As(err, &refused) && refused.Object == "" {
		refused.Object = feedtype.FeedObject(s.Name)
	}
	return err
}

// mayBe refuses what its mode cannot be asked for.
func (s FeedSpec) mayBe(m mode) error {
	switch {
	case s.Table == "":
		return feedtype.Invalid("table", "name the table that the feed follows")
	case m == nil:
		return feedtype.Invalid("mode", "%q is not one of: %s", s.Mode, strings.Join(slices.Sorted(maps.Keys(modes)), ", "))
	}
	return firstError(m.keeps(s.Retain), m.validate(s))
}

// newRecord checks a spec against the table and makes a feed's record of it.
func newRecord(d dialect.Dialect, spec FeedSpec, table *dialect.Table) (*catalog.Record, error) {
	object := fmt.Sprintf("table %q", table.Name.String())
	refuse := func(next, format string, args ...any) (*catalog.Record, error) {
		return nil, &feedtype.Error{Code: feedtype.Refused, Object: object, Cause: fmt.Sprintf(format, args...), Next: next}
	}
	if len(table.Refusals) > 0 {
		return refuse("", "%s", strings.Join(table.Refusals, "; "))
	}
	names := spec.Key
	index := table.PrimaryKey()
	if len(names) > 0 {
		index = uniqueOn(table, names)
	}
	switch {
	case index == nil && len(names) == 0:
		return refuse("add a primary key, or name a unique index's columns with --key", "it has no primary key")
	case len(names) == 0:
		names, _ = index.Names()
	case index == nil:
		return refuse("remove rows that share a key, and create a unique index on just these columns",
			"no unique index has the columns (%s) and no others: two rows could share a place in the feed", strings.Join(names, ", "))
	}
	r := &catalog.Record{Name: spec.Name, Mode: spec.Mode, Capture: spec.Capture, State: catalog.StateCreating, Generation: 1,
		Source: table.Name, Columns: spec.Columns, Tombstones: spec.Tombstones, Retain: spec.Retain, AcceptUntriggered: spec.AcceptUntriggered, PrimaryKey: index.Primary, DataShards: spec.DataShards, ShardColumn: spec.ShardColumn,
		AcceptTriggers: spec.AcceptTriggers, Adopt: spec.Adopt, AdoptSequence: spec.AdoptSequence, AdoptCursors: spec.AdoptCursors}
	stored := map[string]bool{}
	for _, name := range names {
		c := table.Column(name)
		if c == nil {
			return refuse("`--key` takes the names of columns", "it has no column %q", name)
		}
		if c.Nullable {
			return refuse("declare the column NOT NULL", "key column %q may be NULL, and a NULL is equal to nothing", name)
		}
		if c.NoKey != "" {
			return refuse("use another unique index with --key", "key column %q %s", name, c.NoKey)
		}
		key := *c
		key.Stored = dialect.StoredName(name)
		for _, ic := range index.Columns {
			if ic.Name == name && ic.Collation != "" {
				key.Collate = " COLLATE " + ic.Collation
				key.Exact = key.Exact && ic.Exact
			}
		}
		if folded := strings.ToLower(key.Stored); stored[folded] {
			return refuse("use another unique index with --key", "key columns would share the name %q in rowfeed's tables", key.Stored)
		} else {
			stored[folded] = true
		}
		r.Key = append(r.Key, key)
	}
	if err := modeOf(r).complete(d, r, spec, table); err != nil {
		return nil, err
	}
	if r.Capture == dialect.CaptureTrigger && len(table.Partitions) > 0 {
		r.Partitions = &catalog.Partitions{Attached: attachedOf(table)}
	}
	for i, name := range spec.Columns {
		if table.Column(name) == nil {
			return refuse("`--columns` takes the names of columns", "it has no column %q", name)
		}
		if slices.Contains(spec.Columns[:i], name) {
			return nil, feedtype.Invalid("columns", "%q is named twice", name)
		}
	}
	return r, r.MayBeSoWide(d, table)
}

// differences compares what two records were asked to be.
func differences(r *catalog.Record, other *catalog.Record) []string {
	var diffs []string
	compare := func(what string, have, want any) {
		if fmt.Sprint(have) != fmt.Sprint(want) {
			diffs = append(diffs, fmt.Sprintf("%s is %v, not %v", what, have, want))
		}
	}
	compare("table", r.Source, other.Source)
	compare("mode", r.Mode, other.Mode)
	compare("capture", r.Capture, other.Capture)
	compare("key", keyNames(r.Key), keyNames(other.Key))
	compare("columns", r.Columns, other.Columns)
	compare("data-shards", r.DataShards, other.DataShards)
	compare("shard-column", strconv.Quote(r.ShardColumn), strconv.Quote(other.ShardColumn))
	compare("position-column", strconv.Quote(r.PositionColumn()), strconv.Quote(other.PositionColumn()))
	compare("time-column", strconv.Quote(r.TimeColumn), strconv.Quote(other.TimeColumn))
	compare("tombstones", r.Tombstones, other.Tombstones)
	compare("retain", r.Retain, other.Retain)
	compare("accept-untriggered", r.AcceptUntriggered, other.AcceptUntriggered)
	compare("accept-triggers", r.AcceptTriggers, other.AcceptTriggers)
	compare("adopt", r.Adopt, other.Adopt)
	compare("adopt-sequence", strconv.Quote(r.AdoptSequence), strconv.Quote(other.AdoptSequence))
	compare("adopt-cursors", strconv.Quote(r.AdoptCursors), strconv.Quote(other.AdoptCursors))
	return diffs
}

func keyNames(key []dialect.Column) []string {
	names := make([]string, len(key))
	for i, c := range key {
		names[i] = c.Name
	}
	return names
}

func insertSequence(b *dialect.Builder, table, name string, value int64, now string) string {
	return "INSERT INTO " + table + " (name, value, version, updated_at) VALUES (" + b.Arg(name) + ", " + b.Arg(value) + ", 0, " + now + ")"
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
