package suite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
)

// EachKind runs f on every engine with a ULID feed of either mode, blocking and outbox. Taker.Add inserts rows with the
// ids from first to last into a shard.
func EachKind(t *testing.T, f func(x *Taker)) {
	t.Helper()
	t.Run("blocking", func(t *testing.T) {
		EachULID(t, func(x *Events) { f(x.Taker(func(shard, first, last int) { x.Write(shard, first, last) })) })
	})
	t.Run("outbox", func(t *testing.T) {
		EachOutbox(t, func(x *Events) {
			f(x.Taker(func(shard, first, last int) {
				tx := x.Begin(sql.LevelReadCommitted)
				for id := first; id <= last; id++ {
					if err := x.Append(tx, id, shard, time.Time{}); err != nil {
						x.Fatal(err)
					}
				}
				x.Commit(tx)
			}))
		})
	})
}

// Taker handles entries of the feed events for consumers: it inserts a row into the table applied for every entry, in
// the consumer's transaction.
type Taker struct {
	*Events
	Add func(shard, first, last int)

	Mu     sync.Mutex
	Handed map[int][]int // ids by shard, in the order in which the handler got them
	// Fail, if set, returns the handler's error for an entry, after its row was inserted.
	Fail func(e rowfeed.Entry) error
}

// Taker makes the table applied and its Taker.
func (x *Events) Taker(add func(shard, first, last int)) *Taker {
	x.Helper()
	x.Exec("CREATE TABLE applied (id BIGINT, shard BIGINT, position VARCHAR(30))")
	return &Taker{Events: x, Add: add, Handed: map[int][]int{}}
}

// IDOf returns the id in the key of an entry.
func IDOf(e rowfeed.Entry) int {
	id, _ := e.Key.Get("id")
	return int(id.(int64))
}

// handle is the handler of consumers. It runs in child processes too, where there is no Env.
func (r *Taker) handle(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
	for _, e := range entries {
		insert := fmt.Sprintf("INSERT INTO applied VALUES (%d, %d, '%s')", IDOf(e), e.Shard, e.Position)
		if _, err := tx.ExecContext(ctx, insert); err != nil {
			return err
		}
		r.note(e)
		if r.Fail != nil {
			if err := r.Fail(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Taker) note(e rowfeed.Entry) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if r.Handed == nil {
		r.Handed = map[int][]int{}
	}
	r.Handed[e.Shard] = append(r.Handed[e.Shard], IDOf(e))
}

// Consumer returns a consumer of the source that handles entries with r.
func (r *Taker) Consumer(source rowfeed.Source, rf *rowfeed.DB) *rowfeed.Consumer {
	return &rowfeed.Consumer{Name: "test", Source: source, DB: rf, Handle: r.handle,
		Options: rowfeed.ConsumerOptions{
			Limit: 3, Retry: rowfeed.Retry{MaxAttempts: 2, Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond},
		}}
}

// Once consumes up to the heads of all shards.
func (r *Taker) Once(c interface{ RunOnce(context.Context) error }) {
	r.Helper()
	if err := c.RunOnce(r.Ctx); err != nil {
		r.Fatal(err)
	}
}

// Run consumes in the background until the test ends or calls stop.
func (r *Taker) Run(c *rowfeed.Consumer) (stop func() error) {
	ctx, cancel := context.WithCancel(r.Ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	r.Cleanup(func() { _ = stop() })
	return stop
}

// WantApplied asserts which rows were applied: a string "3: 1 2 3" for shard 3.
func (r *Taker) WantApplied(want ...string) {
	r.Helper()
	if got := r.Applied(); !slices.Equal(got, want) {
		r.Fatalf("applied %q, want %q", got, want)
	}
}

// Applied returns the rows that were applied, by shard, in the order of their positions.
func (r *Taker) Applied() (all []string) {
	r.Helper()
	for _, l := range r.List("SELECT shard, id FROM applied ORDER BY shard, position, id") {
		shard, id, _ := strings.Cut(l, " ")
		if n := len(all); n > 0 && strings.HasPrefix(all[n-1], shard+": ") {
			all[n-1] += " " + id
		} else {
			all = append(all, shard+": "+id)
		}
	}
	return all
}

// AwaitApplied waits until exactly these rows were applied.
func (r *Taker) AwaitApplied(what string, want ...string) {
	r.Helper()
	r.Eventually(what, func() bool { return slices.Equal(r.Applied(), want) })
}

// EventsGroup is the name of the group of the consumer "test" of the feed events.
var EventsGroup = admin.ConsumerGroup("test", "events")
