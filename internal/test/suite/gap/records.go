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

// TestHeadPageMovesLateRecords (G1, H29): a reader at the head of a shard, in a process that publishes, gets every
// committed record of its shard, however late the record was committed. The page moves such records itself.
func TestHeadPageMovesLateRecords(t *testing.T) {
	eachPublisher(t, rowfeed.ModeOutbox, func(p *publisher) {
		x := p.Env
		if x.Has.OneWriter {
			return // no record is committed late
		}
		at := rowfeed.Cursor(rowfeed.Now)
		read := func(what string, want ...int64) {
			x.Helper()
			var got []int64
			for more := true; more; {
				page, err := p.feed.Fetch(x.Ctx, rowfeed.Request{After: at, Shards: p.part, Limit: 100})
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
				x.Errorf("%s: a reader at the head got %v, want %v", what, got, want)
			}
			p.wantNoTrouble(what)
		}
		first := x.Begin(sql.LevelReadCommitted)
		second, third := x.Begin(sql.LevelReadCommitted), x.Begin(sql.LevelReadCommitted)
		x.In(first, "INSERT INTO kv VALUES (1, 'late', 0)")
		x.In(third, "SELECT count(*) FROM kv") // has written nothing yet
		p.publishMany(1000)
		p.publishUntilAsked(2)
		x.In(second, "INSERT INTO kv VALUES (2, 'late', 0)", "INSERT INTO kv VALUES (3, 'of another shard', 1)")
		x.In(third, "INSERT INTO kv VALUES (4, 'late', 0)")
		p.publishMany(2000)
		p.publishUntilAsked(2)
		at = rowfeed.Now
		read("everything committed is published")
		x.Commit(second)
		read("the second writer", 2)
		p.wantNextPass("the second writer's record of another shard", 1)
		x.Commit(first)
		read("the first writer", 1)
		p.publishMany(3000)
		at = rowfeed.Now
		read("everything committed is published again")
		x.Commit(third)
		read("the third writer", 4)
		p.awaitNoGap()
		x.Exec("INSERT INTO kv VALUES (5, 'k', 0)")
		read("no gap is open", 5)
		x.WantSound(p.feed)
	})
}

// TestManyLateRecordsAreAllMoved (G1, H29): a late writer commits while the publisher reads the open writers, with more
// records in a shard than a pass moves. All of them are moved at once. While another session has the shard locked, the
// publisher keeps the gap open and moves the records later.
func TestManyLateRecordsAreAllMoved(t *testing.T) {
	testdb.Only(t, testdb.Servers...)
	suite.Each(t, func(x *suite.Env) {
		p := newPublisher(x, rowfeed.ModeOutbox, 10)
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0), (2, 'k', 7)")
		p.wantNextPass("rows", 2)
		const late = 25
		open := func(from, shard int) *sql.Tx {
			tx := x.Begin(sql.LevelReadCommitted)
			for id := range late {
				x.In(tx, fmt.Sprintf("INSERT INTO kv VALUES (%d, 'late', %d)", from+id, shard))
			}
			return tx
		}
		whenAsked := func(do func()) {
			p.mu.Lock()
			p.whenAsked = do
			p.mu.Unlock()
		}
		tx := open(100, 0)
		commit := func() {
			if err := tx.Commit(); err != nil {
				x.Error(err)
			}
		}
		p.publishMany(1000)
		p.publishUntilAsked(1)
		whenAsked(commit)
		moved, enough := 0, p.questions()+1
		x.Eventually("the publisher reads the open writers", func() bool {
			moved += x.Publish(p.feed)
			return p.questions() >= enough
		})
		if moved != late {
			x.Errorf("%d records were moved, want %d", moved, late)
		}
		p.awaitNoGap()

		tx = open(200, 7)
		p.publishMany(2000)
		p.publishUntilAsked(1)
		holder := x.Begin(sql.LevelReadCommitted)
		whenAsked(func() {
			commit()
			x.In(holder, "SELECT time_ms FROM rowfeed_shards WHERE feed = 'kv' AND shard = 7 FOR UPDATE")
		})
		enough = p.questions() + 1
		x.Eventually("the publisher reads the open writers while the shard is locked", func() bool {
			_, err := p.feed.Publish(x.Ctx)
			return suite.IsCode(err, rowfeed.Locked) && p.questions() >= enough
		})
		if err := holder.Rollback(); err != nil {
			x.Fatal(err)
		}
		x.Eventually("the shard's records are moved", func() bool {
			_, err := p.feed.Publish(x.Ctx)
			return err == nil
		})
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_kv"); n != 0 {
			x.Errorf("%d records are left", n)
		}
		p.wantNoTrouble("at the end")
		p.awaitNoGap()
		x.WantSound(p.feed)
	})
}

// TestRecordsMovedByOthersCloseGaps (H29): records that other processes have moved are gaps to a publisher, which it
// closes. Records whose move was rolled back it moves. Among more shards than one statement reads, it finds those that
// have records.
func TestRecordsMovedByOthersCloseGaps(t *testing.T) {
	eachPublisher(t, rowfeed.ModeOutbox, func(p *publisher) {
		x := p.Env
		other := x.Tapped(testdb.Hooks{}, nil)
		p.publishMany(1000)
		for id := range 5 {
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id))
			if n := x.Publish(other); n != 1 {
				x.Errorf("another process moved %d records, want 1", n)
			}
			p.publishMany(2000 + 1000*id)
		}
		p.awaitNoGap()
		var values []string
		for id := range 1200 {
			values = append(values, fmt.Sprintf("(%d, 'k', %d)", 20000+id, (id%1100)*2))
		}
		for some := range slices.Chunk(values, 400) {
			x.Exec("INSERT INTO kv VALUES " + strings.Join(some, ", "))
		}
		var want []int
		for shard := range 1100 {
			want = append(want, shard*2)
		}
		feed := &dialect.Feed{Name: "kv", Names: dialect.Names{Prefix: "rowfeed_"}, Outbox: true}
		highest := x.Scalar("SELECT max(order_sequence) FROM rowfeed_outbox_kv")
		for _, c := range []struct {
			behind int64 // how many records are above; the last hundred are of shards that occurred before
			want   []int
		}{
			{1200, want},
			{900, append(slices.Clone(want[:100]), want[300:]...)},
			{3, want[97:100]},
			{0, nil},
		} {
			for _, limit := range []int{0, 2} {
				above := dialect.Seqs{Above: highest - c.behind}
				got, err := dialect.RecordShards(x.Ctx, dialect.On(x.DB.Admin()), x.Dialect.Syntax, feed, above, limit)
				expect := c.want[:min(len(c.want), max(limit, len(c.want)*(1-limit)))]
				if err != nil || !x.Has.OneWriter && !slices.Equal(got, expect) {
					x.Errorf("%d records above, limit %d: shards %v, %v, want %v", c.behind, limit, got, err, expect)
				}
			}
		}
		p.wantNextPass("many shards", 1200)
		x.WantSound(p.feed)
	})
}
