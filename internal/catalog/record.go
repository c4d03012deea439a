package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// The states of a feed.
const (
	StateCreating = "creating" // tables and triggers are being made
	StateDropping = "dropping" // they are being removed
	StateFilling  = "filling"  // the table's rows are being recorded as changes
	StateSharding = "sharding" // keys are being given their data shards
	StateActive   = dialect.StateActive
	StateDropped  = "dropped" // only name and generation are kept
)

// Unplaced are the states in which keys may have shards of before: no part is served.
var Unplaced = []string{StateCreating, StateSharding}

// Unfilled are those in which rows may come behind the head of a feed with an outbox.
var Unfilled = []string{StateCreating, StateFilling}

// Record is a feed's row in the feeds table.
type Record struct {
	Name              string
	Mode              string
	Capture           feedtype.Capture
	State             string
	Generation        int64
	Source            feedtype.TableName
	Key               []dialect.Column
	Columns           []string // nil: every column
	Tombstones        time.Duration
	TombstonesBelow   int64
	AcceptUntriggered bool
	AcceptTriggers    bool
	Adopt             bool     // the table had positions of its own
	AdoptSequence     string   // from where the sequence went on
	AdoptCursors      string   // from where consumers went on
	Added             []string // columns that the table got
	Identity          string   // of the database in which positions were given; empty: not known
	PrimaryKey        bool     // the key is the table's primary key
	DataShards        int
	ShardColumn       string               // of the key, with a sequence; empty: data shards are computed from the key
	ULIDs             *dialect.ULIDColumns // where rows hold ULIDs; nil elsewhere
	Grants            feedtype.Grants      // who may use it
	Regrant           bool                 // they may lack rights on what was made anew
	TimeColumn        string               // of the rows that are placed behind the head; empty: none
	Runs              int64                // of back-fill, with an outbox, that were begun
	FillAfter         []any                // the last key that back-fill recorded, or how far sharding is; nil: none yet
	Retain            feedtype.Retention
	FillMark          *string // the same as it is stored
	Unreadable        error   // why this version cannot read it; name, mode, state, generation and table are known all the same

	Partitions *Partitions // nil where none were ever seen
}

type recordOptions struct {
	AcceptUntriggered bool `json:"accept_untriggered,omitempty"`
	PrimaryKey        bool `json:"primary_key,omitempty"`

	AcceptTriggers bool     `json:"accept_triggers,omitempty"`
	Adopt          bool     `json:"adopt,omitempty"`
	AdoptSequence  string   `json:"adopt_sequence,omitempty"`
	AdoptCursors   string   `json:"adopt_cursors,omitempty"`
	Added          []string `json:"added,omitempty"`

	ULIDs  *dialect.ULIDColumns `json:"ulids,omitempty"`
	Grants feedtype.Grants      `json:"grants,omitzero"`
	// Regrant says that objects were made anew, and that the logins may lack their rights on them.
	Regrant bool `json:"regrant,omitempty"`

	RetainSeconds int64  `json:"retain_seconds,omitempty"`
	RetainCount   int64  `json:"retain_count,omitempty"`
	TimeColumn    string `json:"time_column,omitempty"`
	Runs          int64  `json:"runs,omitempty"`

	Partitions *Partitions `json:"partitions,omitempty"`
}

// loadRecords reads one feed's record, or all of them when name is empty. One that cannot be
// read says so by itself, see record.unread.
func Load(ctx context.Context, s *store.Store, q dialect.Querier, name string) ([]*Record, error) {
	b := dialect.NewBuilder(s.Dialect)
	query := `SELECT name, mode, capture, state, generation, source_schema, source_table, key_columns,
  delivered_columns, options, tombstones_seconds, tombstones_below, fill_after, database_identity, data_shards, shard_column
FROM ` + s.Table("feeds")
	if name != "" {
		query += " WHERE name = " + b.Arg(name)
	}
	return dialect.QueryAll(ctx, q, query+" ORDER BY name", b.Args(), func(rows dialect.Rows) (*Record, error) {
		var (
			r                       Record
			key, options            string
			schema, columns, filled *string
			identity, shardColumn   *string
			capture                 string
			tombstoneSeconds        int64
			decodedOptions          recordOptions
			decodedKeys             = &r.Key
		)
		err := rows.Scan(&r.Name, &r.Mode, &capture, &r.State, &r.Generation, &schema, &r.Source.Name, &key,
			&columns, &options, &tombstoneSeconds, &r.TombstonesBelow, &filled, &identity, &r.DataShards, &shardColumn)
		if err != nil {
			return nil, err
		}
		r.Capture = feedtype.Capture(capture)
		r.Tombstones = time.Duration(tombstoneSeconds) * time.Second
		r.Source.Schema = s.Home // a printed script does not know it
		switch {
		case schema == nil:
		case *schema == "": // see save
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
		switch {
		case !slices.Contains(modesKnown, r.Mode):
			r.Unreadable = unknownMode(r.Name, r.Mode)
		case err != nil:
			r.Unreadable = damagedRecord(r.Name, s.Table("feeds"), err)
		}
		return &r, nil
	})
}

func (r *Record) options() recordOptions {
	return recordOptions{AcceptUntriggered: r.AcceptUntriggered, PrimaryKey: r.PrimaryKey, AcceptTriggers: r.AcceptTriggers,
		Adopt: r.Adopt, AdoptSequence: r.AdoptSequence, AdoptCursors: r.AdoptCursors, Added: r.Added, ULIDs: r.ULIDs, Grants: r.Grants, Regrant: r.Regrant,
		RetainSeconds: int64(r.Retain.Age / time.Second), RetainCount: r.Retain.Count, TimeColumn: r.TimeColumn, Runs: r.Runs,
		Partitions: r.Partitions}
}

// OptionsText are the options as they are stored.
func (r *Record) OptionsText() string {
	text, _ := json.Marshal(r.options()) // strings, integers and bools only
	return string(text)
}

func (r *Record) setOptions(o recordOptions) {
	r.AcceptUntriggered, r.PrimaryKey, r.AcceptTriggers = o.AcceptUntriggered, o.PrimaryKey, o.AcceptTriggers
	r.Adopt, r.AdoptSequence, r.AdoptCursors, r.Added, r.ULIDs = o.Adopt, o.AdoptSequence, o.AdoptCursors, o.Added, o.ULIDs
	r.Grants, r.Regrant = o.Grants, o.Regrant
	r.Retain = feedtype.Retention{Age: time.Duration(o.RetainSeconds) * time.Second, Count: o.RetainCount}
	r.TimeColumn, r.Runs, r.Partitions = o.TimeColumn, o.Runs, o.Partitions
}

// Gone tells whether the feed is no more, or about to be.
func (r *Record) Gone() bool { return r.State == StateDropped || r.State == StateDropping }

// Outbox tells whether records wait in a table of the feed's own.
func (r *Record) Outbox() bool { return r.Unreadable == nil && r.Mode == feedtype.ModeOutbox }

// Feed is the record as the dialects see it, without delivered columns.
func (r *Record) Feed(n dialect.Names) *dialect.Feed {
	f := &dialect.Feed{Name: r.Name, Names: n, Source: r.Source, Key: r.Key, Capture: r.Capture, Primary: r.PrimaryKey, Added: r.Added, DataShards: r.DataShards, ULIDs: r.ULIDs, Outbox: r.Outbox()}
	if f.Outbox {
		f.RecordShard = r.ShardColumn
	}
	return f
}

// modesKnown are those that this version can read.
var modesKnown = []string{feedtype.ModeSequence, feedtype.ModeBlocking, feedtype.ModeOutbox}

// ErrUnreadable is part of every such refusal.
var ErrUnreadable = errors.New("this rowfeed cannot read its record")

func unknownMode(name, mode string) error {
	return &feedtype.Error{Code: feedtype.SchemaVersion, Object: feedtype.FeedObject(name), Cause: fmt.Sprintf("its mode is %q", mode), Err: ErrUnreadable, Next: "use a newer rowfeed"}
}

func damagedRecord(name, table string, err error) error {
	return &feedtype.Error{Code: feedtype.Failed, Object: feedtype.FeedObject(name), Cause: "its row of " + table + " is damaged", Err: fmt.Errorf("%w: %w", ErrUnreadable, err),
		Next: "put that row right; what rowfeed does not know how to read it does not touch"}
}

// Partitions are those whose rows the feed has followed, in the feed's record.
type Partitions struct {
	Attached []string `json:"attached,omitempty"` // as [dialect.Partition] has it, sorted
	// Taken have their triggers, and what was missed of them before is not recorded yet.
	Taken []string `json:"taken,omitempty"`
	// Head is a value that the sequence had when no other partition was there: the keys of rows that were in other
	// partitions later have positions above it.
	Head int64 `json:"head,omitempty"`
}

func (p *Partitions) Equal(other *Partitions) bool {
	if p == nil || other == nil {
		return p == other
	}
	return p.Head == other.Head && slices.Equal(p.Attached, other.Attached) && slices.Equal(p.Taken, other.Taken)
}

// MayBeSoWide refuses tables with more columns than pages can have, or than there is room for those
// that capture column adds.
func (r *Record) MayBeSoWide(d dialect.Dialect, table *dialect.Table) error {
	feed := r.Feed(dialect.Names{})
	columns := len(r.Columns)
	if r.Columns == nil {
		columns = len(feed.Delivered(table))
	}
	answered, declared := d.MaxColumns()
	most, lacking := answered-dialect.PageColumns(feed), len(feed.Lacking(table))
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
	return &feedtype.Error{Code: feedtype.Refused, Object: fmt.Sprintf("table %q", table.Name.String()), Cause: cause, Next: next}
}

// PositionColumn is the table's own column of ULIDs; empty where there is none.
func (r *Record) PositionColumn() string {
	if r.ULIDs == nil || r.Capture != feedtype.CaptureNone {
		return ""
	}
	return r.ULIDs.Position.Name
}

// BecameUnfit says of a refusal that the feed was added before its table became such.
func (r *Record) BecameUnfit(err error) error {
	var refused *feedtype.Error
	if !errors.As(err, &refused) {
		return err
	}
	next := "run `rowfeed feed drop " + r.Name + "` and add a feed of the table as it is now"
	if refused.Next != "" {
		next = refused.Next + "; or " + next
	}
	return &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(r.Name), Next: next,
		Cause: fmt.Sprintf("its table %s has become one that `rowfeed feed add` would refuse: %s", r.Source, refused.Cause)}
}

// shardColumn is the place of the shard column in the key, -1 where there is none.
func (r *Record) ShardIndex() int {
	return slices.IndexFunc(r.Key, func(c dialect.Column) bool { return c.Name == r.ShardColumn })
}

// Sharder answers how the data shards of keys, as changes hold them, are found.
func (r *Record) Sharder() func(key []any) (int, error) {
	if r.DataShards <= 1 {
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
