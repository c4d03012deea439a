package watch

import (
	"slices"
	"testing"

	"github.com/rowfeed/rowfeed/dialect"
)

// TestAmong: few shards are looked up, of all feeds in one statement, and of many all are read.
func TestAmong(t *testing.T) {
	b := dialect.NewBuilder(marks{})
	got := among(b, []Key{
		{Feed: "b", OfShard: true, Shard: 1}, {Feed: "a", OfShard: true, Shard: -7}, {Feed: "b", OfShard: true, Shard: 2},
		{Feed: "c", OfShard: true, Shard: 3}, EveryShard("c"), {Feed: "c", OfShard: true, Shard: 4}})
	if want := " WHERE h.feed = ? AND h.shard IN (?) OR h.feed = ? AND h.shard IN (?, ?) OR h.feed = ?"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if want := []any{"a", -7, "b", 1, 2, "c"}; !slices.Equal(b.Args(), want) {
		t.Errorf("%v, want %v", b.Args(), want)
	}
	if got := among(b, make([]Key, amongShards+1)); got != "" {
		t.Error(got)
	}
}

// TestTogether: all shards of a feed stand together where all were read, and only there.
func TestTogether(t *testing.T) {
	a, b := Key{Feed: "a", OfShard: true, Shard: 1}, Key{Feed: "b", OfShard: true, Shard: 1}
	all := together(map[Key]Standing{a: {Generation: 1}, b: {Generation: 1}}, []Key{EveryShard("a"), b})
	if _, ok := all[EveryShard("a")]; !ok {
		t.Error("who waits for all shards is told nothing")
	}
	if _, ok := all[EveryShard("b")]; ok {
		t.Error("one shard is taken for all")
	}
}

// marks is as much of a spelling as parameters need.
type marks struct{ dialect.Spelling }

func (marks) Placeholder(int) string { return "?" }

func (marks) Inline(any) (string, bool) { return "", false }
