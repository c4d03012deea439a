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

// unrecorded imports rows of which the trigger makes no record.
func unrecorded(x *suite.Env, first, last int) {
	x.Helper()
	x.ImportRows(first, last)
	x.Exec(fmt.Sprintf("DELETE FROM rowfeed_outbox_kv WHERE id BETWEEN %d AND %d", first, last))
}

func byMade(ids []int) []int {
	return slices.SortedFunc(slices.Values(ids), func(a, b int) int { return b - a }) // the greatest was made first
}

func rowsOf(shard, first, last int) (ids []int) {
	for id := first; id <= last; id++ {
		if suite.ShardOfRow(id) == shard {
			ids = append(ids, id)
		}
	}
	return ids
}

// TestBackFill (M62): rows that were there before the feed come behind the head of their shards, in the order
// of their times and with them; who is at the head is not told of them. Again: what is there stays; rows that
// were imported since come behind what was filled before, so that a reader in the midst of that misses none.
func TestBackFill(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(30)
		y := &suite.Events{Env: x, Feed: x.Add(suite.BackfillSpec())}
		y.WantShard(0, byMade(rowsOf(0, 1, 30))...)
		y.WantShard(3, byMade(rowsOf(3, 1, 30))...)
		for _, e := range y.Page(y.Feed, 0, "", 100).Entries {
			id, _ := e.Key.Get("id")
			if at := suite.Millis(ulid.MustParse(e.Position)); !at.Equal(suite.MadeAt(int(id.(int64)))) {
				x.Errorf("row %d is of %s", id, at)
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
			x.Errorf("filled again:\n%s\nfirst:\n%s", again, all)
		}
		live := y.Page(y.Feed, 0, head, 100).Cursor
		unrecorded(y.Env, 40, 45)
		unrecorded(y.Env, -5, -1)
		y.Backfilled(11)
		if page := y.Page(y.Feed, 0, live, 100); len(page.Entries) > 0 {
			x.Errorf("at the head: %s", suite.Lines(page))
		}
		var got []int
		for _, e := range y.Page(y.Feed, 0, middle.Cursor, 100).Entries {
			id, _ := e.Key.Get("id")
			got = append(got, int(id.(int64)))
		}
		want := slices.Concat(byMade(rowsOf(0, 1, 30))[7:], rowsOf(0, -5, -1), rowsOf(0, 40, 45), []int{31})
		if !slices.Equal(got, want) {
			x.Errorf("in the midst: %v, want %v", got, want)
		}
		unrecorded(y.Env, 50, 55)
		y.Backfilled(6)
		y.WantShard(3, slices.Concat(byMade(rowsOf(3, 1, 30)), rowsOf(3, -5, -1), rowsOf(3, 40, 45), rowsOf(3, 50, 55), []int{32})...)
		y.WantSound(y.Feed)
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_shards"); n != 0 {
			x.Errorf("%d states are left", n)
		}
	})
}

// TestBackFillTimes (M62): a time that the live part has come to already, a missing one and one of before 1970
// do no harm; nor do rows of shards in which live ones have old times.
func TestBackFillTimes(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(0)
		y := &suite.Events{Env: x, Feed: x.Add(suite.BackfillSpec())}
		tx := x.Begin(sql.LevelReadCommitted)
		x.In(tx, "INSERT INTO kv VALUES (1, 0, NULL)", "UPDATE rowfeed_outbox_kv SET time_hint = 1000")
		x.Commit(tx)
		y.WantShard(0, 1) // lives from 1970 on
		x.Exec("INSERT INTO kv VALUES (3, 0, NULL)")
		y.WantShard(0, 1, 3)
		unrecorded(y.Env, 2, 2)
		zone := x.By(map[string]string{"sqlite": "", "postgres": "+00", "mysql": ""})
		for id, at := range map[int]string{4: "NULL", 5: "'1969-12-31 23:59:59" + zone + "'", 7: "'9999-01-01 00:00:00" + zone + "'", 8: "'1970-01-01 00:00:00.5" + zone + "'"} {
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 0, %s)", id, at), fmt.Sprintf("INSERT INTO kv VALUES (%d, 3, %s)", id+10, at))
		}
		x.Exec("DELETE FROM rowfeed_outbox_kv")
		y.Backfilled(9)
		y.WantShard(0, 5, 8, 2, 4, 7, 1, 3)
		y.WantShard(3, 15, 18, 14, 17)
		// A shard that has given none yet begins at the time of the feed, whatever a hint says.
		tx = x.Begin(sql.LevelReadCommitted)
		x.In(tx, "INSERT INTO kv VALUES (20, 3, NULL)", "UPDATE rowfeed_outbox_kv SET time_hint = 1000")
		x.Commit(tx)
		y.WantShard(3, 15, 18, 14, 17, 20)
		y.WantSound(y.Feed)
	})
}

// TestBackFillHoldsReadersOff (M62): while rows are being placed a cursor from which some would be missed is
// refused, the beginning too, and a shard that nothing is known of; readers of the live part read on, and `now`
// is in it.
func TestBackFillHoldsReadersOff(t *testing.T) {
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
		refused("", 99) // it lives now, and may be filled yet
		y.WantIDs(y.Page(y.Feed, 99, rowfeed.Now, 10), false)
		refused("", 0)
		_, err := y.Feed.Admin().Repair(x.Ctx)
		x.WantCode(err, rowfeed.Filling)
		if findings, err := y.Feed.Admin().Check(x.Ctx); err != nil || len(findings) != 1 || findings[0].Rule != "row-has-place" {
			x.Errorf("findings %+v, %v", findings, err)
		}
		held.Release()
		if err := <-end; err != nil {
			x.Fatal(err)
		}
		y.WantShard(0, append(byMade(rowsOf(0, 1, 2100)), 5000)...)
		y.WantShard(3, byMade(rowsOf(3, 1, 2100))...)
		y.WantShard(99, 5001)
		if page := y.Page(y.Feed, 0, live.Cursor, 10); len(page.Entries) > 0 || page.More {
			x.Errorf("at the head: %s", suite.Lines(page))
		}
		y.WantSound(y.Feed)
	})
}

// scalarOr is scalar for what may not be there yet.
func scalarOr(x *suite.Env, otherwise int64, query string) int64 {
	var n int64
	if err := x.DB.Admin().QueryRowContext(x.Ctx, query).Scan(&n); err != nil {
		return otherwise
	}
	return n
}

// TestBackFillBetweenStatements (M62): before every statement of a back-fill others do what they may: a writer
// inserts a row; a reader at the head reads on, and moves what waits; another process runs the same back-fill;
// a record is appended of a row that is still to be placed. In the end every row is in the feed once, whoever
// has read at the head has every live row once and in order, and none of before but those that got a record
// first (hazards 1 and 9, M62).
func TestBackFillBetweenStatements(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(60)
		x.Add(suite.BackfillSpec())
		x.Exec("DELETE FROM rowfeed_feed_kv", "DELETE FROM rowfeed_shards") // as if it had not begun
		y := x.KVEvents()
		x.Exec("INSERT INTO kv VALUES (900, 0, NULL)")
		x.Publish(y.Feed) // shard 0 has a live part
		cursor := y.Page(y.Feed, 0, rowfeed.Now, 10).Cursor
		var live, written, records []int
		read := func() {
			for more := true; more; {
				page := y.Page(y.Feed, 0, cursor, 100)
				for _, e := range page.Entries {
					id, _ := e.Key.Get("id")
					live = append(live, int(id.(int64)))
				}
				cursor, more = page.Cursor, page.More || len(page.Entries) > 0
			}
		}
		statement, inside, others, locked := 0, false, false, false
		hook := func(_ context.Context, ev testdb.TapEvent) error {
			if inside {
				return nil // a statement of what this hook does
			}
			inside = true
			defer func() { inside = false }()
			statement++
			alone := (ev.InTx || locked) && x.Family() == "sqlite"
			if strings.HasPrefix(ev.SQL, "BEGIN") || ev.SQL == "COMMIT" {
				locked = ev.SQL != "COMMIT"
			}
			if alone {
				return nil // it has one writer at a time
			}
			id := 1000 + statement
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 0, NULL)", id))
			written = append(written, id)
			if ev.InTx {
				return nil // it may hold the shard, or a key, for which the rest would wait
			}
			switch old := 60 - 3*len(records) - 1; {
			case statement%2 == 0 && old > 30:
				tx := x.Begin(sql.LevelReadCommitted)
				if err := y.Feed.AppendOutbox(x.Ctx, rowfeed.InTx(tx), rowfeed.OutboxRecord{Key: rowfeed.Key{int64(old)}}); err != nil {
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
		f, err := x.TappedDB(testdb.Hooks{Before: hook}, nil).Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		if _, err := f.Admin().BackFill(x.Ctx, nil); err != nil {
			x.Fatal(err)
		}
		inside = true
		read()
		if statement < 12 || len(records) == 0 {
			x.Fatalf("%d statements, %d records", statement, len(records))
		}
		// A record that came before its row was placed makes it a live one; a later one does nothing.
		want := slices.Clone(written)
		for _, id := range live {
			if slices.Contains(records, id) {
				want = append(want, id)
			}
		}
		if got := slices.Sorted(slices.Values(live)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			x.Errorf("read at the head: %v\nwant %v", got, want)
		}
		all := slices.Concat(y.IDs(0), y.IDs(3))
		wantAll := slices.Concat(rowsOf(0, 1, 60), rowsOf(3, 1, 60), written, []int{900})
		if got := slices.Sorted(slices.Values(all)); !slices.Equal(got, slices.Sorted(slices.Values(wantAll))) {
			x.Errorf("in all: %v", got)
		}
		if tail := y.IDs(0); !slices.Equal(tail[len(tail)-len(live):], live) {
			x.Errorf("the head, read live: %v, and from the beginning: %v", live, tail)
		}
		y.WantSound(y.Feed)
	})
}

// TestBackFillLeavesRecords (M62): a row that has a record when its batch is placed is not placed behind the
// head, where readers of the head would never see it; one that gets a record later moves to the head.
func TestBackFillLeavesRecords(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(0)
		y := &suite.Events{Env: x, Feed: x.Add(suite.BackfillSpec())}
		x.Exec("INSERT INTO kv VALUES (100, 0, NULL)")
		y.WantShard(0, 100)
		cursor := y.Page(y.Feed, 0, rowfeed.Now, 10).Cursor
		unrecorded(y.Env, 1, 8)
		held := testdb.Hold(func(ev testdb.TapEvent) bool {
			return ev.Kind == testdb.Begin && x.Scalar("SELECT count(*) FROM rowfeed_shards WHERE live_from > 0") == 2 // the batch's own transaction
		})
		end := make(chan error, 1)
		go func() {
			f, err := x.TappedDB(testdb.Hooks{Before: held.Before}, nil).Feed(x.Ctx, "kv")
			if err == nil {
				_, err = f.Admin().BackFill(x.Ctx, nil)
			}
			end <- err
		}()
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
		y.WantIDs(y.Page(reader, 0, "", 10), false, 8, 7, 5, 2, 1, 100) // not 4, whose record waits
		x.Exec("INSERT INTO rowfeed_outbox_kv (id) VALUES (5)")
		y.Publish(y.Feed)
		y.WantShard(0, 8, 7, 2, 1, 100, 4, 5)
		y.WantIDs(y.Page(y.Feed, 0, cursor, 10), false, 4, 5)
		y.WantSound(y.Feed)
	})
}

// TestBackFillPurged (M62): rows whose entries were purged are not taken for rows that never had any: nothing
// finds them, and they are not placed again.
func TestBackFillPurged(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(0)
		spec := suite.BackfillSpec()
		spec.Retain = rowfeed.Retention{Count: 2}
		y := &suite.Events{Env: x, Feed: x.Add(spec)}
		for id := 1; id <= 5; id += 2 { // one by one
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 0, NULL)", id))
		}
		y.WantShard(0, 1, 3, 5)
		if n, err := y.Feed.Admin().Purge(x.Ctx); n != 1 || err != nil {
			x.Fatalf("%d purged, %v", n, err)
		}
		y.WantShard(0, 3, 5)
		unrecorded(x, 7, 7)
		findings, err := y.Feed.Admin().Check(x.Ctx)
		if err != nil || len(findings) != 1 || !findings[0].Note || !strings.Contains(findings[0].Problem, "rows that lack a record were not searched for") {
			x.Errorf("check: %+v, %v", findings, err)
		}
		_, repair := y.Feed.Admin().Repair(x.Ctx)
		x.WantCode(repair, rowfeed.Refused)
		_, backfill := y.Feed.Admin().BackFill(x.Ctx, nil)
		x.WantCode(backfill, rowfeed.Refused)
		y.WantShard(0, 3, 5)
		// What all of them say is what can be done.
		_, next, _ := strings.Cut(findings[0].Problem, "lack one: ")
		if next == "" || !strings.Contains(repair.Error(), next) || !strings.Contains(backfill.Error(), next) {
			x.Errorf("next: %q\n%v\n%v", next, repair, backfill)
		}
		next, _, _ = strings.Cut(next, ";")
		next = strings.Replace(strings.Replace(next, "…", "0, id", 1), "…", "id = 7", 1)
		x.Exec(next)
		y.WantShard(0, 3, 5, 7)
	})
}

// TestBackFillRefused (M62): what it cannot be done for.
func TestBackFillRefused(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		_, err := x.AddKV().Admin().BackFill(x.Ctx, nil)
		x.WantCode(err, rowfeed.Refused)
		if !errors.Is(err, errors.ErrUnsupported) {
			x.Error(err)
		}
		before := x.DB.Dump(x.T)
		for column, code := range map[string]rowfeed.Code{"none": rowfeed.Refused, "k": rowfeed.Refused} {
			if x.Family() == "sqlite" && column == "k" {
				continue // a column holds what it likes
			}
			_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "other", Table: "kv", Mode: rowfeed.ModeOutbox, TimeColumn: column}, nil)
			x.WantCode(err, code)
		}
		_, err = x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "other", Table: "kv", TimeColumn: "k"}, nil)
		x.WantCode(err, rowfeed.InvalidRequest)
		if after := x.DB.Dump(x.T); after != before {
			x.Errorf("a refusal left behind\n%s", after)
		}
	})
}
