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

func (sequenced) defaults(s *FeedSpec) {
	if s.Capture == "" {
		s.Capture = dialect.CaptureTrigger
	}
	if s.Tombstones == 0 {
		s.Tombstones = DefaultTombstones
	}
}

func (blocking) defaults(s *FeedSpec) {
	if s.Capture == "" {
		s.Capture = dialect.CaptureNone
	}
}

func (outbox) defaults(s *FeedSpec) {
	if s.Capture == "" {
		s.Capture = dialect.CaptureApp
	}
}

func (sequenced) validate(s FeedSpec) error {
	switch {
	case s.PositionColumn != "":
		return feedtype.Invalid("position-column", "only mode blocking has positions in a column of your own")
	case s.TimeColumn != "":
		return feedtype.Invalid("time-column", "only mode outbox gives rows the times of before the feed")
	case s.Capture != dialect.CaptureTrigger && s.Capture != dialect.CaptureApp && s.Capture != dialect.CaptureColumn:
		return feedtype.Invalid("capture", "%q is not one of: trigger, app, column", s.Capture)
	case s.Adopt && s.Capture != dialect.CaptureColumn:
		return feedtype.Invalid("adopt", "only capture column has positions to adopt")
	case s.AdoptSequence != "" && !s.Adopt:
		return feedtype.Invalid("adopt-sequence", "it is for feeds that adopt their positions")
	case s.AdoptCursors != "" && !s.Adopt:
		return feedtype.Invalid("adopt-cursors", "it is for feeds that adopt their positions")
	case s.DataShards < 1 || s.DataShards > feedtype.MaxDataShards:
		return feedtype.Invalid("data-shards", "%d must be between 1 and %d", s.DataShards, feedtype.MaxDataShards)
	case s.Tombstones < time.Second:
		return feedtype.Invalid("tombstones", "%s is less than a second", s.Tombstones)
	}
	return nil
}

func (blocking) validate(s FeedSpec) error {
	switch {
	case s.TimeColumn != "":
		return feedtype.Invalid("time-column", "with mode blocking rows hold their times in their ULIDs: leave it out")
	case s.PositionColumn == "":
		return feedtype.Invalid("position-column", "name the column that holds a row's ULID")
	case s.ShardColumn == "":
		return feedtype.Invalid("shard-column", "name the integer column that says which shard a row is in")
	case s.Capture != dialect.CaptureNone:
		return feedtype.Invalid("capture", "with ULIDs nothing is captured: leave it out")
	}
	return s.appendedTo()
}

func (outbox) validate(s FeedSpec) error {
	switch {
	case s.PositionColumn != "":
		return feedtype.Invalid("position-column", "with mode outbox a row's ULID is in a table of rowfeed's own: leave it out")
	case s.Capture != dialect.CaptureApp && s.Capture != dialect.CaptureTrigger:
		return feedtype.Invalid("capture", "with mode outbox %q is not one of: app, trigger", s.Capture)
	}
	return s.appendedTo()
}

// appendedTo refuses what is of no use to a feed of a table that is only appended to.
func (s FeedSpec) appendedTo() error {
	switch {
	case s.Tombstones != 0:
		return feedtype.Invalid("tombstones", "with ULIDs rows are only appended, and no deletes are kept: leave it out")
	case s.DataShards != 1:
		return feedtype.Invalid("data-shards", "with ULIDs any integer is a shard: leave it out")
	case s.Adopt || s.AdoptSequence != "" || s.AdoptCursors != "":
		return feedtype.Invalid("adopt", "with ULIDs shards begin above the ULIDs that are there anyway: leave it out")
	case s.AcceptTriggers || s.AcceptUntriggered:
		return feedtype.Invalid("accept-triggers", "with ULIDs rows are only appended, which triggers see: leave it out")
	}
	return nil
}

func (sequenced) keeps(r feedtype.Retention) error { return noRetention(r) }

func (blocking) keeps(r feedtype.Retention) error { return noRetention(r) }

func (outbox) keeps(r feedtype.Retention) error { return validRetention(r) }
