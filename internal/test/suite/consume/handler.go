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

// TestConsumeCommitByStatement: a handler can end its transaction by a statement, which
// the driver does not notice. The consumer does, and stores no cursor by itself.
func TestConsumeCommitByStatement(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Fill(2)
		x.Publish(f)
		statements := []string{"COMMIT", "ROLLBACK"}
		if x.Family() == "mysql" { // DDL commits there
			statements = append(statements, "CREATE TABLE made_by_handler (n INT)")
		}
		for _, statement := range statements {
			takeHanded(r)
			r.Fail = func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry) error {
				_, err := tx.ExecContext(ctx, statement)
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

// denial is a statement that the database refuses by a code that says "again".
func denial(x *suite.Env, code string) func(context.Context, *sql.Tx) error {
	statement := map[string]map[string]string{
		"conflict": {
			"postgres": "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$",
			"mysql":    "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'deadlock'",
		},
		"lock timeout": {
			"postgres": "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '55P03'; END $$",
			"mysql":    "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1205, MESSAGE_TEXT = 'lock wait timeout'",
		},
	}[code][x.Family()]
	other, err := x.DB.OpenTapped(x.T, testdb.Hooks{}).Conn(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() { _ = other.Close() })
	if x.Family() == "sqlite" {
		if _, err := other.ExecContext(x.Ctx, "PRAGMA busy_timeout = 1"); err != nil {
			x.Fatal(err)
		}
	}
	return func(ctx context.Context, tx *sql.Tx) error {
		if x.Family() == "sqlite" { // past its transaction, which holds the only write lock
			_, err := other.ExecContext(ctx, "INSERT INTO applied (n) VALUES (99)")
			return err
		}
		_, err := tx.ExecContext(ctx, statement)
		return err
	}
}

// TestConsumeDenied: locks of others in the handler's way are nobody's failure and are
// outlived. What looks like one and never passes is a failure after all, so that it
// does not stall the feed.
func TestConsumeDenied(t *testing.T) {
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
