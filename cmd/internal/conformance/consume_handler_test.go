package conformance

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestConsumeCommitByStatement: a handler can end its transaction by a statement, which
// the driver does not notice. The consumer does, and stores no cursor by itself.
func TestConsumeCommitByStatement(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addKV(), x.receiver()
		x.fill(2)
		x.publish(f)
		statements := []string{"COMMIT", "ROLLBACK"}
		if x.family() == "mysql" { // DDL commits there
			statements = append(statements, "CREATE TABLE made_by_handler (n INT)")
		}
		for _, statement := range statements {
			r.takeHanded()
			r.fail = func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry) error {
				_, err := tx.ExecContext(ctx, statement)
				return err
			}
			c := r.consumer(f, x.rf)
			c.Limit = 1
			err := c.RunOnce(x.ctx)
			x.wantCode(err, rowfeed.HandlerFailed)
			if !strings.Contains(err.Error(), "ended the transaction") || len(r.takeHanded()) != 1 || r.stored() != "" {
				x.Errorf("after %s: cursor %q, %v", statement, r.stored(), err)
			}
		}
	})
}

// denial is a statement that the database refuses by a code that says "again".
func (x *env) denial(code string) func(context.Context, *sql.Tx) error {
	statement := map[string]map[string]string{
		"conflict": {
			"postgres": "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$",
			"mysql":    "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'deadlock'",
		},
		"lock timeout": {
			"postgres": "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '55P03'; END $$",
			"mysql":    "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1205, MESSAGE_TEXT = 'lock wait timeout'",
		},
	}[code][x.family()]
	other, err := x.db.OpenTapped(x.T, testdb.Hooks{}).Conn(x.ctx)
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() { _ = other.Close() })
	if x.family() == "sqlite" {
		if _, err := other.ExecContext(x.ctx, "PRAGMA busy_timeout = 1"); err != nil {
			x.Fatal(err)
		}
	}
	return func(ctx context.Context, tx *sql.Tx) error {
		if x.family() == "sqlite" { // past its transaction, which holds the only write lock
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
	each(t, func(x *env) {
		f, r := x.addKV(), x.receiver()
		x.fill(3)
		x.publish(f)
		for _, code := range []string{"conflict", "lock timeout"} {
			denied, left := x.denial(code), 5 // more than the attempts of a page and its entry
			r.fail = func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry) error {
				if left--; left >= 0 {
					return denied(ctx, tx)
				}
				return nil
			}
			if _, err := x.rf.Admin().ResetConsumer(x.ctx, testConsumer); err != nil && code != "conflict" {
				x.Fatal(err)
			}
			x.exec("DELETE FROM applied")
			c := r.consumer(f, x.rf)
			c.OnFailure = rowfeed.SetAside
			r.once(c)
			r.wantLetters()
			r.wantApplied(upserts(1, 3)...)
		}

		denied := x.denial("conflict")
		r.fail = func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry) error {
			if id, _ := e.Key.Get("id"); id == int64(5) {
				return denied(ctx, tx)
			}
			return nil
		}
		x.fillFrom(4, 6)
		x.publish(f)
		c := r.consumer(f, x.rf)
		c.OnFailure = rowfeed.SetAside
		r.once(c)
		r.wantLetters(`5 upsert {"id":5} aside`)
		r.wantApplied(append(upserts(1, 4), "6 upsert 6")...)
	})
}
