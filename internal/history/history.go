package history

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// History is what this process knows about the positions of a feed.
type History struct {
	feed    *catalog.Feed
	disk    *Flushes
	replica bool // the database is a replica, and may lag
	unsafe  bool // the operator accepted that the database may forget commits

	mu      sync.Mutex
	durable time.Time // when the durability settings were last checked
	// flushed has the highest positions that are known to be on disk, seen the highest that the database has shown. The
	// key is the shard in feeds with ULIDs, and else 0.
	flushed, seen map[int]feedtype.CursorState

	known known
}

// New makes the history of a feed of which this process has seen nothing yet.
func New(feed *catalog.Feed, flushes *Flushes, replica, unsafe bool) *History {
	return &History{feed: feed, disk: flushes, replica: replica, unsafe: unsafe,
		flushed: map[int]feedtype.CursorState{}, seen: map[int]feedtype.CursorState{}}
}

// Highest returns the highest position of the feed, or of a shard with ULIDs, that this process has seen.
func (h *History) Highest(shard int) feedtype.CursorState {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen[shard]
}

// Saw records a position that the database has shown. It keeps nothing for a shard without positions: a request may
// name any number as its shard.
func (h *History) Saw(shard int, at feedtype.CursorState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if (shard == 0 || !at.Position.IsZero()) && at.Above(h.seen[shard]) {
		h.seen[shard] = at
	}
}

// NotSetBack refuses a head of a ULID feed below floor, the highest position that this process had seen before it read
// the head. A replica may lag behind what another server has shown. In a sequence feed, terms show which readers have
// seen lost positions.
func (h *History) NotSetBack(floor feedtype.CursorState, generation int64, position feedtype.Position) error {
	at := feedtype.CursorState{Generation: generation, Position: position}
	if h.replica || h.feed.DialectFeed().ULIDs == nil || !floor.Above(at) {
		return nil
	}
	return &feedtype.Error{
		Code:   feedtype.DatabaseChanged,
		Object: feedtype.FeedObject(h.feed.Name),
		Cause: fmt.Sprintf("the database was restored to an earlier state: it shows position %s of generation %d, "+
			"this process has seen position %s of generation %d",
			at.Position, at.Generation, floor.Position, floor.Generation),
		Next: "run `rowfeed feed bump " + h.feed.Name + "`: consumers then start over " +
			"(if several servers share one address, connect to the primary instead)",
	}
}

// InItsDatabase refuses a database with another identity than the feed's record has.
func (h *History) InItsDatabase(ctx context.Context) error {
	identity, err := h.feed.Store.Dialect.Identity(ctx, h.feed.Store.On(), h.feed.Store.Names)
	if err != nil {
		return h.feed.Store.Fail(feedtype.FeedObject(h.feed.Name), "ask which database it is in", err)
	}
	return SameDatabase(h.feed.Record.Load(), identity)
}

// SameDatabase refuses an identity that differs from the one in the feed's record. An empty identity is unknown, and
// accepted.
func SameDatabase(r *catalog.FeedRecord, identity string) error {
	if r.Identity == "" || identity == "" || r.Identity == identity {
		return nil
	}
	return &feedtype.Error{
		Code:   feedtype.DatabaseChanged,
		Object: feedtype.FeedObject(r.Name),
		Cause: fmt.Sprintf("the database (%s) is not the one in which its positions were given (%s): "+
			"a failover, a restored backup or a move", identity, r.Identity),
		Next: "if commits may have been lost, run `rowfeed feed bump " + r.Name + "`: consumers then start over; " +
			"after a planned move, run `rowfeed feed bump " + r.Name + " --adopt-database`",
	}
}

// AssertDurable checks, at most once a minute, that the settings of the database let a commit survive a power cut.
func (h *History) AssertDurable(ctx context.Context, tx dialect.Querier) error {
	h.mu.Lock()
	fresh := time.Since(h.durable) < time.Minute
	h.mu.Unlock()
	if fresh || h.unsafe {
		return nil
	}
	if err := h.feed.Store.Dialect.Durability(ctx, tx); err != nil {
		return UnsafeDurability(err)
	}
	h.mu.Lock()
	h.durable = time.Now()
	h.mu.Unlock()
	return nil
}

// UnsafeDurability is the error of a database whose settings may lose a commit; err says which setting.
func UnsafeDurability(err error) error {
	return &feedtype.Error{
		Code:   feedtype.UnsafeDurability,
		Object: "database",
		Cause:  "a power cut could take back positions that consumers have stored",
		Err:    err,
		Next:   "change the setting, or accept the risk with --unsafe-durability",
	}
}
