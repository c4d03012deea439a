package feedhttp_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/terms"
)

// sharded has the feed kv with five rows in the data shards 7, 5, 3, 0 and 6 of eight.
func sharded(t *testing.T) (fixture, *rowfeed.Feed) {
	t.Helper()
	x := newFixture(t, `CREATE TABLE kv (id INTEGER PRIMARY KEY)`, `INSERT INTO kv VALUES (1), (2), (3), (4), (5)`)
	f, err := x.db.AddFeed(t.Context(), rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: 8}, nil)
	if err != nil {
		t.Fatal(err)
	}
	x.publish(t, f)
	return x, f
}

// TestFetchReturnsOnlyRequestedShards (M20, M21): pages have the entries of the requested data shard or part.
func TestFetchReturnsOnlyRequestedShards(t *testing.T) {
	x, _ := sharded(t)
	const (
		in7 = `{"position":"1","shard":7,"op":"upsert","key":{"id":1},"row":{"id":1}}`
		in5 = `{"position":"2","shard":5,"op":"upsert","key":{"id":2},"row":{"id":2}}`
		in3 = `{"position":"3","shard":3,"op":"upsert","key":{"id":3},"row":{"id":3}}`
		in0 = `{"position":"4","shard":0,"op":"upsert","key":{"id":4},"row":{"id":4}}`
		in6 = `{"position":"5","shard":6,"op":"upsert","key":{"id":5},"row":{"id":5}}`
	)
	page := func(cursor, part, more string, entries ...string) string {
		return `{"feed":"kv","entries":[` + strings.Join(entries, ",") + `],"cursor":"` + cursor +
			`.9k3f2c7adq` + part + `","more":` + more + `,"base64":[]}` + "\n"
	}
	for _, c := range []struct{ query, want string }{
		{"shard=7", page("5", "_7-8-8", "false", in7)},
		{"after=1&shard=7", page("5", "_7-8-8", "false")},
		{"shard=1", page("5", "_1-2-8", "false")},
		{"after=0&shard=0&shard_count=2", page("5", "_0-4-8", "false", in3, in0)},
		{"after=0&limit=2&shard=1&shard_count=2", page("2@5", "_4-8-8", "true", in7, in5)},
		{"after=2&limit=2&shard=1&shard_count=2", page("5", "_4-8-8", "false", in6)},
		{"shard=2&shard_count=3", page("5", "_5-8-8", "false", in7, in5, in6)},
		{"shard=0&shard_count=1", page("5", "", "false", in7, in5, in3, in0, in6)},
	} {
		if diff := cmp.Diff(c.want, terms.Fix(ask(t, x.server, "GET", "/_feeds/fetch/kv?"+c.query).body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.query, diff)
		}
	}
	if got := ask(t, x.server, "GET", "/_feeds/kv"); !strings.HasSuffix(got.body, `"base64":[],"data_shards":8}`+"\n") {
		t.Errorf("info: %s", got.body)
	}
}

// TestClientReadsOnlyRequestedShards (M20): a Client reads shards and parts as the feed returns them, also with wait.
// It refuses shards that no feed can have.
func TestClientReadsOnlyRequestedShards(t *testing.T) {
	x, f := sharded(t)
	shards := []rowfeed.Shards{{}, rowfeed.Part(0, 1), rowfeed.Part(1, 2), rowfeed.Part(2, 7)}
	for i := range 8 {
		shards = append(shards, rowfeed.One(i))
	}
	for _, s := range shards {
		for _, after := range []rowfeed.Cursor{"", "3", rowfeed.Now} {
			compare(t, f, x.client("kv"), rowfeed.Request{After: after, Limit: 2, Shards: s})
		}
	}
	compare(t, f, x.client("kv"), rowfeed.Request{After: "5", Shards: rowfeed.One(3), Wait: time.Millisecond})
	for _, s := range []rowfeed.Shards{rowfeed.One(-1), rowfeed.One(8), rowfeed.One(rowfeed.MaxDataShards),
		rowfeed.Part(1, 1), rowfeed.Part(-1, 2),
		rowfeed.Part(3, 0), rowfeed.Part(0, -1), rowfeed.Part(0, rowfeed.MaxDataShards+1), rowfeed.Part(2, 9)} {
		for _, wait := range []time.Duration{0, time.Minute} {
			req := rowfeed.Request{After: "5", Shards: s, Wait: wait}
			_, direct := f.Fetch(t.Context(), req)
			_, remote := x.client("kv").Fetch(t.Context(), req)
			if param(direct) == "" || param(direct) != param(remote) {
				t.Errorf("%s: %v, through HTTP %v", s, direct, remote)
			}
		}
	}
}

// param is the parameter of a problem.
func param(err error) string {
	var e *rowfeed.Error
	if !errors.As(err, &e) || e.Code != rowfeed.InvalidRequest {
		return ""
	}
	return e.Param
}

// TestStreamHasOnlyRequestedShards (M20): a stream of a part has only that part. Its ids pass the entries of other
// parts.
func TestStreamHasOnlyRequestedShards(t *testing.T) {
	x, f := sharded(t)
	e := listen(t, x.server, "/_feeds/stream/kv?shard=3&shard_count=4&after=0")
	e.want(t, retry,
		`id: 1@5.9k3f2c7adq_6-8-8|data: {"position":"1","shard":7,"op":"upsert","key":{"id":1},"row":{"id":1}}`,
		`id: 5.9k3f2c7adq_6-8-8|data: {"position":"5","shard":6,"op":"upsert","key":{"id":5},"row":{"id":5}}`)
	x.exec(t, `UPDATE kv SET id = id WHERE id IN (1, 2)`)
	x.publish(t, f)
	var got []string
	for len(got) == 0 || !strings.Contains(got[len(got)-1], `"position"`) {
		got = append(got, e.next(t))
	}
	if !strings.Contains(got[len(got)-1], `"position":"6","shard":7`) ||
		slices.ContainsFunc(got[:len(got)-1], func(s string) bool { return strings.Contains(s, "data:") }) {
		t.Errorf("then %q", got)
	}
}
