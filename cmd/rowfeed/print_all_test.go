package main

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestPrintedScriptsReplaceAllCommands (M28): an administrator makes rowfeed's tables and a feed from printed scripts,
// in the database's own client or by a driver statement by statement, and never runs rowfeed. The schema is the one
// that rowfeed makes. rowfeed then finds nothing to do, and works with the feed. A printed bump also works.
func TestPrintedScriptsReplaceAllCommands(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		db := e.New(t)
		db.Admin().SetMaxIdleConns(0) // newShell checks that no goroutine is left
		db.Exec(t, createServerKV)
		db.Exec(t, "INSERT INTO kv VALUES (1, 'jim')")
		before := db.Dump(t)
		s := newShell(t)
		s.env["ROWFEED_DB"] = db.URL
		client := func(commands ...string) {
			for _, line := range commands {
				byClient(t, db, s.ok(line+" --print"))
			}
		}
		const add = "feed add kv --table kv --key id:bigint"
		for name, way := range map[string]struct {
			flags string
			run   func()
		}{
			"client": {"", func() { client("init", add) }},
			"client and a prefix": {" --prefix mine_", func() {
				client("migrate up --prefix mine_", add+" --prefix mine_")
			}},
			"driver": {"", func() {
				d, err := open.Dialect(db.URL)
				if err != nil {
					t.Fatal(err)
				}
				tables, err := rowfeed.PrintMigrate(d, nil)
				if err != nil {
					t.Fatal(err)
				}
				spec := rowfeed.FeedSpec{Name: "kv", Table: "kv", Key: []string{"id:bigint"}}
				feed, err := rowfeed.PrintFeed(d, nil, spec)
				if err != nil {
					t.Fatal(err)
				}
				byDriver(t, db, tables)
				byDriver(t, db, feed)
			}},
		} {
			s.ok("init" + way.flags)
			made := db.Dump(t)
			s.ok("migrate down" + way.flags)
			byClient(t, db, s.ok("init --print"+way.flags))
			if got := db.Dump(t); got != made {
				t.Errorf("%s: the script makes another schema than init\n%s\ninstead of\n%s", name, got, made)
			}
			s.ok("migrate down" + way.flags)

			way.run()
			if out := s.ok("init" + way.flags); !strings.Contains(out, "are there already, nothing changed") {
				t.Errorf("%s: init: %s", name, out)
			}
			s.ok("publish --once" + way.flags)
			if out := s.ok("fetch kv" + way.flags); !strings.Contains(out, `"key":{"id":1},"row":{"id":1,"v":"jim"}`) {
				t.Errorf("%s: fetch: %s", name, out)
			}
			if e == testdb.SQLite {
				s.ok("feed upgrade kv" + way.flags) // adds what the script cannot know: the hidden rowid
			}
			s.prints("check kv"+way.flags, "kv: in order\n")
			byClient(t, db, s.ok("feed bump kv --print"+way.flags))
			if out := s.ok("feed list --json" + way.flags); strings.Contains(out, `"generation": 1,`) {
				t.Errorf("%s: the bump began no generation: %s", name, out)
			}
			s.ok("feed drop kv" + way.flags)
			s.ok("migrate down" + way.flags)
			if after := db.Dump(t); after != before {
				t.Errorf("%s: the schema has changed\nbefore: %s\n after: %s", name, before, after)
			}
		}
	})
}

// byDriver runs the statements of a script one by one on one connection.
func byDriver(t *testing.T, db *testdb.Database, steps []dialect.Step) {
	t.Helper()
	conn, err := db.Admin().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, step := range steps {
		if _, err := conn.ExecContext(t.Context(), step.SQL); err != nil {
			t.Fatalf("%s: %v\n%s", step.Note, err, step.SQL)
		}
	}
}
