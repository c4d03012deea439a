package plans

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestULIDPagesUseIndexes (M46, H17): a page of a shard reads only its own rows, by the unique index of shard and ULID,
// wherever the cursor is. That holds before the first ANALYZE, after it, and with statistics of an empty table. Feed
// add and check find the shards of a table by one lookup in this index for each shard.
func TestULIDPagesUseIndexes(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		x.Needs("plans.explained_by")
		const batch, many = 100, 20_000
		x.Exec(x.EventsTable("hot"), "CREATE UNIQUE INDEX hot_feed ON hot (shard, ulid)")
		const tables = "hot, rowfeed_shards"
		analyze(x, tables)
		spec := suite.EventsSpec()
		spec.Name, spec.Table = "hot", "hot"
		ulid := x.Text("ulid.ulid_of_halves", 0x0185733b2d08ffff, 0)
		x.Exec("INSERT INTO hot (id, shard, ulid, data) " + numbered(1, many, "i, i % 4, "+ulid+", 'd'"))
		x.Add(spec)
		p := newPlans(x, batch)
		now, err := p.feed.Fetch(x.Ctx, rowfeed.Request{After: rowfeed.Now, Shards: rowfeed.One(2)})
		if err != nil {
			x.Fatal(err)
		}
		for _, state := range []string{"analyzed when empty", "analyzed"} {
			if state == "analyzed" {
				analyze(x, tables)
			}
			walk := slices.DeleteFunc(p.during(func() error { _, err := p.feed.Admin().Check(x.Ctx); return err }),
				func(h statement) bool { return h.name != "last shard" })
			if len(walk) != 5 {
				x.Errorf("check sent %d statements to find 4 shards, want one for each and one for the end", len(walk))
			}
			for i, h := range walk {
				if c := p.explain(fmt.Sprintf("%s, %s %d", state, h.name, i), h); c.rows > 30 {
					x.Errorf("%s, %s %d: %d rows were touched, want at most 30", state, h.name, i, c.rows)
				}
			}
			for where, after := range map[string]rowfeed.Cursor{
				"at the start": "", "in the middle": "01GNSKPB88ZZZG0000000009RG", "at the head": now.Cursor,
			} {
				seen := p.during(func() error {
					_, err := p.feed.Fetch(x.Ctx, rowfeed.Request{After: after, Limit: batch, Shards: rowfeed.One(2)})
					return err
				})
				if len(seen) == 0 {
					x.Errorf("no page was read %s", where)
				}
				for _, h := range seen {
					p.explain(state+", "+h.name+" "+where, h)
				}
			}
		}
	})
}
