package plans

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestRowPositionsUseIndexes (H17): TestHotStatementsUseIndexes for feeds with capture "column". In a table of 20,000
// rows, finding rows without a position, giving them positions and reading pages costs the same, however many rows
// wait. It also costs the same before the first ANALYZE, and with statistics of a former state of the table.
func TestRowPositionsUseIndexes(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			suite.EachColumn(t, func(x *suite.Env) {
				x.Needs("plans.explained_by")
				const batch, many = 100, 20_000
				x.Exec(x.Exact(s.create()))
				publisher := x.Add(rowfeed.FeedSpec{Name: "hot", Table: "hot"})
				x.Columns = nil // the statements of this test set feed_sync_id themselves
				p := newPlans(x, batch)
				measure := func(state string) {
					x.Helper()
					p.measure(state)
					p.place(state)
				}
				measure("empty")
				analyze(x, tables)
				s.insert(x, 0, many)
				measure("all waiting, never published, analyzed when empty")
				analyze(x, tables)
				measure("all waiting, analyzed")
				x.Publish(publisher)
				measure("nothing waiting, analyzed when all was")
				x.Exec("UPDATE hot SET feed_sync_id = NULL WHERE v % 100 = 0")
				measure("1 % waiting")
				vacuum(x)
				measure("1 % waiting, analyzed")
				x.Exec("UPDATE hot SET feed_sync_id = NULL")
				measure("all waiting again")
				x.Exec("DELETE FROM hot")
				s.insert(x, 0, 5)
				x.Publish(publisher)
				vacuum(x)
				s.insert(x, 5, many)
				measure("all waiting but five, analyzed when there were five")
				x.Publish(publisher)
				measure("nothing waiting, analyzed when there were five")
			})
		})
	}
}

// place asserts what it costs to give positions to a batch of rows, at the beginning and behind a key.
func (p *plans) place(state string) {
	p.Helper()
	feed := p.described(feedtype.CaptureColumn)
	tx, sent := p.publishing(feed)
	defer tx.Rollback()
	q := dialect.On(tx)
	var after []any
	for _, where := range []string{
		"at the beginning", "behind a key", "by shard at the beginning", "by shard behind a key",
	} {
		if feed.DataShards == 0 && strings.HasPrefix(where, "by shard") {
			feed.DataShards, after = 7, nil
		}
		*sent = nil
		before := p.touched(tx)
		n, last, err := p.Dialect.PlaceRows(p.Ctx, q, feed, after, p.batch, 1_000_000,
			func([]any) (int, error) { return 3, nil })
		if err != nil {
			p.Fatal(err)
		}
		// These are several statements. Twice the bound of one is still far less than 20,000 rows.
		if touched := p.touched(tx) - before; touched > 2*p.bound() {
			p.Errorf("%s, giving positions %s: %d rows were touched for a batch of %d", state, where, touched, n)
		}
		p.explainPlacing(state, *sent)
		after = last
		if n > 0 {
			p.In(tx, "UPDATE hot SET feed_sync_id = NULL WHERE feed_sync_id > 1000000")
		}
	}
	p.walk(state, tx, sent, feed, true)
}
