package conformance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestBump (M74, H15): a bumped feed refuses the cursors of before and says what to do; its
// positions go on, and a publisher that knows the former generation only goes on too.
func TestBump(t *testing.T) {
	eachCapture(t, func(x *env) {
		f := x.addKV()
		x.fill(3)
		_, cursor := x.drain(f, "")
		other, err := openEnv(x.T, x.db, nil).rf.Feed(x.ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		last := f.Generation()
		for round, bump := range []func() int64{
			func() int64 {
				generation, err := f.Admin().Bump(x.ctx)
				if err != nil {
					x.Fatal(err)
				}
				return generation
			},
			func() int64 { // in the same second, if need be
				generation, err := f.Admin().Bump(x.ctx)
				if err != nil {
					x.Fatal(err)
				}
				return generation
			},
			func() int64 { // by the printed script
				steps, err := rowfeed.PrintBump(x.dialect, nil, "kv", false)
				if err != nil {
					x.Fatal(err)
				}
				for _, s := range steps {
					if !strings.HasPrefix(s.SQL, "BEGIN") && s.SQL != "COMMIT" { // Admin is a pool
						x.exec(s.SQL)
					}
				}
				return x.scalar("SELECT generation FROM rowfeed_feeds")
			},
		} {
			generation := bump()
			if generation <= last || generation < 1_700_000_000 {
				x.Fatalf("round %d: generation %d after %d", round, generation, last)
			}
			last = generation
			for _, reader := range []*rowfeed.Feed{f, other} {
				_, err = reader.Fetch(x.ctx, rowfeed.Request{After: cursor})
				x.wantCode(err, rowfeed.GenerationChanged)
				if !strings.Contains(err.Error(), `start again at the beginning (after="")`) {
					x.Errorf("no next step in %v", err)
				}
			}
			x.exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", 10+round))
			if n := x.publish(other); n != 1 {
				x.Fatalf("round %d: %d keys published", round, n)
			}
			page := x.fetch(f, rowfeed.Beginning, 0)
			if len(page.Entries) != 4+round || page.Entries[3+round].Position != fmt.Sprint(4+round) {
				x.Fatalf("round %d: %d entries", round, len(page.Entries))
			}
			cursor = page.Cursor
			if want := fmt.Sprintf("%d:%d", last, 4+round); string(cursor) != want {
				x.Fatalf("cursor %q, want %q", cursor, want)
			}
		}
		x.wantSound(f)
	})
}

// TestBumpDuringAPass (M74): a bump waits for a publisher in the middle of a pass, and what
// that publishes is of the generation before.
func TestBumpDuringAPass(t *testing.T) {
	eachCapture(t, func(x *env) {
		f := x.addKV()
		x.exec("INSERT INTO kv VALUES (1, 'k', 0)")
		held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit })
		publisher := x.tapped(testdb.Hooks{Before: held.Before}, nil)
		published := make(chan error, 1)
		go func() {
			_, err := publisher.Publish(x.ctx)
			published <- err
		}()
		<-held.Reached
		bumped := make(chan error, 1)
		go func() {
			_, err := f.Admin().Bump(x.ctx)
			bumped <- err
		}()
		if x.family() != "sqlite" { // which cannot tell
			x.eventually("the bump waits", x.waits)
		}
		held.Release()
		if err := errors.Join(<-published, <-bumped); err != nil {
			x.Fatal(err)
		}
		if page := x.fetch(f, "", 0); len(page.Entries) != 1 || !strings.HasSuffix(string(page.Cursor), ":1") {
			x.Errorf("%d entries, cursor %q", len(page.Entries), page.Cursor)
		}
		x.exec("INSERT INTO kv VALUES (2, 'k', 0)")
		if n := x.publish(publisher); n != 1 {
			x.Errorf("%d keys", n)
		}
		x.wantSound(f)
	})
}

// TestOtherDatabase (M74, H15): a publisher in a database of another identity than the feed's
// gives no position, says what to do, and goes on when that has been done. SQLite has
// no identity, so there is none to be another.
func TestOtherDatabase(t *testing.T) {
	each(t, func(x *env) {
		f := x.addKV()
		x.fill(3)
		_, cursor := x.drain(f, "")
		identity := func() string {
			var id *string
			if err := x.db.Admin().QueryRow("SELECT database_identity FROM rowfeed_feeds").Scan(&id); err != nil {
				x.Fatal(err)
			}
			if id == nil {
				return ""
			}
			return *id
		}
		if x.family() == "sqlite" {
			if id := identity(); id != "" {
				x.Errorf("identity %q", id)
			}
			if changed, err := f.Admin().AdoptDatabase(x.ctx); err != nil || changed {
				x.Errorf("adopted: %v, %v", changed, err)
			}
			return
		}
		own := identity()
		if own == "" {
			x.Fatal("the feed does not know its database")
		}
		move := func() { x.exec("UPDATE rowfeed_feeds SET database_identity = 'the one before'") }
		move()
		x.exec("INSERT INTO kv VALUES (4, 'k', 0)")
		fresh, err := openEnv(x.T, x.db, nil).rf.Feed(x.ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		for range 2 {
			_, err := fresh.Publish(x.ctx)
			x.wantCode(err, rowfeed.DatabaseChanged)
			for _, want := range []string{own, "the one before", "`rowfeed feed bump kv`", "`rowfeed feed bump kv --adopt-database`"} {
				if !strings.Contains(err.Error(), want) {
					x.Errorf("%v does not name %s", err, want)
				}
			}
		}
		// What is there is still answered.
		if page := x.fetch(f, rowfeed.Beginning, 0); len(page.Entries) != 3 || page.Cursor != cursor {
			x.Errorf("%d entries, cursor %q", len(page.Entries), page.Cursor)
		}

		running := x.runPublisher()
		x.eventually("the publisher tells", func() bool { return len(running.feed.Problems()) > 0 })
		if p := running.feed.Problems()[0]; !strings.Contains(p, "feed bump kv") {
			x.Errorf("problem %q", p)
		}
		x.exec("DELETE FROM kv WHERE id = 4") // it never was, for readers
		if changed, err := f.Admin().AdoptDatabase(x.ctx); err != nil || !changed {
			x.Fatalf("adopted: %v, %v", changed, err)
		}
		x.exec("INSERT INTO kv VALUES (5, 'k', 0)")
		x.eventually("the publisher goes on", func() bool { return len(x.fetch(f, cursor, 0).Entries) == 1 })
		x.eventually("all is well", func() bool { return len(running.feed.Problems()) == 0 })

		move()
		if _, err := f.Admin().Bump(x.ctx); err != nil {
			x.Fatal(err)
		}
		if id := identity(); id != own {
			x.Errorf("identity %q after a bump", id)
		}
		_, err = f.Fetch(x.ctx, rowfeed.Request{After: cursor})
		x.wantCode(err, rowfeed.GenerationChanged)
		running.stop()

		// A feed of before identities, or of a printed script: its publisher fills it in.
		x.exec("UPDATE rowfeed_feeds SET database_identity = NULL")
		running = x.runPublisher()
		x.eventually("the identity is known", func() bool { return identity() == own })
	})
}

// TestTablesMadeAnew (M74): on PostgreSQL a dump that was loaded into the database it
// came from is seen by the tables that it makes, though it brings the same rows.
func TestTablesMadeAnew(t *testing.T) {
	testdb.Postgres15.Require(t)
	x := newEnv(t, testdb.Postgres15, nil)
	x.migrate()
	f := x.addKV()
	x.fill(2)
	x.publish(f)
	x.exec("CREATE TABLE dump AS SELECT * FROM rowfeed_sequences", "ALTER TABLE rowfeed_sequences RENAME TO former",
		"CREATE TABLE rowfeed_sequences (LIKE former INCLUDING ALL)", "INSERT INTO rowfeed_sequences SELECT * FROM dump", "DROP TABLE former, dump")
	x.exec("INSERT INTO kv VALUES (3, 'k', 0)")
	_, err := f.Publish(x.ctx)
	x.wantCode(err, rowfeed.DatabaseChanged)
	if _, err := f.Admin().Bump(x.ctx); err != nil {
		x.Fatal(err)
	}
	if n := x.publish(f); n != 1 {
		x.Errorf("%d keys published", n)
	}
}

// TestAdoptedElsewhere (M74): a publisher that knows the feed in its former database, as one
// does whose connections have moved with the database, sees that it was adopted.
func TestAdoptedElsewhere(t *testing.T) {
	each(t, func(x *env) {
		f := x.addKV()
		x.exec("UPDATE rowfeed_feeds SET database_identity = 'the one before'")
		moved, err := openEnv(x.T, x.db, nil).rf.Feed(x.ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		if _, err := f.Admin().AdoptDatabase(x.ctx); err != nil {
			x.Fatal(err)
		}
		x.exec("INSERT INTO kv VALUES (1, 'k', 0)")
		if n := x.publish(moved); n != 1 {
			x.Errorf("%d keys published", n)
		}
	})
}

// running is a publisher with a DB of its own.
type running struct {
	feed *rowfeed.Feed
	stop func()
}

func (x *env) runPublisher() running {
	x.Helper()
	own := openEnv(x.T, x.db, nil)
	f, err := own.rf.Feed(x.ctx, "kv")
	if err != nil {
		x.Fatal(err)
	}
	ctx, cancel := context.WithCancel(x.ctx)
	ended := make(chan error, 1)
	go func() { ended <- f.RunPublisher(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			x.Errorf("RunPublisher: %v", err)
		}
	})
	x.Cleanup(stop)
	return running{f, stop}
}

// witness is a consumer in a process of its own: it keeps reading, and what it was
// refused for.
type witness struct {
	mu      sync.Mutex
	cursor  rowfeed.Cursor
	lines   []string // "position key" of the entries
	refused error
}

func (x *env) witness() *witness {
	x.Helper()
	own := openEnv(x.T, x.db, nil)
	f, err := own.rf.Feed(x.ctx, "kv")
	if err != nil {
		x.Fatal(err)
	}
	w := &witness{}
	ctx, cancel := context.WithCancel(x.ctx)
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
	rest(ctx, 1e6)
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
		var x *env
		if e.HasServer() {
			x = openEnv(t, e.Dedicated(t).NewDatabase(t), nil)
		} else {
			x = newEnv(t, e, nil)
		}
		x.capture = capture
		x.migrate()
		f := x.addKV()
		publisher, consumer := x.runPublisher(), x.witness()
		x.fill(3)
		x.eventually("three entries", consumer.has(3))
		restore := x.db.Backup(t)
		x.exec("INSERT INTO kv VALUES (4, 'k', 0), (5, 'k', 0), (6, 'k', 0)")
		x.eventually("six entries", consumer.has(6))
		restore()
		x.eventually("the consumer is refused", func() bool { return consumer.refusal() != nil })
		if err := consumer.refusal(); !isCode(err, rowfeed.DatabaseChanged) || !strings.Contains(err.Error(), "`rowfeed feed bump kv`") {
			x.Errorf("refused with %v", err)
		}
		x.exec("INSERT INTO kv VALUES (7, 'k', 0), (8, 'k', 0)") // which would be positions 4 and 5
		x.eventually("the publisher tells", func() bool {
			return slices.ContainsFunc(publisher.feed.Problems(), func(p string) bool { return strings.Contains(p, "feed bump kv") })
		})
		if n := x.scalar("SELECT value FROM rowfeed_sequences"); n != 3 {
			x.Errorf("the head is %d: positions were given again", n)
		}
		// A process that has seen nothing yet knows by the cursor.
		fresh, err := openEnv(t, x.db, nil).rf.Feed(x.ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		_, err = fresh.Fetch(x.ctx, rowfeed.Request{After: consumer.cursor})
		x.wantCode(err, rowfeed.CursorAhead)

		x.eventually("bumped", func() bool { // f's pool may have to find the server, too
			_, err := f.Admin().Bump(x.ctx)
			return err == nil
		})
		x.eventually("the consumer is told", func() bool { return isCode(consumer.refusal(), rowfeed.GenerationChanged) })
		if !consumer.has(6)() {
			x.Errorf("received %q", consumer.lines)
		}
		consumer.startOver()
		x.eventually("what is there", consumer.has(5))
		want := []string{`1 {"id":1}`, `2 {"id":2}`, `3 {"id":3}`, `4 {"id":7}`, `5 {"id":8}`}
		if !slices.Equal(consumer.lines, want) {
			x.Errorf("received %q", consumer.lines)
		}
		x.eventually("all is well", func() bool { return len(publisher.feed.Problems()) == 0 })
		x.wantSound(f)
	}
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		t.Run("trigger", func(t *testing.T) { restored(t, e, feedtype.CaptureTrigger) })
		if e != testdb.Postgres18 && e != testdb.MySQL { // whose servers take their time to stop
			t.Run("column", func(t *testing.T) { restored(t, e, feedtype.CaptureColumn) })
		}
	})
}

// TestConsumerOfARestoredBackup (M74, H15): cursor and effects are in another database, which
// keeps what the restored one has lost. The consumer waits while nobody has said what
// happened, starts over after the bump, and ends with the effects of what is there.
func TestConsumerOfARestoredBackup(t *testing.T) {
	testdb.Only(t, testdb.SQLite, testdb.Postgres15, testdb.MariaDB)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		var x *env
		if e.HasServer() {
			x = openEnv(t, e.Dedicated(t).NewDatabase(t), nil)
		} else {
			x = newEnv(t, e, nil)
		}
		x.migrate()
		f := x.addKV()
		y := newEnv(t, testdb.SQLite, nil)
		y.migrate()
		r := y.receiver()
		c := r.consumer(f, y.rf)
		started := 0
		c.OnRefused = func(ctx context.Context, tx *sql.Tx, refusal error) error {
			started++
			if !isCode(refusal, rowfeed.GenerationChanged) {
				t.Errorf("started over because of %v", refusal)
			}
			_, err := tx.ExecContext(ctx, "DELETE FROM applied")
			return err
		}
		stop := r.run(c)
		effects := func(ids string) func() bool {
			return func() bool {
				var got *string
				err := y.db.Admin().QueryRow("SELECT group_concat(id, ' ') FROM (SELECT id FROM applied ORDER BY generation, position)").Scan(&got)
				return err == nil && got != nil && *got == ids
			}
		}
		x.fill(3)
		x.publish(f)
		x.eventually("three effects", effects("1 2 3"))
		restore := x.db.Backup(t)
		x.found(f)
		x.exec("INSERT INTO kv VALUES (4, 'k', 0), (5, 'k', 0)")
		x.publish(f)
		x.eventually("five effects", effects("1 2 3 4 5"))
		restore()
		x.eventually("the feed knows", func() bool {
			_, err := f.Fetch(x.ctx, rowfeed.Request{})
			return isCode(err, rowfeed.DatabaseChanged)
		})
		x.exec("INSERT INTO kv VALUES (6, 'k', 0), (7, 'k', 0), (8, 'k', 0)")
		_, err := f.Publish(x.ctx)
		x.wantCode(err, rowfeed.DatabaseChanged)
		if _, err := f.Admin().Bump(x.ctx); err != nil {
			x.Fatal(err)
		}
		x.publish(f)
		x.eventually("the effects of what is there", effects("1 2 3 6 7 8"))
		if err := stop(); err != nil && !errors.Is(err, context.Canceled) {
			x.Error(err)
		}
		if started != 1 {
			x.Errorf("started over %d times", started)
		}
	})
}
