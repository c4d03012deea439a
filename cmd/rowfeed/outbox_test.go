package main

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/internal/test/terms"
)

// TestPublishOnceCoversFeedsOfAllStates: a feed that has several shards, or is being filled, does not prevent the
// publishing of other feeds.
func TestPublishOnceCoversFeedsOfAllStates(t *testing.T) {
	s := newShell(t)
	s.sql("CREATE TABLE ev (id INTEGER PRIMARY KEY, shard INTEGER NOT NULL)",
		"CREATE TABLE fi (id INTEGER PRIMARY KEY)", "CREATE TABLE kv (id INTEGER PRIMARY KEY)")
	s.ok("init")
	s.ok("feed add ev --table ev --mode outbox --capture trigger --shard-column shard")
	s.ok("feed add fi --table fi --mode outbox --capture trigger")
	s.ok("feed add kv --table kv")
	s.prints("publish --once ev", "ev: 0 keys published, head 0\n")
	s.sql("INSERT INTO ev VALUES (1, 0), (2, -5), (3, 77)", "INSERT INTO fi VALUES (1)",
		"INSERT INTO kv VALUES (1), (2)", "UPDATE rowfeed_feeds SET state = 'filling' WHERE name = 'fi'")
	if out := s.ok("publish --once"); !strings.HasPrefix(out,
		"ev: 3 keys published, 3 shards\nfi: 1 key published, head 01") ||
		!strings.HasSuffix(terms.Fix(out), "\nkv: 2 keys published, head 2.9k3f2c7adq\n") {
		t.Errorf("published:\n%s", out)
	}
}

// TestOutboxFeedFromAddToDrop (M63): each command works on a feed with an outbox.
func TestOutboxFeedFromAddToDrop(t *testing.T) {
	s := newShell(t)
	s.sql("CREATE TABLE ev (id INTEGER PRIMARY KEY, at TEXT)",
		"INSERT INTO ev VALUES (1, '2023-01-02T15:04:05Z'), (2, '2023-01-02T15:04:06Z')")
	before := s.schema()
	s.ok("init")
	const add = "feed add ev --table ev --mode outbox --capture trigger --time-column at"
	s.prints(add,
		"ev: follows table ev by key (id), mode outbox, capture trigger, 2 rows placed behind the head by this call\n")
	s.prints(add, "ev: is a feed of table ev already, nothing changed\n")
	s.prints("fetch ev",
		`{"position":"01GNSG5PM8000G0000000G0001","shard":0,"op":"upsert","key":{"id":1},`+
			`"row":{"id":1,"at":"2023-01-02T15:04:05Z"}}`+"\n"+
			`{"position":"01GNSG5QKG000G0000000G0002","shard":0,"op":"upsert","key":{"id":2},`+
			`"row":{"id":2,"at":"2023-01-02T15:04:06Z"}}`+"\n"+
			`{"cursor":"01GNSG5QKG000G0000000G0002","more":false,"base64":[]}`+"\n")
	s.sql("INSERT INTO ev VALUES (3, NULL)", "INSERT INTO ev VALUES (4, NULL)",
		"DELETE FROM rowfeed_outbox_ev WHERE id = 4")
	if r := s.run("check", "ev"); r.code != cli.ExitFailed ||
		!strings.Contains(r.out+r.err, "neither a place nor a record") {
		t.Errorf("check: %+v", r)
	}
	if r := s.run("fetch", "ev", "--after", "01GNSG5QKG000G0000000G0002"); !strings.Contains(r.out, `"id":3`) ||
		strings.Contains(r.out, `"id":4`) {
		t.Errorf("fetch: %+v", r)
	}
	s.prints("feed backfill ev", "ev: 1 row placed behind the head\n")
	s.prints("feed backfill ev --json", "{\n  \"feed\": \"ev\",\n  \"rows\": 0\n}\n")
	s.sql("INSERT INTO ev VALUES (5, NULL)", "DELETE FROM rowfeed_outbox_ev WHERE id = 5")
	for _, command := range []string{
		"repair ev", "publish --once ev", "check ev", "feed list", "feed show ev", "status ev", "feed upgrade ev",
	} {
		s.ok(command)
	}
	for _, command := range []string{"republish ev --key 1", "feed upgrade ev --data-shards 2"} {
		if r := s.run(strings.Fields(command)...); r.code != cli.ExitFailed ||
			!strings.Contains(r.err, "rows are only appended") {
			t.Errorf("%s: %+v", command, r)
		}
	}
	// Check notes what it cannot examine, and does not fail.
	s.sql("UPDATE rowfeed_shards SET below_high = 1")
	if out := s.ok("check ev"); !strings.Contains(out, "note: row-has-place") {
		t.Errorf("check: %s", out)
	}
	if out := s.ok("check ev --json"); !strings.Contains(out, `"note": true`) {
		t.Errorf("check: %s", out)
	}
	if r := s.run("repair", "ev"); r.code != cli.ExitFailed ||
		!strings.Contains(r.err, "INSERT INTO rowfeed_outbox_ev (shard, id) SELECT … FROM ev") {
		t.Errorf("repair: %+v", r)
	}
	s.prints("feed drop ev", "ev: dropped\n")
	s.prints("feed drop ev", "ev: is dropped already, nothing changed\n")
	s.ok("migrate down")
	// SQLite makes sqlite_sequence with the first AUTOINCREMENT. That table cannot be dropped.
	if after := strings.ReplaceAll(s.schema(), "table sqlite_sequence: CREATE TABLE sqlite_sequence(name,seq)\n",
		""); after != before {
		t.Errorf("the schema has changed\nbefore: %s\n after: %s", before, after)
	}
}
