package main

import (
	"strings"
	"testing"
)

// TestUpgradeDataShards: the command says what it means before it begins, and what it has
// done; the same number again changes nothing; what cannot be is refused with a way out.
func TestUpgradeDataShards(t *testing.T) {
	s := withFeed(t)
	s.ok("publish --once")
	out := s.ok("feed upgrade kv --data-shards 8")
	for _, want := range []string{"kv: from 1 to 8 data shards, a new generation: cursors of before are refused", "kv: 8 data shards, generation ", "consumers start at the beginning"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in: %s", want, out)
		}
	}
	s.prints("feed upgrade kv --data-shards 8", "kv: in order, nothing changed\n")
	s.prints("feed upgrade kv", "kv: in order, nothing changed\n")
	if out := s.fails(exitFailed, "fetch kv --after 1"); !strings.Contains(out, "generation") {
		t.Errorf("an old cursor: %s", out)
	}
	if out := s.ok("fetch kv --shard 0 --shard-count 1"); !strings.Contains(out, `"more":false`) {
		t.Errorf("a part: %s", out)
	}
	for line, want := range map[string]string{
		"feed upgrade kv --data-shards 0":     "--data-shards 0 is not between 1 and 65536",
		"feed upgrade kv --data-shards 65537": "not between",
		"feed upgrade kv --shard-column id":   "feed drop kv",
	} {
		if out := s.fails(exitUsage, line); !strings.Contains(out, want) || !strings.Contains(out, "Next:") {
			t.Errorf("%s: %s", line, out)
		}
	}
	// Killed in the midst: plain upgrade says how to go on, another number is refused.
	s.sql("UPDATE rowfeed_feeds SET state = 'sharding', fill_after = NULL")
	if out := s.ok("feed upgrade kv"); !strings.Contains(out, "`rowfeed feed upgrade kv --data-shards 8` goes on") {
		t.Errorf("half done: %s", out)
	}
	if out := s.fails(exitFailed, "feed upgrade kv --data-shards 4"); !strings.Contains(out, "among 8") {
		t.Errorf("another number: %s", out)
	}
	if out := s.fails(exitFailed, "fetch kv --shard 1"); !strings.Contains(out, "given their shards among 8") || !strings.Contains(out, "Next:") {
		t.Errorf("a part of a feed half done: %s", out)
	}
	if out := s.run("status", "kv").out; !strings.Contains(out, "feed upgrade kv --data-shards 8") {
		t.Errorf("status: %s", out)
	}
	s.ok("fetch kv")
	s.ok("feed upgrade kv --data-shards 8")
	s.ok("fetch kv --shard 1")
}
