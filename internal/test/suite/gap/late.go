package gap

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestLateRecordsAtTheHead (G1, H29): a page at the head, of a process that publishes, does not say that it has
// read all while a record of its shard is committed, however late that was, and moves it.
func TestLateRecordsAtTheHead(t *testing.T) {
	eachLooker(t, rowfeed.ModeOutbox, func(l *looker) {
		x := l.Env
		if !x.Engine.HasServer() {
			return // one writer at a time
		}
		at := rowfeed.Cursor(rowfeed.Now)
		read := func(what string, want ...int64) {
			x.Helper()
			var got []int64
			for more := true; more; {
				page, err := l.feed.Fetch(x.Ctx, rowfeed.Request{After: at, Shards: l.part, Limit: 100})
				if err != nil {
					x.Fatal(err)
				}
				for _, e := range page.Entries {
					id, _ := e.Key.Get("id")
					got = append(got, id.(int64))
				}
				at, more = page.Cursor, page.More
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				x.Errorf("%s: %v at the head, want %v", what, got, want)
			}
			if found := l.troubles(); len(found) > 0 {
				x.Errorf("%s: %v", what, found)
			}
		}
		first, second, third := x.Begin(sql.LevelReadCommitted), x.Begin(sql.LevelReadCommitted), x.Begin(sql.LevelReadCommitted)
		x.In(first, "INSERT INTO kv VALUES (1, 'late', 0)")
		x.In(third, "SELECT count(*) FROM kv") // who has written nothing yet
		l.many(1000)
		l.askedAgain(2)
		x.In(second, "INSERT INTO kv VALUES (2, 'late', 0)", "INSERT INTO kv VALUES (3, 'of another shard', 1)")
		x.In(third, "INSERT INTO kv VALUES (4, 'late', 0)")
		l.many(2000)
		l.askedAgain(2)
		at = rowfeed.Now
		read("all that is committed is published")
		x.Commit(second)
		read("the second writer", 2)
		l.wantNext("and in another shard", 1)
		x.Commit(first)
		read("the first writer", 1)
		l.many(3000)
		at = rowfeed.Now
		read("all is published again")
		x.Commit(third)
		read("the third writer", 4)
		l.gone()
		x.Exec("INSERT INTO kv VALUES (5, 'k', 0)")
		read("when nobody is late any more", 5)
		x.WantSound(l.feed)
	})
}

// TestManyLateRecords (G1, H29): who was waited for ends in the moment in which it is asked, with more records
// in a shard than a pass moves; of one shard somebody else has the lock. Nothing of theirs is given up for
// that.
func TestManyLateRecords(t *testing.T) {
	testdb.Only(t, testdb.Servers...)
	suite.Each(t, func(x *suite.Env) {
		l := lookerOf(x, rowfeed.ModeOutbox, 10)
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0), (2, 'k', 7)")
		l.wantNext("rows", 2)
		const late = 25
		open := func(from, shard int) *sql.Tx {
			tx := x.Begin(sql.LevelReadCommitted)
			for id := range late {
				x.In(tx, fmt.Sprintf("INSERT INTO kv VALUES (%d, 'late', %d)", from+id, shard))
			}
			return tx
		}
		whenAsked := func(do func()) {
			l.mu.Lock()
			l.whenAsked = do
			l.mu.Unlock()
		}
		// publishing passes until somebody is asked, and the passes that come behind it.
		asking := func() (n int) {
			x.Helper()
			enough := l.asks() + 1
			x.Eventually("it asks who is at work", func() bool { n += x.Publish(l.feed); return l.asks() >= enough || !l.toldWho() && n > 0 })
			return n
		}
		tx := open(100, 0)
		l.many(1000)
		l.askedAgain(min(1, l.tells()))
		commit := func() {
			if err := tx.Commit(); err != nil {
				x.Error(err)
			}
		}
		if l.toldWho() {
			whenAsked(commit)
		} else {
			commit()
		}
		if n := asking(); n != late {
			x.Errorf("%d of %d records were moved", n, late)
		}
		l.gone()

		tx = open(200, 7)
		l.many(2000)
		l.askedAgain(min(1, l.tells()))
		holder := x.Begin(sql.LevelReadCommitted)
		held := func() {
			if err := tx.Commit(); err != nil {
				x.Error(err)
			}
			x.In(holder, "SELECT time_ms FROM rowfeed_shards WHERE feed = 'kv' AND shard = 7 FOR UPDATE")
		}
		if l.toldWho() {
			whenAsked(held)
		} else {
			held()
		}
		enough := l.asks() + min(1, l.tells())
		x.Eventually("it is asked while somebody has the shard", func() bool {
			_, err := l.feed.Publish(x.Ctx)
			return suite.IsCode(err, rowfeed.Locked) && l.asks() >= enough
		})
		if err := holder.Rollback(); err != nil {
			x.Fatal(err)
		}
		x.Eventually("the shard's records are moved", func() bool {
			_, err := l.feed.Publish(x.Ctx)
			return err == nil
		})
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_kv"); n != 0 {
			x.Errorf("%d records are left", n)
		}
		if found := l.troubles(); len(found) > 0 {
			x.Error(found)
		}
		l.gone()
		x.WantSound(l.feed)
	})
}

// tells is 1 where the server tells who is at work.
func (l *looker) tells() int {
	if l.toldWho() {
		return 1
	}
	return 0
}

// TestRecordsMovedByOthers (H29): what other processes move are gaps to this one, which it gives up; what they
// had taken and was rolled back it moves. Among more shards than are read at once it finds those that have
// records.
func TestRecordsMovedByOthers(t *testing.T) {
	eachLooker(t, rowfeed.ModeOutbox, func(l *looker) {
		x := l.Env
		other := x.Tapped(testdb.Hooks{}, nil)
		l.many(1000)
		for id := range 5 {
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id))
			if n := x.Publish(other); n != 1 {
				x.Errorf("%d moved by another process", n)
			}
			l.many(2000 + 1000*id)
		}
		if l.Engine.HasServer() {
			l.gone()
		}
		var values []string
		for id := range 1200 {
			values = append(values, fmt.Sprintf("(%d, 'k', %d)", 20000+id, (id%1100)*2))
		}
		x.Exec("INSERT INTO kv VALUES "+strings.Join(values[:400], ", "), "INSERT INTO kv VALUES "+strings.Join(values[400:800], ", "), "INSERT INTO kv VALUES "+strings.Join(values[800:], ", "))
		var want []int
		for shard := range 1100 {
			want = append(want, shard*2)
		}
		feed := &dialect.Feed{Name: "kv", Names: dialect.Names{Prefix: "rowfeed_"}, Outbox: true}
		highest := x.Scalar("SELECT max(order_sequence) FROM rowfeed_outbox_kv")
		for _, c := range []struct {
			above int64 // how many records are behind it, each in a shard of its own but the last
			want  []int
		}{{1200, want}, {900, append(slices.Clone(want[:100]), want[300:]...)}, {3, want[97:100]}, {0, nil}} {
			for _, limit := range []int{0, 2} {
				got, err := dialect.RecordShards(x.Ctx, dialect.On(x.DB.Admin()), x.Dialect, feed, dialect.Seqs{Above: highest - c.above}, limit)
				if expect := c.want[:min(len(c.want), max(limit, len(c.want)*(1-limit)))]; err != nil || x.Engine.HasServer() && !slices.Equal(got, expect) {
					x.Errorf("%d records behind it, limit %d: shards %v, %v, want %v", c.above, limit, got, err, expect)
				}
			}
		}
		l.wantNext("many shards", 1200)
		x.WantSound(l.feed)
	})
}
