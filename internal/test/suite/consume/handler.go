package consume

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestHandlerThatEndsTransaction: a handler can end its transaction by a statement, which the driver does not notice.
// The consumer notices it, stops, and does not store the cursor alone.
func TestHandlerThatEndsTransaction(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Fill(2)
		x.Publish(f)
		statements := []string{"COMMIT", "ROLLBACK"}
		if x.Has.CommittingDDL {
			statements = append(statements, "CREATE TABLE made_by_handler (n INT)")
		}
		for _, statement := range statements {
			takeHanded(r)
			r.Fail = func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry) error {
				_, err := tx.ExecContext(ctx, x.Has.Spell(statement))
				return err
			}
			c := r.Consumer(f, x.RF)
			c.Options.Limit = 1
			err := c.RunOnce(x.Ctx)
			x.WantCode(err, rowfeed.HandlerFailed)
			if !strings.Contains(err.Error(), "ended the transaction") || len(takeHanded(r)) != 1 || stored(r) != "" {
				x.Errorf("after %s: cursor %q, %v", statement, stored(r), err)
			}
		}
	})
}

// denial returns a function whose statement the database refuses with a code that means "try again".
func denial(x *suite.Env, code string) func(context.Context, *sql.Tx) error {
	if x.Has.OneWriter { // a second connection, because the handler's transaction holds the only write lock
		other := x.DB.OpenTapped(x.T, testdb.Hooks{}, x.Text("consume.impatient"))
		return func(ctx context.Context, _ *sql.Tx) error {
			_, err := other.ExecContext(ctx, "INSERT INTO applied (n) VALUES (99)")
			return err
		}
	}
	statement := x.Text(map[string]string{
		"conflict": "consume.raise_conflict", "lock timeout": "consume.raise_lock_timeout",
	}[code])
	return func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, statement)
		return err
	}
}

// TestLockConflictsAreRetried: lock conflicts in the handler are retried and are no failures. A conflict that never
// ends is a failure after all, so that it does not stall the feed.
func TestLockConflictsAreRetried(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Fill(3)
		x.Publish(f)
		for _, code := range []string{"conflict", "lock timeout"} {
			denied, left := denial(x, code), 5 // more than the attempts of a page and its entry
			r.Fail = func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry) error {
				if left--; left >= 0 {
					return denied(ctx, tx)
				}
				return nil
			}
			if _, err := x.RF.Admin().ResetConsumer(x.Ctx, suite.TestConsumer); err != nil && code != "conflict" {
				x.Fatal(err)
			}
			x.Exec("DELETE FROM applied")
			c := r.Consumer(f, x.RF)
			c.OnFailure = rowfeed.SetAside
			r.Once(c)
			wantLetters(r)
			wantApplied(r, suite.Upserts(1, 3)...)
		}

		denied := denial(x, "conflict")
		r.Fail = func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry) error {
			if id, _ := e.Key.Get("id"); id == int64(5) {
				return denied(ctx, tx)
			}
			return nil
		}
		x.FillFrom(4, 6)
		x.Publish(f)
		c := r.Consumer(f, x.RF)
		c.OnFailure = rowfeed.SetAside
		r.Once(c)
		wantLetters(r, `5 upsert {"id":5} aside`)
		wantApplied(r, append(suite.Upserts(1, 4), "6 upsert 6")...)
	})
}
