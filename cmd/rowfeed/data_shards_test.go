package main

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
)

// TestUpgradeChangesDataShards (M18): the command says what it does before and after. The same number again changes
// nothing, and an impossible one is refused with a next step.
func TestUpgradeChangesDataShards(t *testing.T) {
	s := withFeed(t)
	s.ok("publish --once")
	out := s.ok("feed upgrade kv --data-shards 8")
	want := "kv: from 1 to 8 data shards: parts are not served until this is done\nkv: 8 data shards\n"
	if out != want {
		t.Errorf("printed %q, want %q", out, want)
	}
	s.prints("feed upgrade kv --data-shards 8", "kv: in order, nothing changed\n")
	s.prints("feed upgrade kv", "kv: in order, nothing changed\n")
	s.ok("fetch kv --after 1")
	if out := s.ok("fetch kv --shard 0 --shard-count 1"); !strings.Contains(out, `"more":false`) {
		t.Errorf("a part: %s", out)
	}
	for line, want := range map[string]string{
		"feed upgrade kv --data-shards 0":     "--data-shards 0 is not between 1 and 65536",
		"feed upgrade kv --data-shards 65537": "not between",
		"feed upgrade kv --shard-column id":   "feed drop kv",
	} {
		if out := s.fails(cli.ExitUsage, line); !strings.Contains(out, want) || !strings.Contains(out, "Next:") {
			t.Errorf("%s: %s", line, out)
		}
	}
	// A missing index by bucket is made again.
	s.sql("DROP INDEX rowfeed_kv_bucket")
	s.prints("feed upgrade kv", "kv: repaired: table rowfeed_positions_kv has no index by bucket: "+
		"parts of the feed cannot be read, or only slowly\n")
	// The upgrade was killed: `feed upgrade` alone says how to continue it, and another number is refused.
	s.sql("UPDATE rowfeed_feeds SET state = 'sharding', fill_after = NULL")
	if out := s.ok("feed upgrade kv"); !strings.Contains(out, "`rowfeed feed upgrade kv --data-shards 8` continues") {
		t.Errorf("a killed upgrade: %s", out)
	}
	if got := s.run("feed", "upgrade", "kv", "--data-shards", "4"); got.code != cli.ExitFailed ||
		!strings.Contains(got.err, "8 data shards") || got.out != "" {
		t.Errorf("another number: %+v", got)
	}
	if out := s.fails(cli.ExitFailed, "fetch kv --shard 1"); !strings.Contains(out, "Next:") ||
		!strings.Contains(out, "are being assigned to 8 data shards") {
		t.Errorf("a part of a feed whose upgrade was killed: %s", out)
	}
	if out := s.run("status", "kv").out; !strings.Contains(out, "feed upgrade kv --data-shards 8") {
		t.Errorf("status: %s", out)
	}
	if got := s.run("check", "kv"); got.code != cli.ExitFailed || !strings.Contains(got.out, "were not checked") {
		t.Errorf("check: %+v", got)
	}
	s.sql("DELETE FROM rowfeed_positions_kv WHERE id = 1")
	if got := s.run("repair", "kv"); got.code != cli.ExitFailed ||
		got.out != "kv: 1 change recorded; a publisher will publish them\n" ||
		!strings.Contains(got.err, "were not checked") {
		t.Errorf("repair: %+v", got)
	}
	s.ok("publish --once")
	s.ok("fetch kv")
	if out := s.ok("feed upgrade kv --data-shards 8"); !strings.Contains(out,
		"kv: continues to assign keys to 8 data shards\n") {
		t.Errorf("feed upgrade does not say that it continues: %s", out)
	}
	s.ok("fetch kv --shard 1")
	// `feed add` also continues the upgrade.
	s.sql("UPDATE rowfeed_feeds SET state = 'sharding', fill_after = NULL")
	s.prints("feed add kv --table kv --data-shards 8",
		"kv: follows table kv by key (id), capture trigger, 8 data shards, keys given their shards\n")
	s.ok("fetch kv --shard 1")
}

// TestAdoptionReportsKeptPositions: a feed that adopts positions records no rows. Without a fence, the command says
// what the former publisher can do.
func TestAdoptionReportsKeptPositions(t *testing.T) {
	s := newShell(t)
	s.sql("CREATE TABLE own (id INTEGER PRIMARY KEY, feed_sync_id INTEGER)", "INSERT INTO own VALUES (1, 1), (2, 2)")
	s.ok("init")
	add := "feed add own --table own --capture column --adopt "
	if r := s.run(strings.Fields(add + "--data-shards 8")...); r.out !=
		"own: follows table own by key (id), capture column, 8 data shards, keys given their shards\n" ||
		!strings.Contains(r.err, "stop the former publisher") || !strings.Contains(r.err, "feed upgrade own --fence") {
		t.Errorf("without a fence: %q, %q", r.out, r.err)
	}
	s.ok("feed drop own")
	if r := s.run(strings.Fields(add + "--data-shards 8 --fence --json")...); !strings.Contains(r.out, `"rows": 0`) ||
		!strings.HasSuffix(r.err, "cursors from before it was dropped stay valid\n") {
		t.Errorf("added again: %q, %q", r.out, r.err)
	}
}
