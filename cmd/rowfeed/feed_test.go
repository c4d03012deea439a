package main

import (
	"database/sql"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
)

// TestFeedFromAddToDrop: each command works on a feed with triggers, and afterwards the schema is as before.
func TestFeedFromAddToDrop(t *testing.T) {
	s := newShell(t)
	s.sql(createKV)
	before := s.schema()

	if out := s.ok("init"); !strings.HasPrefix(out, "sqlite:rowfeed.db: rowfeed's tables created (version ") {
		t.Errorf("init: %s", out)
	}
	s.prints("init", "sqlite:rowfeed.db: rowfeed's tables are there already, nothing changed\n")
	s.prints("feed list", "there are no feeds; `rowfeed feed add NAME --table T` makes one\n")
	s.sql("INSERT INTO kv VALUES (1, '', 'fred', 'jim')")
	s.prints("feed add kv --table kv",
		"kv: follows table kv by key (id), capture trigger, 1 row recorded by this call\n")
	s.prints("feed add kv --table kv", "kv: is a feed of table kv already, nothing changed\n")
	s.prints("feed add kv --table kv --json", `{
  "feed": "kv",
  "table": "kv",
  "key": [
    "id"
  ],
  "changed": false,
  "rows": 0
}
`)
	if got := s.fails(cli.ExitFailed, "feed add kv --table kv --columns k,v --tombstones 7d"); !strings.Contains(got,
		"columns is [], not [k v]; tombstones is 720h0m0s, not 168h0m0s") {
		t.Errorf("the message does not name the differences: %s", got)
	}
	s.sql("INSERT INTO kv VALUES (2, 'a', 'b', NULL), (3, 'a', 'c', x'00ff')", "UPDATE kv SET v = 'joe' WHERE id = 1")
	s.prints("publish --once", "kv: 3 keys published, head 3.9k3f2c7adq\n")
	s.prints("publish --once kv kv", "kv: 0 keys published, head 3.9k3f2c7adq\n")
	s.prints("fetch kv --limit 2",
		`{"position":"1","shard":0,"op":"upsert","key":{"id":2},"row":{"id":2,"ns":"a","k":"b","v":null}}
{"position":"2","shard":0,"op":"upsert","key":{"id":3},"row":{"id":3,"ns":"a","k":"c","v":{"$binary":"AP8="}}}
{"cursor":"2@3.9k3f2c7adq","more":true,"base64":[]}
`)
	s.prints("fetch kv --after 2@3",
		`{"position":"3","shard":0,"op":"upsert","key":{"id":1},"row":{"id":1,"ns":"","k":"fred","v":"joe"}}
{"cursor":"3.9k3f2c7adq","more":false,"base64":[]}
`)
	s.prints("fetch kv --after now", `{"cursor":"3.9k3f2c7adq","more":false,"base64":[]}`+"\n")
	if got := s.fails(cli.ExitFailed, "fetch kv --after 4"); !strings.Contains(got, "ahead") {
		t.Errorf("fetch ahead of the feed says %q", got)
	}

	s.prints("republish kv --key 2 --key 3", "kv: 2 keys to be republished; a publisher will give them new positions\n")
	s.prints("republish kv --key 77", "kv: 0 keys to be republished; a publisher will give them new positions; "+
		"1 key left out, without a row or a delete in the feed\n")
	s.prints("unpublish kv --key 77 --key 78", "kv: 0 keys to be hidden; a publisher will publish deletes of them; "+
		"2 keys left out, without a row or a delete in the feed\n")
	s.prints("unpublish kv --key 1", "kv: 1 key to be hidden; a publisher will publish deletes of them\n")
	s.sql("DELETE FROM kv WHERE id = 3")
	s.prints("publish --once kv", "kv: 3 keys published, head 6.9k3f2c7adq\n")
	s.prints("fetch kv --after 3",
		`{"position":"4","shard":0,"op":"upsert","key":{"id":2},"row":{"id":2,"ns":"a","k":"b","v":null}}
{"position":"5","shard":0,"op":"delete","key":{"id":1}}
{"position":"6","shard":0,"op":"delete","key":{"id":3}}
{"cursor":"6.9k3f2c7adq","more":false,"base64":[]}
`)
	if r := s.run("republish", "kv", "--where", "id < 2"); r.code != cli.ExitDone ||
		r.out != "kv: 1 key to be republished; a publisher will give them new positions\n" {
		t.Errorf("republish --where: %+v", r)
	}
	s.prints("republish kv --all --rate 100000/s",
		"kv: 2 keys to be republished; a publisher will give them new positions\n")
	s.ok("publish --once")

	var status struct {
		Head     int64 `json:"head"`
		Waiting  int64 `json:"changes_waiting"`
		Vanished *int64
		Problems []string `json:"problems"`
	}
	s.decode(s.ok("status kv --json"), &status)
	if status.Head != 8 || status.Waiting != 0 || status.Vanished == nil || *status.Vanished != 0 ||
		status.Problems == nil {
		t.Errorf("status --json: %+v", status)
	}
	var all []map[string]any
	s.decode(s.ok("status --json"), &all)
	if len(all) != 1 || all[0]["name"] != "kv" {
		t.Errorf("status --json of all feeds: %v", all)
	}
	s.prints("check kv", "kv: in order\n")
	s.prints("check kv --json", "[]\n")
	s.prints("repair kv", "kv: nothing to repair\n")
	s.prints("feed upgrade kv", "kv: in order, nothing changed\n")

	if got := s.fails(cli.ExitFailed, "migrate down"); !strings.Contains(got, "there are feeds: kv. Next: drop them") {
		t.Errorf("migrate down with a feed says %q", got)
	}
	s.prints("feed drop kv", "kv: dropped\n")
	s.prints("feed drop kv", "kv: is dropped already, nothing changed\n")
	s.prints("migrate down", "sqlite:rowfeed.db: rowfeed's tables removed\n")
	s.prints("migrate down", "sqlite:rowfeed.db: rowfeed's tables are not there, nothing changed\n")
	if after := s.schema(); after != before {
		t.Errorf("the schema has changed\nbefore: %s\n after: %s", before, after)
	}
}

func (s *shell) decode(text string, into any) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		s.t.Fatalf("%v in %s", err, text)
	}
}

// schema returns the tables, indexes and triggers of the database.
func (s *shell) schema() string {
	s.t.Helper()
	pool := s.pool()
	defer pool.Close()
	rows, err := pool.Query("SELECT type || ' ' || name, sql FROM sqlite_schema ORDER BY type, name")
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	var b strings.Builder
	for rows.Next() {
		var name string
		var text sql.NullString
		if err := rows.Scan(&name, &text); err != nil {
			s.t.Fatal(err)
		}
		b.WriteString(name + ": " + text.String + "\n")
	}
	return b.String()
}

// TestRepairCorrectsWhatCheckFinds: after the triggers were dropped, `check` finds the missed changes and `repair`
// records them.
func TestRepairCorrectsWhatCheckFinds(t *testing.T) {
	s := withFeed(t)
	pool := s.pool()
	triggers, err := pool.Query("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
	if err != nil {
		t.Fatal(err)
	}
	var drops []string
	for triggers.Next() {
		var name string
		if err := triggers.Scan(&name); err != nil {
			t.Fatal(err)
		}
		drops = append(drops, "DROP TRIGGER "+name)
	}
	pool.Close()
	if len(drops) == 0 {
		t.Fatal("there are no triggers to drop")
	}
	s.sql(append(drops, "INSERT INTO kv VALUES (7, 'a', 'seven', '')", "DELETE FROM kv WHERE id = 1")...)

	r := s.run("check", "kv")
	if r.code != cli.ExitFailed || !strings.Contains(r.out, `{"id":7}`) || !strings.Contains(r.out, `{"id":1}`) ||
		!strings.Contains(r.err, "rowfeed repair kv") {
		t.Errorf("check: %+v", r)
	}
	var findings []struct {
		Rule string         `json:"rule"`
		Key  map[string]int `json:"key"`
	}
	r = s.run("check", "kv", "--json")
	s.decode(r.out, &findings)
	if r.code != cli.ExitFailed || len(findings) < 3 {
		t.Errorf("check --json: %+v", r)
	}
	if out := s.ok("feed upgrade kv"); !strings.Contains(out, "repaired: ") {
		t.Errorf("feed upgrade: %s", out)
	}
	s.prints("repair kv", "kv: 2 changes recorded; a publisher will publish them\n")
	s.prints("publish --once", "kv: 2 keys published, head 5.9k3f2c7adq\n")
	s.prints("check kv", "kv: in order\n")
}

// TestFlagWinsOverVariableAndFile: the order is flag, environment variable, rowfeed.yaml.
func TestFlagWinsOverVariableAndFile(t *testing.T) {
	s := newShell(t)
	s.sql(createKV)
	if r := s.run("init", "--prefix", ""); r.code != cli.ExitDone {
		t.Fatalf("init without a prefix: %+v", r)
	}
	if !strings.Contains(s.schema(), "table sequences:") {
		t.Errorf("no table has a name without prefix: %s", s.schema())
	}
	writeFile(t, "rowfeed.yaml", "prefix: \"\"\n")
	s.ok("feed add kv --table kv")
	if r := s.run("status", "--prefix", "other_"); r.code != cli.ExitFailed || !strings.Contains(r.err, "other_feeds") {
		t.Errorf("the flag does not win over the file: %+v", r)
	}
	writeFile(t, "else.yaml", "db: sqlite:else.db\n")
	if out := s.ok("init --config else.yaml"); !strings.HasPrefix(out, "sqlite:else.db: ") {
		t.Errorf("--config: %s", out)
	}
	s.env["ROWFEED_DB"] = "sqlite:env.db"
	if out := s.ok("init --config else.yaml"); !strings.HasPrefix(out, "sqlite:env.db: ") {
		t.Errorf("ROWFEED_DB: %s", out)
	}
	if out := s.ok("init --config else.yaml --db sqlite:flag.db"); !strings.HasPrefix(out, "sqlite:flag.db: ") {
		t.Errorf("--db: %s", out)
	}
}

// TestPrintNeedsNoDatabase: --print needs no database, and its script makes the feed.
func TestPrintNeedsNoDatabase(t *testing.T) {
	s := newShell(t)
	out := s.ok("feed add kv --table kv --key id:integer --print --db sqlite:absent.db")
	if !strings.HasPrefix(out, "-- ") || !strings.Contains(out, "CREATE TRIGGER") {
		t.Errorf("--print: %s", out)
	}
	for statement := range strings.SplitSeq(strings.TrimSpace(out), "\n\n") {
		if !strings.HasPrefix(statement, "-- ") || !strings.HasSuffix(statement, ";") {
			t.Errorf("a statement has no note or no semicolon: %s", statement)
		}
	}
	s.sql(createKV, "INSERT INTO kv VALUES (1, '', 'fred', 'jim')")
	s.ok("init")
	s.sql(out)
	s.prints("publish --once", "kv: 1 key published, head 1.9k3f2c7adq\n")
	for _, db := range []string{"postgres:", "mysql://u@h/d"} {
		if out := s.ok("feed add kv --table kv --key id:bigint --print --db " + db); !strings.Contains(out, "TRIGGER") {
			t.Errorf("--print for %s: %s", db, out)
		}
	}
}
