package rowfeed

import (
	"context"
	"database/sql"
	"regexp"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/consume"
	"github.com/rowfeed/rowfeed/internal/history"
	"github.com/rowfeed/rowfeed/internal/lease"
	"github.com/rowfeed/rowfeed/internal/read"
	"github.com/rowfeed/rowfeed/internal/store"
	"github.com/rowfeed/rowfeed/internal/watch"
)

// NoPrefix as Config.Prefix gives rowfeed's tables their bare names.
const NoPrefix = "-"

// Config holds the settings of a DB. The zero value is good.
type Config struct {
	// Prefix starts the names of rowfeed's tables. Default "rowfeed_"; NoPrefix for none.
	Prefix string
	// Schema is where rowfeed's tables are, on databases that have schemas. Default: the
	// connection's current schema (PostgreSQL) or database (MySQL, MariaDB).
	Schema string
	// UnsafeDurability accepts a server that may forget commits after a power cut: a
	// position that a consumer has stored could then be given twice.
	UnsafeDurability bool
	// Replica says that the database is a replica, which only answers pages, and may lag
	// behind others: a cursor ahead of it is answered by an empty page. Nothing is
	// published.
	Replica bool
	// NoPublish leaves it to others to give positions: nothing is published, readers do not
	// move the records of an outbox, and Request.Consistent is refused. A login that may only
	// read needs it; entries then come when a publisher elsewhere has run.
	NoPublish bool
	// BatchSize is the number of changes that a publisher takes at first; it adapts
	// between 100 and 5000. Default 1000.
	BatchSize int
	// IdlePoll is the longest pause between looks at a quiet feed for its publisher; one
	// look is for all feeds of the DB. Default 50 ms.
	IdlePoll time.Duration
	// WatchPoll is the longest pause between looks at a quiet database while somebody
	// waits for an entry (Request.Wait). What a publisher of this process publishes needs
	// no look. Default 50 ms.
	WatchPoll time.Duration
	// PublisherLease is the term of the lease through which the publishers of a feed take
	// turns: for so long nothing is published, at most, after the one at work was killed.
	// Default 10 s; NoLease lets all work at once, as safely for all who fetch through rowfeed.
	PublisherLease time.Duration
	// LockWait and LockIdle are what Feed.Lock takes where a LockRequest says nothing.
	// Default: as LockRequest says.
	LockWait, LockIdle time.Duration
	// MaxPageBytes bounds the values on a page, which then ends early (More stays true).
	// A single larger row still makes a page of its own. Default 16 MiB.
	MaxPageBytes int
	// TailBytes bounds the values of what is read near the end of a feed for several readers
	// with different cursors, limits or parts at once, and kept for a second. Default 1 MiB; below 0
	// everybody reads for himself.
	TailBytes int
	// Observer is told what happens. Default: nobody.
	Observer *feedtype.Observer
	// Tracer makes spans of what is done. Default: none are made.
	Tracer feedtype.Tracer
}

func (c Config) withDefaults() Config {
	switch c.Prefix {
	case "":
		c.Prefix = "rowfeed_"
	case NoPrefix:
		c.Prefix = ""
	}
	if c.BatchSize == 0 {
		c.BatchSize = 1000
	}
	if c.IdlePoll == 0 {
		c.IdlePoll = 50 * time.Millisecond
	}
	if c.WatchPoll == 0 {
		c.WatchPoll = 50 * time.Millisecond
	}
	if c.PublisherLease == 0 {
		c.PublisherLease = 10 * time.Second
	}
	if c.MaxPageBytes == 0 {
		c.MaxPageBytes = 16 << 20
	}
	if c.TailBytes == 0 {
		c.TailBytes = 1 << 20
	}
	c.Observer = c.Observer.WithDefaults()
	return c
}

var prefixPattern = regexp.MustCompile(`^[a-z0-9_]{0,12}$`)

func (c Config) validate() error {
	switch {
	case !prefixPattern.MatchString(c.Prefix):
		return feedtype.Invalid("prefix", "%q must be at most 12 of a-z, 0-9 and _ (names of 63 bytes must fit a feed's name too)", c.Prefix)
	case c.BatchSize < 1:
		return feedtype.Invalid("batch size", "%d must be positive", c.BatchSize)
	case c.IdlePoll < 0:
		return feedtype.Invalid("idle poll", "%s must not be negative", c.IdlePoll)
	case c.WatchPoll < 0:
		return feedtype.Invalid("watch poll", "%s must not be negative", c.WatchPoll)
	case c.PublisherLease >= 0 && c.PublisherLease < lease.MinTTL || c.PublisherLease > lease.MaxTTL:
		return feedtype.Invalid("publisher lease", "%s must be from %s to %s", c.PublisherLease, lease.MinTTL, lease.MaxTTL)
	case c.MaxPageBytes < 1:
		return feedtype.Invalid("page bytes", "%d must be positive", c.MaxPageBytes)
	}
	return nil
}

// DB is rowfeed on one database. It is safe for concurrent use.
type DB struct {
	store     *store.Store
	consumers *consume.Consumers
	cfg       Config
	watch     *watch.Watcher
	looks     *watch.Looker

	flushes *history.Flushes

	mu    sync.Mutex
	feeds map[string]*Feed
}

// Open prepares rowfeed on a pool that the caller opened and will close. cfg may be
// nil. Nothing is created: see Migrate. The pool needs at least two connections.
func Open(ctx context.Context, db *sql.DB, d dialect.Dialect, cfg *Config) (*DB, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	full := cfg.withDefaults()
	if err := full.validate(); err != nil {
		return nil, err
	}
	s := &store.Store{SQL: db, Dialect: d, Names: dialect.Names{Schema: full.Schema, Prefix: full.Prefix}, Observer: full.Observer, Tracer: full.Tracer,
		Replica: full.Replica, NoPublish: full.NoPublish, UnsafeDurability: full.UnsafeDurability}
	rf := &DB{store: s, flushes: &history.Flushes{Store: s}, consumers: &consume.Consumers{Store: s, Tracer: full.Tracer}, cfg: full, feeds: make(map[string]*Feed)}
	rf.looks = &watch.Looker{Store: s, Feeds: waitingFeeds{rf}}
	rf.watch = watch.New(full.WatchPoll, full.IdlePoll, rf.looks.Look, read.NewPages)
	if err := db.PingContext(ctx); err != nil {
		return nil, s.Fail("database", "cannot be reached", err)
	}
	var err error
	if s.Home, err = d.CurrentSchema(ctx, s.On()); err != nil && s.Names.Schema == "" {
		return nil, s.Fail("database", "find the current schema", err)
	}
	if s.Names.Schema == "" {
		s.Names.Schema = s.Home
	}
	return rf, nil
}

// NoLease as Config.PublisherLease lets every publisher work at once.
const NoLease = -1
