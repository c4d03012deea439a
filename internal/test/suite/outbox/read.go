package outbox

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestRecordsGetULIDsWhenFirstRead (M17, M59, M60, H19): records get ULIDs when they are first read, in the order in
// which they were appended. Their times follow the hints but never go back. A second read gives the same entries.
func TestRecordsGetULIDsWhenFirstRead(t *testing.T) {
	testdb.Quick(t)
	suite.EachOutbox(t, func(x *suite.Events) {
		noon := x.Now().Add(-24 * time.Hour).Truncate(time.Hour)
		for i, minute := range []time.Duration{0, 3, 2, 1, 10} {
			x.Appended(i+1, 0, noon.Add(minute*time.Minute))
		}
		first := x.Page(x.Feed, 0, "", 3)
		x.WantIDs(first, true, 1, 2, 3)
		second := x.Page(x.Feed, 0, first.Cursor, 3)
		x.WantIDs(second, false, 4, 5)
		var times []time.Duration
		for _, e := range slices.Concat(first.Entries, second.Entries) {
			times = append(times, suite.Millis(ulid.MustParse(e.Position)).Sub(noon)/time.Minute)
		}
		if want := []time.Duration{0, 3, 3, 3, 10}; !slices.Equal(times, want) {
			t.Errorf("the positions have the times %v, want %v", times, want)
		}
		if again := x.Page(x.Feed, 0, "", 3); suite.Lines(again) != suite.Lines(first) {
			t.Errorf("the second read got\n%s\nthe first\n%s", suite.Lines(again), suite.Lines(first))
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events"); n != 0 {
			t.Errorf("%d records wait", n)
		}
		// A second record of a key moves its entry to the head. Other shards have positions of their own.
		tx := x.Begin(sql.LevelReadCommitted)
		record := rowfeed.OutboxRecord{Key: rowfeed.Key{int64(2)}}
		if err := x.Feed.AppendOutbox(x.Ctx, rowfeed.InTx(tx), record); err != nil {
			t.Fatal(err)
		}
		x.Commit(tx)
		if page := x.Page(x.Feed, 0, rowfeed.Now, 10); len(page.Entries) != 0 || page.Cursor != second.Cursor {
			t.Errorf("the page at now is %+v", page)
		}
		x.Appended(6, -7, time.Time{})
		x.Appended(7, 0, x.Now().Add(time.Hour))
		third := x.Page(x.Feed, 0, second.Cursor, 10)
		x.WantIDs(third, false, 2, 7)
		if ahead := suite.Millis(ulid.MustParse(third.Entries[1].Position)).Sub(x.Now()); ahead > time.Second {
			t.Errorf("the position is %s ahead of the clock, as its hint was", ahead)
		}
		x.WantIDs(x.Page(x.Feed, -7, "", 10), false, 6)
		_, err := x.Feed.Fetch(x.Ctx, rowfeed.Request{})
		if x.WantCode(err, rowfeed.InvalidRequest); !strings.Contains(err.Error(), "-7, 0") {
			t.Error(err)
		}
		_, err = x.Feed.Lock(x.Ctx, rowfeed.InTx(x.Begin(sql.LevelReadCommitted)), rowfeed.LockRequest{})
		x.WantCode(err, rowfeed.Refused)
		x.WantSound(x.Feed)
		for range 2 {
			if err := x.RF.DropFeed(x.Ctx, "events"); err != nil {
				t.Fatal(err)
			}
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_shards"); n != 0 {
			t.Errorf("%d rows are left in rowfeed_shards", n)
		}
	})
}

// TestOpenWriterDelaysNoReader (M59, M60): a writer's transaction stays open. Readers get later records without
// waiting, and the record of the open transaction follows them once it is committed.
func TestOpenWriterDelaysNoReader(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	suite.EachOutbox(t, func(x *suite.Events) {
		open := x.Begin(sql.LevelReadCommitted)
		if err := x.Append(open, 1, 0, time.Time{}); err != nil {
			t.Fatal(err)
		}
		x.Appended(2, 0, time.Time{})
		page := x.Page(x.Feed, 0, "", 10)
		x.WantIDs(page, false, 2)
		x.Appended(3, 0, time.Time{})
		if n := x.Publish(x.Feed); n != 1 { // before a reader does
			t.Errorf("%d records moved", n)
		}
		x.Commit(open)
		x.WantIDs(x.Page(x.Feed, 0, page.Cursor, 10), true, 3)
		x.WantIDs(x.Page(x.Feed, 0, "", 10), true, 2, 3)
		after := x.Page(x.Feed, 0, "", 10).Cursor
		x.WantIDs(x.Page(x.Feed, 0, after, 10), false, 1)
	})
}

// TestConcurrentReadersSeeOneOrder (M59, M60, H9): writers append to several shards while readers move what they find.
// Every reader sees all rows once, each shard in one order, and the rows of each writer in the order of their inserts.
func TestConcurrentReadersSeeOneOrder(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		const writers, turns, shards, readers = 4, 30, 2, 3
		var writing, reading sync.WaitGroup
		var done atomic.Bool
		for w := range writers {
			pool := x.Writer(testdb.Hooks{})
			writing.Go(func() {
				for turn := range turns {
					tx, err := pool.BeginTx(x.Ctx, nil)
					if err == nil {
						if err = x.Append(tx, w*1000+turn, w%shards, time.Time{}); err == nil && turn%7 == 6 {
							err = tx.Rollback()
						} else if err == nil {
							err = tx.Commit()
						}
					}
					if err != nil {
						x.Errorf("writer %d: %v", w, err)
						return
					}
				}
			})
		}
		orders := make([][shards][]string, readers)
		for r := range readers {
			reading.Go(func() {
				var after [shards]rowfeed.Cursor
				for last := false; !last; {
					last = done.Load()
					for shard := range shards {
						for more := true; more; {
							page, err := x.TryPage(x.Feed, shard, after[shard], 5)
							if err != nil {
								x.Error(err)
								return
							}
							for _, e := range page.Entries {
								id, _ := e.Key.Get("id")
								orders[r][shard] = append(orders[r][shard], fmt.Sprintf("%06d", id))
							}
							more = page.More || len(page.Entries) > 0
							after[shard] = page.Cursor
						}
					}
				}
			})
		}
		writing.Wait()
		done.Store(true)
		reading.Wait()
		for shard := range shards {
			for r := range readers {
				if !slices.Equal(orders[r][shard], orders[0][shard]) {
					t.Errorf("shard %d: reader %d has seen\n%v\nreader 0\n%v", shard, r,
						orders[r][shard], orders[0][shard])
				}
			}
			last := map[string]string{}
			for _, id := range orders[0][shard] {
				if writer := id[:3]; id <= last[writer] {
					t.Errorf("a reader has seen %s after %s", id, last[writer])
				} else {
					last[writer] = id
				}
			}
		}
		want := x.Scalar("SELECT count(*) FROM events")
		if got := len(orders[0][0]) + len(orders[0][1]); int64(got) != want {
			t.Errorf("a reader has seen %d rows of %d", got, want)
		}
	})
}

// idOf returns the id of an entry's key.
func idOf(e rowfeed.Entry) int {
	id, _ := e.Key.Get("id")
	return int(id.(int64))
}
