package main

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestRevokeUndoesGrant (M29, M61): `feed grant` gives rights, `feed revoke` removes them all, and the scripts of
// --print do the same.
func TestRevokeUndoesGrant(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		db := e.New(t)
		db.Admin().SetMaxIdleConns(0) // newShell checks that no goroutine is left
		s := newShell(t)
		s.env["ROWFEED_DB"] = db.URL
		ulid := map[string]string{"sqlite": "BLOB", "postgres": "uuid", "mysql": "BINARY(16)"}[e.Family]
		db.Exec(t, "CREATE TABLE ev (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL, ulid "+ulid+" NOT NULL)")
		db.Exec(t, "CREATE UNIQUE INDEX ev_feed ON ev (shard, ulid)")
		s.ok("init")
		s.ok("feed add ev --table ev --mode blocking --position-column ulid --shard-column shard")
		if !e.HasServer() {
			if text := s.fails(cli.ExitFailed, "feed grant ev --writer app"); !strings.Contains(text, "no logins") {
				t.Error(text)
			}
			return
		}
		login, before := "app_"+db.Name, ""
		known := login
		if e.Family == "postgres" {
			db.Exec(t, "CREATE ROLE "+login)
			t.Cleanup(func() { db.Exec(t, "DROP OWNED BY "+login); db.Exec(t, "DROP ROLE "+login) })
		} else {
			known += "@%"
			db.Exec(t, "CREATE USER "+login+" IDENTIFIED BY 'x'")
			t.Cleanup(func() { db.Exec(t, "DROP USER "+login) })
		}
		before = db.Dump(t)
		if text := s.fails(cli.ExitUsage, "feed grant ev"); !strings.Contains(text, "name a writer or a reader") {
			t.Error(text)
		}
		if text := s.fails(cli.ExitFailed,
			"feed grant ev --reader nobody_"+db.Name); !strings.Contains(text, "Next: make it with CREATE") {
			t.Error(text)
		}
		script := s.ok("feed grant ev --writer " + login + " --reader " + login + " --print")
		if db.Dump(t) != before {
			t.Error("--print changes the schema")
		}
		for range 2 {
			if out := s.ok("feed grant ev --writer " + login + " --reader " + login); !strings.Contains(out,
				"writers: "+known+"; readers: "+known) {
				t.Error(out)
			}
		}
		granted := db.Dump(t)
		undo := s.ok("feed revoke ev --writer " + login + " --reader " + login + " --print")
		if out := s.ok("feed revoke ev --writer " + login + " --reader " + login); !strings.Contains(out,
			"writers: none; readers: none") {
			t.Error(out)
		}
		if db.Dump(t) != before {
			t.Error("feed revoke leaves rights behind")
		}
		db.Exec(t, script)
		if db.Dump(t) != granted {
			t.Errorf("the script gives other rights:\n%s", script)
		}
		if out := s.ok("feed show ev --json"); !strings.Contains(strings.Join(strings.Fields(out), ""),
			`"grants":{"writers":["`+known+`"],"readers":["`+known+`"]}`) {
			t.Error(out)
		}
		db.Exec(t, undo)
		if db.Dump(t) != before {
			t.Errorf("the script leaves rights behind:\n%s", undo)
		}
		db.Exec(t, script)
		s.ok("feed drop ev")
		s.ok("migrate down")
		if text := db.Dump(t); strings.Contains(text, login) {
			t.Errorf("feed drop leaves rights behind:\n%s", text)
		}
	})
}
