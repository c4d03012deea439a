package conformance

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
)

// eachKind runs f on every engine, with a feed of each of the modes whose shards are feeds by
// themselves. add inserts rows with ids from first to last into a shard.
func eachKind(t *testing.T, f func(x *taker)) {
	t.Helper()
	t.Run("blocking", func(t *testing.T) {
		eachULID(t, func(x *events) { f(x.taker(func(shard, first, last int) { x.write(shard, first, last) })) })
	})
	t.Run("outbox", func(t *testing.T) {
		eachOutbox(t, func(x *events) {
			f(x.taker(func(shard, first, last int) {
				tx := x.begin(sql.LevelReadCommitted)
				for id := first; id <= last; id++ {
					if err := x.append(tx, id, shard, time.Time{}); err != nil {
						x.Fatal(err)
					}
				}
				x.commit(tx)
			}))
		})
	})
}

// taker is what consumers of the feed events do in these tests: a row in the table applied for
// every entry, in the consumer's transaction.
type taker struct {
	*events
	add func(shard, first, last int)

	mu     sync.Mutex
	handed map[int][]int // ids of every shard, in the order in which they were handed over
	// fail, when set, decides about an entry after its effect.
	fail func(e rowfeed.Entry) error
}

func (x *events) taker(add func(shard, first, last int)) *taker {
	x.Helper()
	x.exec("CREATE TABLE applied (id BIGINT, shard BIGINT, position VARCHAR(30))")
	return &taker{events: x, add: add, handed: map[int][]int{}}
}

func idOf(e rowfeed.Entry) int {
	id, _ := e.Key.Get("id")
	return int(id.(int64))
}

// handle is the handler. It runs in child processes too, without an env.
func (r *taker) handle(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
	for _, e := range entries {
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO applied VALUES (%d, %d, '%s')", idOf(e), e.Shard, e.Position)); err != nil {
			return err
		}
		r.note(e)
		if r.fail != nil {
			if err := r.fail(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *taker) note(e rowfeed.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.handed == nil {
		r.handed = map[int][]int{}
	}
	r.handed[e.Shard] = append(r.handed[e.Shard], idOf(e))
}

// handedOf are the rows of a shard that were handed over.
func (r *taker) handedOf(shard int) []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.handed[shard])
}

func (r *taker) consumer(source rowfeed.Source, rf *rowfeed.DB) *rowfeed.Consumer {
	return &rowfeed.Consumer{Name: "test", Source: source, DB: rf, Handle: r.handle, Limit: 3,
		Retry: rowfeed.Retry{MaxAttempts: 2, Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond}}
}

// once consumes to the heads.
func (r *taker) once(c *rowfeed.Consumer) {
	r.Helper()
	if err := c.RunOnce(r.ctx); err != nil {
		r.Fatal(err)
	}
}

// run consumes in the background until the test, or the answered function, ends it.
func (r *taker) run(c *rowfeed.Consumer) (stop func() error) {
	ctx, cancel := context.WithCancel(r.ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	r.Cleanup(func() { _ = stop() })
	return stop
}

// wantApplied asserts what took effect: every row of every shard once, "3: 1 2 3".
func (r *taker) wantApplied(want ...string) {
	r.Helper()
	if got := r.applied(); !slices.Equal(got, want) {
		r.Fatalf("applied %q, want %q", got, want)
	}
}

// applied are the rows that took effect, by shard, in the order of their positions.
func (r *taker) applied() (all []string) {
	r.Helper()
	line := func(l string) string { shard, _, _ := strings.Cut(l, " "); return shard }
	for _, l := range r.list("SELECT shard, id FROM applied ORDER BY shard, position, id") {
		shard, id := line(l), l[strings.IndexByte(l, ' ')+1:]
		if n := len(all); n > 0 && strings.HasPrefix(all[n-1], shard+": ") {
			all[n-1] += " " + id
		} else {
			all = append(all, shard+": "+id)
		}
	}
	return all
}

func (r *taker) awaitApplied(what string, want ...string) {
	r.Helper()
	r.eventually(what, func() bool { return slices.Equal(r.applied(), want) })
}

// headOf is the cursor at the end of a shard.
func (r *taker) headOf(shard int) rowfeed.Cursor {
	r.Helper()
	after := rowfeed.Beginning
	for {
		page := r.page(r.feed, shard, after, 100)
		if after = page.Cursor; !page.More {
			return after
		}
	}
}

// eventID names a shard's cursor.
func eventID(shard int) rowfeed.ConsumerID {
	return rowfeed.ConsumerID{Consumer: "test", Feed: "events", Shard: &shard}
}
