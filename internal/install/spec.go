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

// kind is what differs between the kinds of positions when a feed is made, verified, mended or removed.
type kind interface {
	// check fills in what a spec leaves open, and says what is wrong with it.
	check(s *feedtype.FeedSpec) error
	// complete checks what a spec asks for against the table, and puts into the record what the kind needs of it.
	complete(d dialect.Dialect, r *catalog.Record, spec feedtype.FeedSpec, table *dialect.Table) error
	// admit refuses rows that the table must not have, before anything is made.
	admit(ctx context.Context, db *Database, q dialect.Querier, r *catalog.Record) error
	// up and down are the statements that make and remove what the feed needs in the database, besides its record.
	up(db *Database, r *catalog.Record, table *dialect.Table) ([]dialect.Step, error)
	down(ctx context.Context, db *Database, q dialect.Querier, r *catalog.Record, table *dialect.Table) error
	// begin does the rest, before the feed is in the state that it answers.
	begin(ctx context.Context, db *Database, q dialect.Querier, r *catalog.Record) (state string, err error)
	// declare puts into a table that is not at hand the columns and indexes which a spec names beside the key, and takes
	// their types out of the spec.
	declare(t *declared, spec *feedtype.FeedSpec) error
	// script is begin in a printed script, and note what is then said of the state.
	script(db *Database, r *catalog.Record) (steps []dialect.Step, state, note string, err error)
	// verify says what is not as the feed needs it, and mend does what can be done about it.
	verify(ctx context.Context, db *Database, q dialect.Querier, r *catalog.Record,
		table *dialect.Table) ([]string, error)
	mend(ctx context.Context, db *Database, q dialect.Querier, r *catalog.Record, table *dialect.Table) error
	// rights are what logins need on rowfeed's own tables and functions, besides what all need: writers (nothing if what
	// they write is recorded for them), and readers.
	rights(d dialect.Dialect, f *dialect.Feed) (writing, reading []dialect.Right)
	// backfill records, or places, the next batch of the rows that were there before the feed, in state filling, and
	// answers how many there were. The error is errRecordChanged if another process has done it.
	backfill(ctx context.Context, f *Feed, r *catalog.Record) (int64, error)
}

var kinds = map[string]kind{feedtype.ModeSequence: sequenced{}, feedtype.ModeBlocking: blocking{},
	feedtype.ModeOutbox: outbox{}}

// kindOf is the kind of a feed, or why this version cannot read its record.
func kindOf(r *catalog.Record) (kind, error) { return kinds[r.Mode], r.Unreadable }

// untyped is the spec without the types of its columns: they are for printing without a
// server; here the table tells, also of columns whose names have a colon.
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

// checkSpec is the spec with its defaults, or what is wrong with it.
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
		err = cmp.Or(keeps(s.Mode, s.Retain), k.check(&s))
	}
	var refused *feedtype.Error
	if errors.As(err, &refused) && refused.Object == "" {
		refused.Object = feedtype.FeedObject(s.Name)
	}
	return s, err
}

// newRecord checks a spec against the table and makes a feed's record of it.
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
			"no unique index has the columns (%s) and no others: two rows could share a place in the feed",
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
			return refuse("declare the column NOT NULL", "key column %q may be NULL, and a NULL is equal to nothing",
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
		return feedtype.Invalid("position-column", "only mode blocking has positions in a column of your own")
	case s.TimeColumn != "":
		return feedtype.Invalid("time-column", "only mode outbox gives rows the times of before the feed")
	case s.Capture != feedtype.CaptureTrigger && s.Capture != feedtype.CaptureApp &&
		s.Capture != feedtype.CaptureColumn:
		return feedtype.Invalid("capture", "%q is not one of: trigger, app, column", s.Capture)
	case s.Adopt && s.Capture != feedtype.CaptureColumn:
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

func (blocking) check(s *feedtype.FeedSpec) error {
	if s.Capture == "" {
		s.Capture = feedtype.CaptureNone
	}
	switch {
	case s.TimeColumn != "":
		return feedtype.Invalid("time-column", "with mode blocking rows hold their times in their ULIDs: leave it out")
	case s.PositionColumn == "":
		return feedtype.Invalid("position-column", "name the column that holds a row's ULID")
	case s.ShardColumn == "":
		return feedtype.Invalid("shard-column", "name the integer column that says which shard a row is in")
	case s.Capture != feedtype.CaptureNone:
		return feedtype.Invalid("capture", "with ULIDs nothing is captured: leave it out")
	}
	return appendedTo(s)
}

func (outbox) check(s *feedtype.FeedSpec) error {
	if s.Capture == "" {
		s.Capture = feedtype.CaptureApp
	}
	switch {
	case s.PositionColumn != "":
		return feedtype.Invalid("position-column",
			"with mode outbox a row's ULID is in a table of rowfeed's own: leave it out")
	case s.Capture != feedtype.CaptureApp && s.Capture != feedtype.CaptureTrigger:
		return feedtype.Invalid("capture", "with mode outbox %q is not one of: app, trigger", s.Capture)
	}
	return appendedTo(s)
}

// appendedTo refuses what is of no use to a feed of a table that is only appended to.
func appendedTo(s *feedtype.FeedSpec) error {
	switch {
	case s.Tombstones != 0:
		return feedtype.Invalid("tombstones",
			"with ULIDs rows are only appended, and no deletes are kept: leave it out")
	case s.DataShards != 1:
		return feedtype.Invalid("data-shards", "with ULIDs any integer is a shard: leave it out")
	case s.Adopt || s.AdoptSequence != "" || s.AdoptCursors != "":
		return feedtype.Invalid("adopt", "with ULIDs shards begin above the ULIDs that are there anyway: leave it out")
	case s.AcceptTriggers || s.AcceptUntriggered:
		return feedtype.Invalid("accept-triggers",
			"with ULIDs rows are only appended, which triggers see: leave it out")
	}
	return nil
}
