package page

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestBump (M74, H15): a bumped feed refuses the cursors of before and says what to do; its
// positions go on, and a publisher that knows the former generation only goes on too.
func TestBump(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(3)
		_, cursor := x.Drain(f, "")
		other, err := suite.OpenEnv(x.T, x.DB, nil).RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		last := f.Generation()
		for round, bump := range []func() int64{
			func() int64 {
				generation, err := f.Admin().Bump(x.Ctx)
				if err != nil {
					x.Fatal(err)
				}
				return generation
			},
			func() int64 { // in the same second, if need be
				generation, err := f.Admin().Bump(x.Ctx)
				if err != nil {
					x.Fatal(err)
				}
				return generation
			},
			func() int64 { // by the printed script
				steps, err := rowfeed.PrintBump(x.Dialect, nil, "kv", false)
				if err != nil {
					x.Fatal(err)
				}
				for _, s := range steps {
					if !strings.HasPrefix(s.SQL, "BEGIN") && s.SQL != "COMMIT" { // Admin is a pool
						x.Exec(s.SQL)
					}
				}
				return x.Scalar("SELECT generation FROM rowfeed_feeds")
			},
		} {
			generation := bump()
			if generation <= last || generation < 1_700_000_000 {
				x.Fatalf("round %d: generation %d after %d", round, generation, last)
			}
			last = generation
			for _, reader := range []*rowfeed.Feed{f, other} {
				_, err = reader.Fetch(x.Ctx, rowfeed.Request{After: cursor})
				x.WantCode(err, rowfeed.GenerationChanged)
				if !strings.Contains(err.Error(), `start again at the beginning (after="")`) {
					x.Errorf("no next step in %v", err)
				}
			}
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", 10+round))
			if n := x.Publish(other); n != 1 {
				x.Fatalf("round %d: %d keys published", round, n)
			}
			page := x.Fetch(f, rowfeed.Beginning, 0)
			if len(page.Entries) != 4+round || page.Entries[3+round].Position != fmt.Sprint(4+round) {
				x.Fatalf("round %d: %d entries", round, len(page.Entries))
			}
			cursor = page.Cursor
			if want := fmt.Sprintf("%d:%d", last, 4+round); string(cursor) != want {
				x.Fatalf("cursor %q, want %q", cursor, want)
			}
		}
		x.WantSound(f)
	})
}

// TestBumpDuringAPass (M74): a bump waits for a publisher in the middle of a pass, and what
// that publishes is of the generation before.
func TestBumpDuringAPass(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
		held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit })
		publisher := x.Tapped(testdb.Hooks{Before: held.Before}, nil)
		published := make(chan error, 1)
		go func() {
			_, err := publisher.Publish(x.Ctx)
			published <- err
		}()
		<-held.Reached
		bumped := make(chan error, 1)
		go func() {
			_, err := f.Admin().Bump(x.Ctx)
			bumped <- err
		}()
		if x.Family() != "sqlite" { // which cannot tell
			x.Eventually("the bump waits", x.Waits)
		}
		held.Release()
		if err := errors.Join(<-published, <-bumped); err != nil {
			x.Fatal(err)
		}
		if page := x.Fetch(f, "", 0); len(page.Entries) != 1 || !strings.HasSuffix(string(page.Cursor), ":1") {
			x.Errorf("%d entries, cursor %q", len(page.Entries), page.Cursor)
		}
		x.Exec("INSERT INTO kv VALUES (2, 'k', 0)")
		if n := x.Publish(publisher); n != 1 {
			x.Errorf("%d keys", n)
		}
		x.WantSound(f)
	})
}

// TestOtherDatabase (M74, H15): a publisher in a database of another identity than the feed's
// gives no position, says what to do, and goes on when that has been done. SQLite has
// no identity, so there is none to be another.
func TestOtherDatabase(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(3)
		_, cursor := x.Drain(f, "")
		identity := func() string {
			var id *string
			if err := x.DB.Admin().QueryRow("SELECT database_identity FROM rowfeed_feeds").Scan(&id); err != nil {
				x.Fatal(err)
			}
			if id == nil {
				return ""
			}
			return *id
		}
		if x.Family() == "sqlite" {
			if id := identity(); id != "" {
				x.Errorf("identity %q", id)
			}
			if changed, err := f.Admin().AdoptDatabase(x.Ctx); err != nil || changed {
				x.Errorf("adopted: %v, %v", changed, err)
			}
			return
		}
		own := identity()
		if own == "" {
			x.Fatal("the feed does not know its database")
		}
		move := func() { x.Exec("UPDATE rowfeed_feeds SET database_identity = 'the one before'") }
		move()
		x.Exec("INSERT INTO kv VALUES (4, 'k', 0)")
		fresh, err := suite.OpenEnv(x.T, x.DB, nil).RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		for range 2 {
			_, err := fresh.Publish(x.Ctx)
			x.WantCode(err, rowfeed.DatabaseChanged)
			for _, want := range []string{own, "the one before", "`rowfeed feed bump kv`", "`rowfeed feed bump kv --adopt-database`"} {
				if !strings.Contains(err.Error(), want) {
					x.Errorf("%v does not name %s", err, want)
				}
			}
		}
		// What is there is still answered.
		if page := x.Fetch(f, rowfeed.Beginning, 0); len(page.Entries) != 3 || page.Cursor != cursor {
			x.Errorf("%d entries, cursor %q", len(page.Entries), page.Cursor)
		}

		running := x.RunPublisher()
		x.Eventually("the publisher tells", func() bool { return len(running.Feed.Problems()) > 0 })
		if p := running.Feed.Problems()[0]; !strings.Contains(p, "feed bump kv") {
			x.Errorf("problem %q", p)
		}
		x.Exec("DELETE FROM kv WHERE id = 4") // it never was, for readers
		if changed, err := f.Admin().AdoptDatabase(x.Ctx); err != nil || !changed {
			x.Fatalf("adopted: %v, %v", changed, err)
		}
		x.Exec("INSERT INTO kv VALUES (5, 'k', 0)")
		x.Eventually("the publisher goes on", func() bool { return len(x.Fetch(f, cursor, 0).Entries) == 1 })
		x.Eventually("all is well", func() bool { return len(running.Feed.Problems()) == 0 })

		move()
		if _, err := f.Admin().Bump(x.Ctx); err != nil {
			x.Fatal(err)
		}
		if id := identity(); id != own {
			x.Errorf("identity %q after a bump", id)
		}
		_, err = f.Fetch(x.Ctx, rowfeed.Request{After: cursor})
		x.WantCode(err, rowfeed.GenerationChanged)
		running.Stop()

		// A feed of before identities, or of a printed script: its publisher fills it in.
		x.Exec("UPDATE rowfeed_feeds SET database_identity = NULL")
		running = x.RunPublisher()
		x.Eventually("the identity is known", func() bool { return identity() == own })
	})
}

// TestTablesMadeAnew (M74): on PostgreSQL a dump that was loaded into the database it
// came from is seen by the tables that it makes, though it brings the same rows.
func TestTablesMadeAnew(t *testing.T) {
	testdb.Postgres15.Require(t)
	x := suite.NewEnv(t, testdb.Postgres15, nil)
	x.Migrate()
	f := x.AddKV()
	x.Fill(2)
	x.Publish(f)
	x.Exec("CREATE TABLE dump AS SELECT * FROM rowfeed_sequences", "ALTER TABLE rowfeed_sequences RENAME TO former",
		"CREATE TABLE rowfeed_sequences (LIKE former INCLUDING ALL)", "INSERT INTO rowfeed_sequences SELECT * FROM dump", "DROP TABLE former, dump")
	x.Exec("INSERT INTO kv VALUES (3, 'k', 0)")
	_, err := f.Publish(x.Ctx)
	x.WantCode(err, rowfeed.DatabaseChanged)
	if _, err := f.Admin().Bump(x.Ctx); err != nil {
		x.Fatal(err)
	}
	if n := x.Publish(f); n != 1 {
		x.Errorf("%d keys published", n)
	}
}

// TestAdoptedElsewhere (M74): a publisher that knows the feed in its former database, as one
// does whose connections have moved with the database, sees that it was adopted.
func TestAdoptedElsewhere(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("UPDATE rowfeed_feeds SET database_identity = 'the one before'")
		moved, err := suite.OpenEnv(x.T, x.DB, nil).RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		if _, err := f.Admin().AdoptDatabase(x.Ctx); err != nil {
			x.Fatal(err)
		}
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
		if n := x.Publish(moved); n != 1 {
			x.Errorf("%d keys published", n)
		}
	})
}

// witness is a consumer in a process of its own: it keeps reading, and what it was
// refused for.
type witness struct {
	mu      sync.Mutex
	cursor  rowfeed.Cursor
	lines   []string // "position key" of the entries
	refused error
}

func newWitness(x *suite.Env) *witness {
	x.Helper()
	own := suite.OpenEnv(x.T, x.DB, nil)
	f, err := own.RF.Feed(x.Ctx, "kv")
	if err != nil {
		x.Fatal(err)
	}
	w := &witness{}
	ctx, cancel := context.WithCancel(x.Ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			w.step(ctx, f)
		}
	}()
	x.Cleanup(func() { cancel(); <-done })
	return w
}

func (w *witness) step(ctx context.Context, f *rowfeed.Feed) {
	w.mu.Lock()
	after := w.cursor
	w.mu.Unlock()
	page, err := f.Fetch(ctx, rowfeed.Request{After: after})
	w.mu.Lock()
	if err == nil {
		w.cursor = page.Cursor
		for _, e := range page.Entries {
			w.lines = append(w.lines, e.Position+" "+string(e.Key.AppendJSON(nil)))
		}
	} else if !errors.Is(err, rowfeed.Unavailable) {
		w.refused = err
	}
	w.mu.Unlock()
	suite.Rest(ctx, 1e6)
}

func (w *witness) has(n int) func() bool {
	return func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.lines) == n
	}
}

func (w *witness) refusal() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused
}

// startOver is what a consumer does that was refused.
func (w *witness) startOver() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cursor, w.lines, w.refused = rowfeed.Beginning, nil, nil
}

// TestRestoredBackup (M74, H15): an older backup is restored under a running publisher and a
// running consumer. The database looks as it did, so nothing but their memory tells.
// Neither goes on in silence: no position is given twice, and after a bump the
// consumer has what is there.
func TestRestoredBackup(t *testing.T) {
	restored := func(t *testing.T, e testdb.Engine, capture feedtype.Capture) {
		var x *suite.Env
		if e.HasServer() {
			x = suite.OpenEnv(t, e.Dedicated(t).NewDatabase(t), nil)
		} else {
			x = suite.NewEnv(t, e, nil)
		}
		x.Capture = capture
		x.Migrate()
		f := x.AddKV()
		publisher, consumer := x.RunPublisher(), newWitness(x)
		x.Fill(3)
		x.Eventually("three entries", consumer.has(3))
		restore := x.DB.Backup(t)
		x.Exec("INSERT INTO kv VALUES (4, 'k', 0), (5, 'k', 0), (6, 'k', 0)")
		x.Eventually("six entries", consumer.has(6))
		restore()
		x.Eventually("the consumer is refused", func() bool { return consumer.refusal() != nil })
		if err := consumer.refusal(); !suite.IsCode(err, rowfeed.DatabaseChanged) || !strings.Contains(err.Error(), "`rowfeed feed bump kv`") {
			x.Errorf("refused with %v", err)
		}
		x.Exec("INSERT INTO kv VALUES (7, 'k', 0), (8, 'k', 0)") // which would be positions 4 and 5
		x.Eventually("the publisher tells", func() bool {
			return slices.ContainsFunc(publisher.Feed.Problems(), func(p string) bool { return strings.Contains(p, "feed bump kv") })
		})
		if n := x.Scalar("SELECT value FROM rowfeed_sequences"); n != 3 {
			x.Errorf("the head is %d: positions were given again", n)
		}
		// A process that has seen nothing yet knows by the cursor.
		fresh, err := suite.OpenEnv(t, x.DB, nil).RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		_, err = fresh.Fetch(x.Ctx, rowfeed.Request{After: consumer.cursor})
		x.WantCode(err, rowfeed.CursorAhead)

		x.Eventually("bumped", func() bool { // f's pool may have to find the server, too
			_, err := f.Admin().Bump(x.Ctx)
			return err == nil
		})
		x.Eventually("the consumer is told", func() bool { return suite.IsCode(consumer.refusal(), rowfeed.GenerationChanged) })
		if !consumer.has(6)() {
			x.Errorf("received %q", consumer.lines)
		}
		consumer.startOver()
		x.Eventually("what is there", consumer.has(5))
		want := []string{`1 {"id":1}`, `2 {"id":2}`, `3 {"id":3}`, `4 {"id":7}`, `5 {"id":8}`}
		if !slices.Equal(consumer.lines, want) {
			x.Errorf("received %q", consumer.lines)
		}
		x.Eventually("all is well", func() bool { return len(publisher.Feed.Problems()) == 0 })
		x.WantSound(f)
	}
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		t.Run("trigger", func(t *testing.T) { restored(t, e, feedtype.CaptureTrigger) })
		if e != testdb.Postgres18 && e != testdb.MySQL { // whose servers take their time to stop
			t.Run("column", func(t *testing.T) { restored(t, e, feedtype.CaptureColumn) })
		}
	})
}
