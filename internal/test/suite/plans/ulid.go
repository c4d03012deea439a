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
		x.Exec(
			"CREATE TABLE hot (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL, ulid "+x.ULIDType()+" NOT NULL, "+
				"data VARCHAR(100))",
			"CREATE UNIQUE INDEX hot_feed ON hot (shard, ulid)",
		)
		analyze := x.By(
			map[string]string{"sqlite": "ANALYZE", "postgres": "ANALYZE", "mysql": "ANALYZE TABLE hot, rowfeed_shards"},
		)
		ulid := x.By(map[string]string{
			"sqlite":   "unhex('0185733b2d08ffff' || printf('%016x', i))",
			"postgres": "CAST('0185733b2d08ffff' || lpad(to_hex(i), 16, '0') AS uuid)",
			"mysql":    "UNHEX(CONCAT('0185733b2d08ffff', LPAD(HEX(i), 16, '0')))",
		})
		numbers := x.By(map[string]string{
			"sqlite": "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %[1]d) SELECT " +
				"%[2]s FROM n",
			"postgres": "SELECT %[2]s FROM generate_series(1::bigint, %[1]d) n (i)",
			"mysql": "WITH RECURSIVE d (x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM d WHERE x < 199) SELECT " +
				"%[2]s FROM (SELECT 1 + a.x + 200 * b.x AS i FROM d a JOIN d b) n WHERE i <= %[1]d",
		})
		x.Exec(analyze)
		spec := suite.EventsSpec()
		spec.Name, spec.Table = "hot", "hot"
		fill := fmt.Sprintf(numbers, many, "i, i % 4, "+ulid+", 'd'")
		x.Exec("INSERT INTO hot (id, shard, ulid, data) " + fill)
		x.Add(spec)
		p := newPlans(x, batch)
		now, err := p.feed.Fetch(x.Ctx, rowfeed.Request{After: rowfeed.Now, Shards: rowfeed.One(2)})
		if err != nil {
			x.Fatal(err)
		}
		for _, state := range []string{"analyzed when empty", "analyzed"} {
			if state == "analyzed" {
				x.Exec(analyze)
			}
			walk := slices.DeleteFunc(p.during(func() error { _, err := p.feed.Admin().Check(x.Ctx); return err }),
				func(h hot) bool { return h.name != "last shard" })
			if len(walk) != 5 {
				x.Errorf("%d statements found 4 shards and the end", len(walk))
			}
			for i, h := range walk {
				if c := p.explain(fmt.Sprintf("%s, %s %d", state, h.name, i), h); c.rows > 30 {
					x.Errorf("%s, %s %d: %d rows touched", state, h.name, i, c.rows)
				}
			}
			for where, after := range map[string]rowfeed.Cursor{"at the start": "",
				"in the middle": "01GNSKPB88ZZZG0000000009RG", "at the head": now.Cursor} {
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
