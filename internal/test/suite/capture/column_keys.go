package capture

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestReinsertedKeyEndsAsItsRow (H7): a key is deleted and inserted again before a pass, between the statements of a
// pass, or between two passes, in batches of one. Consumers end with the row, or without it if it is gone in the end.
func TestReinsertedKeyEndsAsItsRow(t *testing.T) {
	eachRows(t, func(x *suite.Env) {
		plain := x.AddKV()
		x.Fill(4)
		x.Publish(plain)
		k := x.Recorder(plain, 0)
		k.Read()
		one := &rowfeed.Config{BatchSize: 1}
		judge := func(when string) {
			x.Helper()
			x.Publish(plain)
			k.Read()
			k.Check(x.KVRows(), suite.ByID)
			x.WantSound(plain)
			if x.Failed() {
				x.Fatal(when)
			}
		}
		for _, gone := range []bool{false, true} {
			x.Exec("DELETE FROM kv WHERE id = 2", "INSERT INTO kv VALUES (2, 'again', 1)",
				"DELETE FROM kv WHERE id = 3", "INSERT INTO kv VALUES (3, 'again', 1)",
				"UPDATE kv SET v = 7 WHERE id = 1")
			if gone {
				x.Exec("DELETE FROM kv WHERE id = 3")
			}
			if _, err := x.Tapped(testdb.Hooks{}, one).Publish(x.Ctx); err != nil {
				x.Fatal(err)
			}
			judge("before a pass")
			if gone {
				x.Exec("INSERT INTO kv VALUES (3, 'k', 0)")
			}
		}
		if x.Has.OneWriter {
			return
		}
		// Before each statement of a pass.
		for n := 1; ; n++ {
			x.Exec("UPDATE kv SET v = v + 1 WHERE id = 1", "DELETE FROM kv WHERE id = 4",
				"INSERT INTO kv VALUES (4, 'again', 1)")
			events, done := 0, false
			f := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
				if ev.InTx && ev.Kind != testdb.Rollback {
					if events++; events == n {
						done = true
						x.Exec("DELETE FROM kv WHERE id = 2", "INSERT INTO kv VALUES (2, 'amid', 1)")
					}
				}
				return nil
			}}, one)
			if _, err := f.Publish(x.Ctx); err != nil {
				x.Fatal(err)
			}
			judge(fmt.Sprintf("before statement %d", n))
			if !done {
				break
			}
		}
	})
}

// TestKeyHasOnePosition: a key has one position, the latest: in its row, or in the table of positions once it was
// republished. Writing the row moves the position back into the row.
func TestKeyHasOnePosition(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 1), (2, 'b', 2)")
		x.Publish(f)
		err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error { return f.Republish(x.Ctx, tx, rowfeed.Key{1}) })
		if err != nil {
			x.Fatal(err)
		}
		x.Publish(f)
		x.WantPage(f, "", 5, "2 "+suite.KV(2, "b", 2), "3 "+suite.KV(1, "a", 1), "> 3")
		x.WantSound(f)
		x.Exec("UPDATE kv SET v = 7 WHERE id = 1")
		x.WantPage(f, "2", 5, "3 "+suite.KV(1, "a", 7), "> 3") // the row as it is now, at its former position
		x.Publish(f)
		x.WantPage(f, "", 5, "2 "+suite.KV(2, "b", 2), "4 "+suite.KV(1, "a", 7), "> 4")
		if n := x.Scalar("SELECT count(*) FROM rowfeed_positions_kv"); n != 0 {
			x.Errorf("%d keys have positions in the table of positions", n)
		}
		x.WantSound(f)
	})
}

// TestDeletePublishesTheDelete: Feed.Delete, and the statements that DeleteSQL returns, delete a row and publish that,
// whatever the capture. After a rollback nothing has happened. Of a key without a row nothing is recorded.
func TestDeletePublishesTheDelete(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		for _, capture := range append([]feedtype.Capture{feedtype.CaptureApp}, suite.Captures...) {
			t.Run(string(capture), func(t *testing.T) {
				x := suite.NewEnv(t, e, nil)
				x.Migrate()
				x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)",
					"INSERT INTO kv VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
				f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: capture})
				cursor := x.WantDrain(f, "", suite.KV(1, "a", 1), suite.KV(2, "b", 2), suite.KV(3, "c", 3))
				tx := x.Begin(sql.LevelReadCommitted)
				if err := f.Delete(x.Ctx, rowfeed.InTx(tx), rowfeed.Key{1}); err != nil {
					x.Fatal(err)
				}
				if err := tx.Rollback(); err != nil {
					x.Fatal(err)
				}
				cursor = x.WantDrain(f, cursor)
				delete := func(id int) {
					x.Helper()
					err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error { return f.Delete(x.Ctx, tx, rowfeed.Key{id}) })
					if err != nil {
						x.Fatal(err)
					}
				}
				delete(1)
				cursor = x.WantDrain(f, cursor, suite.Gone(1))
				delete(1) // again
				cursor = x.WantDrain(f, cursor)
				tx = x.Begin(sql.LevelReadCommitted)
				for _, statement := range f.Admin().DeleteSQL() {
					if _, err := tx.ExecContext(x.Ctx, statement, 2); err != nil {
						x.Fatalf("%s: %v", statement, err)
					}
				}
				x.Commit(tx)
				x.WantDrain(f, cursor, suite.Gone(2))
				if n := x.Scalar("SELECT count(*) FROM kv"); n != 1 {
					x.Errorf("%d rows are left, want 1", n)
				}
				x.WantSound(f)
				err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error { return f.Delete(x.Ctx, tx, rowfeed.Key{1, 2}) })
				x.WantCode(err, rowfeed.InvalidRequest)
			})
		}
	})
}

// TestRepairMendsWrongPositions: check finds positions that several keys have, positions above the sequence, positions
// that are none, and a tombstone of a key with a row. Repair publishes all of these keys again.
func TestRepairMendsWrongPositions(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(8)
		x.Exec("DELETE FROM kv WHERE id = 8") // published first, at 1
		_, cursor := x.Drain(f, "")
		x.DB.Exec(x.T, "UPDATE kv SET feed_sync_id = 2 WHERE id = 2")
		x.DB.Exec(x.T, "UPDATE kv SET feed_sync_id = 1000 WHERE id = 5")
		x.DB.Exec(x.T, "UPDATE kv SET feed_sync_id = 0 WHERE id = 6")
		x.DB.Exec(x.T, "UPDATE kv SET feed_sync_id = -5 WHERE id = 7")
		x.DB.Exec(x.T, "INSERT INTO kv (id, k, v, feed_sync_id) VALUES (8, 'k', 0, 4)")
		findings, err := f.Admin().Check(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		found := map[string]int{}
		for _, finding := range findings {
			found[finding.Rule]++
		}
		want := map[string]int{"positions-unique": 2, "positions-below-sequence": 3, "deleted-has-no-row": 1}
		if fmt.Sprint(found) != fmt.Sprint(want) {
			x.Errorf("check found %v, want %v: %v", found, want, findings)
		}
		if n, err := f.Admin().Repair(x.Ctx); err != nil || n < 6 {
			x.Errorf("repair recorded %d keys, %v", n, err)
		}
		lines, _ := x.Drain(f, cursor)
		for _, id := range []int{2, 5, 6, 7, 8} {
			if !slices.Contains(lines, suite.KV(id, "k", 0)) {
				x.Errorf("row %d is not published again: %q", id, lines)
			}
		}
		x.WantSound(f)
	})
}

// TestUpgradeMakesDroppedIndexesAndColumns: upgrade makes indexes and columns of the table again that were dropped.
// Without the column of positions every row is published again.
func TestUpgradeMakesDroppedIndexesAndColumns(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(3)
		x.Publish(f)
		healthy := x.DB.Dump(x.T)
		x.Exec(dropIndex(x, "rowfeed_kv_row_position", "kv"))
		mended := func(what string) {
			x.Helper()
			got, err := f.Admin().Upgrade(x.Ctx)
			if err != nil || len(got) == 0 || !strings.Contains(strings.Join(got, "; "), what) {
				x.Fatalf("upgrade mended %q, want %s: %v", got, what, err)
			}
			if now := x.DB.Dump(x.T); now != healthy {
				x.Errorf("after upgrade the schema is\n%s\nwant\n%s", now, healthy)
			}
		}
		mended("rowfeed_kv_row_position")
		if x.Has.PartialIndexes {
			x.Exec(dropIndex(x, "rowfeed_kv_row_waiting", "kv"))
			mended("rowfeed_kv_row_waiting")
			x.Exec(dropIndex(x, "rowfeed_kv_row_waiting", "kv"), dropIndex(x, "rowfeed_kv_row_position", "kv"))
		}
		x.Exec("ALTER TABLE kv DROP COLUMN shard", "ALTER TABLE kv DROP COLUMN feed_sync_id")
		_, err := f.Publish(x.Ctx)
		if err == nil {
			x.Error("Publish does not fail without the column")
		}
		mended("feed_sync_id")
		k := x.Recorder(f, 0)
		x.Publish(f)
		if k.Read(); len(k.Log) != 3 {
			x.Errorf("%d entries were published, want 3", len(k.Log))
		}
		k.Check(x.KVRows(), suite.ByID)
		x.WantSound(f)
	})
}
