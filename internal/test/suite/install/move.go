package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// move moves the positions of a feed out of its rows.
func move(x *suite.Env, f *rowfeed.Feed) {
	x.Helper()
	if changed, err := f.Admin().MovePositions(x.Ctx, nil); err != nil || !changed {
		x.Fatalf("changed %v, %v", changed, err)
	}
	if f.State() != "active" || f.Capture() != feedtype.CaptureTrigger {
		x.Fatalf("the feed is %s, with capture %s", f.State(), f.Capture())
	}
}

// partsOf are the whole feed, and two halves of it.
var partsOf = []rowfeed.Shards{{}, rowfeed.Part(0, 2), rowfeed.Part(1, 2)}

// readOn fetches all entries above a cursor, with their positions, and returns them with the last cursor.
func readOn(x *suite.Env, f *rowfeed.Feed, shards rowfeed.Shards, after rowfeed.Cursor) ([]string, rowfeed.Cursor) {
	x.Helper()
	var lines []string
	for {
		page, err := f.Fetch(x.Ctx, rowfeed.Request{After: after, Limit: 100, Shards: shards})
		if err != nil {
			x.Fatalf("after %q: %v", after, err)
		}
		for _, e := range page.Entries {
			lines = append(lines, e.Position+" "+suite.Line(e))
		}
		if after = page.Cursor; !page.More {
			return lines, after
		}
	}
}

// TestMovedPositionsKeepCursors (M28): positions are moved out of the rows of a feed. Each cursor, of the whole feed
// and of parts, goes on to the same entries at the same positions. Rows that waited follow, and a delete that did.
// Nothing is written into rows. Afterwards writers need not set feed_sync_id to NULL, and may; publishers and readers
// that know the former capture continue. Dropping the feed removes all that rowfeed has added.
func TestMovedPositionsKeepCursors(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		for _, shards := range []int{1, 8} {
			for _, fence := range []bool{false, true} {
				x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
				before := x.DB.Dump(x.T)
				f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: shards, Fence: fence})
				other, publisher := x.Tapped(testdb.Hooks{}, nil), x.Tapped(testdb.Hooks{}, nil)
				for id := 1; id <= 9; id++ {
					x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', %d)", id, id))
				}
				x.Publish(f)
				key := func(id int64) rowfeed.Key { return rowfeed.Key{id} }
				if err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error {
					return errors.Join(f.Republish(x.Ctx, tx, key(2), key(8)), f.Unpublish(x.Ctx, tx, key(3)),
						f.Delete(x.Ctx, tx, key(4)))
				}); err != nil {
					x.Fatal(err)
				}
				x.Publish(f)
				x.Exec("UPDATE kv SET v = 10 WHERE id = 1", "UPDATE kv SET v = 30 WHERE id = 3")
				x.Publish(f)

				type reader struct {
					shards rowfeed.Shards
					at     rowfeed.Cursor
				}
				expected := map[reader][]string{}
				for _, part := range partsOf {
					for at := rowfeed.Cursor(""); ; {
						lines, _ := readOn(x, f, part, at)
						expected[reader{part, at}] = lines
						page, err := other.Fetch(x.Ctx, rowfeed.Request{After: at, Limit: 1, Shards: part})
						if err != nil {
							x.Fatal(err)
						}
						if at = page.Cursor; len(page.Entries) == 0 {
							break
						}
					}
				}
				x.Exec("UPDATE kv SET v = 50 WHERE id = 5", "UPDATE kv SET v = 80 WHERE id = 8",
					"DELETE FROM kv WHERE id = 9", "INSERT INTO kv VALUES (10, 'k', 10)")
				rows := x.List("SELECT feed_sync_id FROM kv WHERE feed_sync_id IS NOT NULL ORDER BY id")
				move(x, f)
				now := x.List("SELECT feed_sync_id FROM kv WHERE feed_sync_id IS NOT NULL ORDER BY id")
				if !slices.Equal(now, rows) {
					x.Errorf("positions in rows were %v and are %v", rows, now)
				}
				x.WantSound(f)
				for _, from := range []*rowfeed.Feed{f, other} {
					for r, want := range expected {
						want = slices.DeleteFunc(slices.Clone(want), func(line string) bool {
							return strings.HasSuffix(line, suite.KV(5, "k", 5)) ||
								strings.HasSuffix(line, suite.KV(8, "k", 8)) ||
								strings.HasSuffix(line, suite.KV(9, "k", 9))
						})
						got, _ := readOn(x, from, r.shards, r.at)
						fresh := slices.DeleteFunc(slices.Clone(got), func(line string) bool {
							return !strings.HasSuffix(line, suite.KV(5, "k", 50)) &&
								!strings.HasSuffix(line, suite.KV(8, "k", 80)) &&
								!strings.HasSuffix(line, suite.Gone(9)) &&
								!strings.HasSuffix(line, suite.KV(10, "k", 10))
						})
						changed := 4
						if r.at == "" {
							changed = 3 // a reader that begins later gets no delete
						}
						if r.shards.All() && len(fresh) != changed || !slices.Equal(got, slices.Concat(want, fresh)) {
							x.Fatalf("shards %d, part %v after %q: %q, want %q and %q", shards, r.shards, r.at,
								got, want, fresh)
						}
					}
				}

				if other.Capture() != feedtype.CaptureTrigger {
					x.Error("a reader goes on to read positions from rows")
				}
				_, cursor := readOn(x, f, rowfeed.Shards{}, "")
				write(x, "UPDATE kv SET v = 20 WHERE id = 2", "DELETE FROM kv WHERE id = 6")
				x.Publish(publisher)
				lines, cursor := readOn(x, other, rowfeed.Shards{}, cursor)
				if text := strings.Join(lines, "\n"); len(lines) != 2 ||
					!strings.Contains(text, suite.KV(2, "k", 20)) || !strings.Contains(text, suite.Gone(6)) {
					x.Errorf("a new writer's changes are %q", lines)
				}
				write(x, "UPDATE kv SET v = 70, feed_sync_id = NULL WHERE id = 7")
				if lines, _ = x.Drain(f, cursor); !slices.Equal(lines, []string{suite.KV(7, "k", 70)}) {
					x.Errorf("a former writer's change is %q", lines)
				}
				x.WantSound(f)
				if changed, err := f.Admin().MovePositions(x.Ctx, nil); err != nil || changed {
					x.Errorf("again: %v %v", changed, err)
				}
				_, err := x.RF.HandBackFeed(x.Ctx, "kv")
				x.WantCode(err, rowfeed.Refused)
				if err != nil && !strings.Contains(err.Error(), "--capture trigger") {
					x.Errorf("the refusal does not say why: %v", err)
				}
				dropFeed(x)
				if after := x.DB.Dump(x.T); after != before {
					x.Errorf("drop left\n%s\nwant\n%s", after, before)
				}
				x.Exec("DROP TABLE kv", "DELETE FROM rowfeed_feeds", "DELETE FROM rowfeed_terms")
				x.Columns = nil
			}
		}
	})
}

// TestPositionsMoveUnderWriters (M28): positions are moved while writers of the former kind insert, change and delete
// rows, and publishers publish. A reader of the whole feed and two of parts, which are behind, end with the rows of the
// table. They get a row that does not change once.
func TestPositionsMoveUnderWriters(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		const still, hot = 1200, 30
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: 8})
		for first := 0; first < still; first += 300 {
			var values []string
			for id := first; id < first+300; id++ {
				values = append(values, fmt.Sprintf("(%d, 'k', 0)", 1000+id*2))
			}
			x.Exec("INSERT INTO kv VALUES " + strings.Join(values, ", "))
		}
		x.Publish(f)
		other := x.Tapped(testdb.Hooks{}, nil)
		ctx, stop := context.WithCancel(x.Ctx)
		defer stop()
		var writers, readers sync.WaitGroup
		for n := range 2 {
			writers.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					id := int64((i*7+n)%hot*96 + 1001) // among the others
					statements := []string{fmt.Sprintf("INSERT INTO kv (id, k, v) VALUES (%d, 'h', %d)", id, i)}
					switch {
					case x.Scalar(fmt.Sprintf("SELECT count(*) FROM kv WHERE id = %d", id)) == 0:
					case i%3 == 0:
						statements = []string{fmt.Sprintf("INSERT INTO rowfeed_changes_kv (id) VALUES (%d)", id),
							fmt.Sprintf("DELETE FROM kv WHERE id = %d", id)}
					default:
						statements = []string{
							fmt.Sprintf("UPDATE kv SET v = %d, feed_sync_id = NULL WHERE id = %d", i, id)}
					}
					tx, err := x.DB.Admin().BeginTx(x.Ctx, nil)
					for _, s := range statements {
						if err == nil {
							_, err = tx.ExecContext(x.Ctx, s)
						}
					}
					if tx != nil {
						if err == nil {
							_ = tx.Commit() // a deadlock or a duplicate key is no change
						} else {
							_ = tx.Rollback()
						}
					}
				}
			})
		}
		for _, p := range []*rowfeed.Feed{f, other} {
			writers.Go(func() {
				for ctx.Err() == nil {
					if _, err := p.Publish(x.Ctx); err != nil {
						x.Errorf("publish: %v", err)
						return
					}
				}
			})
		}
		done := make(chan struct{}) // nothing is published any more
		type result struct {
			rows  map[string]string
			times map[string]int
		}
		results := make([]result, 2*len(partsOf))
		for i := range results {
			from, part := []*rowfeed.Feed{f, other}[i/len(partsOf)], partsOf[i%len(partsOf)]
			results[i] = result{map[string]string{}, map[string]int{}}
			readers.Go(func() {
				at := rowfeed.Cursor("")
				for {
					last := false
					select {
					case <-done:
						last = true
					default:
					}
					page, err := from.Fetch(x.Ctx, rowfeed.Request{After: at, Limit: 20, Shards: part})
					if err != nil {
						x.Errorf("part %v after %q: %v", part, at, err)
						return
					}
					for _, e := range page.Entries {
						key := string(e.Key.AppendJSON(nil))
						results[i].times[key]++
						if results[i].rows[key] = string(e.Row.AppendJSON(nil)); e.Op == rowfeed.Delete {
							delete(results[i].rows, key)
						}
					}
					if at = page.Cursor; last && !page.More {
						return
					}
				}
			})
		}
		x.Eventually("the writers have begun", func() bool {
			return x.Scalar("SELECT count(*) FROM kv WHERE k = 'h'") > 5
		})
		_, err := f.Admin().MovePositions(x.Ctx, nil)
		if err != nil {
			x.Error(err)
		}
		begun := x.Scalar("SELECT max(v) FROM kv")
		x.Eventually("the writers have gone on", func() bool {
			return x.Failed() || x.Scalar("SELECT max(v) FROM kv") > begun+20
		})
		stop()
		writers.Wait()
		write(x, "UPDATE kv SET v = -1 WHERE k = 'h' AND id < 2000") // a writer of the new kind
		x.Publish(f)
		close(done)
		readers.Wait()
		x.WantSound(f)
		if x.Failed() {
			return
		}
		for n := range 2 {
			whole, halves := results[n*3], result{map[string]string{}, map[string]int{}}
			for _, half := range results[n*3+1 : n*3+3] {
				maps.Copy(halves.rows, half.rows)
				for key, times := range half.times {
					halves.times[key] += times
				}
			}
			for _, r := range []result{whole, halves} {
				if int64(len(r.rows)) != x.Scalar("SELECT count(*) FROM kv") {
					x.Errorf("a reader has %d rows", len(r.rows))
				}
				for key, row := range r.rows {
					if strings.Contains(row, `"k":"k"`) && r.times[key] != 1 {
						x.Errorf("row %s came %d times", row, r.times[key])
					}
				}
			}
			if !maps.Equal(whole.rows, halves.rows) {
				x.Error("the parts have other rows than the whole")
			}
			var has, want []string
			for _, row := range whole.rows {
				has = append(has, "upsert "+row)
			}
			lines, _ := readOn(x, f, rowfeed.Shards{}, "") // rows as they are now
			for _, line := range lines {
				_, entry, _ := strings.Cut(line, " ")
				want = append(want, entry)
			}
			slices.Sort(has)
			slices.Sort(want)
			if !slices.Equal(has, want) {
				x.Errorf("a reader has the rows %q, want %q", has, want)
			}
		}
	})
}

// TestMoveRecordsForeignPositions (M28): rows that another program has numbered, above the sequence or twice, keep no
// move from ending. They are published again.
func TestMoveRecordsForeignPositions(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		f := x.AddKV()
		for id := 1; id <= 4; id++ {
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', %d)", id, id))
		}
		x.Publish(f)
		_, cursor := readOn(x, f, rowfeed.Shards{}, "")
		write(x, "UPDATE kv SET v = 10, feed_sync_id = 900 WHERE id = 1", "UPDATE kv SET v = 20, feed_sync_id = 3"+
			" WHERE id = 2", "UPDATE kv SET v = 40, feed_sync_id = -1 WHERE id = 4")
		move(x, f)
		lines, _ := x.Drain(f, cursor)
		slices.Sort(lines)
		want := []string{suite.KV(1, "k", 10), suite.KV(2, "k", 20), suite.KV(3, "k", 3), suite.KV(4, "k", 40)}
		if !slices.Equal(lines, want) {
			x.Errorf("entries %q, want %q", lines, want)
		}
		x.WantSound(f)
	})
}

// TestUnsafeMoveIsRefused (M28): positions are not moved if that is unsafe, or if there are none to move. Each refusal
// says why and what to do, and changes nothing.
func TestUnsafeMoveIsRefused(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)",
			"CREATE TABLE numbered (id BIGINT NOT NULL PRIMARY KEY, feed_sync_id BIGINT NULL)",
			"CREATE TABLE sequences (name VARCHAR(100) NOT NULL PRIMARY KEY, value BIGINT NOT NULL)",
			"INSERT INTO sequences VALUES ('elsewhere', 9)")
		for _, c := range []struct {
			spec rowfeed.FeedSpec
			why  string
		}{
			{rowfeed.FeedSpec{Name: "triggers", Table: "kv", Capture: feedtype.CaptureTrigger}, "since it was added"},
			{rowfeed.FeedSpec{Name: "app", Table: "kv", Capture: feedtype.CaptureApp}, "capture app"},
			{rowfeed.FeedSpec{Name: "elsewhere", Table: "numbered", PublishedElsewhere: true,
				AdoptSequence: "sequences"}, "another publisher"},
		} {
			f := x.Add(c.spec)
			before := x.DB.Dump(x.T)
			_, err := f.Admin().MovePositions(x.Ctx, nil)
			x.WantCode(err, rowfeed.Refused)
			var e *rowfeed.Error
			if errors.As(err, &e) && (!strings.Contains(e.Cause, c.why) || e.Next == "") {
				x.Errorf("%s: %v", c.spec.Name, err)
			}
			x.WantCode(f.Admin().MayMovePositions(x.Ctx), rowfeed.Refused)
			if after := x.DB.Dump(x.T); after != before || f.Capture() != c.spec.Capture &&
				c.spec.Capture != "" {
				x.Errorf("%s: the refusal has changed something", c.spec.Name)
			}
		}
	})
}

// TestMoveOfPartitionedTableRepublishesNothing (M28): positions are moved out of the rows of a partitioned table. No
// row is published again, also not by a look for new partitions. A TRUNCATE of a partition is captured.
func TestMoveOfPartitionedTableRepublishesNothing(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // elsewhere triggers are on the whole table
	suite.EachColumn(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT) PARTITION BY RANGE (id)",
			"CREATE TABLE kv_1 PARTITION OF kv FOR VALUES FROM (1) TO (10)",
			"CREATE TABLE kv_2 PARTITION OF kv FOR VALUES FROM (10) TO (20)")
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		x.Exec("INSERT INTO kv VALUES (1, 'a', 1), (11, 'b', 2)")
		_, cursor := x.Drain(f, "")
		move(x, f)
		if mended, err := f.Admin().Upgrade(x.Ctx); err != nil || len(mended) > 0 {
			x.Errorf("upgrade: %q %v", mended, err)
		}
		if lines, _ := x.Drain(f, cursor); len(lines) > 0 {
			x.Errorf("published again: %q", lines)
		}
		write(x, "TRUNCATE kv_2")
		if lines, _ := x.Drain(f, cursor); !slices.Equal(lines, []string{suite.Gone(11)}) {
			x.Errorf("a TRUNCATE is %q", lines)
		}
		x.WantSound(f)
	})
}
