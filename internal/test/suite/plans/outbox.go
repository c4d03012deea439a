package plans

import (
	"fmt"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestOutboxesAreReadByIndex (M59, H17): reading a page of a shard and moving the shard's records read only this shard,
// by index. That also holds if another shard has far more records, before the first ANALYZE, after it, and with
// statistics of an empty outbox. Publishers, pages without a shard and Info find the shards with records by one lookup
// for each shard.
func TestOutboxesAreReadByIndex(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		x.Needs("plans.explained_by")
		const batch, many = 500, 20_000 // a reader moves at least 500 records
		x.Exec("CREATE TABLE hot (id BIGINT NOT NULL PRIMARY KEY, data VARCHAR(100))")
		x.Add(rowfeed.FeedSpec{Name: "hot", Table: "hot", Mode: rowfeed.ModeOutbox})
		p := newPlans(x, batch)
		const tables = "hot, rowfeed_outbox_hot, rowfeed_feed_hot, rowfeed_shards"
		fill := func(shard, first, last int) {
			x.Exec("INSERT INTO hot "+numbered(first, last, "i, 'd'"),
				"INSERT INTO rowfeed_outbox_hot (shard, id) "+numbered(first, last, fmt.Sprint(shard, ", i")))
		}
		fetch := func(req rowfeed.Request) func() error {
			return func() error { _, err := p.feed.Fetch(x.Ctx, req); return err }
		}
		measure := func(state string) {
			t.Helper()
			found := map[string]bool{}
			for what, do := range map[string]func() error{
				"read a shard of few":     fetch(rowfeed.Request{Shards: rowfeed.One(7)}),
				"read a shard of many":    fetch(rowfeed.Request{Shards: rowfeed.One(0), Limit: batch}),
				"read a shard of none":    fetch(rowfeed.Request{Shards: rowfeed.One(5)}),
				"read a shard, committed": fetch(rowfeed.Request{Shards: rowfeed.One(7), Consistent: true}),
				"read without a shard": func() error {
					if err := fetch(rowfeed.Request{})(); !suite.IsCode(err, rowfeed.InvalidRequest) {
						return fmt.Errorf("a page of two shards: %w", err)
					}
					return nil
				},
				"describe": func() error { _, err := p.feed.Info(x.Ctx); return err },
				"publish":  func() error { _, err := p.feed.Publish(x.Ctx); return err },
			} {
				for _, h := range p.during(do) {
					if !found[h.name] || h.name == "page" || h.name == "take records" {
						found[h.name] = true
						p.explain(state+", "+what+", "+h.name, h)
					}
				}
			}
			for _, name := range []string{"page", "has records", "shards of records", "take records", "newest record"} {
				if !found[name] {
					t.Errorf("%s: no statement %q was sent", state, name)
				}
			}
			if state != "empty" && (!found["place records"] || !found["delete records"] || !found["advance shard"]) {
				t.Errorf("%s: no records were moved; the statements were %v", state, found)
			}
		}
		analyze(x, tables)
		fill(0, 1, many)
		fill(7, many+1, many+3)
		measure("with the statistics of an empty outbox")
		analyze(x, tables)
		measure("analyzed")
		f, err := x.RF.Feed(x.Ctx, "hot")
		if err != nil {
			t.Fatal(err)
		}
		x.Publish(f)
		fill(0, many+11, many+12)
		fill(7, many+21, many+23)
		measure("all records moved but five")
	})
}
