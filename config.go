package rowfeed

import (
	"regexp"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/lease"
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
	// UnsafeDurability accepts a server that may lose commits in a power cut. A position that
	// a consumer has stored could then be given twice.
	UnsafeDurability bool
	// Replica says that the database is a replica. The DB then only answers pages, and
	// publishes nothing. A cursor ahead of the replica gets an empty page.
	Replica bool
	// NoPublish leaves publishing to other processes: this DB gives no positions, its readers
	// do not move the records of an outbox, and Request.Consistent is refused. A login that
	// may only read needs it.
	NoPublish bool
	// BatchSize is the number of changes that a publisher takes at first; it adapts
	// between 100 and 5000. Default 1000.
	BatchSize int
	// IdlePoll is the maximum time between polls of an idle feed for its publisher. One poll
	// covers all feeds of the DB. Default 50 ms.
	IdlePoll time.Duration
	// WatchPoll is the maximum time between polls of an idle database while a reader waits
	// for an entry (Request.Wait). A publisher of this process wakes readers without a poll.
	// Default 50 ms.
	WatchPoll time.Duration
	// PublisherLease is the time to live of the lease by which the publishers of a feed take
	// turns. After a publisher was killed, nothing is published for that long at most. Default
	// 10 s. With NoLease all publishers work at once, which is as safe for readers that fetch
	// through rowfeed.
	PublisherLease time.Duration
	// LockWait and LockIdle are the bounds of Feed.Lock if a LockRequest has none. Defaults:
	// see LockRequest.
	LockWait, LockIdle time.Duration
	// MaxPageBytes is the maximum size of the values on a page. A page that reaches it ends
	// early, with More true. A single larger row makes a page of its own. Default 16 MiB.
	MaxPageBytes int
	// TailBytes is the maximum size of the values that are read near the end of a feed for
	// several readers at once, whatever their cursors, limits and parts. They are kept for a
	// second. Default 1 MiB; below 0 each reader reads alone.
	TailBytes int
	// Observer is called when something happens. Default: none.
	Observer *feedtype.Observer
	// Tracer makes spans. Default: none.
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
		return feedtype.Invalid(
			"prefix",
			"%q must be at most 12 of a-z, 0-9 and _ (names of 63 bytes must fit a feed's name too)",
			c.Prefix,
		)
	case c.BatchSize < 1:
		return feedtype.Invalid("batch size", "%d must be positive", c.BatchSize)
	case c.IdlePoll < 0:
		return feedtype.Invalid("idle poll", "%s must not be negative", c.IdlePoll)
	case c.WatchPoll < 0:
		return feedtype.Invalid("watch poll", "%s must not be negative", c.WatchPoll)
	case c.PublisherLease >= 0 && c.PublisherLease < lease.MinTTL || c.PublisherLease > lease.MaxTTL:
		return feedtype.Invalid("publisher lease", "%s must be from %s to %s",
			c.PublisherLease, lease.MinTTL, lease.MaxTTL)
	case c.MaxPageBytes < 1:
		return feedtype.Invalid("page bytes", "%d must be positive", c.MaxPageBytes)
	}
	return nil
}

// NoLease as Config.PublisherLease lets all publishers of a feed work at once.
const NoLease = -1

// names are the schema and prefix of rowfeed's tables in a printed script. The receiver may be nil.
func (c *Config) names() (dialect.Names, error) {
	if c == nil {
		c = &Config{}
	}
	full := c.withDefaults()
	return dialect.Names{Schema: full.Schema, Prefix: full.Prefix}, full.validate()
}
