package consume

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// relay delivers entries to a receiver that is not idempotent, and stores its cursor after each delivery. After a
// crash in between, it delivers again.
func relay(ctx context.Context, rf *rowfeed.DB, pool *sql.DB) error {
	f, err := rf.Feed(ctx, "kv")
	if err != nil {
		return err
	}
	for {
		var after rowfeed.Cursor
		if err := pool.QueryRowContext(ctx, "SELECT c FROM relay").Scan(&after); err != nil {
			return err
		}
		page, err := f.Fetch(ctx, rowfeed.Request{After: after, Limit: 1})
		if err != nil || len(page.Entries) == 0 {
			return err
		}
		if err := receive(ctx, rf, pool, page.Entries[0]); err != nil {
			return err
		}
		if _, err := pool.ExecContext(ctx, fmt.Sprintf("UPDATE relay SET c = '%s'", page.Cursor)); err != nil {
			return err
		}
	}
}

// receive stores the mark and the effect of an entry in one transaction.
func receive(ctx context.Context, rf *rowfeed.DB, pool *sql.DB, e rowfeed.Entry) error {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	first, err := rf.MarkProcessed(ctx, rowfeed.InTx(tx), "mailer", "kv", e)
	if err != nil {
		return err
	}
	effect := "INSERT INTO repeats VALUES (1)"
	if first {
		r := suite.Receiver{}
		if err := r.Handle(ctx, tx, []rowfeed.Entry{e}); err != nil {
			return err
		}
		return tx.Commit()
	}
	if _, err := tx.ExecContext(ctx, effect); err != nil {
		return err
	}
	return tx.Commit()
}

func init() {
	testdb.RegisterChild("relay", func() {
		if err := suite.CrashingOn(relay); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	})
}

// TestMarkedEntryTakesEffectOnce (M73): a relay is killed before each of its statements, also between a delivery and
// the write of its cursor. Entries that come again take effect once.
func TestMarkedEntryTakesEffectOnce(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Exec("CREATE TABLE relay (c VARCHAR(100))", "CREATE TABLE repeats (n INTEGER)",
			"INSERT INTO relay VALUES ('')")
		x.Fill(2)
		x.Publish(f)
		for n := 1; ; n++ {
			child := testdb.CrashChild(x.T, "relay", "URL="+x.DB.URL, fmt.Sprint("N=", n))
			blocked := child.WaitMarker(x.Ctx)
			child.Kill()
			if err := relay(x.Ctx, x.RF, x.Pool); err != nil {
				x.Fatal(err)
			}
			wantApplied(r, suite.Upserts(1, 2)...)
			if !blocked {
				break
			}
			x.Exec("DELETE FROM applied", "DELETE FROM rowfeed_processed", "UPDATE relay SET c = ''")
		}
		if x.Scalar("SELECT count(*) FROM repeats") == 0 {
			x.Error("nothing was ever delivered twice")
		}
	})
}

// TestSecondReceiverWaitsForFirst (M73): two receivers process one entry at the same time. The second waits for the
// first, and does the work if the first has rolled back.
func TestSecondReceiverWaitsForFirst(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		mark := func(tx *sql.Tx, position string) (bool, error) {
			return x.RF.MarkProcessed(x.Ctx, rowfeed.InTx(tx), "mailer", "kv",
				rowfeed.Entry{Position: position, Generation: 1})
		}
		for position, commits := range map[string]bool{"1": true, "2": false} {
			one, err := x.Pool.BeginTx(x.Ctx, nil)
			if err != nil {
				x.Fatal(err)
			}
			if first, err := mark(one, position); !first || err != nil {
				x.Fatalf("the first time: %v %v", first, err)
			}
			var first bool
			ended := make(chan error, 1)
			go func() {
				ended <- func() error {
					two, err := x.Pool.BeginTx(x.Ctx, nil)
					if err != nil {
						return err
					}
					defer two.Rollback()
					if first, err = mark(two, position); err != nil {
						return err
					}
					_, err = two.ExecContext(x.Ctx, "UPDATE rowfeed_processed SET processed_at = 0") // it can continue
					return errors.Join(err, two.Commit())
				}()
			}()
			if commits {
				err = one.Commit()
			} else {
				err = one.Rollback()
			}
			if err := errors.Join(err, <-ended); err != nil {
				x.Fatal(err)
			}
			if first == commits {
				x.Errorf("the first commits %v; the second is told that it is first: %v", commits, first)
			}
		}
		tx, err := x.Pool.BeginTx(x.Ctx, nil)
		if err != nil {
			x.Fatal(err)
		}
		defer tx.Rollback()
		for _, e := range []rowfeed.Entry{{Position: "1"}, {Generation: 1}, {Generation: 1, Position: "one"}} {
			_, err := x.RF.MarkProcessed(x.Ctx, rowfeed.InTx(tx), "mailer", "kv", e)
			x.WantCode(err, rowfeed.InvalidRequest)
		}
	})
}

// TestPurgeKeepsWhatMayComeAgain (M73): marks of entries that cannot be delivered again are purged. Marks above the
// cursor, of another consumer, and of a later generation are kept.
func TestPurgeKeepsWhatMayComeAgain(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		var values []string
		for n := range 2500 {
			values = append(values, fmt.Sprintf("('test', 'kv', 1, 0, '%019d', 0)", n+1))
		}
		x.Exec("INSERT INTO rowfeed_processed VALUES "+strings.Join(values, ", "),
			"INSERT INTO rowfeed_processed VALUES ('test', 'kv', 2, 0, '0000000000000000001', 0), "+
				"('other', 'kv', 1, 0, '0000000000000000001', 0), ('test', 'other', 1, 0, '0000000000000000001', 0)")
		purge := func(upTo rowfeed.Cursor, want int64) {
			x.Helper()
			if n, err := x.RF.Admin().PurgeProcessed(x.Ctx, "test", "kv", upTo); n != want || err != nil {
				x.Errorf("purge up to %q: %d %v, want %d", upTo, n, err, want)
			}
		}
		_, err := x.RF.Admin().PurgeProcessed(x.Ctx, "test", "kv", "")
		x.WantCode(err, rowfeed.UnknownConsumer)
		r.Once(r.Consumer(f, x.RF))
		purge("", 0) // at the beginning
		// The shard that is furthest behind decides, also if it is at the beginning.
		x.Exec("INSERT INTO rowfeed_cursors "+
			"(consumer, feed, shard, shard_count, value, generation, epoch, version, paused, updated_at) VALUES "+
			"('three', 'kv', 0, 3, '7', 1, 0, 0, 0, 0), ('three', 'kv', 1, 3, '', 0, 0, 0, 0, 0), "+
			"('three', 'kv', 2, 3, '6', 1, 0, 0, 0, 0)",
			"INSERT INTO rowfeed_processed SELECT 'three', feed, generation, 5, position, 0 "+
				"FROM rowfeed_processed WHERE consumer = 'test' AND feed = 'kv' AND generation = 1")
		for _, step := range []struct {
			value string
			want  int64
		}{{"", 0}, {"0@9", 0}, {"4@9", 4}, {"5", 1}, {"9", 1}} { // for the last cursor the third shard, at 6, decides
			x.Exec("UPDATE rowfeed_cursors SET value = '" + step.value + "' WHERE consumer = 'three' AND shard = 1")
			if n, err := x.RF.Admin().PurgeProcessed(x.Ctx, "three", "kv", ""); n != step.want || err != nil {
				x.Errorf("a shard at %q: %d forgotten, want %d (%v)", step.value, n, step.want, err)
			}
		}
		x.Exec("DELETE FROM rowfeed_processed WHERE consumer = 'three'")
		x.Fill(9)
		x.Publish(f)
		r.Once(r.Consumer(f, x.RF))
		purge("", 9) // positions are compared as numbers: 9 is below 10
		purge("10", 1)
		purge("2100", 2090)
		purge("2:0@5", 400)
		purge("2:1", 1)
		if n := x.Scalar("SELECT count(*) FROM rowfeed_processed"); n != 2 {
			x.Errorf("%d are left, want those of the others", n)
		}
	})
}
