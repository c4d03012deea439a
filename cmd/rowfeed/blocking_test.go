package main

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
)

// TestBlockingFeedFromAddToDrop (M43, M63): each command works on a feed whose rows hold ULIDs. The rows are inserted
// as by writers that took their ULIDs with Feed.Lock.
func TestBlockingFeedFromAddToDrop(t *testing.T) {
	s := newShell(t)
	s.sql("CREATE TABLE ev (id INTEGER PRIMARY KEY, shard INTEGER NOT NULL, ulid BLOB NOT NULL)")
	before := s.schema()
	s.ok("init")
	const add = "feed add ev --table ev --mode blocking --position-column ulid --shard-column shard"
	if r := s.run(strings.Fields(add)...); r.code != cli.ExitFailed ||
		!strings.Contains(r.err, `Next: run CREATE UNIQUE INDEX "ev_feed" ON "ev" ("shard", "ulid")`) {
		t.Fatalf("without an index: %+v", r)
	}
	s.sql("CREATE UNIQUE INDEX ev_feed ON ev (shard, ulid)",
		"INSERT INTO ev VALUES (1, 0, x'01857302da88ffffbfffffffffffffff'), (2, 0, "+
			"x'01857302da88ffffc000000000000063')")
	s.prints(add, "ev: follows table ev by key (id), mode blocking\n")
	s.prints(add, "ev: is a feed of table ev already, nothing changed\n")
	s.prints("fetch ev --limit 1",
		`{"position":"01GNSG5PM8ZZZVZZZZZZZZZZZZ","shard":0,"op":"upsert","key":{"id":1},`+
			`"row":{"id":1,"shard":0,"ulid":"AYVzAtqI//+//////////w=="}}`+"\n"+
			`{"cursor":"01GNSG5PM8ZZZVZZZZZZZZZZZZ@01GNSG5PM8ZZZW000000000033","more":true,"base64":["ulid"]}`+"\n")
	s.prints("fetch ev --after 01GNSG5PM8ZZZVZZZZZZZZZZZZ --shard 0",
		`{"position":"01GNSG5PM8ZZZW000000000033","shard":0,"op":"upsert","key":{"id":2},`+
			`"row":{"id":2,"shard":0,"ulid":"AYVzAtqI///AAAAAAAAAYw=="}}`+"\n"+
			`{"cursor":"01GNSG5PM8ZZZW000000000033","more":false,"base64":["ulid"]}`+"\n")
	s.prints("fetch ev --shard=-5", "{\"cursor\":\"\",\"more\":false,\"base64\":[\"ulid\"]}\n")
	s.prints("check ev", "ev: in order\n")
	for _, command := range []string{"feed list", "feed show ev", "status ev", "publish --once ev", "feed upgrade ev"} {
		s.ok(command)
	}
	if r := s.ok("feed drop ev --dry-run"); !strings.Contains(r, "The ULIDs stay in the table's rows.") ||
		strings.Contains(r, "positions are lost") {
		t.Errorf("feed drop --dry-run: %s", r)
	}
	if r := s.ok("feed show ev"); !strings.Contains(r, "1 shard by shard: 0") ||
		!strings.Contains(r, "position column") || strings.Contains(r, "DELETE") {
		t.Errorf("feed show:\n%s", r)
	}
	if r := s.ok("feed show ev --json"); !strings.Contains(r, `"shard_ids": [`) ||
		!strings.Contains(r, `"position_column": "ulid"`) || !strings.Contains(r, `"delete": []`) {
		t.Errorf("feed show:\n%s", r)
	}
	if r := s.ok("status ev"); !strings.Contains(r, "01GNSG5PM8ZZZW000000000033") || strings.Contains(r, "never") {
		t.Errorf("status:\n%s", r)
	}
	if r := s.run(strings.Fields("feed upgrade ev --data-shards 2")...); r.out != "" ||
		strings.Contains(r.err, "unsupported") {
		t.Errorf("feed upgrade --data-shards: %+v", r)
	}
	s.prints("feed add ev --table ev --mode blocking --position-column ULID --shard-column SHARD",
		"ev: is a feed of table ev already, nothing changed\n")
	for _, command := range []string{
		"republish ev --key 1", "repair ev", "feed upgrade ev --data-shards 2", "unpublish ev --key 1",
	} {
		if r := s.run(strings.Fields(command)...); r.code != cli.ExitFailed ||
			!strings.Contains(r.err, "rows are only appended") {
			t.Errorf("%s: %+v", command, r)
		}
	}
	s.sql("INSERT INTO ev VALUES (3, 7, x'01857302da88ffffbfffffffffffffff')",
		"INSERT INTO rowfeed_shards (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES ('ev', 7, "+
			"1672671845000, 109620228044972031, -4611686018427387903, '')")
	if r := s.ok("feed show ev"); !strings.Contains(r, "2 shards by shard: 0, 7") ||
		!strings.Contains(r, "see `rowfeed status ev`") {
		t.Errorf("feed show:\n%s", r)
	}
	lines := s.ok("relay ev --to stdout: --once --consumer out")
	if strings.Count(lines, "\n") != 3 || !strings.Contains(lines, `"shard":7,`) {
		t.Errorf("relay:\n%s", lines)
	}
	if r := s.ok("consumer list out -o wide"); !strings.Contains(r, "01GNSG5PM8ZZZVZZZZZZZZZZZZ") ||
		strings.Contains(r, "7 of 1") {
		t.Errorf("consumer list:\n%s", r)
	}
	s.prints("consumer pause out --feed ev --shard 7", "out of ev, shard 7: paused\n")
	s.prints("consumer seek out --feed ev --to now", "out of ev: set to now\n")
	s.prints("consumer reset out --feed ev --shard 0", "out of ev, shard 0: set back to the beginning\n")
	s.prints("consumer resume out", "out: resumed\n")
	if lines = s.ok("relay ev --to stdout: --once --consumer out"); strings.Count(lines, "\n") != 2 ||
		strings.Contains(lines, `"shard":7,`) {
		t.Errorf("relay again:\n%s", lines)
	}
	// A shard is any integer, also a negative one.
	s.sql("INSERT INTO ev VALUES (4, -5, x'01857302da88ffffbfffffffffffffff')",
		"INSERT INTO rowfeed_shards (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES ('ev', -5, "+
			"1672671845000, 109620228044972031, -4611686018427387903, '')")
	if lines = s.ok("relay ev --to stdout: --once --consumer out"); strings.Count(lines, "\n") != 1 ||
		!strings.Contains(lines, `"shard":-5,`) {
		t.Errorf("relay:\n%s", lines)
	}
	s.prints("consumer pause out --feed ev --shard=-5", "out of ev, shard -5: paused\n")
	s.prints("consumer seek out --feed ev --shard -5 --to now", "out of ev, shard -5: set to now\n")
	s.prints("consumer reset out --feed ev --shard=-5", "out of ev, shard -5: set back to the beginning\n")
	s.prints("consumer resume out --shard=-5", "out, shard -5: resumed\n")
	if r := s.ok("dead list out --shard=-5 --json"); !strings.Contains(r, `"letters": []`) {
		t.Errorf("dead letters: %s", r)
	}
	s.prints("feed drop ev", "ev: dropped\n")
	s.prints("feed drop ev", "ev: is dropped already, nothing changed\n")
	s.ok("migrate down")
	s.sql("DROP INDEX ev_feed")
	if after := s.schema(); after != before {
		t.Errorf("the schema has changed\nbefore: %s\n after: %s", before, after)
	}
}
