package rowfeed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// The states of a feed.
const (
	stateCreating = "creating" // tables and triggers are being made
	stateDropping = "dropping" // they are being removed
	stateFilling  = "filling"  // the table's rows are being recorded as changes
	stateSharding = "sharding" // keys are being given their data shards
	stateActive   = dialect.StateActive
	stateDropped  = "dropped" // only name and generation are kept
)

// unplaced are the states in which keys may have shards of before: no part is served.
var unplaced = []string{stateCreating, stateSharding}

// unfilled are those in which rows may come behind the head of a feed with an outbox.
var unfilled = []string{stateCreating, stateFilling}

// record is a feed's row in the feeds table.
type record struct {
	Name              string
	Mode              string
	Capture           dialect.Capture
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
	Grants            Grants               // who may use it
	Regrant           bool                 // they may lack rights on what was made anew
	TimeColumn        string               // of the rows that are placed behind the head; empty: none
	Runs              int64                // of back-fill, with an outbox, that were begun
	FillAfter         []any                // the last key that back-fill recorded, or how far sharding is; nil: none yet
	Retain            Retention
	fillMark          *string // the same as it is stored
	unread            error   // why this version cannot read it; name, mode, state, generation and table are known all the same

	Partitions *partitions // nil where none were ever seen
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
	Grants Grants               `json:"grants,omitzero"`
	// Regrant says that objects were made anew, and that the logins may lack their rights on them.
	Regrant bool `json:"regrant,omitempty"`

	RetainSeconds int64  `json:"retain_seconds,omitempty"`
	RetainCount   int64  `json:"retain_count,omitempty"`
	TimeColumn    string `json:"time_column,omitempty"`
	Runs          int64  `json:"runs,omitempty"`

	Partitions *partitions `json:"partitions,omitempty"`
}

// loadRecords reads one feed's record, or all of them when name is empty. One that cannot be
// read says so by itself, see record.unread.
func loadRecords(ctx context.Context, s *store.Store, q dialect.Querier, name string) ([]*record, error) {
	b := dialect.NewBuilder(s.Dialect)
	query := `SELECT name, mode, capture, state, generation, source_schema, source_table, key_columns,
  delivered_columns, options, tombstones_seconds, tombstones_below, fill_after, database_identity, data_shards, shard_column
FROM ` + s.Table("feeds")
	if name != "" {
		query += " WHERE name = " + b.Arg(name)
	}
	return dialect.QueryAll(ctx, q, query+" ORDER BY name", b.Args(), func(rows dialect.Rows) (*record, error) {
		var (
			r                       record
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
		r.Capture = dialect.Capture(capture)
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
		if r.fillMark = filled; filled != nil {
			var e error
			r.FillAfter, e = dialect.DecodeKey(*filled)
			err = errors.Join(err, e)
		}
		r.setOptions(decodedOptions)
		switch {
		case !slices.Contains(modesKnown, r.Mode):
			r.unread = unknownMode(r.Name, r.Mode)
		case err != nil:
			r.unread = damagedRecord(r.Name, s.Table("feeds"), err)
		}
		return &r, nil
	})
}

func (r *record) options() recordOptions {
	return recordOptions{AcceptUntriggered: r.AcceptUntriggered, PrimaryKey: r.PrimaryKey, AcceptTriggers: r.AcceptTriggers,
		Adopt: r.Adopt, AdoptSequence: r.AdoptSequence, AdoptCursors: r.AdoptCursors, Added: r.Added, ULIDs: r.ULIDs, Grants: r.Grants, Regrant: r.Regrant,
		RetainSeconds: int64(r.Retain.Age / time.Second), RetainCount: r.Retain.Count, TimeColumn: r.TimeColumn, Runs: r.Runs,
		Partitions: r.Partitions}
}

// optionsText are the options as they are stored.
func (r *record) optionsText() string {
	text, _ := json.Marshal(r.options()) // strings, integers and bools only
	return string(text)
}

func (r *record) setOptions(o recordOptions) {
	r.AcceptUntriggered, r.PrimaryKey, r.AcceptTriggers = o.AcceptUntriggered, o.PrimaryKey, o.AcceptTriggers
	r.Adopt, r.AdoptSequence, r.AdoptCursors, r.Added, r.ULIDs = o.Adopt, o.AdoptSequence, o.AdoptCursors, o.Added, o.ULIDs
	r.Grants, r.Regrant = o.Grants, o.Regrant
	r.Retain = Retention{Age: time.Duration(o.RetainSeconds) * time.Second, Count: o.RetainCount}
	r.TimeColumn, r.Runs, r.Partitions = o.TimeColumn, o.Runs, o.Partitions
}

// gone tells whether the feed is no more, or about to be.
func (r *record) gone() bool { return r.State == stateDropped || r.State == stateDropping }

// feed is the record as the dialects see it, without delivered columns.
func (r *record) feed(n dialect.Names) *dialect.Feed {
	f := &dialect.Feed{Name: r.Name, Names: n, Source: r.Source, Key: r.Key, Capture: r.Capture, Primary: r.PrimaryKey, Added: r.Added, DataShards: r.DataShards, ULIDs: r.ULIDs, Outbox: modeOf(r).hasOutbox()}
	if f.Outbox {
		f.RecordShard = r.ShardColumn
	}
	return f
}

// Feed is one feed of a DB. It is safe for concurrent use.
type Feed struct {
	db   *DB
	name string
	wake chan struct{} // a pass is wanted

	catalog *handle

	appends atomic.Pointer[appending]
	fit     fit
	pages   store.Sharing[pageKey, reading] // of those who wait
	tail    tail
	// catchUps are the publishing that consistent requests share, of a shard where each is a feed
	// by itself.
	catchUps store.Sharing[int, struct{}]
	line     line // see outbox.pass
	unseen   unseen

	mu       sync.Mutex
	problems []string  // what the last verification found
	attached attached  // what the last look at its partitions found
	durable  time.Time // when durability was last asserted
	// The highest places, of a shard where each is a feed by itself, of shard 0 where not,
	// that are known to be on the disk, and that the database has shown.
	flushed, seen map[int]feedtype.CursorState
	// barren is the place below which there is no tombstone to purge.
	barren feedtype.CursorState
	turn   turn // see placeRows
}

// handle is what is known of a feed: its record, and the table's columns. Nothing of it runs.
type handle struct {
	name   string
	store  *store.Store
	gone   func() // called when the feed turns out to be gone
	record atomic.Pointer[record]
	layout atomic.Pointer[layout]
}

// layout is a feed with its columns, as of a signature of the table.
type layout struct {
	// generation is that of the record that the layout was made of: a feed dropped and
	// added again may follow another table.
	generation int64
	unplaced   string // the state in which parts are not served; empty: they are
	adopt      bool

	feed    *dialect.Feed
	table   *dialect.Table
	key     []feedtype.Column
	columns []feedtype.Column
}

// reload reads the feed's record again. When the feed is gone it is forgotten.
func (f *handle) reload(ctx context.Context) error {
	records, err := loadRecords(ctx, f.store, f.store.On(), f.name)
	if err == nil && (len(records) == 0 || records[0].gone()) {
		f.gone()
		return &feedtype.Error{Code: feedtype.UnknownFeed, Object: feedtype.FeedObject(f.name), Cause: "there is no such feed",
			Next: "`rowfeed feed list` shows the feeds, `rowfeed feed add` makes one"}
	}
	if err != nil {
		if f.store.Dialect.Classify(err) == dialect.ClassUndefined {
			if err := f.store.RequireSchema(ctx, f.store.On()); err != nil {
				return err // rowfeed's own tables are gone
			}
		}
		return f.store.Fail(feedtype.FeedObject(f.name), "read its record", err)
	}
	f.record.Store(records[0])
	f.layout.Store(nil)
	return records[0].unread
}

// Name is the feed's name.
func (f *Feed) Name() string { return f.name }

// State is creating, filling, sharding or active, as last read.
func (f *Feed) State() string { return f.catalog.record.Load().State }

// Capture is how the feed's changes are captured.
func (f *Feed) Capture() dialect.Capture { return f.catalog.record.Load().Capture }

// Source is the table that the feed follows.
func (f *Feed) Source() feedtype.TableName { return f.catalog.record.Load().Source }

// Generation is the feed's generation, as last read.
func (f *Feed) Generation() int64 { return f.catalog.record.Load().Generation }

// DataShards is the number of data shards, as last read.
func (f *Feed) DataShards() int { return f.catalog.record.Load().DataShards }

func (f *handle) dialectFeed() *dialect.Feed { return f.record.Load().feed(f.store.Names) }

// describe reads the source table's columns and remembers them.
func (f *handle) describe(ctx context.Context, q dialect.Querier) (*layout, error) {
	r := f.record.Load()
	if r.unread != nil { // it may have been put right
		if err := f.reload(ctx); err != nil {
			return nil, err
		}
		r = f.record.Load()
	}
	table, err := describeSource(ctx, f.store, q, r)
	if err != nil {
		return nil, err
	}
	l := &layout{generation: r.Generation, adopt: r.Adopt, feed: r.feed(f.store.Names), table: table}
	if slices.Contains(unplaced, r.State) {
		l.unplaced = r.State
	}
	l.feed.Source = table.Name // with its schema, where a printed script left it out
	for _, c := range r.Key {
		l.key = append(l.key, c.ForReaders())
	}
	if r.Mode == ModeBlocking {
		if err := describeULIDs(f.store.Dialect, l.feed, table); err != nil {
			return nil, err
		}
	}
	l.feed.Columns = l.feed.Delivered(table)
	if r.Columns != nil {
		l.feed.Columns = nil
		for _, name := range r.Columns {
			c := table.Column(name)
			if c == nil {
				return nil, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.name),
					Cause: fmt.Sprintf("it delivers column %q, which table %s no longer has", name, r.Source),
					Next:  "add the column again, or drop the feed and add it with other --columns"}
			}
			l.feed.Columns = append(l.feed.Columns, *c)
		}
	}
	if err := r.mayBeSoWide(f.store.Dialect, table); err != nil {
		return nil, r.becameUnfit(err)
	}
	for _, c := range l.feed.Columns {
		l.columns = append(l.columns, c.ForReaders())
	}
	f.layout.Store(l)
	return l, nil
}

func describeTable(ctx context.Context, s *store.Store, q dialect.Querier, name feedtype.TableName) (*dialect.Table, error) {
	table, err := s.Dialect.Describe(ctx, q, name)
	if err != nil && s.Dialect.Classify(err) == dialect.ClassUndefined {
		return nil, &feedtype.Error{Code: feedtype.Refused, Object: fmt.Sprintf("table %q", name.String()), Cause: "it does not exist",
			Next: `check the name and the schema; write names with dots or quotes as "schema"."table"`}
	}
	return table, s.Fail(fmt.Sprintf("table %q", name.String()), "describe", err)
}

// describeSource describes a feed's table, and refuses one that is gone or has lost a
// column of the key: nothing can be published or read then, whatever is captured.
func describeSource(ctx context.Context, s *store.Store, q dialect.Querier, r *record) (*dialect.Table, error) {
	gone := func(what, next string) (*dialect.Table, error) {
		return nil, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(r.Name), Cause: what,
			Next: next + "; or run `rowfeed feed drop " + r.Name + "` and add a feed of the table as it is now"}
	}
	table, err := s.Dialect.Describe(ctx, q, r.Source)
	if err != nil && s.Dialect.Classify(err) == dialect.ClassUndefined {
		now, moved, err := s.Dialect.Moved(ctx, q, r.feed(s.Names))
		if err != nil {
			return nil, err
		}
		if moved {
			return nil, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(r.Name),
				Cause: fmt.Sprintf("its table %s is table %s now", r.Source, now),
				Next:  "run `rowfeed feed upgrade " + r.Name + "`, which follows the table"}
		}
		return gone(fmt.Sprintf("its table %s is gone", r.Source), "give the table its name back, or this login a right on it")
	}
	if err != nil {
		return nil, s.Fail(feedtype.FeedObject(r.Name), "describe its table "+r.Source.String(), err)
	}
	for _, c := range r.Key {
		if table.Column(c.Name) == nil {
			return gone(fmt.Sprintf("its table %s has no key column %q any more", r.Source, c.Name), "give the column its name back, or this login a right on it")
		}
	}
	return table, nil
}

// currentLayout is the remembered layout, or a fresh one.
func (f *handle) currentLayout(ctx context.Context) (*layout, error) {
	if l := f.layout.Load(); l != nil {
		return l, nil
	}
	return f.describe(ctx, f.store.On())
}

// Info describes the feed to its readers.
func (f *Feed) Info(ctx context.Context) (*feedtype.Info, error) {
	if err := f.catalog.reload(ctx); err != nil {
		return nil, err
	}
	l, err := f.catalog.describe(ctx, f.db.store.On())
	if err != nil {
		return nil, err
	}
	r := f.catalog.record.Load()
	info := &feedtype.Info{Name: r.Name, Mode: r.Mode, State: r.State, Generation: r.Generation,
		Key: l.key, Columns: l.columns, Base64: feedtype.BinaryColumns(l.key, l.columns), DataShards: r.DataShards, ShardColumn: r.ShardColumn, PositionColumn: r.positionColumn(),
		RetainSeconds: int64(r.Retain.Age / time.Second), RetainCount: r.Retain.Count}
	if err := f.mode().head(ctx, f, info); err != nil {
		return nil, err
	}
	return info, nil
}
