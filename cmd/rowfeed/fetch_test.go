package main

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/terms"
)

// TestConsistentFetchPublishesFirst: `fetch --consistent` publishes the changes that were committed before it.
func TestConsistentFetchPublishesFirst(t *testing.T) {
	s := withFeed(t)
	s.sql("DELETE FROM kv WHERE id = 2")
	if out := s.ok("fetch kv --after 3"); !strings.HasPrefix(terms.Fix(out), `{"cursor":"3.9k3f2c7adq","more":false`) {
		t.Errorf("not yet published: %s", out)
	}
	want := `{"position":"4","shard":0,"op":"delete","key":{"id":2}}` + "\n" +
		`{"cursor":"4.9k3f2c7adq","more":false,"base64":[]}` + "\n"
	if out := s.ok("fetch kv --after 3 --consistent --wait 1m"); terms.Fix(out) != want {
		t.Errorf("consistent: %s", out)
	}
}

// TestFetchWaitsForEntry: `fetch --wait` returns when there is an entry, or after the given time.
func TestFetchWaitsForEntry(t *testing.T) {
	s := withFeed(t)
	if out := terms.Fix(s.ok("fetch kv --after 3 --wait 10ms")); !strings.HasPrefix(out,
		`{"cursor":"3.9k3f2c7adq","more":false`) {
		t.Errorf("nothing came: %s", out)
	}
	s.ok("republish kv --key 1")
	got := make(chan string, 1)
	go func() { got <- s.ok("fetch kv --after 3 --wait 1m") }()
	s.ok("publish --once")
	if out := <-got; !strings.HasPrefix(out, `{"position":"4","shard":0,"op":"upsert","key":{"id":1}`) {
		t.Errorf("waited for: %s", out)
	}
}
