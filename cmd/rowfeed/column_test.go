package main

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
)

// TestColumnFeedFromAddToDrop: each command works on a feed whose rows hold their positions. Rows are deleted by the
// statements that `feed show` prints.
func TestColumnFeedFromAddToDrop(t *testing.T) {
	s := newShell(t)
	s.sql(createKV, "INSERT INTO kv VALUES (1, '', 'fred', 'jim'), (2, 'a', 'b', NULL)")
	before := s.schema()
	s.ok("init")
	s.prints("feed add kv --table kv --capture column",
		"kv: follows table kv by key (id), capture column, 0 rows recorded by this call\n")
	s.prints("feed add kv --table kv --capture column", "kv: is a feed of table kv already, nothing changed\n")
	s.prints("publish --once kv", "kv: 2 keys published, head 2.9k3f2c7adq\n")
	s.prints("fetch kv",
		`{"position":"1","shard":0,"op":"upsert","key":{"id":1},"row":{"id":1,"ns":"","k":"fred","v":"jim"}}
{"position":"2","shard":0,"op":"upsert","key":{"id":2},"row":{"id":2,"ns":"a","k":"b","v":null}}
{"cursor":"2.9k3f2c7adq","more":false,"base64":[]}
`)
	var shown struct {
		Capture string   `json:"capture"`
		Delete  []string `json:"delete"`
	}
	s.decode(s.ok("feed show kv --json"), &shown)
	if shown.Capture != "column" || len(shown.Delete) != 2 || !strings.Contains(s.ok("feed show kv"), shown.Delete[0]) {
		t.Fatalf("feed show: %+v", shown)
	}
	for _, statement := range shown.Delete {
		s.sql(strings.ReplaceAll(statement, "?", "1"))
	}
	s.sql("UPDATE kv SET v = 'x', feed_sync_id = NULL WHERE id = 2")
	s.prints("republish kv --key 2", "kv: 1 key to be republished; a publisher will give them new positions\n")
	s.ok("publish --once kv")
	s.prints("fetch kv --after 2", `{"position":"3","shard":0,"op":"delete","key":{"id":1}}
{"position":"5","shard":0,"op":"upsert","key":{"id":2},"row":{"id":2,"ns":"a","k":"b","v":"x"}}
{"cursor":"5.9k3f2c7adq","more":false,"base64":[]}
`)
	s.prints("check kv", "kv: in order\n")
	s.sql("UPDATE kv SET feed_sync_id = 99 WHERE id = 2")
	if r := s.run("check", "kv"); r.code != cli.ExitFailed || !strings.Contains(r.out, "above the sequence") {
		t.Errorf("check: %+v", r)
	}
	s.prints("repair kv", "kv: 1 change recorded; a publisher will publish them\n")
	s.ok("publish --once kv")
	s.prints("check kv", "kv: in order\n")
	s.prints("feed upgrade kv", "kv: in order, nothing changed\n")
	s.prints("feed drop kv", "kv: dropped\n")
	s.ok("migrate down")
	if after := s.schema(); after != before {
		t.Errorf("the schema has changed\nbefore: %s\n after: %s", before, after)
	}
}

// TestPrintedScriptMakesColumnFeed: the script of --print makes a feed whose rows hold their positions.
func TestPrintedScriptMakesColumnFeed(t *testing.T) {
	s := newShell(t)
	out := s.ok("feed add kv --table kv --key id:integer --capture column --print --db sqlite:absent.db")
	if strings.Contains(out, "TRIGGER") {
		t.Errorf("--print: %s", out)
	}
	s.sql(createKV, "INSERT INTO kv VALUES (1, '', 'fred', 'jim')")
	s.ok("init")
	s.sql(out)
	s.prints("publish --once", "kv: 1 key published, head 1.9k3f2c7adq\n")
	s.prints("check kv", "kv: in order\n")
	s.prints("feed drop kv", "kv: dropped\n")
	for _, db := range []string{"postgres:", "mysql://u@h/d"} {
		out := s.ok("feed add kv --table kv --key id:bigint --capture column --print --db " + db)
		if !strings.Contains(out, "feed_sync_id bigint") && !strings.Contains(out, "`feed_sync_id` bigint") {
			t.Errorf("--print for %s: %s", db, out)
		}
	}
	if got := s.fails(
		cli.ExitUsage, "feed add kv --table kv --key id:bigint --capture column --adopt --print --db postgres:",
	); !strings.Contains(got, "server") {
		t.Errorf("--print --adopt says %q", got)
	}
}

// TestLaterAdoptionIsRefused: a feed adopts positions only when it is added. A later request is refused, not ignored.
func TestLaterAdoptionIsRefused(t *testing.T) {
	s := newShell(t)
	s.sql("CREATE TABLE own (id INTEGER PRIMARY KEY, feed_sync_id INTEGER)",
		"CREATE TABLE sequences (name TEXT, value INTEGER)", "INSERT INTO sequences VALUES ('own', 9)")
	s.ok("init")
	add := "feed add own --table own --capture column --adopt"
	if r := s.run(strings.Fields(add + " --fence")...); r.code != cli.ExitDone ||
		!strings.Contains(r.err, "will add to table own: a column shard, indexes on feed_sync_id, two "+
			"triggers. It will write into its rows: feed_sync_id, where it is NULL\n") {
		t.Errorf("feed add --adopt: %q", r.err)
	}
	if got := s.fails(
		cli.ExitFailed, "feed add own --table own --capture column --adopt --adopt-sequence sequences",
	); !strings.Contains(got, `adopt-sequence is "", not "sequences"`) {
		t.Errorf("feed add --adopt of an existing feed says %q", got)
	}
}

// TestOwnPositionsAreNamed: a feed that does not keep the positions of a table with feed_sync_id gives new ones. The
// command says that readers cannot continue from the former ones, and how to keep them.
func TestOwnPositionsAreNamed(t *testing.T) {
	s := newShell(t)
	s.sql("CREATE TABLE own (id INTEGER PRIMARY KEY, feed_sync_id INTEGER)", createKV)
	s.ok("init")
	for line, want := range map[string]bool{
		"feed add own --table own":                                true,
		"feed add kv --table kv":                                  false,
		"feed add kept --table own --capture column --adopt":      false,
		"feed add events --table own --mode outbox --capture app": false,
	} {
		r := s.run(strings.Fields(line)...)
		if r.code != cli.ExitDone || strings.Contains(r.err, "--capture column --adopt") != want {
			t.Errorf("%s: %+v", line, r)
		}
	}
}
