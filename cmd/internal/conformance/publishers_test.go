package conformance

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// takes recognises the statement that reads the changes, deletes the one that deletes
// the changes read.
func takes(ev testdb.TapEvent) bool {
	return ev.Kind == testdb.Query && ev.InTx && strings.Contains(ev.SQL, "changes_kv") && strings.Contains(ev.SQL, "kind")
}

func deletes(ev testdb.TapEvent) bool {
	return ev.Kind == testdb.Exec && ev.InTx && strings.HasPrefix(ev.SQL, "DELETE") && strings.Contains(ev.SQL, "changes_kv")
}

// ledger notes which positions were committed by whom, and what was retried.
type ledger struct {
	mu      sync.Mutex
	spans   [][2]int64 // first and last position of a pass
	retried []error
}

func (l *ledger) config(batch int) *rowfeed.Config {
	return &rowfeed.Config{BatchSize: batch, Observer: &rowfeed.Observer{
		Published: func(e rowfeed.PublishEvent) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.spans = append(l.spans, [2]int64{e.Head - int64(e.Keys) + 1, e.Head})
		},
		Retried: func(e rowfeed.RetryEvent) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.retried = append(l.retried, e.Err)
		},
	}}
}

// wantSeamless asserts that the passes cover 1 to head, each position once.
func (l *ledger) wantSeamless(t *testing.T, head int64) {
	t.Helper()
	slices.SortFunc(l.spans, func(a, b [2]int64) int { return int(a[0] - b[0]) })
	next := int64(1)
	for _, s := range l.spans {
		if s[0] != next {
			t.Errorf("a pass gave positions %d to %d; %d was due", s[0], s[1], next)
		}
		next = s[1] + 1
	}
	if next != head+1 {
		t.Errorf("the passes gave positions up to %d, the head is %d", next-1, head)
	}
}

// TestManyPublishers (M9, M55): five publishers at once in tight loops, beside writers
// and a reader. No error surfaces, no position is given twice or left out, nothing
// deadlocks, and the server's default isolation level does not matter: where that is
// SERIALIZABLE no pass fails for it.
func TestManyPublishers(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		isolations := []string{""}
		if e.HasServer() {
			isolations = append(isolations, "SERIALIZABLE")
		}
		for i := range len(isolations) * len(captures) {
			isolation, capture := isolations[i%len(isolations)], captures[i/len(isolations)]
			t.Run("default "+isolation+", "+string(capture), func(t *testing.T) {
				x := newEnv(t, e, nil)
				x.capture = capture
				x.migrate()
				x.addKV()
				var params []string
				switch {
				case isolation == "":
				case x.family() == "postgres":
					x.exec("ALTER DATABASE " + x.db.Name + " SET default_transaction_isolation = 'serializable'")
				default:
					params = []string{"transaction_isolation=%27SERIALIZABLE%27"}
					if x.engine == testdb.MariaDB {
						params = []string{"tx_isolation=%27SERIALIZABLE%27"}
					}
				}
				x.manyPublishers(isolation, params)
			})
		}
	})
}

func (x *env) manyPublishers(isolation string, params []string) {
	const publishers, writers, rounds = 5, 3, 100
	var stopped atomic.Bool // publishers end between passes: each pass is in the ledger
	defer stopped.Store(true)
	var ledger ledger
	var publishing, writing sync.WaitGroup
	var feeds []*rowfeed.Feed
	for range publishers {
		pool := x.db.OpenTapped(x.T, testdb.Hooks{}, params...)
		rf, err := rowfeed.Open(x.ctx, pool, x.dialect, ledger.config(3))
		if err != nil {
			x.Fatal(err)
		}
		f, err := rf.Feed(x.ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		feeds = append(feeds, f)
		publishing.Go(func() {
			for !stopped.Load() {
				if _, err := f.Publish(x.ctx); err != nil {
					x.Errorf("a publisher failed: %v", err)
					return
				}
			}
		})
	}
	for w := range writers {
		pool := x.patient()
		writing.Go(func() {
			for i := range rounds {
				id := (w+1)*1000 + i
				statements := []string{fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id)}
				switch i % 4 {
				case 1:
					statements = append(statements, fmt.Sprintf("UPDATE kv SET v = 1 WHERE id = %d", id-1))
				case 2:
					statements = append(statements, fmt.Sprintf("DELETE FROM kv WHERE id = %d", id-1))
				case 3:
					statements = append(statements, fmt.Sprintf("UPDATE kv SET id = %d WHERE id = %d", id+500, id))
				}
				for _, s := range statements {
					if err := x.writeOn(pool, s); err != nil {
						x.Errorf("%s: %v", s, err)
						return
					}
				}
			}
		})
	}
	written := make(chan struct{})
	go func() { writing.Wait(); close(written) }()
	k := x.keeper(feeds[0], 10)
	for reading := true; reading; {
		select {
		case <-written:
			reading = false
		default:
			k.page()
		}
	}
	x.eventually("the publishers publish everything", func() bool { return x.unpublished() == 0 })
	stopped.Store(true)
	publishing.Wait()
	k.read()
	k.judge(x.kvRows(), byID)
	// Keys that lived and died between two passes took a position that nobody has.
	ledger.wantSeamless(x.T, x.scalar("SELECT value FROM rowfeed_sequences WHERE name = 'kv'"))
	if isolation != "" {
		for _, err := range ledger.retried {
			x.Errorf("with the default %s a pass was run again: %v", isolation, err)
		}
	}
	x.wantSound(feeds[0])
}

// writeOn runs a statement as a writer does, in a transaction of its own.
func (x *env) writeOn(pool *sql.DB, statement string) error {
	parts := x.sql(statement)
	if len(parts) == 1 && x.capture != feedtype.CaptureColumn {
		_, err := pool.ExecContext(x.ctx, parts[0])
		return err
	}
	// Where rows are shared with the publishers a higher default level fails writers.
	isolation := sql.LevelReadCommitted
	if x.family() == "sqlite" {
		isolation = sql.LevelDefault
	}
	tx, err := pool.BeginTx(x.ctx, &sql.TxOptions{Isolation: isolation})
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	for _, part := range parts {
		if _, err := tx.ExecContext(x.ctx, part); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// TestPublishersTakeTurns (M4, M9): a publisher that comes while another one is
// between the sequence's lock and its COMMIT waits, and then continues where that
// one ended: positions follow one another, no key is published twice.
func TestPublishersTakeTurns(t *testing.T) {
	eachCapture(t, func(x *env) {
		x.addKV()
		x.fill(3)
		var ledger ledger
		var mu sync.Mutex
		var order []string
		note := func(what string) { mu.Lock(); defer mu.Unlock(); order = append(order, what) }
		noted := func(what string) bool { mu.Lock(); defer mu.Unlock(); return slices.Contains(order, what) }

		held := testdb.Hold(takes)
		first := x.tapped(testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if ev.Kind == testdb.Commit {
				note("first commits")
			}
			return held.Before(ctx, ev)
		}}, ledger.config(100))
		second := x.tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			switch {
			case ev.Kind == testdb.Begin:
				note("second began")
			case takes(ev):
				note("second took")
			}
			return nil
		}}, ledger.config(100))
		results := make(chan error, 2)
		go func() { _, err := first.Publish(x.ctx); results <- err }()
		<-held.Reached
		if x.family() != "sqlite" {
			// Committed after the first one's lock and before its snapshot: its to publish.
			x.exec("INSERT INTO kv VALUES (4, 'k', 0)")
		}
		go func() { _, err := second.Publish(x.ctx); results <- err }()
		x.eventually("the second publisher waits", func() bool {
			return noted("second took") || noted("second began") && x.waits()
		})
		held.Release()
		for range 2 {
			if err := <-results; err != nil {
				x.Error(err)
			}
		}
		if commits, took := slices.Index(order, "first commits"), slices.Index(order, "second took"); commits < 0 || took >= 0 && took < commits {
			x.Errorf("the second publisher did not wait: %v", order)
		}
		want := int64(4)
		if x.family() == "sqlite" {
			want = 3
		}
		head := x.scalar("SELECT value FROM rowfeed_sequences WHERE name = 'kv'")
		ledger.wantSeamless(x.T, head)
		k := x.keeper(second, 0)
		if got := k.read(); head != want || len(got) != int(want) {
			x.Errorf("head %d, entries %q, want %d", head, got, want)
		}
		k.judge(x.kvRows(), byID)
	})
}

// waits tells whether some session of the database waits for a lock. SQLite cannot
// tell; there whoever has sent BEGIN IMMEDIATE waits.
func (x *env) waits() bool { return x.lockWaits() > 0 }

// lockWaits is how many wait.
func (x *env) lockWaits() int64 {
	x.Helper()
	query := x.by(map[string]string{
		"sqlite":   "SELECT 1",
		"postgres": "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
		"mysql":    "SELECT count(*) FROM information_schema.innodb_trx t JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()",
	})
	if x.family() == "mysql" {
		rest(x.ctx, 150*time.Millisecond) // innodb_trx is refreshed only when nobody has read it for 100 ms
	}
	return x.scalar(query)
}

// patient is a pool of one connection that waits for SQLite's one write lock however
// long it takes; an impatient one does not wait at all. Elsewhere they are like others.
func (x *env) patient() *sql.DB   { x.Helper(); return x.waiting(60_000) }
func (x *env) impatient() *sql.DB { x.Helper(); return x.waiting(0) }

func (x *env) waiting(ms int) *sql.DB {
	x.Helper()
	pool := x.db.OpenTapped(x.T, testdb.Hooks{})
	pool.SetMaxOpenConns(1)
	setting := x.by(map[string]string{
		"sqlite":   fmt.Sprintf("PRAGMA busy_timeout = %d", ms),
		"postgres": "SET default_transaction_isolation = 'read committed'", // whatever the database's default
		"mysql":    "DO 0",
	})
	if _, err := pool.Exec(setting); err != nil {
		x.Fatal(err)
	}
	return pool
}
