package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// unrecorded inserts rows of kv without records, as if they had been imported without the trigger.
func unrecorded(x *suite.Env, first, last int) {
	x.Helper()
	x.ImportRows(first, last)
	x.Exec(fmt.Sprintf("DELETE FROM rowfeed_outbox_kv WHERE id BETWEEN %d AND %d", first, last))
}

// byMade sorts rows by the time at which they were made: the greatest id is the oldest row.
func byMade(ids []int) []int {
	return slices.SortedFunc(slices.Values(ids), func(a, b int) int { return b - a }) // the greatest was made first
}

// rowsOf returns the ids from first to last that are in the shard.
func rowsOf(shard, first, last int) (ids []int) {
	for id := first; id <= last; id++ {
		if suite.ShardOfRow(id) == shard {
			ids = append(ids, id)
		}
	}
	return ids
}

// TestBackFillPlacesOldRowsBelowTheHead (M62): back-fill places the rows that were there before the feed below the live
// entries of their shards, in the order of their times and at those times. A reader at the head gets none of them. A
// second back-fill places only rows that were imported since, above the rows of the first, so that a reader in the
// middle misses none.
func TestBackFillPlacesOldRowsBelowTheHead(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(30)
		y := &suite.Events{Env: x, Feed: x.Add(suite.BackfillSpec())}
		y.WantShard(0, byMade(rowsOf(0, 1, 30))...)
		y.WantShard(3, byMade(rowsOf(3, 1, 30))...)
		for _, e := range y.Page(y.Feed, 0, "", 100).Entries {
			if at := suite.Millis(ulid.MustParse(e.Position)); !at.Equal(suite.MadeAt(idOf(e))) {
				x.Errorf("the position of row %d has the time %s", idOf(e), at)
			}
		}
		y.WantSound(y.Feed)
		head := y.Page(y.Feed, 0, rowfeed.Now, 100).Cursor
		middle := y.Page(y.Feed, 0, "", 7)
		x.Exec("INSERT INTO kv VALUES (31, 0, NULL)", "INSERT INTO kv VALUES (32, 3, NULL)")
		y.WantIDs(y.Page(y.Feed, 0, head, 100), false, 31)
		all := suite.Lines(y.Page(y.Feed, 0, "", 100))
		y.Backfilled(0)
		y.Backfilled(0)
		if again := suite.Lines(y.Page(y.Feed, 0, "", 100)); again != all {
			x.Errorf("after the second back-fill:\n%s\nafter the first:\n%s", again, all)
		}
		live := y.Page(y.Feed, 0, head, 100).Cursor
		unrecorded(y.Env, 40, 45)
		unrecorded(y.Env, -5, -1)
		y.Backfilled(11)
		if page := y.Page(y.Feed, 0, live, 100); len(page.Entries) > 0 {
			x.Errorf("a reader at the head got %s", suite.Lines(page))
		}
		var got []int
		for _, e := range y.Page(y.Feed, 0, middle.Cursor, 100).Entries {
			got = append(got, idOf(e))
		}
		want := slices.Concat(byMade(rowsOf(0, 1, 30))[7:], rowsOf(0, -5, -1), rowsOf(0, 40, 45), []int{31})
		if !slices.Equal(got, want) {
			x.Errorf("a reader in the middle got %v, want %v", got, want)
		}
		unrecorded(y.Env, 50, 55)
		y.Backfilled(6)
		y.WantShard(3, slices.Concat(byMade(rowsOf(3, 1, 30)), rowsOf(3, -5, -1), rowsOf(3, 40, 45), rowsOf(3, 50, 55),
			[]int{32})...)
		y.WantSound(y.Feed)
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_shards"); n != 0 {
			x.Errorf("%d rows are left in rowfeed_shards", n)
		}
	})
}

// TestBackFillAcceptsAnyTime (M62): back-fill places rows whose time is missing, before 1970, in the future, or later
// than the first live entry. So it does in a shard whose live entries have old times.
func TestBackFillAcceptsAnyTime(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(0)
		y := &suite.Events{Env: x, Feed: x.Add(suite.BackfillSpec())}
		tx := x.Begin(sql.LevelReadCommitted)
		x.In(tx, "INSERT INTO kv VALUES (1, 0, NULL)", "UPDATE rowfeed_outbox_kv SET time_hint = 1000")
		x.Commit(tx)
		y.WantShard(0, 1) // its live part begins in 1970
		x.Exec("INSERT INTO kv VALUES (3, 0, NULL)")
		y.WantShard(0, 1, 3)
		unrecorded(y.Env, 2, 2)
		for id, at := range map[int]string{
			4: "NULL",
			5: "'" + x.Text("suite.in_utc", "1969-12-31 23:59:59") + "'",
			7: "'" + x.Text("suite.in_utc", "9999-01-01 00:00:00") + "'",
			8: "'" + x.Text("suite.in_utc", "1970-01-01 00:00:00.5") + "'",
		} {
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 0, %s), (%d, 3, %[2]s)", id, at, id+10))
		}
		x.Exec("DELETE FROM rowfeed_outbox_kv")
		y.Backfilled(9)
		y.WantShard(0, 5, 8, 2, 4, 7, 1, 3)
		y.WantShard(3, 15, 18, 14, 17)
		// The live part of a shard without entries begins at the time of the feed, whatever a hint says.
		tx = x.Begin(sql.LevelReadCommitted)
		x.In(tx, "INSERT INTO kv VALUES (20, 3, NULL)", "UPDATE rowfeed_outbox_kv SET time_hint = 1000")
		x.Commit(tx)
		y.WantShard(3, 15, 18, 14, 17, 20)
		y.WantSound(y.Feed)
	})
}

// TestBackFillRefusesCursorsThatWouldMissRows (M62): while back-fill places rows, a fetch fails if its cursor would
// miss some of them: at the beginning, at a time, at an old ULID, and in a shard without entries. Readers of the live
// part get new entries, and the cursor `now` is in that part.
func TestBackFillRefusesCursorsThatWouldMissRows(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(2100) // two batches
		held := testdb.Hold(func(ev testdb.TapEvent) bool {
			return ev.Kind == testdb.Begin && scalarOr(x, 0, "SELECT count(*) FROM rowfeed_feed_kv") > 1500
		})
		end := make(chan error, 1)
		go func() {
			_, err := x.TappedDB(testdb.Hooks{Before: held.Before}, nil).AddFeed(x.Ctx, suite.BackfillSpec(), nil)
			end <- err
		}()
		<-held.Reached
		defer held.Release()
		y := x.KVEvents()
		refused := func(after rowfeed.Cursor, shard int) {
			x.Helper()
			_, err := y.Feed.Fetch(x.Ctx, rowfeed.Request{After: after, Shards: rowfeed.One(shard)})
			x.WantCode(err, rowfeed.Filling)
		}
		for _, shard := range []int{0, 3} {
			refused("", shard)
			refused("at:2019-12-31T12:00:00Z", shard)
			refused(rowfeed.Cursor(ulid.MustNew(uint64(suite.MadeAt(30).UnixMilli()), nil).String()), shard)
		}
		refused("", 99)
		refused(rowfeed.Now, 99)
		now := y.Page(y.Feed, 0, rowfeed.Now, 10)
		x.Exec("INSERT INTO kv VALUES (5000, 0, NULL)", "INSERT INTO kv VALUES (5001, 99, NULL)")
		live := y.Page(y.Feed, 0, now.Cursor, 10)
		y.WantIDs(live, false, 5000)
		x.Publish(y.Feed)
		refused("", 99) // it has a live part, and rows may still be placed below it
		y.WantIDs(y.Page(y.Feed, 99, rowfeed.Now, 10), false)
		refused("", 0)
		_, err := y.Feed.Admin().Repair(x.Ctx)
		x.WantCode(err, rowfeed.Filling)
		if findings, err := y.Feed.Admin().Check(x.Ctx); err != nil || len(findings) != 1 ||
			findings[0].Rule != "row-has-place" {
			x.Errorf("check found %+v, %v", findings, err)
		}
		held.Release()
		if err := <-end; err != nil {
			x.Fatal(err)
		}
		y.WantShard(0, append(byMade(rowsOf(0, 1, 2100)), 5000)...)
		y.WantShard(3, byMade(rowsOf(3, 1, 2100))...)
		y.WantShard(99, 5001)
		if page := y.Page(y.Feed, 0, live.Cursor, 10); len(page.Entries) > 0 || page.More {
			x.Errorf("a reader at the head got %s", suite.Lines(page))
		}
		y.WantSound(y.Feed)
	})
}

// backFill runs back-fill of a feed in another process, whose statements the hooks see.
func backFill(x *suite.Env, feed string, h testdb.Hooks) error {
	f, err := x.TappedDB(h, nil).Feed(x.Ctx, feed)
	if err == nil {
		_, err = f.Admin().BackFill(x.Ctx, nil)
	}
	return err
}

// scalarOr returns a number, or otherwise if the query fails because a table does not exist yet.
func scalarOr(x *suite.Env, otherwise int64, query string) int64 {
	var n int64
	if err := x.DB.Admin().QueryRowContext(x.Ctx, query).Scan(&n); err != nil {
		return otherwise
	}
	return n
}

// TestBackFillLosesNothingBetweenStatements (M62): before every statement of a back-fill a writer inserts a row, a
// reader at the head moves and reads records, a second back-fill runs, or a record is appended of a row that is not
// placed yet. In the end the feed has every row once. The reader has every live row once and in order, and of the old
// rows only those that got a record before they were placed (hazards 1 and 9).
func TestBackFillLosesNothingBetweenStatements(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(60)
		x.Add(suite.BackfillSpec())
		x.Exec("DELETE FROM rowfeed_feed_kv", "DELETE FROM rowfeed_shards") // as they were before back-fill began
		y := x.KVEvents()
		x.Exec("INSERT INTO kv VALUES (900, 0, NULL)")
		x.Publish(y.Feed) // shard 0 has a live part
		cursor := y.Page(y.Feed, 0, rowfeed.Now, 10).Cursor
		var live, written, records []int
		read := func() {
			for more := true; more; {
				page := y.Page(y.Feed, 0, cursor, 100)
				for _, e := range page.Entries {
					live = append(live, idOf(e))
				}
				cursor, more = page.Cursor, page.More || len(page.Entries) > 0
			}
		}
		statement, inside, others, locked := 0, false, false, false
		hook := func(_ context.Context, ev testdb.TapEvent) error {
			if inside {
				return nil // this is a statement of the hook
			}
			inside = true
			defer func() { inside = false }()
			statement++
			alone := (ev.InTx || locked) && x.Has.OneWriter
			if strings.HasPrefix(ev.SQL, "BEGIN") || ev.SQL == "COMMIT" {
				locked = ev.SQL != "COMMIT"
			}
			if alone {
				return nil // no other transaction can write now
			}
			id := 1000 + statement
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 0, NULL)", id))
			written = append(written, id)
			if ev.InTx {
				return nil // it may hold the shard or a key, and the other calls would wait for that
			}
			switch old := 60 - 3*len(records) - 1; {
			case statement%2 == 0 && old > 30:
				tx := x.Begin(sql.LevelReadCommitted)
				record := rowfeed.OutboxRecord{Key: rowfeed.Key{int64(old)}}
				if err := y.Feed.AppendOutbox(x.Ctx, rowfeed.InTx(tx), record); err != nil {
					return err
				}
				x.Commit(tx)
				records = append(records, old)
			case statement > 12 && !others:
				others = true
				if _, err := x.RF.AddFeed(x.Ctx, suite.BackfillSpec(), nil); err != nil {
					return err
				}
			}
			read()
			return nil
		}
		if err := backFill(x, "kv", testdb.Hooks{Before: hook}); err != nil {
			x.Fatal(err)
		}
		inside = true
		read()
		if statement < 12 || len(records) == 0 {
			x.Fatalf("back-fill had %d statements, and %d records were appended", statement, len(records))
		}
		// A row is live if its record came before it was placed. Later records do nothing.
		want := slices.Clone(written)
		for _, id := range live {
			if slices.Contains(records, id) {
				want = append(want, id)
			}
		}
		if got := slices.Sorted(slices.Values(live)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			x.Errorf("the reader at the head got %v\nwant %v", got, want)
		}
		all := slices.Concat(y.IDs(0), y.IDs(3))
		wantAll := slices.Concat(rowsOf(0, 1, 60), rowsOf(3, 1, 60), written, []int{900})
		slices.Sort(wantAll)
		if got := slices.Sorted(slices.Values(all)); !slices.Equal(got, wantAll) {
			x.Errorf("the feed has the rows %v\nwant %v", got, wantAll)
		}
		if tail := y.IDs(0); !slices.Equal(tail[len(tail)-len(live):], live) {
			x.Errorf("read at the head: %v\nread from the beginning: %v", live, tail)
		}
		y.WantSound(y.Feed)
	})
}

// TestBackFillSkipsRecordedRows (M62): back-fill does not place a row that has a record when its batch is placed,
// because readers of the head would never see the row below it. If a placed row gets a record later, its entry moves to
// the head.
func TestBackFillSkipsRecordedRows(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(0)
		y := &suite.Events{Env: x, Feed: x.Add(suite.BackfillSpec())}
		x.Exec("INSERT INTO kv VALUES (100, 0, NULL)")
		y.WantShard(0, 100)
		cursor := y.Page(y.Feed, 0, rowfeed.Now, 10).Cursor
		unrecorded(y.Env, 1, 8)
		held := testdb.Hold(func(ev testdb.TapEvent) bool {
			// The transaction of the batch begins after both shards are ready for rows.
			return ev.Kind == testdb.Begin && x.Scalar("SELECT count(*) FROM rowfeed_shards WHERE live_from > 0") == 2
		})
		end := make(chan error, 1)
		go func() { end <- backFill(x, "kv", testdb.Hooks{Before: held.Before}) }()
		<-held.Reached
		x.Exec("INSERT INTO rowfeed_outbox_kv (id) VALUES (4)")
		held.Release()
		if err := <-end; err != nil {
			x.Fatal(err)
		}
		reader, err := x.TappedDB(testdb.Hooks{}, &rowfeed.Config{NoPublish: true}).Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		y.WantIDs(y.Page(reader, 0, "", 10), false, 8, 7, 5, 2, 1, 100) // the record of row 4 waits
		x.Exec("INSERT INTO rowfeed_outbox_kv (id) VALUES (5)")
		y.Publish(y.Feed)
		y.WantShard(0, 8, 7, 2, 1, 100, 4, 5)
		y.WantIDs(y.Page(y.Feed, 0, cursor, 10), false, 4, 5)
		y.WantSound(y.Feed)
	})
}

// TestBackFillIsRefusedAfterPurge (M62): after a purge, rows without entries cannot be told from rows that were purged.
// Check says so, and repair and back-fill are refused. All three name the statement that records a row by hand, and it
// works.
func TestBackFillIsRefusedAfterPurge(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(0)
		spec := suite.BackfillSpec()
		spec.Retain = rowfeed.Retention{Count: 2}
		y := &suite.Events{Env: x, Feed: x.Add(spec)}
		for id := 1; id <= 5; id += 2 { // each gets a time of its own
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 0, NULL)", id))
		}
		y.WantShard(0, 1, 3, 5)
		if n, err := y.Feed.Admin().Purge(x.Ctx); n != 1 || err != nil {
			x.Fatalf("%d entries purged, %v", n, err)
		}
		y.WantShard(0, 3, 5)
		unrecorded(x, 7, 7)
		findings, err := y.Feed.Admin().Check(x.Ctx)
		const note = "rows that lack a record were not searched for"
		if err != nil || len(findings) != 1 || !findings[0].Note || !strings.Contains(findings[0].Problem, note) {
			x.Errorf("check found %+v, %v", findings, err)
		}
		_, repair := y.Feed.Admin().Repair(x.Ctx)
		x.WantCode(repair, rowfeed.Refused)
		_, backfill := y.Feed.Admin().BackFill(x.Ctx, nil)
		x.WantCode(backfill, rowfeed.Refused)
		y.WantShard(0, 3, 5)
		// All three errors say the same next step.
		_, next, _ := strings.Cut(findings[0].Problem, "lack one: ")
		if next == "" || !strings.Contains(repair.Error(), next) || !strings.Contains(backfill.Error(), next) {
			x.Errorf("the next step is %q\nrepair: %v\nback-fill: %v", next, repair, backfill)
		}
		next, _, _ = strings.Cut(next, ";")
		next = strings.Replace(strings.Replace(next, "…", "0, id", 1), "…", "id = 7", 1)
		x.Exec(next)
		y.WantShard(0, 3, 5, 7)
	})
}

// TestBackFillRefusesSequenceFeedsAndBadColumns (M62): back-fill of a feed without ULIDs is refused. A time column that
// does not exist, or is no time, is refused when the feed is added, and nothing is left behind.
func TestBackFillRefusesSequenceFeedsAndBadColumns(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		_, err := x.AddKV().Admin().BackFill(x.Ctx, nil)
		x.WantCode(err, rowfeed.Refused)
		if !errors.Is(err, errors.ErrUnsupported) {
			x.Error(err)
		}
		before := x.DB.Dump(x.T)
		for _, column := range []string{"none", "k"} {
			if column == "k" && !x.Has.TypedColumns {
				continue // any column can hold times
			}
			spec := rowfeed.FeedSpec{Name: "other", Table: "kv", Mode: rowfeed.ModeOutbox, TimeColumn: column}
			_, err := x.RF.AddFeed(x.Ctx, spec, nil)
			x.WantCode(err, rowfeed.Refused)
		}
		_, err = x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "other", Table: "kv", TimeColumn: "k"}, nil)
		x.WantCode(err, rowfeed.InvalidRequest)
		if after := x.DB.Dump(x.T); after != before {
			x.Errorf("refused calls have left\n%s", after)
		}
	})
}
