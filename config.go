package rowfeed

import (
	"regexp"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/lease"
)

// NoPrefix as Config.Prefix leaves out the prefix: rowfeed's tables get their bare names.
const NoPrefix = "-"

// Config holds the settings of a DB. The zero value has a default for every setting.
type Config struct {
	// Prefix is how the names of rowfeed's tables begin: at most 12 of a-z, 0-9 and '_'. Default "rowfeed_". NoPrefix
	// means none.
	Prefix string
	// Schema is the schema of rowfeed's tables, on databases that have schemas. Default: the current schema
	// (PostgreSQL) or database (MySQL, MariaDB) of the connection.
	Schema string
	// UnsafeDurability accepts a server whose settings may lose commits in a power failure. The feed may then assign
	// a position again that a consumer has already stored.
	UnsafeDurability bool
	// Replica says that the database is a replica. The DB then only serves pages, and does not publish. A cursor
	// ahead of the replica gets an empty page.
	Replica bool
	// NoPublish leaves publishing to other processes. This DB assigns no positions, its readers do not move the
	// records of an outbox, and it refuses Request.Consistent. Set it for a login that may only read.
	NoPublish bool
	// BatchSize is the number of changes that a publisher reads per transaction at first. Default 1000. The number
	// then adapts between 100 and 5000, or down or up to BatchSize if that is outside of this range.
	BatchSize int
	// IdlePoll is the maximum time between a publisher's polls of an idle feed. One poll covers all feeds of the DB.
	// Default 50 ms.
	IdlePoll time.Duration
	// WatchPoll is the maximum time between polls of an idle database while a reader waits for an entry
	// (Request.Wait). A publisher of this process wakes readers without a poll. Default 50 ms.
	WatchPoll time.Duration
	// PublisherLease is the time to live of the lease by which the publishers of a feed take turns. After that time
	// another publisher takes the place of one that was killed. Before that, publishers that stand by publish what
	// waits for more than a second. Default 10 s. NoLease lets all publishers work at the same time, which is as safe
	// for readers that fetch through rowfeed.
	PublisherLease time.Duration
	// LockWait and LockIdle are the limits of Feed.Lock if a LockRequest has none. Defaults: see LockRequest.
	LockWait, LockIdle time.Duration
	// MaxPageBytes is the maximum size of the values on a page, in bytes. A page that reaches it ends early, with
	// More true. A row that is larger gets a page of its own. Default 16 MiB.
	MaxPageBytes int
	// TailBytes is the maximum size of the values that are read near the head of a feed for several readers at once,
	// in bytes. The readers share them for a second, even with different cursors, limits and parts. Default 1 MiB. A
	// negative number lets each reader read alone.
	TailBytes int
	// Observer is called when something happens. Default: none.
	Observer *feedtype.Observer
	// Tracer creates spans. Default: none.
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
			"%q is not valid: use at most 12 of a-z, 0-9 and _, because table names of 63 bytes hold a feed's name too",
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

// NoLease as Config.PublisherLease lets all publishers of a feed work at the same time.
const NoLease = -1

// names returns the schema and prefix of rowfeed's tables, for a printed script. The receiver may be nil.
func (c *Config) names() (dialect.Names, error) {
	if c == nil {
		c = &Config{}
	}
	full := c.withDefaults()
	return dialect.Names{Schema: full.Schema, Prefix: full.Prefix}, full.validate()
}
