package suite

import (
	"context"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// WrongShards returns the keys that check finds in wrong data shards. Check must find nothing else.
func (x *Env) WrongShards(f *rowfeed.Feed) (keys []string) {
	x.Helper()
	findings, err := f.Admin().Check(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	for _, finding := range findings {
		if finding.Rule != "shard-of-key" {
			x.Errorf("check: %s: %s", finding.Rule, finding.Problem)
		}
		keys = append(keys, string(finding.Key.AppendJSON(nil)))
	}
	slices.Sort(keys)
	return keys
}

// AddShards creates the table kv and its feed with n data shards.
func (x *Env) AddShards(n int) *rowfeed.Feed {
	x.Helper()
	x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
	return x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: n})
}

// ShardOfID returns the data shard of a key of kv.
func ShardOfID(id int64, dataShards int) int {
	return int(crc32.ChecksumIEEE([]byte(strconv.FormatInt(id, 10))) % uint32(dataShards))
}

// IDsOf returns the first n ids from first on whose keys have a data shard from (inclusive) to to (exclusive).
func IDsOf(first int64, n, dataShards, from, to int) (ids []int64) {
	for id := first; len(ids) < n; id++ {
		if s := ShardOfID(id, dataShards); s >= from && s < to {
			ids = append(ids, id)
		}
	}
	return ids
}

// InsertIDs inserts rows with these ids into kv.
func (x *Env) InsertIDs(ids ...int64) {
	x.Helper()
	for _, id := range ids {
		x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id))
	}
}

// Cursors returns a consumer's cursors, each as "0/2 7" for the cursor 7 of shard 0 of 2. " paused" and " 3 aside"
// follow if they apply.
func (x *Env) Cursors(consumer string) (lines []string) {
	x.Helper()
	all, err := x.RF.Admin().Consumers(x.Ctx, rowfeed.ConsumerID{Consumer: consumer})
	if err != nil {
		x.Fatal(err)
	}
	for _, c := range all {
		l := fmt.Sprintf("%d/%d %s", c.Shard, c.ShardCount, Place(c.Cursor))
		if c.Paused {
			l += " paused"
		}
		if c.DeadLetters > 0 {
			l += fmt.Sprintf(" %d aside", c.DeadLetters)
		}
		lines = append(lines, l)
	}
	return lines
}

// WantCursors asserts what Cursors returns.
func (x *Env) WantCursors(consumer string, want ...string) {
	x.Helper()
	if got := x.Cursors(consumer); !slices.Equal(got, want) {
		x.Fatalf("cursors of %s: %q, want %q", consumer, got, want)
	}
}

// HeldReshard starts a reshard of kv and holds it before the first statement of a kind that contains the words. end
// gets the reshard's result.
func (x *Env) HeldReshard(shards int, kind testdb.TapKind, words string) (held *testdb.Held, end chan error) {
	x.Helper()
	begun := false
	held = testdb.Hold(func(ev testdb.TapEvent) bool {
		return begun && ev.Kind == kind && strings.Contains(ev.SQL, words)
	})
	f := x.Tapped(testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
		begun = begun || strings.Contains(ev.SQL, "data_shards = ")
		return held.Before(ctx, ev)
	}}, nil)
	return held, x.ReshardUntil(f, shards, held)
}

// ReshardUntil starts a reshard and waits until it is held. The channel gets the reshard's result.
func (x *Env) ReshardUntil(f *rowfeed.Feed, shards int, held *testdb.Held) chan error {
	x.Helper()
	end := make(chan error, 1)
	go func() {
		_, err := f.Admin().Reshard(x.Ctx, shards, nil)
		end <- err
	}()
	select {
	case <-held.Reached:
	case err := <-end:
		x.Fatalf("the reshard ended before it was held: %v", err)
	}
	return end
}

// Reshard gives a feed another number of data shards.
func (x *Env) Reshard(f *rowfeed.Feed, dataShards int) {
	x.Helper()
	if _, err := f.Admin().Reshard(x.Ctx, dataShards, nil); err != nil {
		x.Fatal(err)
	}
}

// Info returns the description of a feed.
func (x *Env) Info(f *rowfeed.Feed) *rowfeed.Info {
	x.Helper()
	info, err := f.Info(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	return info
}

// PositionOf returns the position of a sequence feed's entry.
func PositionOf(e rowfeed.Entry) int64 {
	n, _ := strconv.ParseInt(e.Position, 10, 64)
	return n
}

// Part reads a part of a feed from a cursor to the head, page by page. It asserts that pages have at most limit
// entries, and that positions grow. The cursor that it returns does not say of which part it is.
func (x *Env) Part(
	f rowfeed.Source, shards rowfeed.Shards, after rowfeed.Cursor, limit int,
) (entries []rowfeed.Entry, cursor rowfeed.Cursor) {
	x.Helper()
	last := int64(0)
	for {
		page, err := f.Fetch(x.Ctx, rowfeed.Request{After: after, Limit: limit, Shards: shards})
		if err != nil {
			x.Fatalf("%s: %v", shards, err)
		}
		if len(page.Entries) > limit {
			x.Fatalf("%s: %d entries on a page of %d", shards, len(page.Entries), limit)
		}
		for _, e := range page.Entries {
			if p := PositionOf(e); p <= last {
				x.Fatalf("%s: position %d follows %d", shards, p, last)
			} else {
				last = p
			}
		}
		entries = append(entries, page.Entries...)
		if after = page.Cursor; !page.More {
			whole, _, _ := strings.Cut(string(after), "_")
			return entries, rowfeed.Cursor(whole)
		}
	}
}

// InsertKV inserts rows with the ids from (inclusive) to to (exclusive) into kv.
func (x *Env) InsertKV(from, to int) {
	x.Helper()
	const most = 1000 // some databases accept no more in one statement
	for ; from < to; from += most {
		var rows []string
		for id := from; id < min(from+most, to); id++ {
			rows = append(rows, fmt.Sprintf("(%d, 'k%d', 1)", id, id))
		}
		x.Exec("INSERT INTO kv (id, k, v) VALUES " + strings.Join(rows, ", "))
	}
}
