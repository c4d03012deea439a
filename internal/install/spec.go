package install

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// withoutTypes removes the types from the column names of a spec (name:type): they are for printing without a
// connection. A name that the table has remains whole, since a column's name can contain a colon.
func withoutTypes(s feedtype.FeedSpec, table *dialect.Table) feedtype.FeedSpec {
	s.Key = slices.Clone(s.Key)
	names := []*string{&s.PositionColumn, &s.ShardColumn, &s.TimeColumn}
	for i := range s.Key {
		names = append(names, &s.Key[i])
	}
	for _, name := range names {
		if table.FindColumn(*name) == nil {
			*name, _, _ = strings.Cut(*name, ":")
		}
	}
	return s
}

// checkSpec returns the spec with its defaults, or refuses it.
func checkSpec(s feedtype.FeedSpec) (feedtype.FeedSpec, error) {
	if s.Mode == "" {
		s.Mode = feedtype.ModeSequence
	}
	if s.DataShards == 0 {
		s.DataShards = 1
	}
	if err := feedtype.ValidName(s.Name); err != nil {
		return s, err
	}
	var err error
	switch k := kinds[s.Mode]; {
	case s.Table == "":
		err = feedtype.Invalid("table", "name the table that the feed follows")
	case k == nil:
		err = feedtype.Invalid("mode", "%q is not one of: %s", s.Mode,
			strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
	default:
		err = cmp.Or(checkRetention(s.Mode, s.Retain), k.check(&s))
	}
	var refused *feedtype.Error
	if errors.As(err, &refused) && refused.Object == "" {
		refused.Object = feedtype.FeedObject(s.Name)
	}
	return s, err
}

// mayBeNull refuses a key column.
func mayBeNull(table feedtype.TableName, column string) error {
	return &feedtype.Error{Code: feedtype.Refused, Object: fmt.Sprintf("table %q", table.String()),
		Cause: fmt.Sprintf("key column %q may be NULL, and NULL equals no value", column),
		Next:  "declare the column NOT NULL"}
}

// newRecord checks a spec against the table, and returns the feed's record. added are the columns that rowfeed has
// added to the table for this feed.
func newRecord(
	d *dialect.Dialect, spec feedtype.FeedSpec, table *dialect.Table, added ...string,
) (*catalog.FeedRecord, error) {
	object := fmt.Sprintf("table %q", table.Name.String())
	refuse := func(next, format string, args ...any) (*catalog.FeedRecord, error) {
		return nil, &feedtype.Error{
			Code:   feedtype.Refused,
			Object: object,
			Cause:  fmt.Sprintf(format, args...),
			Next:   next,
		}
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
	}
	for _, name := range names {
		if table.Column(name) == nil {
			return refuse("`--key` takes the names of columns", "it has no column %q", name)
		}
	}
	if index == nil {
		return refuse("remove rows that share a key, and create a unique index on just these columns",
			"no unique index has exactly the columns (%s): two rows could have the same key",
			strings.Join(names, ", "))
	}
	r := &catalog.FeedRecord{
		Name: spec.Name, Mode: spec.Mode, Capture: spec.Capture, State: catalog.StateCreating, Generation: 1,
		Source: table.Name, PrimaryKey: index.Primary, Columns: spec.Columns, Tombstones: spec.Tombstones,
		Retain: spec.Retain, DataShards: spec.DataShards, ShardColumn: spec.ShardColumn,
		AcceptUntriggered: spec.AcceptUntriggered, AcceptTriggers: spec.AcceptTriggers,
		Fence: spec.Fence, PublishedElsewhere: spec.PublishedElsewhere, Adopt: spec.Adopt,
		AdoptSequence: spec.AdoptSequence, AdoptCursors: spec.AdoptCursors, Added: added,
	}
	stored := map[string]bool{}
	for _, name := range names {
		c := table.Column(name)
		if c.Nullable && !(c.MayBeNull && r.Mode == feedtype.ModeSequence && r.Capture != feedtype.CaptureColumn) {
			return nil, mayBeNull(table.Name, name)
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
			return refuse("use another unique index with --key",
				"key columns would share the name %q in rowfeed's tables", key.Stored)
		} else {
			stored[folded] = true
		}
		r.Key = append(r.Key, key)
	}
	if err := kinds[r.Mode].complete(d, r, spec, table); err != nil {
		return nil, err
	}
	if r.Capture == feedtype.CaptureTrigger && len(table.Partitions) > 0 {
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

// differences returns one text for each setting in which two records differ.
func differences(r *catalog.FeedRecord, other *catalog.FeedRecord) []string {
	var diffs []string
	compare := func(what string, have, want any) {
		if fmt.Sprint(have) != fmt.Sprint(want) {
			diffs = append(diffs, fmt.Sprintf("%s is %v, not %v", what, have, want))
		}
	}
	compare("table", r.Source, other.Source)
	compare("mode", r.Mode, other.Mode)
	compare("capture", r.Capture, other.Capture)
	compare("key", catalog.KeyNames(r.Key), catalog.KeyNames(other.Key))
	compare("columns", r.Columns, other.Columns)
	compare("data-shards", r.DataShards, other.DataShards)
	compare("shard-column", strconv.Quote(r.ShardColumn), strconv.Quote(other.ShardColumn))
	compare("position-column", strconv.Quote(r.PositionColumn()), strconv.Quote(other.PositionColumn()))
	compare("time-column", strconv.Quote(r.TimeColumn), strconv.Quote(other.TimeColumn))
	compare("tombstones", r.Tombstones, other.Tombstones)
	compare("retain", r.Retain, other.Retain)
	compare("accept-untriggered", r.AcceptUntriggered, other.AcceptUntriggered)
	compare("accept-triggers", r.AcceptTriggers, other.AcceptTriggers)
	compare("fence", r.Fence, other.Fence)
	compare("published-elsewhere", r.PublishedElsewhere, other.PublishedElsewhere)
	compare("adopt", r.Adopt, other.Adopt)
	compare("adopt-sequence", strconv.Quote(r.AdoptSequence), strconv.Quote(other.AdoptSequence))
	compare("adopt-cursors", strconv.Quote(r.AdoptCursors), strconv.Quote(other.AdoptCursors))
	return diffs
}
