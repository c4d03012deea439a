package bench

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
)

var shardRows = flag.Int("shard-rows", 1_000_000, "rows of TestShards")

// TestShards measures the total work of readers that share a feed of 1024 data shards. One after the other, they read
// their parts from the beginning to the head, in pages of 1000. Concurrent readers would share the machine, so they are
// not measured.
func TestShards(t *testing.T) {
	const shards = 1024
	counts := []int{1, 4, 5, 32}
	out := table{Title: fmt.Sprintf("Reading a feed of %s rows and %d data shards by so many readers, pages of 1000",
		count(float64(scaled(*shardRows))), shards),
		Head: []string{"database", "readers", "rows/s", "÷ one reader of a feed without shards", "entries a page",
			"index entries read for one delivered"}}
	each(t, func(b *bed) {
		rows := scaled(*shardRows)
		b.fill("plain", rows)
		p := b.passes(b.Pool, 5000)
		plain := b.Feed(p.db, rowfeed.FeedSpec{Name: "plain", Table: "plain"})
		sharded := b.Feed(p.db, rowfeed.FeedSpec{Name: "sharded", Table: "plain", DataShards: shards})
		for _, f := range []*rowfeed.Feed{plain, sharded} {
			keys, took := p.drain(f)
			b.Logf("%s: %d keys published, %.0f/s", f.Name(), keys, float64(keys)/took.Seconds())
		}
		for _, name := range []string{"rowfeed_positions_plain", "rowfeed_positions_sharded"} {
			if b.Family == "postgres" {
				b.SQL("VACUUM ANALYZE " + name)
			} else {
				b.analyze(name)
			}
		}
		results := figures[int]{}
		pages, read := map[int]int{}, map[int]string{}
		for range *reps {
			for i, readers := range append([]int{1}, counts...) {
				f := sharded
				if i == 0 {
					f, readers = plain, 0
				}
				before := b.indexEntries()
				started, entries := time.Now(), 0
				pages[readers] = 0
				for part := range max(readers, 1) {
					n, asked := b.drainPart(f, rowfeed.Part(part, max(readers, 1)))
					entries += n
					pages[readers] += asked
				}
				if entries != rows {
					b.Fatalf("%d readers got %d of %d rows", readers, entries, rows)
				}
				results.Add(readers, float64(rows)/time.Since(started).Seconds())
				if n := b.indexEntries() - before; n > 0 {
					read[readers] = fmt.Sprintf("%.2f", float64(n)/float64(rows))
				}
			}
		}
		for _, readers := range append([]int{0}, counts...) {
			name := fmt.Sprint(readers)
			if readers == 0 {
				name = "1, of a feed without shards"
			}
			rate := results[readers].Median()
			out.Row(b.Engine.Name, name, count(rate), results[readers].Over(results[0]).Ratio(),
				fmt.Sprint(rows/pages[readers]), read[readers])
		}
	})
	out.Print()
}

// drainPart reads a part to its head.
func (b *bed) drainPart(f *rowfeed.Feed, part rowfeed.Shards) (entries, pages int) {
	b.Helper()
	for after := rowfeed.Beginning; ; {
		page, err := f.Fetch(b.Context(), rowfeed.Request{After: after, Limit: 1000, Shards: part})
		b.Must(err)
		entries, pages, after = entries+len(page.Entries), pages+1, page.Cursor
		if !page.More {
			return entries, pages
		}
	}
}

// indexEntries returns how many entries of the positions' indexes were read so far, if the database reports it.
// PostgreSQL's sessions report it when they end.
func (b *bed) indexEntries() (n int64) {
	b.Helper()
	switch b.Family {
	case "postgres":
		b.Pool.SetMaxIdleConns(0)
		b.Pool.SetMaxIdleConns(2)
		for last := int64(-1); n != last; time.Sleep(100 * time.Millisecond) {
			last, n = n, b.Number("SELECT COALESCE(sum(idx_tup_read), 0)::bigint FROM pg_stat_user_indexes WHERE "+
				"relname LIKE 'rowfeed_positions_%' AND indexrelname NOT LIKE '%pkey'")
		}
	case "mysql":
		var name string
		b.Must(b.Admin().QueryRowContext(b.Context(), "SHOW GLOBAL STATUS LIKE 'Handler_read_next'").Scan(&name, &n))
	}
	return n
}
