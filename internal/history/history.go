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

// A database may not be what it was: a backup was restored, a replica took over, the
// data moved. Positions that consumers know of may then be gone, and would be given
// again. Two things tell: the database's identity, which the feed's record keeps, and
// the highest place that this process has seen. Nothing is published until an
// operator says which it was (Bump, AdoptDatabase). Pages are still answered on a
// database of another identity: up to its head it is as it was, cursors beyond that
// are refused, and nobody raises it. Where writers take positions nobody can stop them, so
// pages of feeds with ULIDs are refused there.

// History is what this process knows of the positions of a feed.
type History struct {
	feed    *catalog.Feed
	disk    *Flushes
	replica bool // the database is one, and may lag
	unsafe  bool // that it may forget commits was accepted

	mu      sync.Mutex
	durable time.Time // when durability was last asserted
	// The highest places, of a shard where each is a feed by itself, of shard 0 where not,
	// that are known to be on the disk, and that the database has shown.
	flushed, seen map[int]feedtype.CursorState
}

func New(feed *catalog.Feed, flushes *Flushes, replica, unsafe bool) *History {
	return &History{feed: feed, disk: flushes, replica: replica, unsafe: unsafe,
		flushed: map[int]feedtype.CursorState{}, seen: map[int]feedtype.CursorState{}}
}

// Highest is the highest place of the feed, or of a shard with ULIDs, that this process
// has seen.
func (h *History) Highest(shard int) feedtype.CursorState {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen[shard]
}

// Saw notes a place that the database has shown. Of a shard that has given nothing there
// is nothing to note: anybody may ask for any number.
func (h *History) Saw(shard int, generation int64, position feedtype.Position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at := (feedtype.CursorState{Generation: generation, Position: position}); (shard == 0 || !position.IsZero()) && at.Above(h.seen[shard]) {
		h.seen[shard] = at
	}
}

// NotSetBack refuses what lies below floor, the highest place seen before the database
// was asked. A replica may lag behind what another showed.
func (h *History) NotSetBack(floor feedtype.CursorState, generation int64, position feedtype.Position) error {
	at := feedtype.CursorState{Generation: generation, Position: position}
	if h.replica || !floor.Above(at) {
		return nil
	}
	return &feedtype.Error{Code: feedtype.DatabaseChanged, Object: feedtype.FeedObject(h.feed.Name),
		Cause: fmt.Sprintf("the database was set back: it shows position %s of generation %d, this process has seen position %s of generation %d",
			at.Position, at.Generation, floor.Position, floor.Generation),
		Next: "run `rowfeed feed bump " + h.feed.Name + "`: consumers then start over (where several servers stand behind one address, connect to the primary)"}
}

// InItsDatabase refuses a database of another identity.
func (h *History) InItsDatabase(ctx context.Context) error {
	identity, err := h.feed.Store.Dialect.Identity(ctx, h.feed.Store.On(), h.feed.Store.Names)
	if err != nil {
		return h.feed.Store.Fail(feedtype.FeedObject(h.feed.Name), "ask which database it is in", err)
	}
	return SameDatabase(h.feed.Record.Load(), identity)
}

// SameDatabase refuses a database of another identity than the feed's record has. An
// empty one is not known.
func SameDatabase(r *catalog.Record, identity string) error {
	if r.Identity == "" || identity == "" || r.Identity == identity {
		return nil
	}
	return &feedtype.Error{Code: feedtype.DatabaseChanged, Object: feedtype.FeedObject(r.Name),
		Cause: fmt.Sprintf("the database (%s) is not the one in which its positions were given (%s): a failover, a restored backup or a move", identity, r.Identity),
		Next: "where commits can have been lost run `rowfeed feed bump " + r.Name + "`: consumers then start over; " +
			"after a planned move `rowfeed feed bump " + r.Name + " --adopt-database`"}
}

// AssertDurable asks once a minute whether a commit survives a power cut.
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

func UnsafeDurability(err error) error {
	return &feedtype.Error{Code: feedtype.UnsafeDurability, Object: "database", Cause: "a power cut could take back positions that consumers have stored", Err: err,
		Next: "change the setting, or accept the risk with --unsafe-durability"}
}
