package bench

import (
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
)

const lockers = 16

// TestLocks (M45) counts the commits of 16 writers of a feed with ULIDs, each transaction BEGIN,
// Feed.Lock, one INSERT and COMMIT, over so many shards, beside a plain INSERT into the same
// table; and how long they wait for the lock (M45). The wait is all of Feed.Lock, its round trips
// included: with as many shards as writers it is those alone.
func TestLocks(t *testing.T) {
	out := table{Title: fmt.Sprintf("%d writers with ULIDs", lockers),
		Head: []string{"database", "write", "commits/s", "÷ plain", "lock p50, ms", "lock p99, ms", "longest, ms"}}
	each(t, func(b *bed) {
		l := b.locks()
		lanes := []int{0, 1, 4, 16}
		results, waits := figures[int]{}, figures[int]{}
		for rep := range *reps {
			for i := range lanes {
				shards := lanes[(i+rep)%len(lanes)]
				commits, wait := l.run(shards)
				results.Add(shards, commits)
				waits[shards] = append(waits[shards], wait...)
			}
		}
		for _, shards := range lanes {
			name, cells := "plain INSERT", []string{"", "", ""}
			if shards > 0 {
				w := waits[shards]
				name, cells = fmt.Sprintf("Feed.Lock, shards: %d", shards), []string{fmt.Sprintf("%.2f", w.Median()),
					fmt.Sprintf("%.2f", w.Quantile(0.99)), count(w.Max())}
			}
			out.Row(append([]string{b.Engine.Name, name, count(results[shards].Median()),
				results[shards].Over(results[0]).Ratio()}, cells...)...)
		}
		findings, err := l.feed.Admin().Check(b.Context())
		if b.Must(err); len(findings) > 0 {
			b.Errorf("%v", findings)
		}
	})
	out.Print()
}

// TestLockMillion times one INSERT … SELECT of a million rows whose ULIDs the database makes
// itself (M36), and the same with bytes that it makes otherwise.
func TestLockMillion(t *testing.T) {
	rows := scaled(1_000_000)
	out := table{Title: fmt.Sprintf("one INSERT of %s rows", count(float64(rows))),
		Head: []string{"database", "ULIDs, s", "÷ a hash of the number"}}
	each(t, func(b *bed) {
		if !b.HasServer() {
			return // no functions
		}
		l := b.locks()
		source := map[string]string{
			"postgres": "generate_series(%d, %d) n (i)",
			"mysql": "(WITH RECURSIVE d (x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM d WHERE x < 9) SELECT %d + " +
				"a.x + 10 * b.x + 100 * c.x + 1000 * e.x + 10000 * f.x + 100000 * g.x AS i FROM d a, d b, d c, d e, " +
				"d f, d g LIMIT %d) n",
		}[b.Family]
		ways := map[string]string{"postgres": "rowfeed_ulid_locked(i % 1000000000)",
			"mysql": "rowfeed_ulid_locked(@high, @low, i % 1000000000)"}
		plain := map[string]string{"postgres": "md5(i::text)::uuid", "mysql": "UNHEX(MD5(i))"}[b.Family]
		lock := map[string]string{"postgres": "SELECT * FROM rowfeed_lock_locked(1)",
			"mysql": "CALL rowfeed_lock_locked(1, NULL, @u, @high, @low)"}[b.Family]
		times := figures[string]{}
		for range *reps {
			for _, way := range []string{ways[b.Family], plain} {
				tx, err := l.pool.BeginTx(b.Context(), nil)
				b.Must(err)
				_, err = tx.ExecContext(b.Context(), lock)
				b.Must(err)
				first := int(l.next.Add(int64(rows))) - rows + 1
				last := first + rows - 1
				if b.Family == "mysql" {
					last = rows
				}
				started := time.Now()
				_, err = tx.ExecContext(b.Context(), "INSERT INTO locked (id, shard, ulid, payload) SELECT i, 1, "+way+
					", 'x' FROM "+fmt.Sprintf(source, first, last))
				b.Must(err)
				times.Add(way, time.Since(started).Seconds())
				b.Must(tx.Rollback())
			}
		}
		made := times[ways[b.Family]]
		out.Row(b.Engine.Name, fmt.Sprintf("%.1f", made.Median()), made.Over(times[plain]).Ratio())
	})
	out.Print()
}

type locks struct {
	*bed
	pool   *sql.DB
	feed   *rowfeed.Feed
	next   atomic.Int64
	insert string
}

func (b *bed) locks() *locks {
	b.Helper()
	l := &locks{bed: b}
	query := ""
	if b.Family == "mysql" {
		query = "?interpolateParams=true"
	}
	l.pool, _ = b.Open(query)
	ulid := map[string]string{"sqlite": "BLOB", "postgres": "uuid", "mysql": "binary(16)"}[b.Family]
	for _, name := range []string{"locked", "free"} {
		b.SQL("CREATE TABLE " + name + " (id bigint NOT NULL PRIMARY KEY, shard int NOT NULL, ulid " + ulid +
			" NOT NULL, payload varchar(200) NOT NULL)")
		b.SQL("CREATE UNIQUE INDEX " + name + "_feed ON " + name + " (shard, ulid)")
	}
	l.feed = b.Feed(b.Rowfeed(l.pool, nil), rowfeed.FeedSpec{Name: "locked", Table: "locked",
		Mode: rowfeed.ModeBlocking, PositionColumn: "ulid", ShardColumn: "shard"})
	p := b.Dialect.Placeholder
	l.insert = "INSERT INTO %s (id, shard, ulid, payload) VALUES (" + p(1) + ", " + p(2) + ", " + p(3) + ", " + p(4) +
		")"
	return l
}

// run lets the writers write for one window, over so many shards; with 0 they lock nothing. It
// answers commits a second, and how long each lock took, in milliseconds.
func (l *locks) run(shards int) (commits float64, waits figure) {
	l.Helper()
	var mu sync.Mutex
	var done atomic.Int64
	var running sync.WaitGroup
	started := time.Now()
	for w := range lockers {
		running.Go(func() {
			var mine figure
			for time.Since(started) < *window {
				wait, err := l.write(w, shards)
				if err != nil {
					l.Errorf("%d shards: %v", shards, err)
					return
				}
				mine = append(mine, milliseconds(wait))
				done.Add(1)
			}
			mu.Lock()
			defer mu.Unlock()
			waits = append(waits, mine...)
		})
	}
	running.Wait()
	return float64(done.Load()) / time.Since(started).Seconds(), waits
}

func (l *locks) write(writer, shards int) (wait time.Duration, err error) {
	ctx := l.Context()
	tx, err := l.pool.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	id := l.next.Add(1)
	var at [16]byte
	target := "free"
	if shards == 0 {
		for i := range 8 {
			at[15-i] = byte(id >> (8 * i))
		}
	} else {
		target = "locked"
		before := time.Now()
		u, err := l.feed.Lock(ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{writer % shards}})
		if err != nil {
			return 0, err
		}
		wait = time.Since(before)
		if at, err = u.At(writer%shards, 0); err != nil {
			return 0, err
		}
	}
	_, err = tx.ExecContext(ctx, fmt.Sprintf(l.insert, target), id, writer%max(shards, 1), at[:], payload)
	return wait, errors.Join(err, tx.Commit())
}
