package shard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// reader follows one part of a feed and keeps its entries.
type reader struct {
	shards rowfeed.Shards
	after  rowfeed.Cursor
	last   int64
	more   bool
	keys   map[string]string // the latest of each key
	seen   []rowfeed.Entry
}

// readersOf returns n readers that share a feed.
func readersOf(n int) []*reader {
	all := make([]*reader, n)
	for i := range all {
		all[i] = &reader{shards: rowfeed.Part(i, n), more: true, keys: map[string]string{}}
	}
	return all
}

// page reads the next page of r's part.
func page(x *suite.Env, f rowfeed.Source, r *reader, limit int) {
	x.Helper()
	page, err := f.Fetch(x.Ctx, rowfeed.Request{After: r.after, Limit: limit, Shards: r.shards})
	if err != nil {
		x.Fatalf("%s: %v", r.shards, err)
	}
	for _, e := range page.Entries {
		if suite.PositionOf(e) <= r.last {
			x.Fatalf("%s: %s behind position %d", r.shards, placed(e), r.last)
		}
		r.last = suite.PositionOf(e)
		r.keys[string(e.Key.AppendJSON(nil))] = suite.Line(e)
	}
	r.seen = append(r.seen, page.Entries...)
	r.after, r.more = page.Cursor, page.More
}

// TestPartsSeeEverythingWhileWritten (M21, M26): readers that share a feed see all of it while it is written and
// published, whatever other parts are read. At the end they have the final state of every key, each key in one part.
func TestPartsSeeEverythingWhileWritten(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: 100})
		x.InsertKV(0, 300)
		x.Publish(f)
		groups := [][]*reader{readersOf(1), readersOf(3), readersOf(8), readersOf(40)}
		rounds := 0
		for busy := true; busy; rounds++ {
			busy = false
			for _, group := range groups {
				for i, r := range group {
					if !r.more && rounds > 12 {
						continue
					}
					busy = true
					page(x, f, r, 11)
					if rounds > 10 || i%5 > 0 {
						continue
					}
					n := rounds*7 + i
					x.Exec(fmt.Sprintf("UPDATE kv SET v = v + 1 WHERE id %% 50 = %d", n%50),
						fmt.Sprintf("DELETE FROM kv WHERE id %% 97 = %d", n%97))
					if i == 0 {
						x.InsertKV(1000*rounds+1000*100*len(group), 1000*rounds+1000*100*len(group)+3)
					}
					x.Publish(f)
				}
			}
		}
		for _, group := range groups { // entries after a reader's last page
			for _, r := range group {
				for r.more = true; r.more; {
					page(x, f, r, 100)
				}
			}
		}
		want := map[string]string{}
		rows, err := x.DB.Admin().QueryContext(x.Ctx, "SELECT id, k, v FROM kv")
		if err != nil {
			x.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var id, v int
			var k string
			if err := rows.Scan(&id, &k, &v); err != nil {
				x.Fatal(err)
			}
			want[fmt.Sprintf(`{"id":%d}`, id)] = suite.KV(id, k, v)
		}
		if err := rows.Err(); err != nil {
			x.Fatal(err)
		}
		for _, group := range groups {
			got := map[string]string{}
			for _, r := range group {
				for key, last := range r.keys {
					if other, twice := got[key]; twice {
						x.Fatalf("%d readers: two have %s: %s and %s", len(group), key, last, other)
					}
					got[key] = last
				}
			}
			maps.DeleteFunc(got, func(_, last string) bool { return strings.HasPrefix(last, "delete") })
			if !maps.Equal(got, want) {
				x.Fatalf("%d readers end with %d keys, the table has %d", len(group), len(got), len(want))
			}
		}
	})
}

// TestPartFromBeginningSkipsOldDeletes (G3, G6, M21): a reader that starts at the beginning does not get older deletes,
// but gets all that come during its pass, hidden keys included.
func TestPartFromBeginningSkipsOldDeletes(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: 64})
		x.InsertKV(0, 200)
		x.Publish(f)
		x.Exec("DELETE FROM kv WHERE id < 50")
		hide := func(ids ...int) {
			x.Helper()
			tx := x.Begin(0)
			for _, id := range ids {
				if err := f.Unpublish(x.Ctx, rowfeed.InTx(tx), rowfeed.Key{int64(id)}); err != nil {
					x.Fatal(err)
				}
			}
			x.Commit(tx)
			x.Publish(f)
		}
		hide(50, 51, 52)
		group := readersOf(3)
		for _, r := range group {
			page(x, f, r, 5)
			if !strings.Contains(string(r.after), "@") {
				x.Fatalf("%s: cursor %q of a pass from the beginning has no start mark", r.shards, r.after)
			}
		}
		x.Exec("DELETE FROM kv WHERE id >= 60 AND id < 80", "UPDATE kv SET v = 2 WHERE id = 199")
		hide(81)
		got := map[string]string{}
		for _, r := range group {
			for r.more {
				page(x, f, r, 7)
			}
			for _, e := range r.seen {
				if id, _ := e.Key.Get("id"); e.Op == rowfeed.Delete && (id.(int64) < 60 || id.(int64) >= 80) &&
					id != int64(81) {
					x.Errorf("%s is told of %s", r.shards, placed(e))
				}
			}
			maps.Copy(got, r.keys)
			if strings.Contains(string(r.after), "@") {
				x.Errorf("%s: the pass is over, and the cursor is %q", r.shards, r.after)
			}
		}
		deletes := slices.Sorted(maps.Values(got))
		deletes = slices.DeleteFunc(deletes, func(l string) bool { return !strings.HasPrefix(l, "delete") })
		if len(got) != 147 || len(deletes) != 21 {
			x.Errorf("%d keys, %d of them deleted: %v", len(got), len(deletes), deletes)
		}
	})
}

// TestPartIgnoresEntriesOfOtherParts (M21): a reader that waits for a part gets no answer when an entry for another
// part comes, and reads one page for it. An empty answer has the head as its cursor.
func TestPartIgnoresEntriesOfOtherParts(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		read := make(chan struct{}, 1000)
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
		x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: 8})
		rf := x.TappedDB(testdb.Hooks{}, &rowfeed.Config{WatchPoll: suite.Never,
			Observer: &rowfeed.Observer{Fetched: func(rowfeed.FetchEvent) { read <- struct{}{} }}})
		f, err := rf.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		x.InsertKV(1, 6) // in the shards 7, 5, 3, 0 and 6
		x.Publish(f)
		result := make(chan suite.Fetched, 1)
		ctx, cancel := context.WithTimeout(x.Ctx, suite.Patience())
		x.Cleanup(cancel)
		go func() {
			page, err := f.Fetch(ctx, rowfeed.Request{After: "4", Shards: rowfeed.Part(0, 2), Wait: suite.Never})
			result <- suite.Fetched{Page: page, Err: err}
		}()
		<-read
		for i := range 3 {
			x.Exec(fmt.Sprintf("UPDATE kv SET v = %d WHERE id = 1", 10+i))
			x.Publish(f)
			<-read
		}
		x.Exec("UPDATE kv SET v = 20 WHERE id = 3")
		x.Publish(f)
		x.WantWoken(result, "9", suite.KV(3, "k3", 20))
		if len(read) != 1 {
			x.Errorf("%d reads for the entry", len(read))
		}
		for _, after := range []rowfeed.Cursor{"6", "9"} {
			page, err := f.Fetch(x.Ctx, rowfeed.Request{After: after, Shards: rowfeed.One(1), Wait: time.Millisecond})
			if err != nil || len(page.Entries) > 0 || suite.Place(page.Cursor) != "9" || page.More {
				x.Errorf("after %s: %+v, %v", after, page, err)
			}
		}
	})
}

// TestReadersOfPartsShareNoPage (M21): readers of different parts that wait at the same cursor, and wake at the same
// time, do not share a page: each of their reads begins before any has returned.
func TestReadersOfPartsShareNoPage(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
		own := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: 8})
		x.InsertKV(1, 6) // in the shards 7, 5, 3, 0 and 6
		x.Publish(own)
		ids := map[int]int{7: 1, 5: 2, 3: 3, 0: 4, 6: 5}
		ctx, cancel := context.WithTimeout(x.Ctx, suite.Patience())
		x.Cleanup(cancel)
		begun, read := make(chan struct{}, 100), make(chan struct{}, 100)
		var gate atomic.Pointer[chan struct{}]
		shut := func() { closed := make(chan struct{}); gate.Store(&closed) }
		shut()
		f := x.Tapped(testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if !strings.Contains(ev.SQL, "f.tombstones_below") {
				return nil
			}
			closed := *gate.Load()
			begun <- struct{}{}
			select {
			case <-closed:
			case <-ctx.Done():
			}
			return nil
		}}, &rowfeed.Config{Observer: &rowfeed.Observer{Fetched: func(rowfeed.FetchEvent) { read <- struct{}{} }}})
		each := func(what string, events <-chan struct{}) {
			x.Helper()
			for n := range len(ids) {
				select {
				case <-events:
				case <-ctx.Done():
					x.Fatalf("%s: %d of %d readers, each by itself", what, n, len(ids))
				}
			}
		}
		results := map[int]chan suite.Fetched{}
		for shard := range ids {
			results[shard] = make(chan suite.Fetched, 1)
			go func() {
				page, err := f.Fetch(ctx, rowfeed.Request{After: "5", Shards: rowfeed.One(shard), Wait: suite.Never})
				results[shard] <- suite.Fetched{Page: page, Err: err}
			}()
		}
		each("begin to read", begun)
		first := *gate.Load()
		shut()
		close(first)
		each("have read", read) // no entries yet
		x.Exec("UPDATE kv SET v = 2")
		x.Publish(own)
		each("are woken and read", begun)
		close(*gate.Load())
		for shard, id := range ids {
			x.WantWoken(results[shard], "10", suite.KV(id, fmt.Sprint("k", id), 2))
		}
	})
}

// TestKeyKeepsItsShard (H24): a key keeps its data shard and its text, even if it comes back with another text that the
// database considers equal. A cursor of its part sees it.
func TestKeyKeepsItsShard(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.Statements("shard.case_insensitive_key")...)
		f := x.Add(rowfeed.FeedSpec{Name: "n", Table: "n", DataShards: 1024})
		x.Exec("INSERT INTO n VALUES ('fred', 1)")
		x.Publish(f)
		first, cursor := x.Part(f, rowfeed.Shards{}, "0", 10)
		if len(first) != 1 || first[0].Shard != feedtype.ShardOf(first[0].Key, 1024) {
			x.Fatalf("%v", first)
		}
		for _, step := range []struct{ sql, want string }{
			{"UPDATE n SET k = 'FRED'", `upsert {"k":"FRED","v":1}`},
			{"DELETE FROM n", `delete {"k":"fred"}`},
			{"INSERT INTO n VALUES ('FrEd', 2)", `upsert {"k":"FrEd","v":2}`},
		} {
			x.Exec(step.sql)
			x.Publish(f)
			entries, next := x.Part(f, rowfeed.One(first[0].Shard), cursor, 10)
			if len(entries) != 1 || suite.Line(entries[0]) != step.want ||
				string(entries[0].Key.AppendJSON(nil)) != `{"k":"fred"}` {
				x.Fatalf("%s: %v, want %s under the key fred in shard %d", step.sql, entries, step.want, first[0].Shard)
			}
			cursor = next
		}
		x.WantSound(f)
	})
}

// TestShardColumnGivesTheShard (M18): an integer column of the key gives the data shard, also if it is negative or
// unsigned. Rows with the same value are in one shard.
func TestShardColumnGivesTheShard(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE items (n INT NOT NULL, o BIGINT NOT NULL, PRIMARY KEY (n, o))")
		f := x.Add(rowfeed.FeedSpec{Name: "items", Table: "items", DataShards: 40, ShardColumn: "o"})
		want := map[int64]int{
			0:                    0,
			39:                   39,
			40:                   0,
			-1:                   39,
			-40:                  0,
			-41:                  39,
			9223372036854775807:  7,
			-9223372036854775808: 32,
		}
		for o := range want {
			x.Exec(fmt.Sprintf("INSERT INTO items VALUES (1, %d), (2, %d)", o, o))
		}
		x.Publish(f)
		entries, _ := x.Part(f, rowfeed.Shards{}, "", 100)
		if len(entries) != 2*len(want) {
			x.Fatalf("%d entries", len(entries))
		}
		for _, e := range entries {
			if o, _ := e.Key.Get("o"); e.Shard != want[o.(int64)] {
				x.Errorf("%s is in shard %d", e.Key.AppendJSON(nil), e.Shard)
			}
		}
		if entries, _ := x.Part(f, rowfeed.One(39), "", 100); len(entries) != 6 {
			x.Errorf("shard 39 has %d entries", len(entries))
		}
	})
}

// TestMissingBucketIndexStopsOnlyParts (M19, M25): a feed without its bucket index works for publishers and for readers
// of the whole feed, and its publisher is ready. Readers of parts are told what is missing and what to do, if their
// part cannot be read without it. Check and status report it, and upgrade mends it.
func TestMissingBucketIndexStopsOnlyParts(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: 64})
		x.InsertKV(0, 50)
		x.Publish(f)
		want, _ := x.Part(f, rowfeed.Part(1, 3), "", 7)
		inOrder := func(when string, order bool) {
			x.Helper()
			if problems, err := f.Admin().Verify(x.Ctx); err != nil || len(problems) > 0 {
				x.Fatalf("%s: %v, %v", when, problems, err)
			}
			problem, err := f.Admin().VerifyParts(x.Ctx)
			if err != nil || (problem == "") != order || !order && !strings.Contains(problem, "no index by bucket") {
				x.Fatalf("%s: %q, %v", when, problem, err)
			}
			findings, err := f.Admin().Check(x.Ctx)
			if err != nil || (len(findings) == 0) != order || !order && findings[0].Rule != "index-by-bucket" {
				x.Fatalf("%s: %v, %v", when, findings, err)
			}
			status, err := f.Admin().Status(x.Ctx)
			if err != nil || (len(status.Problems) == 0) != order {
				x.Fatalf("%s: %v, %v", when, status, err)
			}
		}
		inOrder("new", true)
		x.Exec(x.Text("shard.drop_bucket_index"))
		inOrder("without the index", false)
		page, err := f.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.Part(1, 3), Limit: 7})
		switch {
		case !x.Has.PartsNeedIndex:
			wantSame(x, "the beginning of the part", page.Entries, want[:len(page.Entries)])
		case !suite.IsCode(err, rowfeed.Refused) || !strings.Contains(err.Error(), "no index by bucket") ||
			!strings.Contains(err.Error(), "feed upgrade kv"):
			x.Errorf("the error of a part: %v", err)
		}
		if page := x.Fetch(f, "", 1000); len(page.Entries) != 50 {
			x.Errorf("the whole feed has %d entries", len(page.Entries))
		}
		trouble := make(chan error, 100)
		tells := &rowfeed.Observer{Trouble: func(ev rowfeed.TroubleEvent) { trouble <- ev.Err }}
		other := x.Tapped(testdb.Hooks{}, &rowfeed.Config{PublisherLease: rowfeed.NoLease, Observer: tells})
		ctx, stop := context.WithTimeout(x.Ctx, suite.Patience())
		x.Cleanup(stop)
		ended := make(chan error, 1)
		go func() { ended <- other.RunPublisher(ctx) }()
		select {
		case err := <-trouble:
			if !strings.Contains(err.Error(), "no index by bucket") ||
				!strings.Contains(err.Error(), "feed upgrade kv") || strings.Contains(err.Error(), "uncaptured") {
				x.Errorf("the trouble of the publisher: %v", err)
			}
		case <-ctx.Done():
			x.Error("the publisher reports no trouble")
		}
		stop()
		if err := <-ended; err != nil {
			x.Error(err)
		}
		if problems := other.Problems(); len(problems) > 0 {
			x.Errorf("the publisher is not ready: %v", problems)
		}
		if mended, err := f.Admin().Upgrade(x.Ctx); err != nil || len(mended) != 1 {
			x.Fatalf("%v, %v", mended, err)
		}
		inOrder("upgraded", true)
		got, _ := x.Part(f, rowfeed.Part(1, 3), "", 7)
		wantSame(x, "the part", got, want)
	})
}
