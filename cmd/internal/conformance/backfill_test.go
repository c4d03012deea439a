package conformance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func backfillSpec() rowfeed.FeedSpec {
	return rowfeed.FeedSpec{Name: "kv", Table: "kv", Mode: rowfeed.ModeOutbox, Capture: feedtype.CaptureTrigger, ShardColumn: "shard", TimeColumn: "made"}
}

// oldRows makes the table kv with rows 1 to n, in shard 3 where the number can be divided by 3 and else in 0; the more recent, the
// lower the number.
func (x *env) oldRows(n int) {
	x.Helper()
	x.exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL, made " + x.by(map[string]string{"sqlite": "TEXT", "postgres": "timestamptz", "mysql": "DATETIME(3)"}) + ")")
	x.importRows(1, n)
}

// importRows inserts rows without records: before there is a trigger, or past it.
func (x *env) importRows(first, last int) {
	x.Helper()
	for ; first <= last; first += 500 {
		var rows []string
		for id := first; id <= min(last, first+499); id++ {
			rows = append(rows, fmt.Sprintf("(%d, %d, '%s')", id, shardOfRow(id), madeAt(id).Format("2006-01-02 15:04:05.000")+x.by(map[string]string{"sqlite": "", "postgres": "+00", "mysql": ""})))
		}
		x.exec("INSERT INTO kv VALUES " + strings.Join(rows, ", "))
	}
}

func shardOfRow(id int) int {
	if id%3 == 0 {
		return 3
	}
	return 0
}

func madeAt(id int) time.Time {
	return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Duration(id) * time.Minute)
}

// unrecorded imports rows of which the trigger makes no record.
func (x *env) unrecorded(first, last int) {
	x.Helper()
	x.importRows(first, last)
	x.exec(fmt.Sprintf("DELETE FROM rowfeed_outbox_kv WHERE id BETWEEN %d AND %d", first, last))
}

// kvEvents is the feed kv as the helpers of events know feeds.
func (x *env) kvEvents() *events {
	x.Helper()
	f, err := x.rf.Feed(x.ctx, "kv")
	if err != nil {
		x.Fatal(err)
	}
	return &events{x, f}
}

func byMade(ids []int) []int {
	return slices.SortedFunc(slices.Values(ids), func(a, b int) int { return b - a }) // the greatest was made first
}

func rowsOf(shard, first, last int) (ids []int) {
	for id := first; id <= last; id++ {
		if shardOfRow(id) == shard {
			ids = append(ids, id)
		}
	}
	return ids
}

// backfilled runs it, and asserts how many rows were placed.
func (x *events) backfilled(want int) {
	x.Helper()
	var told int64
	placed, err := x.feed.Admin().BackFill(x.ctx, func(rows int64) { told = rows })
	if err != nil {
		x.Fatal(err)
	}
	var left int64 = x.scalar("SELECT count(*) FROM kv WHERE NOT EXISTS (SELECT 1 FROM rowfeed_feed_kv f WHERE f.id = kv.id)")
	if placed != int64(want) || told != placed || left != 0 {
		x.Fatalf("%d rows placed, %d told, want %d; %d are left", placed, told, want, left)
	}
}

// TestBackFill (M62): rows that were there before the feed come behind the head of their shards, in the order
// of their times and with them; who is at the head is not told of them. Again: what is there stays; rows that
// were imported since come behind what was filled before, so that a reader in the midst of that misses none.
func TestBackFill(t *testing.T) {
	testdb.Quick(t)
	each(t, func(x *env) {
		x.oldRows(30)
		y := &events{x, x.add(backfillSpec())}
		y.wantShard(0, byMade(rowsOf(0, 1, 30))...)
		y.wantShard(3, byMade(rowsOf(3, 1, 30))...)
		for _, e := range y.page(y.feed, 0, "", 100).Entries {
			id, _ := e.Key.Get("id")
			if at := millis(ulid.MustParse(e.Position)); !at.Equal(madeAt(int(id.(int64)))) {
				x.Errorf("row %d is of %s", id, at)
			}
		}
		y.wantSound(y.feed)
		head := y.page(y.feed, 0, rowfeed.Now, 100).Cursor
		middle := y.page(y.feed, 0, "", 7)
		x.exec("INSERT INTO kv VALUES (31, 0, NULL)", "INSERT INTO kv VALUES (32, 3, NULL)")
		y.wantIDs(y.page(y.feed, 0, head, 100), false, 31)
		all := lines(y.page(y.feed, 0, "", 100))
		y.backfilled(0)
		y.backfilled(0)
		if again := lines(y.page(y.feed, 0, "", 100)); again != all {
			x.Errorf("filled again:\n%s\nfirst:\n%s", again, all)
		}
		live := y.page(y.feed, 0, head, 100).Cursor
		y.unrecorded(40, 45)
		y.unrecorded(-5, -1)
		y.backfilled(11)
		if page := y.page(y.feed, 0, live, 100); len(page.Entries) > 0 {
			x.Errorf("at the head: %s", lines(page))
		}
		var got []int
		for _, e := range y.page(y.feed, 0, middle.Cursor, 100).Entries {
			id, _ := e.Key.Get("id")
			got = append(got, int(id.(int64)))
		}
		want := slices.Concat(byMade(rowsOf(0, 1, 30))[7:], rowsOf(0, -5, -1), rowsOf(0, 40, 45), []int{31})
		if !slices.Equal(got, want) {
			x.Errorf("in the midst: %v, want %v", got, want)
		}
		y.unrecorded(50, 55)
		y.backfilled(6)
		y.wantShard(3, slices.Concat(byMade(rowsOf(3, 1, 30)), rowsOf(3, -5, -1), rowsOf(3, 40, 45), rowsOf(3, 50, 55), []int{32})...)
		y.wantSound(y.feed)
		if err := x.rf.DropFeed(x.ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		if n := x.scalar("SELECT count(*) FROM rowfeed_shards"); n != 0 {
			x.Errorf("%d states are left", n)
		}
	})
}

// TestBackFillTimes (M62): a time that the live part has come to already, a missing one and one of before 1970
// do no harm; nor do rows of shards in which live ones have old times.
func TestBackFillTimes(t *testing.T) {
	each(t, func(x *env) {
		x.oldRows(0)
		y := &events{x, x.add(backfillSpec())}
		tx := x.begin(sql.LevelReadCommitted)
		x.in(tx, "INSERT INTO kv VALUES (1, 0, NULL)", "UPDATE rowfeed_outbox_kv SET time_hint = 1000")
		x.commit(tx)
		y.wantShard(0, 1) // lives from 1970 on
		x.exec("INSERT INTO kv VALUES (3, 0, NULL)")
		y.wantShard(0, 1, 3)
		y.unrecorded(2, 2)
		zone := x.by(map[string]string{"sqlite": "", "postgres": "+00", "mysql": ""})
		for id, at := range map[int]string{4: "NULL", 5: "'1969-12-31 23:59:59" + zone + "'", 7: "'9999-01-01 00:00:00" + zone + "'", 8: "'1970-01-01 00:00:00.5" + zone + "'"} {
			x.exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 0, %s)", id, at), fmt.Sprintf("INSERT INTO kv VALUES (%d, 3, %s)", id+10, at))
		}
		x.exec("DELETE FROM rowfeed_outbox_kv")
		y.backfilled(9)
		y.wantShard(0, 5, 8, 2, 4, 7, 1, 3)
		y.wantShard(3, 15, 18, 14, 17)
		// A shard that has given none yet begins at the time of the feed, whatever a hint says.
		tx = x.begin(sql.LevelReadCommitted)
		x.in(tx, "INSERT INTO kv VALUES (20, 3, NULL)", "UPDATE rowfeed_outbox_kv SET time_hint = 1000")
		x.commit(tx)
		y.wantShard(3, 15, 18, 14, 17, 20)
		y.wantSound(y.feed)
	})
}

// TestBackFillHoldsReadersOff (M62): while rows are being placed a cursor from which some would be missed is
// refused, the beginning too, and a shard that nothing is known of; readers of the live part read on, and `now`
// is in it.
func TestBackFillHoldsReadersOff(t *testing.T) {
	each(t, func(x *env) {
		x.oldRows(2100) // two batches
		held := testdb.Hold(func(ev testdb.TapEvent) bool {
			return ev.Kind == testdb.Begin && x.scalarOr(0, "SELECT count(*) FROM rowfeed_feed_kv") > 1500
		})
		end := make(chan error, 1)
		go func() {
			_, err := x.tappedDB(testdb.Hooks{Before: held.Before}, nil).AddFeed(x.ctx, backfillSpec(), nil)
			end <- err
		}()
		<-held.Reached
		defer held.Release()
		y := x.kvEvents()
		refused := func(after rowfeed.Cursor, shard int) {
			x.Helper()
			_, err := y.feed.Fetch(x.ctx, rowfeed.Request{After: after, Shards: rowfeed.One(shard)})
			x.wantCode(err, rowfeed.Filling)
		}
		for _, shard := range []int{0, 3} {
			refused("", shard)
			refused("at:2019-12-31T12:00:00Z", shard)
			refused(rowfeed.Cursor(ulid.MustNew(uint64(madeAt(30).UnixMilli()), nil).String()), shard)
		}
		refused("", 99)
		refused(rowfeed.Now, 99)
		now := y.page(y.feed, 0, rowfeed.Now, 10)
		x.exec("INSERT INTO kv VALUES (5000, 0, NULL)", "INSERT INTO kv VALUES (5001, 99, NULL)")
		live := y.page(y.feed, 0, now.Cursor, 10)
		y.wantIDs(live, false, 5000)
		x.publish(y.feed)
		refused("", 99) // it lives now, and may be filled yet
		y.wantIDs(y.page(y.feed, 99, rowfeed.Now, 10), false)
		refused("", 0)
		_, err := y.feed.Admin().Repair(x.ctx)
		x.wantCode(err, rowfeed.Filling)
		if findings, err := y.feed.Admin().Check(x.ctx); err != nil || len(findings) != 1 || findings[0].Rule != "row-has-place" {
			x.Errorf("findings %+v, %v", findings, err)
		}
		held.Release()
		if err := <-end; err != nil {
			x.Fatal(err)
		}
		y.wantShard(0, append(byMade(rowsOf(0, 1, 2100)), 5000)...)
		y.wantShard(3, byMade(rowsOf(3, 1, 2100))...)
		y.wantShard(99, 5001)
		if page := y.page(y.feed, 0, live.Cursor, 10); len(page.Entries) > 0 || page.More {
			x.Errorf("at the head: %s", lines(page))
		}
		y.wantSound(y.feed)
	})
}

// scalarOr is scalar for what may not be there yet.
func (x *env) scalarOr(otherwise int64, query string) int64 {
	var n int64
	if err := x.db.Admin().QueryRowContext(x.ctx, query).Scan(&n); err != nil {
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
	each(t, func(x *env) {
		x.oldRows(60)
		x.add(backfillSpec())
		x.exec("DELETE FROM rowfeed_feed_kv", "DELETE FROM rowfeed_shards") // as if it had not begun
		y := x.kvEvents()
		x.exec("INSERT INTO kv VALUES (900, 0, NULL)")
		x.publish(y.feed) // shard 0 has a live part
		cursor := y.page(y.feed, 0, rowfeed.Now, 10).Cursor
		var live, written, records []int
		read := func() {
			for more := true; more; {
				page := y.page(y.feed, 0, cursor, 100)
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
			alone := (ev.InTx || locked) && x.family() == "sqlite"
			if strings.HasPrefix(ev.SQL, "BEGIN") || ev.SQL == "COMMIT" {
				locked = ev.SQL != "COMMIT"
			}
			if alone {
				return nil // it has one writer at a time
			}
			id := 1000 + statement
			x.exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 0, NULL)", id))
			written = append(written, id)
			if ev.InTx {
				return nil // it may hold the shard, or a key, for which the rest would wait
			}
			switch old := 60 - 3*len(records) - 1; {
			case statement%2 == 0 && old > 30:
				tx := x.begin(sql.LevelReadCommitted)
				if err := y.feed.AppendOutbox(x.ctx, rowfeed.InTx(tx), rowfeed.OutboxRecord{Key: rowfeed.Key{int64(old)}}); err != nil {
					return err
				}
				x.commit(tx)
				records = append(records, old)
			case statement > 12 && !others:
				others = true
				if _, err := x.rf.AddFeed(x.ctx, backfillSpec(), nil); err != nil {
					return err
				}
			}
			read()
			return nil
		}
		f, err := x.tappedDB(testdb.Hooks{Before: hook}, nil).Feed(x.ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		if _, err := f.Admin().BackFill(x.ctx, nil); err != nil {
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
		all := slices.Concat(y.ids(0), y.ids(3))
		wantAll := slices.Concat(rowsOf(0, 1, 60), rowsOf(3, 1, 60), written, []int{900})
		if got := slices.Sorted(slices.Values(all)); !slices.Equal(got, slices.Sorted(slices.Values(wantAll))) {
			x.Errorf("in all: %v", got)
		}
		if tail := y.ids(0); !slices.Equal(tail[len(tail)-len(live):], live) {
			x.Errorf("the head, read live: %v, and from the beginning: %v", live, tail)
		}
		y.wantSound(y.feed)
	})
}

// TestBackFillLeavesRecords (M62): a row that has a record when its batch is placed is not placed behind the
// head, where readers of the head would never see it; one that gets a record later moves to the head.
func TestBackFillLeavesRecords(t *testing.T) {
	each(t, func(x *env) {
		x.oldRows(0)
		y := &events{x, x.add(backfillSpec())}
		x.exec("INSERT INTO kv VALUES (100, 0, NULL)")
		y.wantShard(0, 100)
		cursor := y.page(y.feed, 0, rowfeed.Now, 10).Cursor
		y.unrecorded(1, 8)
		held := testdb.Hold(func(ev testdb.TapEvent) bool {
			return ev.Kind == testdb.Begin && x.scalar("SELECT count(*) FROM rowfeed_shards WHERE live_from > 0") == 2 // the batch's own transaction
		})
		end := make(chan error, 1)
		go func() {
			f, err := x.tappedDB(testdb.Hooks{Before: held.Before}, nil).Feed(x.ctx, "kv")
			if err == nil {
				_, err = f.Admin().BackFill(x.ctx, nil)
			}
			end <- err
		}()
		<-held.Reached
		x.exec("INSERT INTO rowfeed_outbox_kv (id) VALUES (4)")
		held.Release()
		if err := <-end; err != nil {
			x.Fatal(err)
		}
		reader, err := x.tappedDB(testdb.Hooks{}, &rowfeed.Config{NoPublish: true}).Feed(x.ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		y.wantIDs(y.page(reader, 0, "", 10), false, 8, 7, 5, 2, 1, 100) // not 4, whose record waits
		x.exec("INSERT INTO rowfeed_outbox_kv (id) VALUES (5)")
		y.publish(y.feed)
		y.wantShard(0, 8, 7, 2, 1, 100, 4, 5)
		y.wantIDs(y.page(y.feed, 0, cursor, 10), false, 4, 5)
		y.wantSound(y.feed)
	})
}

// TestOutboxCheckRepair (M63): rows that have neither a record nor a place are found, and repair appends
// records for them, in their shards; places without rows are no concern of theirs.
func TestOutboxCheckRepair(t *testing.T) {
	each(t, func(x *env) {
		x.oldRows(2)
		y := &events{x, x.add(backfillSpec())}
		y.unrecorded(3, 5)
		x.exec("INSERT INTO kv VALUES (6, 3, NULL)", "DELETE FROM kv WHERE id = 1")
		findings, err := y.feed.Admin().Check(x.ctx)
		if err != nil {
			x.Fatal(err)
		}
		var keys []string
		for _, finding := range findings {
			keys = append(keys, finding.Rule+string(finding.Key.AppendJSON(nil)))
		}
		if slices.Sort(keys); !slices.Equal(keys, []string{`row-has-place{"id":3}`, `row-has-place{"id":4}`, `row-has-place{"id":5}`}) {
			x.Errorf("findings %q", keys)
		}
		for _, want := range []int64{3, 0} {
			if n, err := y.feed.Admin().Repair(x.ctx); n != want || err != nil {
				x.Errorf("%d repaired, %v; want %d", n, err, want)
			}
			y.wantSound(y.feed)
		}
		y.wantShard(0, 2, 4, 5)
		y.wantShard(3, 6, 3)
		if _, err := y.feed.Admin().BackFill(x.ctx, nil); err != nil {
			x.Error(err)
		}
		y.wantShard(0, 2, 4, 5)
		for _, table := range []string{"rowfeed_outbox_kv", "rowfeed_feed_kv"} {
			x.exec("DROP TABLE " + table)
			problems, err := y.feed.Admin().Verify(x.ctx)
			if err != nil || len(problems) != 1 || !strings.Contains(problems[0], table+" is missing") {
				x.Errorf("problems %q, %v", problems, err)
			}
			if _, err := y.feed.Admin().Upgrade(x.ctx); err != nil {
				x.Error(err)
			}
		}
	})
}

// TestOutboxDropKilled (M63): `feed drop` of a feed with an outbox and a trigger is killed before every one of
// its statements, and run again: writers never notice, and nothing is left; nor is where the table went first.
func TestOutboxDropKilled(t *testing.T) {
	each(t, func(x *env) {
		x.oldRows(3)
		fresh := x.db.Dump(x.T)
		n, step := x.kills()
		for ; ; n += step {
			x.add(backfillSpec())
			before := x.killed("drop", n)
			x.exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 0, NULL)", 10+n))
			for range 2 {
				if err := x.rf.DropFeed(x.ctx, "kv"); err != nil {
					x.Fatalf("killed at n=%d (%s): %v", n, before, err)
				}
			}
			if got := x.db.Dump(x.T); got != fresh || x.scalar("SELECT count(*) FROM rowfeed_shards") != 0 {
				x.Fatalf("killed at n=%d (%s): left behind\n%s\nwant\n%s", n, before, got, fresh)
			}
			if before == "" {
				break
			}
		}
		x.add(backfillSpec())
		x.exec("DROP TABLE kv")
		gone := x.db.Dump(x.T)
		for range 2 {
			if err := x.rf.DropFeed(x.ctx, "kv"); err != nil {
				x.Fatal(err)
			}
		}
		for _, name := range []string{"rowfeed_outbox_kv", "rowfeed_feed_kv", "rowfeed_kv_capture"} {
			if got := x.db.Dump(x.T); strings.Contains(got, name) {
				x.Errorf("%s is left; before:\n%s", name, gone)
			}
		}
	})
}

// TestBackFillPurged (M62): rows whose entries were purged are not taken for rows that never had any: nothing
// finds them, and they are not placed again.
func TestBackFillPurged(t *testing.T) {
	each(t, func(x *env) {
		x.oldRows(0)
		spec := backfillSpec()
		spec.Retain = rowfeed.Retention{Count: 2}
		y := &events{x, x.add(spec)}
		for id := 1; id <= 5; id += 2 { // one by one
			x.exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 0, NULL)", id))
		}
		y.wantShard(0, 1, 3, 5)
		if n, err := y.feed.Admin().Purge(x.ctx); n != 1 || err != nil {
			x.Fatalf("%d purged, %v", n, err)
		}
		y.wantShard(0, 3, 5)
		x.unrecorded(7, 7)
		findings, err := y.feed.Admin().Check(x.ctx)
		if err != nil || len(findings) != 1 || !findings[0].Note || !strings.Contains(findings[0].Problem, "rows that lack a record were not looked for") {
			x.Errorf("check: %+v, %v", findings, err)
		}
		_, repair := y.feed.Admin().Repair(x.ctx)
		x.wantCode(repair, rowfeed.Refused)
		_, backfill := y.feed.Admin().BackFill(x.ctx, nil)
		x.wantCode(backfill, rowfeed.Refused)
		y.wantShard(0, 3, 5)
		// What all of them say is what can be done.
		_, next, _ := strings.Cut(findings[0].Problem, "lack one: ")
		if next == "" || !strings.Contains(repair.Error(), next) || !strings.Contains(backfill.Error(), next) {
			x.Errorf("next: %q\n%v\n%v", next, repair, backfill)
		}
		next, _, _ = strings.Cut(next, ";")
		next = strings.Replace(strings.Replace(next, "…", "0, id", 1), "…", "id = 7", 1)
		x.exec(next)
		y.wantShard(0, 3, 5, 7)
	})
}

// TestBackFillRefused (M62): what it cannot be done for.
func TestBackFillRefused(t *testing.T) {
	each(t, func(x *env) {
		_, err := x.addKV().Admin().BackFill(x.ctx, nil)
		x.wantCode(err, rowfeed.Refused)
		if !errors.Is(err, errors.ErrUnsupported) {
			x.Error(err)
		}
		before := x.db.Dump(x.T)
		for column, code := range map[string]rowfeed.Code{"none": rowfeed.Refused, "k": rowfeed.Refused} {
			if x.family() == "sqlite" && column == "k" {
				continue // a column holds what it likes
			}
			_, err := x.rf.AddFeed(x.ctx, rowfeed.FeedSpec{Name: "other", Table: "kv", Mode: rowfeed.ModeOutbox, TimeColumn: column}, nil)
			x.wantCode(err, code)
		}
		_, err = x.rf.AddFeed(x.ctx, rowfeed.FeedSpec{Name: "other", Table: "kv", TimeColumn: "k"}, nil)
		x.wantCode(err, rowfeed.InvalidRequest)
		if after := x.db.Dump(x.T); after != before {
			x.Errorf("a refusal left behind\n%s", after)
		}
	})
}

// TestBackFillRacing (M62): back-fill beside writers, readers that move what they write, a publisher and a
// second back-fill: every reader at the head sees every live row once and in the same order, and nothing else;
// from the beginning everything is there once.
func TestBackFillRacing(t *testing.T) {
	each(t, func(x *env) {
		const old, writers, turns = 2500, 3, 60
		x.oldRows(0)
		spec := backfillSpec()
		spec.TimeColumn = "" // all rows get the same time
		y := &events{x, x.add(spec)}
		y.unrecorded(1, old)
		var start [2]rowfeed.Cursor
		x.exec("INSERT INTO kv VALUES (100000, 0, NULL)", "INSERT INTO kv VALUES (100001, 3, NULL)")
		x.publish(y.feed)
		for i, shard := range []int{0, 3} {
			start[i] = y.page(y.feed, shard, rowfeed.Now, 10).Cursor
		}
		var writing, reading sync.WaitGroup
		var done atomic.Bool
		for w := range writers {
			pool := y.writer(testdb.Hooks{})
			writing.Go(func() {
				for turn := range turns {
					id := 10_000*(w+1) + turn
					if _, err := pool.ExecContext(x.ctx, fmt.Sprintf("INSERT INTO kv VALUES (%d, %d, NULL)", id, 3*(turn%2))); err != nil {
						x.Error(err)
						return
					}
				}
			})
		}
		var orders [2][2][]int
		for r := range orders {
			reading.Go(func() {
				after := start
				for last := false; !last; {
					last = done.Load()
					for i, shard := range []int{0, 3} {
						for more := true; more; {
							page, err := y.tryPage(y.feed, shard, after[i], 20)
							if err != nil {
								x.Error(err)
								return
							}
							for _, e := range page.Entries {
								id, _ := e.Key.Get("id")
								orders[r][i] = append(orders[r][i], int(id.(int64)))
							}
							after[i], more = page.Cursor, page.More || len(page.Entries) > 0
						}
					}
				}
			})
		}
		errs := make(chan error, 2)
		for range 2 {
			rf := x.tappedDB(testdb.Hooks{}, nil)
			go func() {
				f, err := rf.Feed(x.ctx, "kv")
				if err == nil {
					_, err = f.Admin().BackFill(x.ctx, nil)
				}
				errs <- err
			}()
		}
		writing.Wait()
		if err := errors.Join(<-errs, <-errs); err != nil {
			x.Error(err)
		}
		done.Store(true)
		reading.Wait()
		for i, shard := range []int{0, 3} {
			if !slices.Equal(orders[0][i], orders[1][i]) || len(orders[0][i]) != writers*turns/2 {
				x.Errorf("shard %d: one reader saw %d rows, the other %d:\n%v\n%v", shard, len(orders[0][i]), len(orders[1][i]), orders[0][i], orders[1][i])
			}
			want := slices.Concat(rowsOf(shard, 1, old), []int{100000 + shard/3}, orders[0][i])
			if got := y.ids(shard); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
				x.Errorf("shard %d: %d rows in all, want %d", shard, len(got), len(want))
			}
		}
		y.wantSound(y.feed)
	})
}

// TestBackFillKilled (M62): `feed add` with back-fill, and back-fill again, are killed before every one of
// their statements, and run again: every row is there once, whatever was half-done, and writers have not
// noticed.
func TestBackFillKilled(t *testing.T) {
	each(t, func(x *env) {
		x.oldRows(20)
		y := &events{x, x.add(backfillSpec())}
		undisturbed := x.db.Dump(x.T)
		n, step := x.kills()
		for round := 1; ; round, n = round+1, n+step {
			if round%2 == 1 { // from the beginning; else an import
				if err := x.rf.DropFeed(x.ctx, "kv"); err != nil {
					x.Fatal(err)
				}
			} else {
				y.unrecorded(100*round, 100*round+3)
			}
			before := x.killed("backfill", n)
			live := 1_000_000 + round
			x.exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 0, NULL)", live))
			f, err := x.rf.AddFeed(x.ctx, backfillSpec(), nil)
			if err == nil && round%2 == 0 { // else `feed add` is to have done it all
				_, err = f.Admin().BackFill(x.ctx, nil)
			}
			if y.feed = f; err != nil {
				x.Fatalf("killed at n=%d (%s): %v", n, before, err)
			}
			var all []int64
			for _, row := range x.list("SELECT id FROM kv ORDER BY id") {
				var id int64
				fmt.Sscan(row, &id)
				all = append(all, id)
			}
			var got []int64
			for _, id := range slices.Concat(y.ids(0), y.ids(3)) {
				got = append(got, int64(id))
			}
			if slices.Sort(got); !slices.Equal(got, all) {
				x.Fatalf("killed at n=%d (%s): rows %v\nwant %v", n, before, got, all)
			}
			if dump := x.db.Dump(x.T); dump != undisturbed {
				x.Fatalf("killed at n=%d (%s): the schema is\n%s\nwant\n%s", n, before, dump, undisturbed)
			}
			if before == "" && round%2 == 1 {
				break
			}
		}
		y.wantSound(y.feed)
	})
}
