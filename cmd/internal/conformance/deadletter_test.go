package conformance

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// failsOn makes the handler fail for some ids, after it has written their effect.
func failsOn(ids ...int64) func(context.Context, *sql.Tx, rowfeed.Entry) error {
	return func(_ context.Context, _ *sql.Tx, e rowfeed.Entry) error {
		if id, _ := e.Key.Get("id"); slices.Contains(ids, id.(int64)) {
			return fmt.Errorf("id %d cannot be handled", id)
		}
		return nil
	}
}

var testConsumer = rowfeed.ConsumerID{Consumer: "test", Feed: "kv"}

// letters lists the dead letters: "2 upsert {"id":2} aside" each.
func (r *receiver) letters() (lines []string) {
	r.Helper()
	all, err := r.rf.Admin().DeadLetters(r.ctx, testConsumer, nil)
	if err != nil {
		r.Fatal(err)
	}
	for _, l := range all {
		lines = append(lines, fmt.Sprintf("%s %s %s %s", l.Position, l.Op, l.Key, l.State))
	}
	return lines
}

func (r *receiver) wantLetters(want ...string) {
	r.Helper()
	if got := r.letters(); !slices.Equal(got, want) {
		r.Fatalf("dead letters %q, want %q", got, want)
	}
	var aside int64
	if all, err := r.rf.Admin().Consumers(r.ctx, testConsumer); err != nil || len(all) != 1 {
		r.Fatalf("consumers: %v %v", all, err)
	} else {
		aside = all[0].DeadLetters
	}
	if int(aside) != len(want) {
		r.Fatalf("the cursor counts %d dead letters, there are %d", aside, len(want))
	}
}

func (r *receiver) retry(key string) {
	r.Helper()
	var one json.RawMessage
	if key != "" {
		one = json.RawMessage(key)
	}
	if n, err := r.rf.Admin().RetryDeadLetters(r.ctx, testConsumer, one); err != nil || n == 0 {
		r.Fatalf("retry: %d %v", n, err)
	}
}

// TestConsumeStops: after its attempts a consumer that stops names the key; nothing
// of the failed attempts is left, what came before is done, and what comes after waits.
func TestConsumeStops(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addKV(), x.receiver()
		x.fill(5)
		x.publish(f)
		r.fail = failsOn(3)
		c := r.consumer(f, x.rf)
		err := c.RunOnce(x.ctx)
		x.wantCode(err, rowfeed.HandlerFailed)
		for _, part := range []string{`consumer "test" of feed "kv"`, "position 3", `{"id":3}`, "3 attempts", "id 3 cannot be handled"} {
			if !strings.Contains(err.Error(), part) {
				x.Errorf("%q does not say %q", err, part)
			}
		}
		r.wantApplied(upserts(1, 2)...)
		if r.stored() != "2@5" {
			x.Errorf("the cursor is %q", r.stored())
		}
		r.fail = nil
		r.once(c)
		r.wantApplied(upserts(1, 5)...)

		// A panic is a failure as any other; the process and the consumer live on.
		x.fillFrom(6, 7)
		x.publish(f)
		r.fail = func(context.Context, *sql.Tx, rowfeed.Entry) error { panic("at the handler's") }
		err = c.RunOnce(x.ctx)
		x.wantCode(err, rowfeed.HandlerFailed)
		if !strings.Contains(err.Error(), "panic: at the handler's") || !strings.Contains(err.Error(), "deadletter_test.go") {
			x.Errorf("the panic is not told: %.200v", err)
		}
		r.wantApplied(upserts(1, 5)...)
		// A handler that ends the transaction: its effects may be committed without the
		// cursor, which nobody can undo. The consumer stops at once.
		r.takeHanded()
		r.fail = func(_ context.Context, tx *sql.Tx, _ rowfeed.Entry) error { return tx.Rollback() }
		c.Limit = 1
		err = c.RunOnce(x.ctx)
		x.wantCode(err, rowfeed.HandlerFailed)
		if !strings.Contains(err.Error(), "ended the transaction") || len(r.takeHanded()) != 1 {
			x.Errorf("a handler that ends the transaction: %v", err)
		}
	})
}

// TestConsumeRowsLeftOpen: a handler that leaves rows open makes its connection
// unusable on some databases, which looks as if the database was away. It is told, in
// place of a feed that stands still for ever.
func TestConsumeRowsLeftOpen(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addKV(), x.receiver()
		x.fill(500)
		x.publish(f)
		r.fail = func(ctx context.Context, tx *sql.Tx, _ rowfeed.Entry) error {
			rows, err := tx.QueryContext(ctx, "SELECT id, k FROM kv")
			if err == nil {
				rows.Next()
			}
			return err
		}
		c := r.consumer(f, x.rf)
		c.Limit = 1
		err := c.RunOnce(x.ctx)
		if x.family() == "sqlite" { // where any number of statements can be open
			if err != nil {
				x.Error(err)
			}
			return
		}
		x.wantCode(err, rowfeed.HandlerFailed)
		r.wantApplied()
	})
}

// TestConsumeFailsAtCommit: what the handler did and the database refuses at COMMIT
// only, and an error that the handler keeps to itself, are the handler's failures, not
// the database's: they do not stall the feed.
func TestConsumeFailsAtCommit(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addKV(), x.receiver()
		x.fill(3)
		x.publish(f)
		rf := x.rf
		bad := map[string]string{ // for entry 2
			"postgres": "INSERT INTO child VALUES (1)", "sqlite": "INSERT INTO child VALUES (1)",
			"mysql": "INSERT INTO no_such_table VALUES (1)", // refused at once; constraints cannot wait there
		}
		switch x.family() {
		case "postgres":
			x.exec("CREATE TABLE parent (id INT PRIMARY KEY)", "CREATE TABLE child (id INT REFERENCES parent DEFERRABLE INITIALLY DEFERRED)")
		case "sqlite":
			x.exec("CREATE TABLE parent (id INT PRIMARY KEY)", "CREATE TABLE child (id INT REFERENCES parent DEFERRABLE INITIALLY DEFERRED)")
			var err error
			if rf, err = rowfeed.Open(x.ctx, x.db.OpenTapped(x.T, testdb.Hooks{}, "_pragma=foreign_keys(1)"), x.dialect, nil); err != nil {
				x.Fatal(err)
			}
		}
		r.fail = func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry) error {
			if e.Position != "2" {
				return nil
			}
			_, err := tx.ExecContext(ctx, bad[x.family()])
			return err
		}
		c := r.consumer(f, rf)
		c.OnFailure = rowfeed.SetAside
		r.once(c)
		r.wantApplied("1 upsert 1", "3 upsert 3")
		r.wantLetters(`2 upsert {"id":2} aside`)
		if x.family() == "postgres" {
			// The handler looks away from an error, after which the transaction is dead.
			x.fillFrom(4, 5)
			x.publish(f)
			r.fail = func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry) error {
				if e.Position == "4" {
					_, _ = tx.ExecContext(ctx, "INSERT INTO no_such_table VALUES (1)")
				}
				return nil
			}
			r.once(c)
			r.wantApplied("1 upsert 1", "3 upsert 3", "5 upsert 5")
			r.wantLetters(`2 upsert {"id":2} aside`, `4 upsert {"id":4} aside`)
		}
	})
}

// TestDeadLetters (H25): a key at fault is set aside, all else goes on in order;
// its later versions, a delete too, join it; released, its latest version comes once,
// as the row is then.
func TestDeadLetters(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addKV(), x.receiver()
		x.fill(4)
		x.publish(f)
		r.fail = failsOn(2, 3)
		c := r.consumer(f, x.rf)
		c.OnFailure = rowfeed.SetAside
		r.once(c)
		r.wantApplied("1 upsert 1", "4 upsert 4")
		r.wantLetters(`2 upsert {"id":2} aside`, `3 upsert {"id":3} aside`)
		all, err := x.rf.Admin().DeadLetters(x.ctx, testConsumer, json.RawMessage(`{ "id" : 3 }`))
		if err != nil || len(all) != 1 || all[0].Attempts != 3 || all[0].Error != "id 3 cannot be handled" || all[0].FirstAt.IsZero() || all[0].Generation != 1 {
			x.Errorf("the letter of 3: %+v %v", all, err)
		}

		// Later versions join, also when the handler would take them now.
		r.fail = nil
		r.takeHanded()
		x.exec("UPDATE kv SET v = 20 WHERE id = 2", "DELETE FROM kv WHERE id = 3", "INSERT INTO kv VALUES (5, 'k', 0)")
		x.publish(f)
		r.once(c)
		r.wantApplied("1 upsert 1", "4 upsert 4", "7 upsert 5")
		r.wantLetters(`5 upsert {"id":2} aside`, `6 delete {"id":3} aside`)
		if got := r.takeHanded(); !slices.Equal(got, []string{"7 upsert 5"}) {
			x.Errorf("handed over %q", got)
		}

		// The row is read when it is released: v is 21, although that is not published.
		x.exec("UPDATE kv SET v = 21 WHERE id = 2")
		r.retry(`{"id":2}`)
		r.once(c)
		r.wantApplied("1 upsert 1", "4 upsert 4", "5 upsert 2", "7 upsert 5")
		r.wantLetters(`6 delete {"id":3} aside`)
		if v := x.scalar("SELECT v FROM applied WHERE id = 2"); v != 21 {
			x.Errorf("released with v = %d, the row has 21", v)
		}
		r.retry("")
		r.once(c)
		r.wantApplied("1 upsert 1", "4 upsert 4", "5 upsert 2", "6 delete 3", "7 upsert 5")
		r.wantLetters()
		x.publish(f)
		r.once(c)
		r.wantApplied("1 upsert 1", "4 upsert 4", "5 upsert 2", "6 delete 3", "7 upsert 5", "8 upsert 2")
	})
}

// TestDeadLetterRetries (H25): a key that fails again stays aside with one more attempt; one
// whose newer version is on its way is not handed over before it; one that is given
// up comes with its next version.
func TestDeadLetterRetries(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addKV(), x.receiver()
		x.fill(2)
		x.publish(f)
		r.fail = failsOn(1, 2)
		c := r.consumer(f, x.rf)
		c.OnFailure = rowfeed.SetAside
		r.once(c)
		r.retry(`{"id":1}`)
		r.once(c)
		all, err := x.rf.Admin().DeadLetters(x.ctx, testConsumer, json.RawMessage(`{"id":1}`))
		if err != nil || len(all) != 1 || all[0].Attempts != 4 || all[0].State != rowfeed.LetterAside {
			x.Fatalf("after a retry that failed: %+v %v", all, err)
		}
		r.wantApplied()

		// A newer version is published but not yet read: the old one has no place any more.
		r.fail = nil
		r.takeHanded()
		x.exec("UPDATE kv SET v = 9 WHERE id = 1")
		x.publish(f)
		r.retry(`{"id":1}`)
		r.once(c)
		r.wantApplied("3 upsert 1")
		r.wantLetters(`2 upsert {"id":2} aside`)

		if n, err := x.rf.Admin().DropDeadLetters(x.ctx, testConsumer, nil); n != 1 || err != nil {
			x.Errorf("drop: %d %v", n, err)
		}
		r.wantLetters()
		r.once(c)
		x.exec("UPDATE kv SET v = 9 WHERE id = 2")
		x.publish(f)
		r.once(c)
		r.wantApplied("3 upsert 1", "4 upsert 2")
		_, err = x.rf.Admin().RetryDeadLetters(x.ctx, testConsumer, json.RawMessage(`{"id":2}`))
		x.wantCode(err, rowfeed.UnknownConsumer)
	})
}

// TestDeadLetterRace (H25): between reading a released key's row and committing
// it, another instance moves on and joins a newer version to the letter, or an
// operator drops it. Nothing is lost and nothing comes twice.
func TestDeadLetterRace(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addKV(), x.receiver()
		x.fill(1)
		x.publish(f)
		r.fail = failsOn(1)
		c := r.consumer(f, x.rf)
		c.OnFailure = rowfeed.SetAside
		r.once(c)
		r.fail = nil
		r.retry("")
		held := testdb.Hold(begins)
		slow := &receiver{env: x}
		ended := make(chan error, 1)
		go func() { ended <- slow.consumer(f, x.tappedDB(testdb.Hooks{Before: held.Before}, nil)).RunOnce(x.ctx) }()
		<-held.Reached // it has read version 1 of the row
		x.exec("UPDATE kv SET v = 7")
		x.publish(f)
		r.takeHanded()
		x.exec("UPDATE rowfeed_dead_letters SET state = 'aside'") // or the other one would release it
		r.once(c)
		r.wantLetters(`2 upsert {"id":1} aside`)
		r.retry("")
		held.Release()
		if err := <-ended; err != nil {
			x.Fatal(err)
		}
		r.wantLetters()
		r.wantApplied("2 upsert 1")
		if v := x.scalar("SELECT v FROM applied"); v != 7 {
			x.Errorf("v = %d was applied", v)
		}

		// An operator drops the letter that a version is about to join: it is handed over.
		x.fillFrom(2, 2)
		x.publish(f)
		r.fail = failsOn(2)
		r.once(c)
		r.fail = nil
		x.exec("UPDATE kv SET v = 8 WHERE id = 2")
		x.publish(f)
		held = testdb.Hold(begins)
		go func() { ended <- slow.consumer(f, x.tappedDB(testdb.Hooks{Before: held.Before}, nil)).RunOnce(x.ctx) }()
		<-held.Reached
		if n, err := x.rf.Admin().DropDeadLetters(x.ctx, testConsumer, nil); n != 1 || err != nil {
			x.Fatal(n, err)
		}
		held.Release()
		if err := <-ended; err != nil {
			x.Fatal(err)
		}
		r.wantApplied("2 upsert 1", "4 upsert 2")
		r.wantLetters()
	})
}

// TestDeadLettersOtherInstance (H25): a key that one instance has set aside is aside for an
// instance that knew of none, since the cursor's row says so.
func TestDeadLettersOtherInstance(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addKV(), x.receiver()
		c := r.consumer(f, x.rf)
		c.OnFailure = rowfeed.SetAside
		r.once(c)
		x.fill(1)
		x.publish(f)
		other := &receiver{env: x, fail: failsOn(1)}
		held := testdb.Hold(begins)
		ended := make(chan error, 1)
		go func() { ended <- r.consumer(f, x.tappedDB(testdb.Hooks{Before: held.Before}, nil)).RunOnce(x.ctx) }()
		<-held.Reached // with a page that has key 1
		second := other.consumer(f, x.rf)
		second.OnFailure = rowfeed.SetAside
		other.once(second)
		held.Release()
		if err := <-ended; err != nil {
			x.Fatal(err)
		}
		r.wantApplied()
		r.wantLetters(`1 upsert {"id":1} aside`)
	})
}

// TestNobodyAsksForDeadLetters: while no key is set aside, no statement mentions them.
func TestNobodyAsksForDeadLetters(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addKV(), x.receiver()
		x.fill(10)
		x.publish(f)
		var asked []string
		rf := x.tappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "dead_letters") {
				asked = append(asked, ev.SQL)
			}
			return nil
		}}, nil)
		c := r.consumer(f, rf)
		c.Limit, c.OnFailure = 3, rowfeed.SetAside
		r.once(c)
		if len(asked) > 0 {
			x.Errorf("asked %q", asked)
		}
		r.fail = failsOn(11)
		x.fillFrom(11, 11)
		x.publish(f)
		r.once(c)
		r.once(c)
		if len(asked) == 0 {
			x.Error("the tap sees nothing")
		}
	})
}

// TestConsumeLater: an error that is no fault of the entries counts for none of them.
func TestConsumeLater(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addKV(), x.receiver()
		x.fill(2)
		x.publish(f)
		calls := 0
		away := errors.New("the mail server is away")
		r.fail = func(context.Context, *sql.Tx, rowfeed.Entry) error {
			if calls++; calls <= 10 { // more than any number of attempts
				return fmt.Errorf("send: %w", rowfeed.Later(away))
			}
			return nil
		}
		c := r.consumer(f, x.rf)
		c.OnFailure = rowfeed.SetAside
		if err := c.RunOnce(x.ctx); !errors.Is(err, away) || !errors.Is(err, rowfeed.Unavailable) {
			x.Errorf("RunOnce: %v", err)
		}
		stop := r.run(c)
		x.eventually("the entries are applied", func() bool { return len(r.applied()) == 2 })
		if err := stop(); err != nil {
			x.Fatal(err)
		}
		r.wantLetters()
	})
}
