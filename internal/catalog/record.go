package catalog

import (
	"context"
	_ "embed" // for catalog.sql
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

//go:embed catalog.sql
var file string

var statements = dialect.NewStatements(file)

// The states of a feed.
const (
	StateCreating = "creating" // tables and triggers are being created
	StateDropping = "dropping" // tables and triggers are being removed
	StateFilling  = "filling"  // the table's rows are being recorded as changes
	StateSharding = "sharding" // keys are being assigned to data shards
	StateMoving   = "moving"   // positions are being moved from rows into the table of positions
	StateActive   = dialect.StateActive
	// StateElsewhere is the state of an active feed with PublishedElsewhere.
	StateElsewhere = dialect.StateElsewhere
	StateDropped   = "dropped" // only name and generation are kept
)

// Unplaced are the states in which keys may have no shard, or a former one, so that no part is served.
var Unplaced = []string{StateCreating, StateSharding}

// Unfilled are the states in which back-fill may place rows behind the head of an outbox feed.
var Unfilled = []string{StateCreating, StateFilling}

// FeedRecord is a feed's row in the feeds table.
type FeedRecord struct {
	Name               string
	Mode               string
	Capture            feedtype.Capture
	State              string
	Generation         int64
	Source             feedtype.TableName
	Key                []dialect.Column
	Columns            []string // nil: every column
	Tombstones         time.Duration
	TombstonesBelow    int64
	AcceptUntriggered  bool
	AcceptTriggers     bool
	Fence              bool     // triggers refuse positions that the publisher does not give
	Moved              bool     // it had capture column, and positions are moved or being moved out of the rows
	PublishedElsewhere bool     // a publisher that is not rowfeed's gives positions, from AdoptSequence
	Adopt              bool     // the feed adopted positions that the table had
	AdoptSequence      string   // the sequence whose value the feed continues
	FormerValue        *int64   // its value at that time, or when a repair last read it
	AdoptCursors       string   // the cursors that consumers continue
	Added              []string // columns that rowfeed added to the table
	Identity           string   // of the database in which positions were given; empty if not known
	PrimaryKey         bool     // the key is the table's primary key
	DataShards         int
	ShardColumn        string               // empty if data shards are computed from the whole key; see OwnShard
	ULIDs              *dialect.ULIDColumns // the columns of ULIDs, if rows have them
	Grants             feedtype.Grants      // the logins that may use the feed
	Regrant            bool                 // these logins may lack rights on objects that were created again
	TimeColumn         string               // by which back-fill orders older rows; empty if there is none
	Runs               int64                // the number of back-fills that were begun, in an outbox feed
	FillAfter          []any                // the last key that back-fill or resharding did; nil before the first
	Retain             feedtype.Retention
	FillMark           *string // FillAfter as it is stored
	Unreadable         error   // why this version cannot read it; name, mode, state, generation and table are known

	Partitions *Partitions // nil if the table never had partitions
	Dropped    *Dropped    // the feed that had this name before; nil if it left no positions in its rows
	// Failure is what the feed's publisher failed with; nil if it has not failed since its last success.
	Failure *feedtype.Failure

	known *dialect.Feed // see Keep
	of    *FeedRecord   // a copy of the record has the same pointer, but may be changed
}

type recordOptions struct {
	AcceptUntriggered bool `json:"accept_untriggered,omitempty"`
	PrimaryKey        bool `json:"primary_key,omitempty"`

	AcceptTriggers     bool     `json:"accept_triggers,omitempty"`
	Fence              bool     `json:"fence,omitempty"`
	Moved              bool     `json:"moved,omitempty"`
	PublishedElsewhere bool     `json:"published_elsewhere,omitempty"`
	Adopt              bool     `json:"adopt,omitempty"`
	AdoptSequence      string   `json:"adopt_sequence,omitempty"`
	FormerValue        *int64   `json:"former_value,omitempty"`
	AdoptCursors       string   `json:"adopt_cursors,omitempty"`
	Added              []string `json:"added,omitempty"`

	ULIDs   *dialect.ULIDColumns `json:"ulids,omitempty"`
	Grants  feedtype.Grants      `json:"grants,omitzero"`
	Regrant bool                 `json:"regrant,omitempty"`

	RetainSeconds int64  `json:"retain_seconds,omitempty"`
	RetainCount   int64  `json:"retain_count,omitempty"`
	TimeColumn    string `json:"time_column,omitempty"`
	Runs          int64  `json:"runs,omitempty"`

	Partitions *Partitions `json:"partitions,omitempty"`
	Dropped    *Dropped    `json:"dropped,omitempty"`
}

// Load reads a feed's record, or all records if name is empty. Of a record that this version cannot read it sets
// Unreadable.
func Load(ctx context.Context, s *store.Store, q dialect.Querier, name string) ([]*FeedRecord, error) {
	statement, args := "all", dialect.Args(nil)
	if name != "" {
		statement, args = "one", dialect.Args{"name": name}
	}
	return store.All(ctx, s, q, statements, statement, args, func(rows dialect.Rows) (*FeedRecord, error) {
		var (
			r                       FeedRecord
			key, options            string
			schema, columns, filled *string
			identity, shardColumn   *string
			capture                 string
			tombstoneSeconds        int64
			decodedOptions          recordOptions
			decodedKeys             = &r.Key
			failure                 store.FailureScan
		)
		err := rows.Scan(append([]any{&r.Name, &r.Mode, &capture, &r.State, &r.Generation, &schema, &r.Source.Name,
			&key, &columns, &options, &tombstoneSeconds, &r.TombstonesBelow, &filled, &identity, &r.DataShards,
			&shardColumn}, failure.Into()...)...)
		if err != nil {
			return nil, err
		}
		r.Capture = feedtype.Capture(capture)
		r.Tombstones = time.Duration(tombstoneSeconds) * time.Second
		r.Source.Schema = s.Home // a printed script does not know the schema
		switch {
		case schema == nil:
		case *schema == "": // see Save
			r.Source.Schema = s.Names.Schema
		default:
			r.Source.Schema = *schema
		}
		err = errors.Join(json.Unmarshal([]byte(key), decodedKeys), json.Unmarshal([]byte(options), &decodedOptions))
		if identity != nil {
			r.Identity = *identity
		}
		if shardColumn != nil {
			r.ShardColumn = *shardColumn
		}
		if columns != nil {
			err = errors.Join(err, json.Unmarshal([]byte(*columns), &r.Columns))
		}
		if r.FillMark = filled; filled != nil {
			var e error
			r.FillAfter, e = dialect.DecodeKey(*filled)
			err = errors.Join(err, e)
		}
		r.setOptions(decodedOptions)
		r.Failure = failure.Failure()
		switch {
		case !slices.Contains(modesKnown, r.Mode):
			r.Unreadable = unknownMode(r.Name, r.Mode)
		case err != nil:
			r.Unreadable = damagedRecord(r.Name, s.Table("feeds"), err)
		}
		return &r, nil
	})
}

func (r *FeedRecord) options() recordOptions {
	return recordOptions{
		AcceptUntriggered: r.AcceptUntriggered, PrimaryKey: r.PrimaryKey, AcceptTriggers: r.AcceptTriggers,
		Fence: r.Fence, Moved: r.Moved, PublishedElsewhere: r.PublishedElsewhere, FormerValue: r.FormerValue,
		Adopt: r.Adopt, AdoptSequence: r.AdoptSequence, AdoptCursors: r.AdoptCursors, Added: r.Added,
		ULIDs: r.ULIDs, Grants: r.Grants, Regrant: r.Regrant,
		RetainSeconds: int64(r.Retain.Age / time.Second), RetainCount: r.Retain.Count,
		TimeColumn: r.TimeColumn, Runs: r.Runs, Partitions: r.Partitions, Dropped: r.Dropped,
	}
}

// OptionsText are the options as they are stored.
func (r *FeedRecord) OptionsText() string {
	text, _ := json.Marshal(r.options()) // strings, integers and bools only
	return string(text)
}

func (r *FeedRecord) setOptions(o recordOptions) {
	r.AcceptUntriggered, r.PrimaryKey, r.AcceptTriggers = o.AcceptUntriggered, o.PrimaryKey, o.AcceptTriggers
	r.Fence, r.Moved, r.PublishedElsewhere, r.FormerValue = o.Fence, o.Moved, o.PublishedElsewhere, o.FormerValue
	r.Adopt, r.AdoptSequence, r.AdoptCursors, r.Added = o.Adopt, o.AdoptSequence, o.AdoptCursors, o.Added
	r.ULIDs, r.Grants, r.Regrant = o.ULIDs, o.Grants, o.Regrant
	r.Retain = feedtype.Retention{Age: time.Duration(o.RetainSeconds) * time.Second, Count: o.RetainCount}
	r.TimeColumn, r.Runs, r.Partitions, r.Dropped = o.TimeColumn, o.Runs, o.Partitions, o.Dropped
}

// Gone reports whether the feed was dropped or is being dropped.
func (r *FeedRecord) Gone() bool { return r.State == StateDropped || r.State == StateDropping }

// Outbox reports whether the feed has an outbox.
func (r *FeedRecord) Outbox() bool { return r.Unreadable == nil && r.Mode == feedtype.ModeOutbox }

// Keep lets the record remember its feed, with the feed's statements. It must not be changed afterwards; a copy of it
// may.
func (r *FeedRecord) Keep(n dialect.Names) {
	r.known, r.of = r.Feed(n).Keep(), r
}

// Feed is the record as the dialects know it, without delivered columns. The caller changes only a copy of it.
func (r *FeedRecord) Feed(n dialect.Names) *dialect.Feed {
	if r.known != nil && r.of == r {
		return r.known
	}
	f := &dialect.Feed{Name: r.Name, Names: n, Source: r.Source, Key: r.Key, Capture: r.Capture, Primary: r.PrimaryKey,
		Added: r.Added, Fence: r.Fence, Moved: r.Moved, Moving: r.State == StateMoving,
		DataShards: r.DataShards, ULIDs: r.ULIDs, Outbox: r.Outbox()}
	if r.PublishedElsewhere {
		if table, name, err := SequenceRow(r.Name, r.AdoptSequence); err == nil {
			f.Elsewhere = &dialect.SequenceRow{Table: table, Name: name}
		}
	}
	if f.Outbox {
		f.RecordShard = r.ShardColumn
	}
	f.OwnShard = r.OwnShard()
	return f
}

// modesKnown are the modes that this version can read.
var modesKnown = []string{feedtype.ModeSequence, feedtype.ModeBlocking, feedtype.ModeOutbox}

// ErrUnreadable is wrapped by every FeedRecord.Unreadable.
var ErrUnreadable = errors.New("this rowfeed cannot read its record")

func unknownMode(name, mode string) error {
	return &feedtype.Error{
		Code:   feedtype.SchemaVersion,
		Object: feedtype.FeedObject(name),
		Cause:  fmt.Sprintf("its mode is %q", mode),
		Err:    ErrUnreadable,
		Next:   "use a newer rowfeed",
	}
}

func damagedRecord(name, table string, err error) error {
	return &feedtype.Error{
		Code:   feedtype.Failed,
		Object: feedtype.FeedObject(name),
		Cause:  "its row of " + table + " is damaged",
		Err:    fmt.Errorf("%w: %w", ErrUnreadable, err),
		Next:   "correct that row, by hand or from a backup; until then rowfeed neither publishes nor serves the feed",
	}
}

// Partitions are the partitions of the feed's table, in the feed's record.
type Partitions struct {
	Attached []string `json:"attached,omitempty"` // as [dialect.Partition] has it, sorted
	// Taken are partitions that have their triggers, and whose earlier rows are not recorded yet.
	Taken []string `json:"taken,omitempty"`
	// Head is a value of the sequence from before other partitions were attached. The keys of their rows have positions
	// above it.
	Head int64 `json:"head,omitempty"`
}

// Dropped is what is known of a dropped feed whose positions stayed in the rows of its table. The record of that feed
// has it, and the record of a feed that is added under the same name.
type Dropped struct {
	Head  int64 `json:"head,omitempty"`  // the highest position that was given
	Below int64 `json:"below,omitempty"` // readers at lower positions have not received all deletes
	// Former is the value that the former sequence had, if the feed continued one.
	Former int64 `json:"former,omitempty"`
	// Why is the reason for which earlier cursors are refused if the feed is added again; empty if they stay valid.
	Why string `json:"why,omitempty"`
}

// Continues tells whether cursors of the dropped feed stay valid for a feed that is added again.
func (d *Dropped) Continues() bool { return d != nil && d.Why == "" }

// LeavesPositions tells whether the table keeps the feed's positions when the feed is dropped.
func (r *FeedRecord) LeavesPositions() bool {
	return r.Unreadable == nil && r.Capture == feedtype.CaptureColumn &&
		!slices.Contains(r.Added, dialect.PositionColumn)
}

func (p *Partitions) Equal(other *Partitions) bool {
	if p == nil || other == nil {
		return p == other
	}
	return p.Head == other.Head && slices.Equal(p.Attached, other.Attached) && slices.Equal(p.Taken, other.Taken)
}

// MayBeSoWide refuses a table with more delivered columns than a page can have, or without room for the columns that
// capture column adds.
func (r *FeedRecord) MayBeSoWide(d *dialect.Dialect, table *dialect.Table) error {
	feed := r.Feed(dialect.Names{})
	columns := len(r.Columns)
	if r.Columns == nil {
		columns = len(feed.Delivered(table))
	}
	answered, declared := d.MaxAnswered, d.MaxDeclared
	most, lacking := answered-dialect.PageColumns(feed), len(feed.MissingColumns(table))
	cause, next := "", ""
	switch {
	case columns > most:
		cause = fmt.Sprintf("%d columns are to be delivered, and a page has room for %d: "+
			"a statement of this database answers at most %d, with rowfeed's own", columns, most, answered)
		next = fmt.Sprintf("name up to %d columns with --columns", most)
	case lacking > 0 && len(table.Columns)+lacking > declared:
		cause = fmt.Sprintf("it has %d columns, and capture column adds %d: a table of this database has at most %d",
			len(table.Columns), lacking, declared)
		next = "use another --capture, which adds none"
	default:
		return nil
	}
	object := fmt.Sprintf("table %q", table.Name.String())
	return &feedtype.Error{Code: feedtype.Refused, Object: object, Cause: cause, Next: next}
}

// PositionColumn is the table's own column of ULIDs; "" if it has none.
func (r *FeedRecord) PositionColumn() string {
	if r.ULIDs == nil || r.Capture != feedtype.CaptureNone {
		return ""
	}
	return r.ULIDs.Position.Name
}

// BecameUnfit is a refusal of a table that was acceptable when the feed was added.
func (r *FeedRecord) BecameUnfit(err error) error {
	var refused *feedtype.Error
	if !errors.As(err, &refused) {
		return err
	}
	next := "run `rowfeed feed drop " + r.Name + "` and add a feed of the table as it is now"
	if refused.Next != "" {
		next = refused.Next + "; or " + next
	}
	return &feedtype.Error{
		Code:   feedtype.Refused,
		Object: feedtype.FeedObject(r.Name),
		Cause: fmt.Sprintf("its table %s has become one that `rowfeed feed add` would refuse: %s",
			r.Source, refused.Cause),
		Next: next,
	}
}

// ShardIndex is the index of the shard column in the key, or -1.
func (r *FeedRecord) ShardIndex() int {
	return slices.IndexFunc(r.Key, func(c dialect.Column) bool { return c.Name == r.ShardColumn })
}

// OwnShard is the column of the table that holds the data shards of a sequence feed. It is empty if the key determines
// them.
func (r *FeedRecord) OwnShard() string {
	if r.Unreadable != nil || r.Mode != feedtype.ModeSequence || r.ShardIndex() >= 0 {
		return ""
	}
	return r.ShardColumn
}

// Sharder returns the function that computes the data shard of a key, given as changes hold it. It is 0 for a feed with
// OwnShard, of which the statement that publishes a key reads the shard.
func (r *FeedRecord) Sharder() func(key []any) (int, error) {
	if r.DataShards <= 1 || r.OwnShard() != "" {
		return func([]any) (int, error) { return 0, nil }
	}
	columns := make([]feedtype.Column, len(r.Key))
	for i, c := range r.Key {
		columns[i] = c.ForReaders()
	}
	return func(raw []any) (int, error) {
		key, err := feedtype.NewRow(columns, raw)
		if err != nil {
			return 0, fmt.Errorf("the shard of a key: %w", err)
		}
		return feedtype.ShardBy(r.ShardColumn, key, r.DataShards), nil
	}
}

// KeyNames are the names of a key's columns.
func KeyNames(key []dialect.Column) []string {
	names := make([]string, len(key))
	for i, c := range key {
		names[i] = c.Name
	}
	return names
}
