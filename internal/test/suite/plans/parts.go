package plans

import (
	"fmt"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestPartsAreReadByIndex (M25): TestHotStatementsUseIndexes for a feed of 1024 data shards. A page of a part reads the
// entries of its buckets and few others, however many buckets the part has. That holds before the first ANALYZE, after
// it, and with statistics of a feed that was empty or had all entries in one bucket. Publishing costs the same as
// without shards. Giving other shards to a batch of keys costs no more than that batch.
func TestPartsAreReadByIndex(t *testing.T) {
	testdb.Quick(t)
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			suite.Each(t, func(x *suite.Env) {
				x.Needs("plans.explained_by")
				const batch, many = 100, 20_000
				x.Exec(s.create())
				publisher := x.Add(rowfeed.FeedSpec{Name: "hot", Table: "hot", DataShards: 1024})
				p := newPlans(x, batch)
				measure := func(state string) {
					x.Helper()
					p.measure(state)
					p.parts(state)
					p.walkPositions(state)
				}
				measure("empty")
				analyze(x, tables)
				s.insert(x, 0, many)
				measure("all waiting, analyzed when empty")
				x.Publish(publisher)
				measure("nothing waiting, analyzed when empty")
				vacuum(x)
				measure("nothing waiting, analyzed")
				x.Exec("UPDATE hot SET v = v + 1 WHERE v % 100 = 0")
				x.Publish(publisher)
				x.Exec("DELETE FROM rowfeed_positions_hot WHERE bucket <> 7")
				vacuum(x)
				x.Exec("UPDATE hot SET v = v + 1")
				x.Publish(publisher)
				measure("nothing waiting, analyzed when one bucket had it all")
				x.Exec("DELETE FROM rowfeed_positions_hot", "DELETE FROM hot")
				s.insert(x, 0, 5)
				x.Publish(publisher)
				vacuum(x)
				s.insert(x, 5, many)
				x.Publish(publisher)
				measure("nothing waiting, analyzed when there were five")
			})
		})
	}
}

// walkPositions is walk for the table of positions.
func (p *plans) walkPositions(state string) {
	p.Helper()
	feed := p.described(feedtype.CaptureTrigger)
	feed.DataShards = 1024
	tx, sent := p.publishing(feed)
	defer tx.Rollback()
	p.walk(state, tx, sent, feed, false)
}

// parts explains pages of parts of several sizes: of one bucket, of several buckets, of buckets that several parts
// share, and of one data shard.
func (p *plans) parts(state string) {
	p.Helper()
	head, err := p.feed.Fetch(p.Ctx, rowfeed.Request{After: rowfeed.Now})
	if err != nil {
		p.Fatal(err)
	}
	var position int64
	_, _ = fmt.Sscan(string(head.Cursor), &position)
	for _, shards := range []rowfeed.Shards{
		rowfeed.Part(7, 32), rowfeed.Part(1, 4), rowfeed.Part(2, 5), rowfeed.Part(1, 2), rowfeed.One(240),
	} {
		for where, after := range cursorsUpTo(position) {
			for _, h := range p.during(func() error {
				_, err := p.feed.Fetch(p.Ctx, rowfeed.Request{After: after, Limit: p.batch, Shards: shards})
				return err
			}) {
				p.explain(fmt.Sprintf("%s, %s of %s %s", state, h.name, shards, where), h)
			}
		}
	}
}
