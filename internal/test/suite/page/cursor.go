package page

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// removeUncaptured deletes rows while the feed's trigger is off, as a statement does that fires no trigger.
func removeUncaptured(x *suite.Env, f *rowfeed.Feed, condition string) {
	x.Helper()
	x.Exec(x.Text("suite.stop_capture"), "DELETE FROM kv WHERE "+condition)
	if mended, err := f.Admin().Upgrade(x.Ctx); err != nil || len(mended) != 1 {
		x.Fatalf("upgrade: %q, %v", mended, err)
	}
}

// TestPagesBeginAtFirstEntryAndEndAtHead (M16, M17, H30): the cursors "" and "0" start at the first entry. At the head
// a page is empty and has the cursor of the request. Only a feed without entries returns the cursor "". Page.More is
// false exactly if the page has reached the head.
func TestPagesBeginAtFirstEntryAndEndAtHead(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		for _, after := range []rowfeed.Cursor{"", "0", "now"} {
			x.WantPage(f, after, 5, "> ")
		}
		if x.Capture == feedtype.CaptureColumn { // it keeps no times of publication
			_, err := f.Fetch(x.Ctx, rowfeed.Request{After: "at:2000-01-01T00:00:00Z"})
			x.WantCode(err, rowfeed.InvalidRequest)
		} else {
			x.WantPage(f, "at:2000-01-01T00:00:00Z", 5, "> ")
		}
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0), (3, 'c', 0)")
		x.WantPage(f, "", 5, "> ") // not published yet
		x.Publish(f)
		one, two, three := "1 "+suite.KV(1, "a", 0), "2 "+suite.KV(2, "b", 0), "3 "+suite.KV(3, "c", 0)
		for _, after := range []rowfeed.Cursor{"", "0", "1:0"} {
			x.WantPage(f, after, 5, one, two, three, "> 3")
			x.WantPage(f, after, 3, one, two, three, "> 3") // the limit is at the head, so More is false
			x.WantPage(f, after, 2, one, two, "> 2@3+")
		}
		for range 3 {
			x.WantPage(f, "3", 5, "> 3")
			x.WantPage(f, "now", 5, "> 3")
			x.WantPage(f, "2", 5, three, "> 3")
			x.WantPage(f, "2@3", 1, three, "> 3")
		}
		x.Exec("UPDATE kv SET v = 1 WHERE id = 3")
		x.WantPage(f, "3", 5, "> 3") // not published yet
		x.Publish(f)
		x.WantPage(f, "3", 5, "4 "+suite.KV(3, "c", 1), "> 4")
		// The changed row has moved, and the other rows keep their order.
		x.WantPage(f, "0@3", 5, one, two, "4 "+suite.KV(3, "c", 1), "> 4")
		info, err := f.Info(x.Ctx)
		if err != nil || suite.Place(info.Head) != "4" {
			x.Errorf("info: %+v, %v", info, err)
		}
	})
}

// TestSameCursorReturnsSameEntries (M15): the same cursor returns the same entries every time, except rows that have
// moved to a higher position. Pages of any limits have the same entries in total.
func TestSameCursorReturnsSameEntries(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		const rows = 60
		for id := 1; id <= rows; id++ {
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id))
		}
		x.Publish(f)
		whole := x.Fetch(f, "", feedtype.MaxLimit)
		if len(whole.Entries) != rows {
			x.Fatalf("%d entries", len(whole.Entries))
		}
		random := rand.New(rand.NewPCG(suite.RaceSeed(x.T), 0))
		for range 5 {
			var lines []string
			for cursor, more := rowfeed.Beginning, true; more; {
				limit := 1 + random.IntN(9)
				page := x.Fetch(f, cursor, limit)
				if again := x.Fetch(f, cursor, limit); suite.Show(again) != suite.Show(page) {
					x.Fatalf("after %q first\n%s\nthen\n%s", cursor, suite.Show(page), suite.Show(again))
				}
				if len(page.Entries) != limit && page.More {
					x.Errorf("a page has %d entries and More, want %d entries", len(page.Entries), limit)
				}
				for _, e := range page.Entries {
					lines = append(lines, suite.Line(e))
				}
				cursor, more = page.Cursor, page.More
			}
			first, last := suite.Line(whole.Entries[0]), suite.Line(whole.Entries[rows-1])
			if len(lines) != rows || lines[0] != first || lines[rows-1] != last {
				x.Errorf("the pages have %d entries: %q", len(lines), lines)
			}
		}
		x.Exec("UPDATE kv SET v = 1 WHERE id IN (2, 5)")
		x.Publish(f)
		var want, got []string
		for _, id := range []int{1, 3, 4, 6, 7} {
			want = append(want, suite.KV(id, "k", 0))
		}
		for _, e := range x.Fetch(f, "", 5).Entries {
			got = append(got, suite.Line(e))
		}
		if !slices.Equal(got, want) {
			x.Errorf("got %q", got)
		}
	})
}

// TestWrongCursorIsRefused (G3): a cursor whose position or start mark is above the head is refused. So is a cursor of
// another generation, and a text that is no cursor. The error names the parameter.
func TestWrongCursorIsRefused(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.WantRefused(f, "1", rowfeed.CursorAhead)
		x.WantRefused(f, "0@1", rowfeed.CursorAhead)
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		x.WantRefused(f, "1", rowfeed.CursorAhead) // not published yet
		x.Publish(f)
		x.WantPage(f, "2", 5, "> 2")
		for _, after := range []rowfeed.Cursor{"3", "1@3", "9223372036854775807", "0@9223372036854775807"} {
			x.WantRefused(f, after, rowfeed.CursorAhead)
		}
		for _, after := range []rowfeed.Cursor{"2:1", "2:0@1", "1763700000:2"} {
			x.WantRefused(f, after, rowfeed.GenerationChanged)
		}
		for _, after := range []rowfeed.Cursor{"x", "-1", "+1", "1 ", "1.5", "9223372036854775808", "1:", ":1", "0:1",
			"1@", "2@1", "1@x", "at:", "at:noon", "Now", "1;DROP TABLE kv"} {
			x.WantRefused(f, after, rowfeed.InvalidRequest)
		}
		for _, c := range []struct {
			request rowfeed.Request
			param   string
		}{
			{rowfeed.Request{Limit: -1}, "limit"},
			{rowfeed.Request{Limit: feedtype.MaxLimit + 1}, "limit"},
			{rowfeed.Request{Wait: -time.Second}, "wait"},
			{rowfeed.Request{Limit: 1, Wait: -1}, "wait"},
		} {
			_, err := f.Fetch(x.Ctx, c.request)
			var e *rowfeed.Error
			if !errors.As(err, &e) || e.Code != rowfeed.InvalidRequest || e.Param != c.param {
				x.Errorf("%+v: %v", c.request, err)
			}
		}
	})
}

// TestReaddedFeedHasAnotherGeneration (M74, H15): a feed that was dropped and added again has a higher generation, and
// its positions start at 1 again. Its cursors name the generation, and old cursors are refused. All of this also holds
// for feeds that were opened before.
func TestReaddedFeedHasAnotherGeneration(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		old := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0), (3, 'c', 0)")
		x.Publish(old)
		x.WantPage(old, "3", 5, "> 3")
		// Another process has opened the feed before it is dropped.
		other, err := suite.OpenEnv(x.T, x.DB, nil).RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		x.Fetch(other, "", 5)
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		x.WantRefused(other, "3", rowfeed.UnknownFeed)
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		x.Publish(f)
		for _, handle := range []*rowfeed.Feed{f, other, old} {
			for _, after := range []rowfeed.Cursor{"1", "3", "4", "1:3", "0@3"} {
				x.WantRefused(handle, after, rowfeed.GenerationChanged)
			}
			for _, after := range []rowfeed.Cursor{"", "0"} {
				page := x.Fetch(handle, after, 2)
				place := string(suite.Place(page.Cursor))
				if len(page.Entries) != 2 || !regexp.MustCompile(`^[0-9]{2,}:2@3$`).MatchString(place) {
					x.Errorf("after %q: %s", after, suite.Show(page))
				}
				page = x.Fetch(handle, page.Cursor, 2)
				if len(page.Entries) != 1 || string(suite.Place(page.Cursor)) != fmt.Sprintf("%d:3", f.Generation()) {
					x.Errorf("the second page: %s", suite.Show(page))
				}
			}
		}
		head := rowfeed.Cursor(strconv.FormatInt(f.Generation(), 10) + ":4")
		x.WantRefused(f, head, rowfeed.CursorAhead)
		first := f.Generation()
		if first <= 1 {
			x.Errorf("generation %d", first)
		}
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		if again := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"}).Generation(); again <= first {
			x.Errorf("generation %d, then %d", first, again)
		}
	})
}

// TestStartMarkHidesOldDeletes (G6, M70, H16): a reader that starts at the beginning gets no deletes from before its
// start, whatever the size of its pages. The head at its start is a mark in its cursor until the reader has passed it.
// The reader gets all later deletes.
func TestStartMarkHidesOldDeletes(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0), (2, 'k', 0), (3, 'k', 0), (4, 'k', 0), (5, 'k', 0), (6, 'k', 0)")
		x.Publish(f)
		x.Exec("DELETE FROM kv WHERE id = 5", "DELETE FROM kv WHERE id = 6", "UPDATE kv SET v = 1 WHERE id = 4")
		x.Publish(f) // 1, 2, 3 and 9 are rows, 7 and 8 are tombstones
		one, two, four := "1 "+suite.KV(1, "k", 0), "2 "+suite.KV(2, "k", 0), "9 "+suite.KV(4, "k", 1)
		cursor := x.WantPage(f, "", 1, one, "> 1@9+")
		cursor = x.WantPage(f, cursor, 1, two, "> 2@9+")
		// The reader has got row 1, but not row 3. Both deletes are after its start, so it gets both.
		x.Exec("DELETE FROM kv WHERE id IN (1, 3)", "UPDATE kv SET v = 2 WHERE id = 2")
		x.WantPage(f, cursor, 5, four, "> 9") // deleted rows are left out until their deletes are published
		x.Publish(f)                          // 10 and 11 are tombstones, 12 is a row
		x.WantPage(f, cursor, 1, four, "> 9+")
		x.WantPage(f, cursor, 5, four, "10 "+suite.Gone(1), "11 "+suite.Gone(3), "12 "+suite.KV(2, "k", 2), "> 12")
		// A cursor without a mark gets every tombstone.
		x.WantPage(f, "2", 5, "7 "+suite.Gone(5), "8 "+suite.Gone(6), four,
			"10 "+suite.Gone(1), "11 "+suite.Gone(3), "> 11+")
		// If there are only tombstones, a start reaches the head at once.
		x.Exec("DELETE FROM kv WHERE id = 2", "DELETE FROM kv WHERE id = 4")
		x.Publish(f)
		x.WantPage(f, "", 1, "> 14")
		// With a mark at 13, the delete at 13 is hidden and the one at 14 is not.
		x.WantPage(f, "9@13", 5, "14 "+suite.Gone(4), "> 14")
		x.WantPage(f, "9@12", 5, "13 "+suite.Gone(2), "14 "+suite.Gone(4), "> 14")
	})
}

// TestNewConsumerGetsNoUnpublishedRows (M70): a new consumer gets nothing of rows that were unpublished before its
// start, and deletes of rows that were unpublished after it. If an unpublished row is deleted, republishing it gives
// consumers a delete.
func TestNewConsumerGetsNoUnpublishedRows(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0), (2, 'k', 0), (3, 'k', 0)")
		x.Publish(f)
		do := func(what func(context.Context, rowfeed.Tx, ...rowfeed.Key) error, id int) {
			x.Helper()
			err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error { return what(x.Ctx, tx, rowfeed.Key{id}) })
			if err != nil {
				x.Fatal(err)
			}
			x.Publish(f)
		}
		do(f.Unpublish, 1) // 4
		start := x.WantPage(f, "", 1, "2 "+suite.KV(2, "k", 0), "> 2@4+")
		do(f.Unpublish, 2) // 5
		do(f.Unpublish, 3) // 6, whose row the new consumer has not got yet
		at := x.WantPage(f, start, 5, "5 "+suite.Gone(2), "6 "+suite.Gone(3), "> 6")
		x.Exec("DELETE FROM kv WHERE id = 2", "UPDATE kv SET v = 1 WHERE id = 3")
		x.Publish(f)
		at = x.WantDrain(f, at)
		x.WantDrain(f, "")
		do(f.Republish, 2)
		do(f.Republish, 3)
		x.WantDrain(f, at, suite.Gone(2), suite.KV(3, "k", 1))
		x.WantDrain(f, "", suite.KV(3, "k", 1))
		x.WantSound(f)
	})
}

// TestTimeCursorIsBelowFirstLaterEntry: a cursor "at:TIME" is just below the lowest position that was published at TIME
// or later, also if positions in between have no row any more. The cursor "now" is the head.
func TestTimeCursorIsBelowFirstLaterEntry(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0), (2, 'k', 0), (3, 'k', 0), (4, 'k', 0)")
		x.Publish(f)
		second := func(s int) time.Time { return time.Unix(1_800_000_000+int64(s), 0) }
		for id, s := range map[int]int{1: 10, 2: 20, 3: 20, 4: 30} {
			x.Exec(fmt.Sprintf("UPDATE rowfeed_positions_kv SET published_at = %d WHERE id = %d",
				second(s).UnixMicro(), id))
		}
		var all []string
		for id := 1; id <= 4; id++ {
			all = append(all, fmt.Sprintf("%d %s", id, suite.KV(id, "k", 0)))
		}
		for _, test := range []struct {
			at    time.Time
			above int
		}{
			{time.Unix(0, 0), 0}, {second(9), 0}, {second(10), 0},
			{second(10).Add(time.Microsecond), 1}, {second(19), 1}, {second(20), 1},
			{second(20).Add(time.Microsecond), 3}, {second(30), 3},
			{second(31), 4}, {time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), 4},
		} {
			x.WantPage(f, rowfeed.At(test.at), 10, append(slices.Clone(all[test.above:]), "> 4")...)
		}
		x.WantPage(f, "at:2027-01-15T08:00:20Z", 1, all[1], "> 2+") // without a start mark, because this is no start
		x.WantPage(f, "at:2027-01-15T13:45:20+05:45", 1, all[1], "> 2+")
		x.WantPage(f, "now", 10, "> 4")
		x.Exec("UPDATE kv SET v = 1 WHERE id = 4", "DELETE FROM kv WHERE id = 1")
		x.Publish(f) // 5 and 6, so positions 1 and 4 have no row
		x.Exec(fmt.Sprintf("UPDATE rowfeed_positions_kv SET published_at = %d WHERE feed_sync_id > 4",
			second(40).UnixMicro()))
		five, six := "5 "+suite.KV(4, "k", 1), "6 "+suite.Gone(1)
		x.WantPage(f, rowfeed.At(second(5)), 10, all[1], all[2], five, six, "> 6")
		x.WantPage(f, rowfeed.At(second(25)), 10, five, six, "> 6")
		x.WantPage(f, rowfeed.At(second(40)), 10, five, six, "> 6")
		x.WantPage(f, rowfeed.At(second(41)), 10, "> 6")
		x.WantPage(f, "now", 10, "> 6")
	})
}

// TestCursorAtTimeEqualsModel: the same as TestTimeCursorIsBelowFirstLaterEntry, compared with a model, for many
// positions at random with gaps between them and equal times. All entries since the time are shown, and no older ones.
func TestCursorAtTimeEqualsModel(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		const rows = 40
		for id := 1; id <= rows; id++ {
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id))
		}
		x.Publish(f)
		r := rand.New(rand.NewPCG(suite.RaceSeed(x.T), 0))
		type placed struct{ position, second int64 }
		var placedAt []placed
		position, second := int64(0), int64(100)
		var head int64
		for id := 1; id <= rows; id++ {
			position, second = position+1+r.Int64N(1+r.Int64N(50)), second+r.Int64N(3)
			placedAt, head = append(placedAt, placed{position, second}), position
			// An offset keeps new positions from colliding with old ones meanwhile.
			x.Exec(fmt.Sprintf("UPDATE rowfeed_positions_kv SET feed_sync_id = %d, published_at = %d WHERE id = %d",
				1_000_000+position, second*1_000_000, id))
		}
		x.Exec("UPDATE rowfeed_positions_kv SET feed_sync_id = feed_sync_id - 1000000",
			fmt.Sprintf("UPDATE rowfeed_sequences SET value = %d", head))
		for s := int64(98); s < second+3; s++ {
			var want, got []string
			for _, p := range placedAt {
				if p.second >= s {
					want = append(want, strconv.FormatInt(p.position, 10))
				}
			}
			for _, e := range x.Fetch(f, rowfeed.At(time.Unix(s, 0)), rows).Entries {
				got = append(got, e.Position)
			}
			if !slices.Equal(got, want) {
				x.Errorf("at second %d: positions %v, want %v (of %v)", s, got, want, placedAt)
			}
		}
	})
}

// TestVanishedRowIsNoDelete (G1, H5, H21): a row that was deleted without its trigger is left out of pages and not
// shown as deleted. The cursor passes it. Page events and status count such rows, check finds them, and after repair
// consumers get their deletes. With capture "column" a row's position is in the row and vanishes with it.
func TestVanishedRowIsNoDelete(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		var vanished int
		observer := &rowfeed.Observer{Fetched: func(e rowfeed.FetchEvent) { vanished = e.Vanished }}
		x = suite.OpenEnv(x.T, x.DB, &rowfeed.Config{Observer: observer})
		f := x.AddKV()
		for id := 1; id <= 30; id++ {
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id))
		}
		x.Publish(f)
		removeUncaptured(x, f, "id IN (2, 3)")
		x.WantPage(f, "", 2, "1 "+suite.KV(1, "k", 0), "> 2@30+")
		if vanished != 1 {
			x.Errorf("the page's event counts %d vanished rows, want 1", vanished)
		}
		// A page that would be empty is not returned: the next rows are read instead.
		x.WantPage(f, "1", 2, "4 "+suite.KV(4, "k", 0), "5 "+suite.KV(5, "k", 0), "> 5+")
		x.WantPage(f, "1", 3, "4 "+suite.KV(4, "k", 0), "> 4+")
		x.WantPage(f, "1", 4, "4 "+suite.KV(4, "k", 0), "5 "+suite.KV(5, "k", 0), "> 5+")
		status, err := f.Admin().Status(x.Ctx)
		if err != nil || status.Vanished == nil || *status.Vanished != 2 {
			x.Errorf("status: %+v, %v", status, err)
		}
		findings, err := f.Admin().Check(x.Ctx)
		if err != nil || len(findings) != 2 || findings[0].Rule != "position-has-row" ||
			string(findings[0].Key.AppendJSON(nil)) != `{"id":2}` {
			x.Errorf("check: %+v, %v", findings, err)
		}
		// If very many rows in succession have vanished, a page has no entries, and More is true.
		removeUncaptured(x, f, "id BETWEEN 2 AND 29")
		page := x.Fetch(f, "1", 1)
		if len(page.Entries) != 0 || !page.More || suite.Place(page.Cursor) == "1" {
			x.Errorf("got %s", suite.Show(page))
		}
		x.WantPage(f, page.Cursor, 1, "30 "+suite.KV(30, "k", 0), "> 30")
		x.WantPage(f, "29", 1, "30 "+suite.KV(30, "k", 0), "> 30")
		if n, err := f.Admin().Repair(x.Ctx); err != nil || n != 28 {
			x.Errorf("repaired %d, %v", n, err)
		}
		lines, _ := x.Drain(f, "30")
		if len(lines) != 28 || !slices.Contains(lines, suite.Gone(2)) || !slices.Contains(lines, suite.Gone(29)) {
			x.Errorf("after repair %q", lines)
		}
		x.WantSound(f)
		if status, err := f.Admin().Status(x.Ctx); err != nil || *status.Vanished != 0 {
			x.Errorf("status after repair: %+v, %v", status, err)
		}
	})
}
