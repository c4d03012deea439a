package publish

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// takes matches the statement with which a pass reads the changes.
func takes(ev testdb.TapEvent) bool {
	return ev.Kind == testdb.Query && ev.InTx &&
		strings.Contains(ev.SQL, "changes_kv") && strings.Contains(ev.SQL, "kind")
}

// deletes matches the statement with which a pass deletes the changes that it has read.
func deletes(ev testdb.TapEvent) bool {
	return ev.Kind == testdb.Exec && ev.InTx &&
		strings.HasPrefix(ev.SQL, "DELETE") && strings.Contains(ev.SQL, "changes_kv")
}

// ledger records the positions of committed passes, and the errors of passes that were tried again.
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
			t.Errorf("a pass assigned positions %d to %d, want it to begin at %d", s[0], s[1], next)
		}
		next = s[1] + 1
	}
	if next != head+1 {
		t.Errorf("the passes assigned positions up to %d, the head is %d", next-1, head)
	}
}

// TestManyPublishersShareThePositions (M9, M55): five publishers run concurrently with writers and a reader. None fails
// or deadlocks, and every position is assigned exactly once. No pass is retried if the default isolation level is
// SERIALIZABLE.
func TestManyPublishersShareThePositions(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		isolations := []string{""}
		if e.HasServer() {
			isolations = append(isolations, "SERIALIZABLE")
		}
		for i := range len(isolations) * len(suite.Captures) {
			isolation, capture := isolations[i%len(isolations)], suite.Captures[i/len(isolations)]
			t.Run("default "+isolation+", "+string(capture), func(t *testing.T) {
				x := suite.NewEnv(t, e, nil)
				x.Capture = capture
				x.Migrate()
				x.AddKV()
				var params []string
				if isolation != "" {
					x.Exec(x.Statements("publish.serializable_database", x.DB.Name)...)
					params = x.Statements("publish.serializable_parameters")
				}
				manyPublishers(x, isolation, params)
			})
		}
	})
}

func manyPublishers(x *suite.Env, isolation string, params []string) {
	const publishers, writers, rounds = 5, 3, 100
	var stopped atomic.Bool // publishers end between passes, so that the ledger has every pass
	defer stopped.Store(true)
	var ledger ledger
	var publishing, writing sync.WaitGroup
	var feeds []*rowfeed.Feed
	for range publishers {
		pool := x.DB.OpenTapped(x.T, testdb.Hooks{}, params...)
		rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, ledger.config(3))
		if err != nil {
			x.Fatal(err)
		}
		f, err := rf.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		feeds = append(feeds, f)
		publishing.Go(func() {
			for !stopped.Load() {
				if _, err := f.Publish(x.Ctx); err != nil {
					x.Errorf("a publisher failed: %v", err)
					return
				}
			}
		})
	}
	for w := range writers {
		pool := patient(x)
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
					if err := writeOn(x, pool, s); err != nil {
						x.Errorf("%s: %v", s, err)
						return
					}
				}
			}
		})
	}
	written := make(chan struct{})
	go func() { writing.Wait(); close(written) }()
	k := x.Recorder(feeds[0], 10)
	for reading := true; reading; {
		select {
		case <-written:
			reading = false
		default:
			k.Page()
		}
	}
	x.Eventually("the publishers publish everything", func() bool { return x.Unpublished() == 0 })
	stopped.Store(true)
	publishing.Wait()
	k.Read()
	k.Check(x.KVRows(), suite.ByID)
	// A key that was inserted and deleted between two passes has used a position that no row has.
	ledger.wantSeamless(x.T, x.Scalar("SELECT value FROM rowfeed_sequences WHERE name = 'kv'"))
	if isolation != "" {
		for _, err := range ledger.retried {
			x.Errorf("with the default %s a pass was retried: %v", isolation, err)
		}
	}
	x.WantSound(feeds[0])
}

// writeOn runs a statement as a writer does, in a transaction of its own.
func writeOn(x *suite.Env, pool *sql.DB, statement string) error {
	parts := x.SQL(statement)
	if len(parts) == 1 && x.Capture != feedtype.CaptureColumn {
		_, err := pool.ExecContext(x.Ctx, parts[0])
		return err
	}
	// With capture "column" publishers update the writers' rows, and a higher isolation level would fail writers.
	tx, err := pool.BeginTx(x.Ctx, &sql.TxOptions{Isolation: x.Isolation(sql.LevelReadCommitted)})
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	for _, part := range parts {
		if _, err := tx.ExecContext(x.Ctx, part); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// TestPublishersTakeTurns (M4, M9): a publisher that starts while another one holds the sequence's lock waits for its
// COMMIT. Then it assigns the positions that follow. No key is published twice.
func TestPublishersTakeTurns(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		x.AddKV()
		x.Fill(3)
		var ledger ledger
		var mu sync.Mutex
		var order []string
		note := func(what string) { mu.Lock(); defer mu.Unlock(); order = append(order, what) }
		noted := func(what string) bool { mu.Lock(); defer mu.Unlock(); return slices.Contains(order, what) }

		held := testdb.Hold(takes)
		first := x.Tapped(testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if ev.Kind == testdb.Commit {
				note("first commits")
			}
			return held.Before(ctx, ev)
		}}, ledger.config(100))
		second := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			switch {
			case ev.Kind == testdb.Begin:
				note("second began")
			case takes(ev):
				note("second took")
			}
			return nil
		}}, ledger.config(100))
		results := make(chan error, 2)
		go func() { _, err := first.Publish(x.Ctx); results <- err }()
		<-held.Reached
		want := int64(3)
		if !x.Has.OneWriter {
			// This is committed after the first publisher's lock and before its snapshot, so that it publishes the row.
			x.Exec("INSERT INTO kv VALUES (4, 'k', 0)")
			want = 4
		}
		go func() { _, err := second.Publish(x.Ctx); results <- err }()
		x.Eventually("the second publisher waits", func() bool {
			return noted("second took") || noted("second began") && x.Waits()
		})
		held.Release()
		for range 2 {
			if err := <-results; err != nil {
				x.Error(err)
			}
		}
		commits, took := slices.Index(order, "first commits"), slices.Index(order, "second took")
		if commits < 0 || took >= 0 && took < commits {
			x.Errorf("the second publisher did not wait: %v", order)
		}
		head := x.Scalar("SELECT value FROM rowfeed_sequences WHERE name = 'kv'")
		ledger.wantSeamless(x.T, head)
		k := x.Recorder(second, 0)
		if got := k.Read(); head != want || len(got) != int(want) {
			x.Errorf("head %d, entries %q, want %d", head, got, want)
		}
		k.Check(x.KVRows(), suite.ByID)
	})
}

// patient returns a pool of one connection. If the database has one writer at a time, the connection waits a minute for
// its turn. Its isolation level does not depend on the database's default.
func patient(x *suite.Env) *sql.DB { x.Helper(); return poolOfOne(x, "publish.patient_session") }

// impatient returns such a pool whose connection does not wait for its turn.
func impatient(x *suite.Env) *sql.DB { x.Helper(); return poolOfOne(x, "publish.impatient_session") }

func poolOfOne(x *suite.Env, settings string) *sql.DB {
	x.Helper()
	pool := x.DB.OpenTapped(x.T, testdb.Hooks{})
	pool.SetMaxOpenConns(1)
	for _, setting := range x.Statements(settings) {
		if _, err := pool.Exec(setting); err != nil {
			x.Fatal(err)
		}
	}
	return pool
}
