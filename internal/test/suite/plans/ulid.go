package plans

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestULIDPagesUseIndexes (M46, H17): a page of a shard reads its rows by the unique index of shard and ULID, and
// no others, wherever the cursor is: before the first ANALYZE and after it, and with statistics
// of when the table was empty. Nor does what looks for the shards that a table has, when a feed is
// made of it or checked: one entry of the index for each, and the ones that there are not.
func TestULIDPagesUseIndexes(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
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
				x.Errorf("%d statements found 4 shards and the end", len(walk))
			}
			for i, h := range walk {
				if c := p.explain(fmt.Sprintf("%s, %s %d", state, h.name, i), h); c.rows > 30 {
					x.Errorf("%s, %s %d: %d rows touched", state, h.name, i, c.rows)
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
