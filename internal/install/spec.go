package install

import (
	"cmp"
	"context"
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

// kind is the part of installing that differs between the modes.
type kind interface {
	// check fills in the defaults of a spec, and refuses what the mode does not support.
	check(s *feedtype.FeedSpec) error
	// complete checks a spec against the table, and adds to the record what the mode needs.
	complete(d dialect.Dialect, r *catalog.Record, spec feedtype.FeedSpec, table *dialect.Table) error
	// admit refuses a table for the rows that it has. It runs before anything is made.
	admit(ctx context.Context, db *Database, q dialect.Querier, r *catalog.Record) error
	// up answers the statements that make the feed's objects. down removes the objects.
	up(db *Database, r *catalog.Record, table *dialect.Table) ([]dialect.Step, error)
	down(ctx context.Context, db *Database, q dialect.Querier, r *catalog.Record, table *dialect.Table) error
	// begin runs after the objects were made, and answers the state of the feed.
	begin(ctx context.Context, db *Database, q dialect.Querier, r *catalog.Record) (state string, err error)
	// declare is for printing: it declares the columns and indexes that a spec names apart from the key, and removes
	// the types of these columns from the spec.
	declare(t *declared, spec *feedtype.FeedSpec) error
	// script answers the statements of begin for a printed script. note is the comment on the state.
	script(db *Database, r *catalog.Record) (steps []dialect.Step, state, note string, err error)
	// verify answers one sentence for each object that is not as the feed needs it. mend repairs the objects.
	verify(ctx context.Context, db *Database, q dialect.Querier, r *catalog.Record,
		table *dialect.Table) ([]string, error)
	mend(ctx context.Context, db *Database, q dialect.Querier, r *catalog.Record, table *dialect.Table) error
	// rights answers the rights on rowfeed's tables and functions that writers and readers need in this mode. writing
	// is empty if writers need none.
	rights(d dialect.Dialect, f *dialect.Feed) (writing, reading []dialect.Right)
	// backfill records or places the next batch of rows that are older than the feed, and answers their number. The
	// error is ErrRecordChanged if another process has done this batch.
	backfill(ctx context.Context, f *Feed, r *catalog.Record) (int64, error)
}

var kinds = map[string]kind{feedtype.ModeSequence: sequenced{}, feedtype.ModeBlocking: blocking{},
	feedtype.ModeOutbox: outbox{}}

// kindOf answers the kind of a feed, or why this version cannot read its record.
func kindOf(r *catalog.Record) (kind, error) { return kinds[r.Mode], r.Unreadable }

// withoutTypes removes the types from the column names of a spec (name:type): they are for printing without a
// connection. A name that the table has remains whole, since a column's name can contain a colon.
func withoutTypes(s feedtype.FeedSpec, table *dialect.Table) feedtype.FeedSpec {
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

// checkSpec answers the spec with its defaults, or refuses it.
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

// newRecord checks a spec against the table, and answers the feed's record.
func newRecord(d dialect.Dialect, spec feedtype.FeedSpec, table *dialect.Table) (*catalog.Record, error) {
	object := fmt.Sprintf("table %q", table.Name.String())
	refuse := func(next, format string, args ...any) (*catalog.Record, error) {
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
	case index == nil:
		return refuse("remove rows that share a key, and create a unique index on just these columns",
			"no unique index has exactly the columns (%s): two rows could have the same key",
			strings.Join(names, ", "))
	}
	r := &catalog.Record{
		Name: spec.Name, Mode: spec.Mode, Capture: spec.Capture, State: catalog.StateCreating, Generation: 1,
		Source: table.Name, PrimaryKey: index.Primary, Columns: spec.Columns, Tombstones: spec.Tombstones,
		Retain: spec.Retain, DataShards: spec.DataShards, ShardColumn: spec.ShardColumn,
		AcceptUntriggered: spec.AcceptUntriggered, AcceptTriggers: spec.AcceptTriggers,
		Adopt: spec.Adopt, AdoptSequence: spec.AdoptSequence, AdoptCursors: spec.AdoptCursors,
	}
	stored := map[string]bool{}
	for _, name := range names {
		c := table.Column(name)
		if c == nil {
			return refuse("`--key` takes the names of columns", "it has no column %q", name)
		}
		if c.Nullable {
			return refuse("declare the column NOT NULL", "key column %q may be NULL, and NULL equals no value",
				name)
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

// differences answers one text for each setting in which two records differ.
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
	compare("adopt", r.Adopt, other.Adopt)
	compare("adopt-sequence", strconv.Quote(r.AdoptSequence), strconv.Quote(other.AdoptSequence))
	compare("adopt-cursors", strconv.Quote(r.AdoptCursors), strconv.Quote(other.AdoptCursors))
	return diffs
}

func insertSequence(b *dialect.Builder, table, name string, value int64, now string) string {
	return "INSERT INTO " + table + " (name, value, version, updated_at) VALUES (" + b.Arg(name) + ", " + b.Arg(value) +
		", 0, " + now + ")"
}

func (sequenced) check(s *feedtype.FeedSpec) error {
	if s.Capture == "" {
		s.Capture = feedtype.CaptureTrigger
	}
	if s.Tombstones == 0 {
		s.Tombstones = feedtype.DefaultTombstones
	}
	switch {
	case s.PositionColumn != "":
		return feedtype.Invalid("position-column", "only mode blocking reads positions from a column of your table")
	case s.TimeColumn != "":
		return feedtype.Invalid("time-column", "only mode outbox has times of rows that are older than the feed")
	case s.Capture != feedtype.CaptureTrigger && s.Capture != feedtype.CaptureApp &&
		s.Capture != feedtype.CaptureColumn:
		return feedtype.Invalid("capture", "%q is not one of: trigger, app, column", s.Capture)
	case s.Adopt && s.Capture != feedtype.CaptureColumn:
		return feedtype.Invalid("adopt", "only feeds with capture column can adopt positions")
	case s.AdoptSequence != "" && !s.Adopt:
		return feedtype.Invalid("adopt-sequence", "it requires --adopt")
	case s.AdoptCursors != "" && !s.Adopt:
		return feedtype.Invalid("adopt-cursors", "it requires --adopt")
	case s.DataShards < 1 || s.DataShards > feedtype.MaxDataShards:
		return feedtype.Invalid("data-shards", "%d must be between 1 and %d", s.DataShards, feedtype.MaxDataShards)
	case s.Tombstones < time.Second:
		return feedtype.Invalid("tombstones", "%s is less than a second", s.Tombstones)
	}
	return nil
}

func (blocking) check(s *feedtype.FeedSpec) error {
	if s.Capture == "" {
		s.Capture = feedtype.CaptureNone
	}
	switch {
	case s.TimeColumn != "":
		return feedtype.Invalid("time-column", "in mode blocking the ULIDs contain the times: omit it")
	case s.PositionColumn == "":
		return feedtype.Invalid("position-column", "name the column with the ULIDs")
	case s.ShardColumn == "":
		return feedtype.Invalid("shard-column", "name the integer column with the shard of each row")
	case s.Capture != feedtype.CaptureNone:
		return feedtype.Invalid("capture", "mode blocking captures nothing: omit it")
	}
	return checkAppendOnly(s)
}

func (outbox) check(s *feedtype.FeedSpec) error {
	if s.Capture == "" {
		s.Capture = feedtype.CaptureApp
	}
	switch {
	case s.PositionColumn != "":
		return feedtype.Invalid("position-column",
			"in mode outbox the ULIDs are in a table of rowfeed: omit it")
	case s.Capture != feedtype.CaptureApp && s.Capture != feedtype.CaptureTrigger:
		return feedtype.Invalid("capture", "with mode outbox %q is not one of: app, trigger", s.Capture)
	}
	return checkAppendOnly(s)
}

// checkAppendOnly refuses settings that have no effect on feeds of append-only tables.
func checkAppendOnly(s *feedtype.FeedSpec) error {
	switch {
	case s.Tombstones != 0:
		return feedtype.Invalid("tombstones",
			"feeds of append-only tables have no deletes: omit it")
	case s.DataShards != 1:
		return feedtype.Invalid("data-shards", "in modes with ULIDs every integer is a shard: omit it")
	case s.Adopt || s.AdoptSequence != "" || s.AdoptCursors != "":
		return feedtype.Invalid("adopt",
			"in modes with ULIDs new positions are always above the existing ones: omit it")
	case s.AcceptTriggers || s.AcceptUntriggered:
		return feedtype.Invalid("accept-triggers",
			"feeds of append-only tables need no such exception: omit it")
	}
	return nil
}
