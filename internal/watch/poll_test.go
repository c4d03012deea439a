package watch

import (
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/internal/store"
)

// TestPollNamesFewShards: a poll names few shards, of all feeds in one statement, and reads all shards if they are
// many.
func TestPollNamesFewShards(t *testing.T) {
	l := &Poller{Store: &store.Store{Dialect: sqlite.New()}}
	b := dialect.NewBuilder(marks)
	_, got, _ := strings.Cut(l.ofShards([]Key{
		{Feed: "b", OfShard: true, Shard: 1}, {Feed: "a", OfShard: true, Shard: -7},
		{Feed: "b", OfShard: true, Shard: 2},
		{Feed: "c", OfShard: true, Shard: 3}, EveryShard("c"), {Feed: "c", OfShard: true, Shard: 4}})(b), " WHERE ")
	if want := "h.feed = ? AND h.shard IN (?) OR h.feed = ? AND h.shard IN (?, ?) OR h.feed = ?"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if want := []any{"a", -7, "b", 1, 2, "c"}; !slices.Equal(b.Args(), want) {
		t.Errorf("%v, want %v", b.Args(), want)
	}
	if got := l.ofShards(make([]Key, maxShardsNamed+1))(b); strings.Contains(got, "WHERE") {
		t.Error(got)
	}
}

// TestDigestNeedsAllShardsOfItsFeed: a feed gets a digest of its shards only if all of them were read.
func TestDigestNeedsAllShardsOfItsFeed(t *testing.T) {
	a, b := Key{Feed: "a", OfShard: true, Shard: 1}, Key{Feed: "b", OfShard: true, Shard: 1}
	all := addDigests(map[Key]Watermark{a: {Generation: 1}, b: {Generation: 1}}, []Key{EveryShard("a"), b})
	if _, ok := all[EveryShard("a")]; !ok {
		t.Error("a reader of all shards gets no digest")
	}
	if _, ok := all[EveryShard("b")]; ok {
		t.Error("one shard of a feed got the digest of all")
	}
}

// marks spells parameters as question marks.
var marks = &dialect.Syntax{
	Placeholder: func(int) string { return "?" },
	Inline:      func(any) (string, bool) { return "", false },
}
