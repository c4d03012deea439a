package consume

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestOperatedConsumerNeedsNoRestart (M72): operators list a consumer with its lag, pause, resume, seek, reset and drop
// it. A running consumer follows without a restart.
func TestOperatedConsumerNeedsNoRestart(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		c := r.Consumer(f, x.RF)
		x.Fill(3)
		x.Publish(f)
		one := func() admin.ConsumerStatus {
			x.Helper()
			all, err := x.RF.Admin().Consumers(x.Ctx, suite.TestConsumer)
			if err != nil || len(all) != 1 {
				x.Fatalf("consumers: %+v %v", all, err)
			}
			return all[0]
		}
		if all, err := x.RF.Admin().Consumers(x.Ctx, rowfeed.ConsumerID{}); err != nil || len(all) != 0 {
			x.Errorf("consumers of a new database: %+v %v", all, err)
		}
		_, err := x.RF.Admin().PauseConsumer(x.Ctx, suite.TestConsumer)
		x.WantCode(err, rowfeed.UnknownConsumer)
		r.Once(c)
		if s := one(); suite.Place(s.Cursor) != "3" || *s.Behind != 0 || *s.BehindSeconds != 0 || s.Paused ||
			s.ShardCount != 1 || s.Generation != 1 || s.MovedAt.IsZero() {
			x.Errorf("at the head: %+v", s)
		}
		x.FillFrom(4, 5)
		x.Publish(f)
		x.Exec("UPDATE rowfeed_positions_kv SET published_at = published_at - 3600000000 WHERE feed_sync_id <= 4")
		if s := one(); *s.Behind != 2 || *s.BehindSeconds < 3600 || *s.BehindSeconds > 5400 {
			x.Errorf("two entries behind, an hour: %d, %f", *s.Behind, *s.BehindSeconds)
		}
		status, err := f.Admin().Status(x.Ctx)
		if err != nil || len(status.Consumers) != 1 || *status.Consumers[0].Behind != 2 {
			x.Errorf("status: %+v %v", status, err)
		}

		// A paused consumer does nothing. A resumed consumer continues in the same process.
		if n, err := x.RF.Admin().PauseConsumer(x.Ctx, suite.TestConsumer); n != 1 || err != nil {
			x.Fatal(n, err)
		}
		err = c.RunOnce(x.Ctx)
		x.WantCode(err, rowfeed.ConsumerPaused)
		if !strings.Contains(err.Error(), "rowfeed consumer resume test --feed kv") {
			x.Errorf("no next step: %v", err)
		}
		stop := run(r, c)
		if n, err := x.RF.Admin().ResumeConsumer(x.Ctx, suite.TestConsumer); n != 1 || err != nil {
			x.Fatal(n, err)
		}
		x.Eventually("the resumed consumer continues", func() bool { return len(r.Applied()) == 5 })

		// After a seek or reset the consumer gets the entries again, without a restart.
		x.Exec("DELETE FROM applied")
		if n, err := x.RF.Admin().SeekConsumer(x.Ctx, suite.TestConsumer, "3"); n != 1 || err != nil {
			x.Fatal(n, err)
		}
		x.Eventually("entries above 3 again", func() bool { return len(r.Applied()) == 2 })
		if n, err := x.RF.Admin().ResetConsumer(x.Ctx, suite.TestConsumer); n != 1 || err != nil {
			x.Fatal(n, err)
		}
		x.Eventually("everything again", func() bool { return len(r.Applied()) == 7 })
		if err := stop(); err != nil {
			x.Fatal(err)
		}

		// Cursors that the feed would refuse are refused at once. Others are resolved.
		_, err = x.RF.Admin().SeekConsumer(x.Ctx, suite.TestConsumer, "99")
		x.WantCode(err, rowfeed.CursorAhead)
		_, err = x.RF.Admin().SeekConsumer(x.Ctx, suite.TestConsumer, "tomorrow")
		x.WantCode(err, rowfeed.InvalidRequest)
		_, err = x.RF.Admin().SeekConsumer(x.Ctx, rowfeed.ConsumerID{Consumer: "test"}, "3")
		x.WantCode(err, rowfeed.InvalidRequest)
		for to, want := range map[rowfeed.Cursor]rowfeed.Cursor{"2": "2", "": "", "0": "", rowfeed.Now: "5",
			rowfeed.At(time.Now().Add(time.Hour)): "5", rowfeed.At(time.Now().Add(-30 * time.Minute)): "4"} {
			if _, err := x.RF.Admin().SeekConsumer(x.Ctx, suite.TestConsumer, to); err != nil {
				x.Fatal(err)
			}
			if s := one(); suite.Place(s.Cursor) != want {
				x.Errorf("seek to %q: the cursor is %q, want %q", to, s.Cursor, want)
			}
		}
		if n, err := x.RF.Admin().DropConsumer(x.Ctx, suite.TestConsumer); n != 1 || err != nil {
			x.Fatal(n, err)
		}
		_, err = x.RF.Admin().DropConsumer(x.Ctx, suite.TestConsumer)
		x.WantCode(err, rowfeed.UnknownConsumer)

		// A new consumer begins at Start.
		c.Options.Start = rowfeed.Now
		x.Exec("DELETE FROM applied")
		r.Once(c)
		x.FillFrom(6, 6)
		x.Publish(f)
		r.Once(c)
		wantApplied(r, "6 upsert 6")

		// The position of "now" is stored before the consumer waits. Otherwise a crash would move it.
		late := r.Consumer(f, x.RF)
		late.Name, late.Options.Start, late.Options.Wait = "late", rowfeed.Now, time.Hour
		stop = run(r, late)
		x.Eventually("the position is stored", func() bool {
			all, err := x.RF.Admin().Consumers(x.Ctx, rowfeed.ConsumerID{Consumer: "late"})
			return err == nil && len(all) == 1 && suite.Place(all[0].Cursor) == "6"
		})
		if err := stop(); err != nil {
			x.Fatal(err)
		}
	})
}

// TestInvalidConsumerIsRefused: invalid settings are refused with the name of the field.
func TestInvalidConsumerIsRefused(t *testing.T) {
	testdb.SQLite.Require(t)
	x := suite.NewEnv(t, testdb.SQLite, nil)
	x.Migrate()
	f, r := x.AddKV(), x.Receiver()
	for field, change := range map[string]func(*rowfeed.Consumer){
		"name":        func(c *rowfeed.Consumer) { c.Name = "a b" },
		"source":      func(c *rowfeed.Consumer) { c.Source = nil },
		"db":          func(c *rowfeed.Consumer) { c.DB = nil },
		"handle":      func(c *rowfeed.Consumer) { c.Handle = nil },
		"shard count": func(c *rowfeed.Consumer) { c.ShardCount = rowfeed.MaxDataShards + 1 },
		"limit":       func(c *rowfeed.Consumer) { c.Options.Limit = feedtype.MaxLimit + 1 },
		"retry":       func(c *rowfeed.Consumer) { c.Options.Retry.Backoff = -1 },
		"on failure":  func(c *rowfeed.Consumer) { c.OnFailure = 7 },
		"after":       func(c *rowfeed.Consumer) { c.Options.Start = "yesterday" },
	} {
		c := r.Consumer(f, x.RF)
		change(c)
		var e *rowfeed.Error
		if err := c.Run(x.Ctx); !errors.As(err, &e) || e.Code != rowfeed.InvalidRequest || e.Param != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	bare := suite.NewEnv(t, testdb.SQLite, nil)
	x.WantCode(r.Consumer(f, bare.RF).Run(x.Ctx), rowfeed.NotInitialized)
	if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
		t.Fatal(err)
	}
	if err := r.Consumer(f, x.RF).Run(x.Ctx); !errors.Is(err, rowfeed.UnknownFeed) {
		t.Errorf("a feed that was dropped: %v", err)
	}
	if err := (r.Consumer(f, x.RF)).Run(cancelled()); err != nil {
		t.Errorf("Run with a context that has ended: %v", err)
	}
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// mirror returns a consumer that keeps a copy of the table. At the end of a pass from the beginning it removes the
// rows that the pass did not bring.
func mirror(x *suite.Env, source rowfeed.Source, rf *rowfeed.DB) *rowfeed.Consumer {
	x.Helper()
	return &rowfeed.Consumer{Name: "test", Source: source, DB: rf,
		Options: rowfeed.ConsumerOptions{
			Limit: 2,
			OnRefused: func(ctx context.Context, tx *sql.Tx, refusal error) error {
				_, err := tx.ExecContext(ctx, "UPDATE mirror SET seen = 0")
				return err
			},
			OnComplete: func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, "DELETE FROM mirror WHERE seen = 0")
				return err
			},
		},
		Handle: func(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
			for _, e := range entries {
				id, _ := e.Key.Get("id")
				statements := []string{fmt.Sprintf("DELETE FROM mirror WHERE id = %d", id)}
				if e.Op == rowfeed.Upsert {
					statements = append(statements, fmt.Sprintf("INSERT INTO mirror VALUES (%d, 1)", id))
				}
				for _, s := range statements {
					if _, err := tx.ExecContext(ctx, s); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
}

// TestRefusedCursorStopsOrRestarts (H15): a refused cursor stops the consumer with the next step, or restarts it if
// OnRefused is set. Rows that the new pass does not bring are removed when that pass is complete, not before, and also
// if no row is left.
func TestRefusedCursorStopsOrRestarts(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("CREATE TABLE mirror (id BIGINT PRIMARY KEY, seen INTEGER)")
		c := mirror(x, f, x.RF)
		once := func() {
			x.Helper()
			if err := c.RunOnce(x.Ctx); err != nil {
				x.Fatal(err)
			}
		}
		wantMirror := func(when string, want ...int64) {
			x.Helper()
			var got []int64
			for _, row := range x.Rows("SELECT id FROM mirror ORDER BY id") {
				var line struct{ ID int64 }
				if err := json.Unmarshal(row, &line); err != nil {
					x.Fatal(err)
				}
				got = append(got, line.ID)
			}
			if !slices.Equal(got, want) {
				x.Fatalf("%s: the mirror has %v, want %v", when, got, want)
			}
		}
		x.Fill(5)
		x.Publish(f)
		once()
		wantMirror("first pass", 1, 2, 3, 4, 5)

		for _, refused := range []struct {
			code  rowfeed.Code
			value string
		}{{rowfeed.CursorAhead, "99"}, {rowfeed.GenerationChanged, "7:5"}} {
			x.Exec(fmt.Sprintf("UPDATE rowfeed_cursors SET value = '%s'", refused.value))
			plain := mirror(x, f, x.RF)
			plain.Options.OnRefused = nil
			err := plain.Run(x.Ctx)
			x.WantCode(err, refused.code)
			if !strings.Contains(err.Error(), "rowfeed consumer reset test --feed kv") ||
				!strings.Contains(err.Error(), "cursor \""+refused.value) {
				x.Errorf("%s does not say what to do: %v", refused.code, err)
			}
		}

		// The feed was added again: rows 2 and 5 are gone, 6 is new.
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		x.Exec("DELETE FROM kv WHERE id IN (2, 5)", "INSERT INTO kv VALUES (6, 'k', 0)",
			"UPDATE rowfeed_cursors SET value = '5'")
		f = x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		x.Publish(f)
		c.Source = f
		// The process dies in the middle of the new pass, whose mark is in the cursor.
		broken := mirror(x, f, x.RF)
		handle, pages := broken.Handle, 0
		broken.Handle = func(ctx context.Context, tx *sql.Tx, es []rowfeed.Entry) error {
			if pages++; pages > 1 {
				return errors.New("power cut")
			}
			return handle(ctx, tx, es)
		}
		broken.Options.Retry.MaxAttempts, broken.Options.Retry.Backoff = 1, time.Millisecond
		x.WantCode(broken.RunOnce(x.Ctx), rowfeed.HandlerFailed)
		wantMirror("in the middle of the second pass", 1, 2, 3, 4, 5)
		once()
		wantMirror("second pass", 1, 3, 4, 6)

		// A feed without entries completes its pass, too.
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		x.Exec("DELETE FROM kv")
		c.Source = x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		once()
		wantMirror("third pass", []int64(nil)...)

		// OnComplete is retried as a handler is, and the error names it.
		x.Fill(2)
		x.Publish(c.Source.(*rowfeed.Feed))
		once()
		if _, err := x.RF.Admin().ResetConsumer(x.Ctx, suite.TestConsumer); err != nil {
			x.Fatal(err)
		}
		calls := 0
		c.Options.OnComplete = func(context.Context, *sql.Tx) error { calls++; return errors.New("no sweeping today") }
		c.Options.Retry, c.OnFailure = rowfeed.Retry{MaxAttempts: 3, Backoff: time.Millisecond}, rowfeed.SetAside
		err := c.RunOnce(x.Ctx)
		x.WantCode(err, rowfeed.HandlerFailed)
		if !strings.Contains(err.Error(), "OnComplete failed 3 times: no sweeping today") || calls != 3 {
			x.Errorf("after %d calls: %v", calls, err)
		}
		c.Options.OnComplete = nil
		once()
		wantMirror("fourth pass", 1, 2)
	})
}

// TestConsumerSurvivesDatabaseCrash: the database is killed and started again, several times. The consumer reports
// trouble, continues by itself, and applies everything once.
func TestConsumerSurvivesDatabaseCrash(t *testing.T) {
	testdb.Only(t, testdb.Postgres15, testdb.MariaDB)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		server := e.Dedicated(t, testdb.Durable())
		var troubles atomic.Int64
		counts := &rowfeed.Observer{Trouble: func(ev rowfeed.TroubleEvent) {
			if ev.Consumer == "test" && ev.Feed == "kv" && ev.Err != nil {
				troubles.Add(1)
			}
		}}
		x := suite.OpenEnv(t, server.NewDatabase(t), &rowfeed.Config{Observer: counts})
		x.Migrate()
		f, r := x.AddKV(), x.Receiver()
		c := r.Consumer(f, x.RF)
		c.OnFailure = rowfeed.SetAside // no failure here is a key's fault
		stop := run(r, c)
		for round := range 2 {
			x.FillFrom(3*round+1, 3*round+3)
			x.Publish(f)
			x.Eventually("the entries are applied", func() bool { return len(r.Applied()) == 3*round+3 })
			before := troubles.Load()
			server.Kill(t)
			x.Eventually("the consumer notices", func() bool { return troubles.Load() > before })
			x.Restart(server)
			x.Eventually("the pool finds the server again", func() bool {
				return x.DB.Admin().PingContext(x.Ctx) == nil
			})
			x.Eventually("the feed is there again", func() bool { _, err := f.Publish(x.Ctx); return err == nil })
		}
		x.FillFrom(7, 7)
		x.Publish(f)
		x.Eventually("the last entry is applied", func() bool { return len(r.Applied()) == 7 })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		wantApplied(r, suite.Upserts(1, 7)...)
		wantLetters(r)
	})
}

// TestConsumerSurvivesServerRestart: the HTTP server of the source stops, and starts again at the same address. The
// consumer continues by itself.
func TestConsumerSurvivesServerRestart(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		address := testdb.Address(x.T)
		listen := func() *http.Server {
			x.Helper()
			var listener net.Listener
			x.Eventually("the address is free", func() (ok bool) {
				var err error
				listener, err = net.Listen("tcp", address)
				return err == nil
			})
			s := &http.Server{Addr: listener.Addr().String(), Handler: feedhttp.NewHandler(feedhttp.Of(x.RF), nil)}
			go s.Serve(listener)
			x.Cleanup(func() { s.Close() })
			return s
		}
		server := listen()
		var troubles atomic.Int64
		counts := &rowfeed.Observer{Trouble: func(rowfeed.TroubleEvent) { troubles.Add(1) }}
		rf, err := rowfeed.Open(x.Ctx, x.Pool, x.Dialect, &rowfeed.Config{Observer: counts})
		if err != nil {
			x.Fatal(err)
		}
		stop := run(r, r.Consumer(&feedhttp.Client{URL: "http://" + server.Addr, Feed: "kv"}, rf))
		x.Fill(2)
		x.Publish(f)
		x.Eventually("the entries are applied", func() bool { return len(r.Applied()) == 2 })
		server.Close()
		x.Eventually("the consumer notices", func() bool { return troubles.Load() > 0 })
		x.FillFrom(3, 4)
		x.Publish(f)
		listen()
		x.Eventually("the entries are applied", func() bool { return len(r.Applied()) == 4 })
		if err := stop(); err != nil {
			x.Fatal(err)
		}
		wantApplied(r, suite.Upserts(1, 4)...)
	})
}

// TestEndOfContextRollsBack: a context that ends in the middle of a page rolls the page back, and Run returns without
// an error.
func TestEndOfContextRollsBack(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Fill(2)
		x.Publish(f)
		inside := make(chan struct{})
		r.Fail = func(ctx context.Context, _ *sql.Tx, _ rowfeed.Entry) error {
			close(inside)
			<-ctx.Done()
			return ctx.Err()
		}
		stop := run(r, r.Consumer(f, x.RF))
		<-inside
		if err := stop(); err != nil {
			x.Errorf("Run: %v", err)
		}
		wantApplied(r)
		r.Fail = nil
		r.Once(r.Consumer(f, x.RF))
		wantApplied(r, suite.Upserts(1, 2)...)
	})
}
