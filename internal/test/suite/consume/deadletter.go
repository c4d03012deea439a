package consume

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
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

// letters lists the dead letters, each like "2 upsert {"id":2} aside".
func letters(r *suite.Receiver) (lines []string) {
	r.Helper()
	page, err := r.RF.Admin().DeadLetters(r.Ctx, suite.Letters(suite.TestConsumer, ""))
	all := page.Letters
	if err != nil {
		r.Fatal(err)
	}
	for _, l := range all {
		lines = append(lines, fmt.Sprintf("%s %s %s %s", l.Position, l.Op, l.Key, l.State))
	}
	return lines
}

func wantLetters(r *suite.Receiver, want ...string) {
	r.Helper()
	if got := letters(r); !slices.Equal(got, want) {
		r.Fatalf("dead letters %q, want %q", got, want)
	}
	var aside int64
	if all, err := r.RF.Admin().Consumers(r.Ctx, suite.TestConsumer); err != nil || len(all) != 1 {
		r.Fatalf("consumers: %v %v", all, err)
	} else {
		aside = all[0].DeadLetters
	}
	if int(aside) != len(want) {
		r.Fatalf("the cursor counts %d dead letters, there are %d", aside, len(want))
	}
}

func retry(r *suite.Receiver, key string) {
	r.Helper()
	if n, err := r.RF.Admin().RetryDeadLetters(r.Ctx,
		suite.Letters(suite.TestConsumer, key), nil); err != nil || n == 0 {
		r.Fatalf("retry: %d %v", n, err)
	}
}

// TestStopNamesTheKey: when its attempts are used up, a consumer with OnFailure Stop ends and names the key. Nothing of
// the failed attempts is stored, earlier entries are done, and later ones wait.
func TestStopNamesTheKey(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Fill(5)
		x.Publish(f)
		r.Fail = failsOn(3)
		c := r.Consumer(f, x.RF)
		err := c.RunOnce(x.Ctx)
		x.WantCode(err, rowfeed.HandlerFailed)
		for _, part := range []string{
			`consumer "test" of feed "kv"`, "position 3", `{"id":3}`, "3 attempts", "id 3 cannot be handled",
		} {
			if !strings.Contains(err.Error(), part) {
				x.Errorf("%q does not say %q", err, part)
			}
		}
		wantApplied(r, suite.Upserts(1, 2)...)
		if stored(r) != "2@5" {
			x.Errorf("the cursor is %q", stored(r))
		}
		r.Fail = nil
		r.Once(c)
		wantApplied(r, suite.Upserts(1, 5)...)

		// A panic is a failure of the handler. The process and the consumer continue.
		x.FillFrom(6, 7)
		x.Publish(f)
		r.Fail = func(context.Context, *sql.Tx, rowfeed.Entry) error { panic("at the handler's") }
		err = c.RunOnce(x.Ctx)
		x.WantCode(err, rowfeed.HandlerFailed)
		if !strings.Contains(err.Error(), "panic: at the handler's") ||
			!strings.Contains(err.Error(), "deadletter.go") {
			x.Errorf("the panic is not told: %.200v", err)
		}
		wantApplied(r, suite.Upserts(1, 5)...)
		// If a handler ends the transaction, its effects may be committed without the cursor. The consumer cannot
		// undo that, and stops at once.
		takeHanded(r)
		r.Fail = func(_ context.Context, tx *sql.Tx, _ rowfeed.Entry) error { return tx.Rollback() }
		c.Options.Limit = 1
		err = c.RunOnce(x.Ctx)
		x.WantCode(err, rowfeed.HandlerFailed)
		if !strings.Contains(err.Error(), "ended the transaction") || len(takeHanded(r)) != 1 {
			x.Errorf("a handler that ends the transaction: %v", err)
		}
	})
}

// TestRowsLeftOpenAreReported: a handler that leaves rows open makes its connection unusable on some databases, as if
// the database were unavailable. The consumer reports the handler's fault instead of retrying for ever.
func TestRowsLeftOpenAreReported(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Fill(500)
		x.Publish(f)
		r.Fail = func(ctx context.Context, tx *sql.Tx, _ rowfeed.Entry) error {
			rows, err := tx.QueryContext(ctx, "SELECT id, k FROM kv")
			if err == nil {
				rows.Next()
			}
			return err
		}
		c := r.Consumer(f, x.RF)
		c.Options.Limit = 1
		err := c.RunOnce(x.Ctx)
		if x.Has.ManyOpenStatements {
			if err != nil {
				x.Error(err)
			}
			return
		}
		x.WantCode(err, rowfeed.HandlerFailed)
		wantApplied(r)
	})
}

// TestErrorAtCommitCountsAsHandlerFailure: an effect that the database refuses at COMMIT only, and an error that the
// handler does not return, count as failures of the handler. They do not stall the feed.
func TestErrorAtCommitCountsAsHandlerFailure(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Fill(3)
		x.Publish(f)
		x.Exec(x.Statements("consume.deferred_constraint")...)
		pool := x.DB.OpenTapped(x.T, testdb.Hooks{}, x.Text("consume.checks_constraints"))
		rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, nil)
		if err != nil {
			x.Fatal(err)
		}
		r.Fail = func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry) error {
			if e.Position != "2" {
				return nil
			}
			_, err := tx.ExecContext(ctx, x.Text("consume.refused_at_commit"))
			return err
		}
		c := r.Consumer(f, rf)
		c.OnFailure = rowfeed.SetAside
		r.Once(c)
		wantApplied(r, "1 upsert 1", "3 upsert 3")
		wantLetters(r, `2 upsert {"id":2} aside`)
		if x.Has.AbortingErrors {
			// The handler ignores an error, after which the transaction has failed.
			x.FillFrom(4, 5)
			x.Publish(f)
			r.Fail = func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry) error {
				if e.Position == "4" {
					_, _ = tx.ExecContext(ctx, "INSERT INTO no_such_table VALUES (1)")
				}
				return nil
			}
			r.Once(c)
			wantApplied(r, "1 upsert 1", "3 upsert 3", "5 upsert 5")
			wantLetters(r, `2 upsert {"id":2} aside`, `4 upsert {"id":4} aside`)
		}
	})
}

// TestOnlyFailingKeyIsSetAside (H25): a failing key is set aside, and all other keys continue in order. Its later
// versions, deletes included, join the dead letter. When it is released, its latest version comes once, as the row is
// then.
func TestOnlyFailingKeyIsSetAside(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Fill(4)
		x.Publish(f)
		r.Fail = failsOn(2, 3)
		c := r.Consumer(f, x.RF)
		c.OnFailure = rowfeed.SetAside
		r.Once(c)
		wantApplied(r, "1 upsert 1", "4 upsert 4")
		wantLetters(r, `2 upsert {"id":2} aside`, `3 upsert {"id":3} aside`)
		page, err := x.RF.Admin().DeadLetters(x.Ctx, suite.Letters(suite.TestConsumer, `{ "id" : 3 }`))
		all := page.Letters
		if err != nil || len(all) != 1 || all[0].Attempts != 3 || all[0].Error != "id 3 cannot be handled" ||
			all[0].FirstAt.IsZero() || all[0].Generation != 1 {
			x.Errorf("the letter of 3: %+v %v", all, err)
		}

		// Later versions join the letter, even if the handler would accept them now.
		r.Fail = nil
		takeHanded(r)
		x.Exec("UPDATE kv SET v = 20 WHERE id = 2", "DELETE FROM kv WHERE id = 3", "INSERT INTO kv VALUES (5, 'k', 0)")
		x.Publish(f)
		r.Once(c)
		wantApplied(r, "1 upsert 1", "4 upsert 4", "7 upsert 5")
		wantLetters(r, `5 upsert {"id":2} aside`, `6 delete {"id":3} aside`)
		if got := takeHanded(r); !slices.Equal(got, []string{"7 upsert 5"}) {
			x.Errorf("handed over %q", got)
		}

		// The row is read at its release: v is 21, although that change is not published.
		x.Exec("UPDATE kv SET v = 21 WHERE id = 2")
		retry(r, `{"id":2}`)
		r.Once(c)
		wantApplied(r, "1 upsert 1", "4 upsert 4", "5 upsert 2", "7 upsert 5")
		wantLetters(r, `6 delete {"id":3} aside`)
		if v := x.Scalar("SELECT v FROM applied WHERE id = 2"); v != 21 {
			x.Errorf("released with v = %d, the row has 21", v)
		}
		retry(r, "")
		r.Once(c)
		wantApplied(r, "1 upsert 1", "4 upsert 4", "5 upsert 2", "6 delete 3", "7 upsert 5")
		wantLetters(r)
		x.Publish(f)
		r.Once(c)
		wantApplied(r, "1 upsert 1", "4 upsert 4", "5 upsert 2", "6 delete 3", "7 upsert 5", "8 upsert 2")
	})
}

// TestReleasedKeyThatFailsStaysAside (H25): a released key that fails again stays aside with one more attempt. If a
// newer version of the key is on its way, the letter is not handed over before it. A dropped letter's key comes with
// its next version.
func TestReleasedKeyThatFailsStaysAside(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Fill(2)
		x.Publish(f)
		r.Fail = failsOn(1, 2)
		c := r.Consumer(f, x.RF)
		c.OnFailure = rowfeed.SetAside
		r.Once(c)
		retry(r, `{"id":1}`)
		r.Once(c)
		page, err := x.RF.Admin().DeadLetters(x.Ctx, suite.Letters(suite.TestConsumer, `{"id":1}`))
		all := page.Letters
		if err != nil || len(all) != 1 || all[0].Attempts != 4 || all[0].State != rowfeed.LetterAside {
			x.Fatalf("after a retry that failed: %+v %v", all, err)
		}
		wantApplied(r)

		// A newer version is published but not read: it replaces the old one.
		r.Fail = nil
		takeHanded(r)
		x.Exec("UPDATE kv SET v = 9 WHERE id = 1")
		x.Publish(f)
		retry(r, `{"id":1}`)
		r.Once(c)
		wantApplied(r, "3 upsert 1")
		wantLetters(r, `2 upsert {"id":2} aside`)

		if n, err := x.RF.Admin().DropDeadLetters(x.Ctx,
			suite.Letters(suite.TestConsumer, ""), nil); n != 1 || err != nil {
			x.Errorf("drop: %d %v", n, err)
		}
		wantLetters(r)
		r.Once(c)
		x.Exec("UPDATE kv SET v = 9 WHERE id = 2")
		x.Publish(f)
		r.Once(c)
		wantApplied(r, "3 upsert 1", "4 upsert 2")
		_, err = x.RF.Admin().RetryDeadLetters(x.Ctx, suite.Letters(suite.TestConsumer, `{"id":2}`), nil)
		x.WantCode(err, rowfeed.UnknownConsumer)
	})
}

// TestReleasedLetterMayChangeMeanwhile (H25): between the read of a released key's row and its commit, another instance
// joins a newer version to the letter, or an operator drops the letter. Nothing is lost, and nothing comes twice.
func TestReleasedLetterMayChangeMeanwhile(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Fill(1)
		x.Publish(f)
		r.Fail = failsOn(1)
		c := r.Consumer(f, x.RF)
		c.OnFailure = rowfeed.SetAside
		r.Once(c)
		r.Fail = nil
		retry(r, "")
		held := testdb.Hold(begins)
		slow := &suite.Receiver{Env: x}
		ended := make(chan error, 1)
		go func() { ended <- slow.Consumer(f, x.TappedDB(testdb.Hooks{Before: held.Before}, nil)).RunOnce(x.Ctx) }()
		<-held.Reached // the instance has read version 1 of the row
		x.Exec("UPDATE kv SET v = 7")
		x.Publish(f)
		takeHanded(r)
		x.Exec("UPDATE rowfeed_dead_letters SET state = 'aside'") // or the other instance would release it
		r.Once(c)
		wantLetters(r, `2 upsert {"id":1} aside`)
		retry(r, "")
		held.Release()
		if err := <-ended; err != nil {
			x.Fatal(err)
		}
		wantLetters(r)
		wantApplied(r, "2 upsert 1")
		if v := x.Scalar("SELECT v FROM applied"); v != 7 {
			x.Errorf("v = %d was applied", v)
		}

		// An operator drops the letter while a version is about to join it. The version is handed over.
		x.FillFrom(2, 2)
		x.Publish(f)
		r.Fail = failsOn(2)
		r.Once(c)
		r.Fail = nil
		x.Exec("UPDATE kv SET v = 8 WHERE id = 2")
		x.Publish(f)
		held = testdb.Hold(begins)
		go func() { ended <- slow.Consumer(f, x.TappedDB(testdb.Hooks{Before: held.Before}, nil)).RunOnce(x.Ctx) }()
		<-held.Reached
		if n, err := x.RF.Admin().DropDeadLetters(x.Ctx,
			suite.Letters(suite.TestConsumer, ""), nil); n != 1 || err != nil {
			x.Fatal(n, err)
		}
		held.Release()
		if err := <-ended; err != nil {
			x.Fatal(err)
		}
		wantApplied(r, "2 upsert 1", "4 upsert 2")
		wantLetters(r)
	})
}

// TestLettersOfOtherInstancesCount (H25): a key that one instance has set aside is aside for an instance that knew of
// no letter, because the cursor's row counts the letters.
func TestLettersOfOtherInstancesCount(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		c := r.Consumer(f, x.RF)
		c.OnFailure = rowfeed.SetAside
		r.Once(c)
		x.Fill(1)
		x.Publish(f)
		other := &suite.Receiver{Env: x, Fail: failsOn(1)}
		held := testdb.Hold(begins)
		ended := make(chan error, 1)
		go func() { ended <- r.Consumer(f, x.TappedDB(testdb.Hooks{Before: held.Before}, nil)).RunOnce(x.Ctx) }()
		<-held.Reached // with a page that has key 1
		second := other.Consumer(f, x.RF)
		second.OnFailure = rowfeed.SetAside
		other.Once(second)
		held.Release()
		if err := <-ended; err != nil {
			x.Fatal(err)
		}
		wantApplied(r)
		wantLetters(r, `1 upsert {"id":1} aside`)
	})
}

// TestNoStatementsWithoutDeadLetters: while no key is set aside, no statement mentions dead letters.
func TestNoStatementsWithoutDeadLetters(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Fill(10)
		x.Publish(f)
		var asked []string
		rf := x.TappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "dead_letters") {
				asked = append(asked, ev.SQL)
			}
			return nil
		}}, nil)
		c := r.Consumer(f, rf)
		c.Options.Limit, c.OnFailure = 3, rowfeed.SetAside
		r.Once(c)
		if len(asked) > 0 {
			x.Errorf("asked %q", asked)
		}
		r.Fail = failsOn(11)
		x.FillFrom(11, 11)
		x.Publish(f)
		r.Once(c)
		r.Once(c)
		if len(asked) == 0 {
			x.Error("the tap sees nothing")
		}
	})
}

// TestOutsideErrorsUseNoAttempts: an error that is no fault of the entries uses up no attempt.
func TestOutsideErrorsUseNoAttempts(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Fill(2)
		x.Publish(f)
		calls := 0
		away := errors.New("the mail server is away")
		r.Fail = func(context.Context, *sql.Tx, rowfeed.Entry) error {
			if calls++; calls <= 10 { // more than any number of attempts
				return fmt.Errorf("send: %w", rowfeed.Later(away))
			}
			return nil
		}
		c := r.Consumer(f, x.RF)
		c.OnFailure = rowfeed.SetAside
		if err := c.RunOnce(x.Ctx); !errors.Is(err, away) || !errors.Is(err, rowfeed.Unavailable) {
			x.Errorf("RunOnce: %v", err)
		}
		stop := run(r, c)
		x.Eventually("the entries are applied", func() bool { return len(r.Applied()) == 2 })
		if err := stop(); err != nil {
			x.Fatal(err)
		}
		wantLetters(r)
	})
}
