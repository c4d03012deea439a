package publish

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// realConflict makes the database report a conflict, and returns the driver's error: a deadlock, or on a database with
// one writer that it is busy.
func realConflict(x *suite.Env) error {
	x.Helper()
	if x.Has.OneWriter {
		tx := x.Begin(sql.LevelDefault)
		x.In(tx, "UPDATE kv SET v = v WHERE id = 1")
		_, err := impatient(x).Exec("UPDATE kv SET v = v WHERE id = 2")
		tx.Rollback()
		return err
	}
	x.Exec("CREATE TABLE fork (id INT NOT NULL PRIMARY KEY, v INT)", "INSERT INTO fork VALUES (1, 0), (2, 0)")
	var txs [2]*sql.Tx
	for i := range txs {
		txs[i] = x.Begin(sql.LevelReadCommitted)
		x.In(txs[i], fmt.Sprintf("UPDATE fork SET v = 1 WHERE id = %d", i+1))
	}
	var group sync.WaitGroup
	var errs [2]error
	for i, tx := range txs {
		group.Go(func() {
			_, errs[i] = tx.ExecContext(x.Ctx, fmt.Sprintf("UPDATE fork SET v = 1 WHERE id = %d", 2-i))
			tx.Rollback()
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	x.Fatal("two transactions waited for each other, and the database reported no deadlock")
	return nil
}

// TestConflictIsRetried (M57, H9): if any statement of a pass, or its COMMIT, fails with a deadlock, the pass is tried
// again and returns no error. The positions are those of a pass that did not fail.
func TestConflictIsRetried(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		plain := x.AddKV()
		x.Fill(2)
		x.Publish(plain)
		k := x.Recorder(plain, 0)
		k.Read()
		conflict := realConflict(x)
		if class := x.Dialect.Classify(conflict); class != dialect.ClassRetry {
			x.Fatalf("%T %v is of class %v", conflict, conflict, class)
		}
		atCommit := false
		for n := 1; ; n++ {
			var retries, events int
			failed := ""
			f := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
				if ev.Kind != testdb.Begin && !ev.InTx || ev.Kind == testdb.Rollback {
					return nil
				}
				if events++; events != n {
					return nil
				}
				failed = ev.Kind.String() + " " + ev.SQL
				atCommit = atCommit || ev.Kind == testdb.Commit
				return conflict
			}}, &rowfeed.Config{Observer: &rowfeed.Observer{Retried: func(rowfeed.RetryEvent) { retries++ }}})
			base := x.Scalar("SELECT value FROM rowfeed_sequences")
			for _, id := range []int{2, 1} {
				x.Exec(fmt.Sprintf("UPDATE kv SET v = %d WHERE id = %d", n, id))
			}
			if got, err := f.Publish(x.Ctx); err != nil || got != 2 {
				x.Fatalf("%v at %q: %d keys, %v", conflict, failed, got, err)
			}
			got, want := fmt.Sprint(k.Read()), fmt.Sprintf("[%d upsert 2 %d upsert 1]", base+1, base+2)
			if x.Capture == feedtype.CaptureColumn { // in key order
				want = fmt.Sprintf("[%d upsert 1 %d upsert 2]", base+1, base+2)
			}
			if got != want {
				x.Fatalf("conflict at %q: entries %s, want %s", failed, got, want)
			}
			if failed == "" {
				break // the pass has less than n statements
			}
			if retries != 1 {
				x.Errorf("conflict at %q: %d retries", failed, retries)
			}
		}
		if !atCommit {
			x.Error("COMMIT was not among the statements that failed")
		}
		k.Check(x.KVRows(), suite.ByID)
		x.WantSound(plain)
	})
}

// TestPassEndsAfterItsLastRetry (M57, H9): if every try of a pass fails with a deadlock, the publisher returns an error
// with the code Locked and has changed nothing. A pass that fails with another error is not tried again.
func TestPassEndsAfterItsLastRetry(t *testing.T) {
	t.Parallel()
	suite.EachCapture(t, func(x *suite.Env) {
		plain := x.AddKV()
		x.Fill(2)
		conflict := realConflict(x)
		for _, c := range []struct {
			failure error
			code    rowfeed.Code
			least   int
		}{{conflict, rowfeed.Locked, 5}, {testdb.ErrInjected, rowfeed.Failed, 1}} {
			commits := 0
			f := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
				if ev.Kind == testdb.Commit {
					commits++
					return c.failure
				}
				return nil
			}}, nil)
			_, err := f.Publish(x.Ctx)
			x.WantCode(err, c.code)
			if commits < c.least || c.least == 1 && commits > 1 {
				x.Errorf("%v: %d tries", c.failure, commits)
			}
		}
		if n := x.Scalar("SELECT value FROM rowfeed_sequences"); n != 0 {
			x.Errorf("the head is %d, though no pass was committed", n)
		}
		x.WantDrain(plain, "", suite.KV(1, "k", 0), suite.KV(2, "k", 0))
	})
}
