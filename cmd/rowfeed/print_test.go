package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// byClient runs a script in the database's own client.
func byClient(t *testing.T, db *testdb.Database, script string) {
	t.Helper()
	var client *exec.Cmd
	switch db.Family {
	case "sqlite":
		client = exec.Command("sqlite3", "-bail", strings.TrimPrefix(db.URL, "sqlite:"))
	case "postgres":
		client = exec.Command("psql", "-v", "ON_ERROR_STOP=1", "-d", db.URL)
	default:
		user, rest, _ := strings.Cut(strings.TrimPrefix(db.URL, "mysql://"), "@")
		address, database, _ := strings.Cut(rest, "/")
		host, port, _ := strings.Cut(address, ":")
		client = exec.Command("mariadb", "--protocol=tcp", "-h", host, "-P", port, "-u", user, database)
	}
	if client.Err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%v; run scripts/setup.sh", client.Err)
		}
		t.Skipf("NOT TESTED: %v", client.Err)
	}
	client.Stdin = strings.NewReader(script)
	if out, err := client.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestPrintSaysWhetherItNeedsServer: without a server --print prints, or its help says that it needs one.
func TestPrintSaysWhetherItNeedsServer(t *testing.T) {
	runs := map[string]string{"rowfeed init": "init", "rowfeed migrate up": "migrate up",
		"rowfeed feed bump": "feed bump kv", "rowfeed feed add": "feed add kv --table kv --key id:bigint"}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, below := range cmd.Commands() {
			visit(below)
		}
		flag := cmd.Flags().Lookup("print")
		if flag == nil {
			return
		}
		run, without := runs[cmd.CommandPath()]
		want := "; needs a server"
		if without {
			want = "; needs no server"
			r := newShell(t).run(strings.Fields(run + " --print --db sqlserver:")...)
			if r.code != 0 || !strings.Contains(r.out, "[rowfeed_") {
				t.Errorf("%s: %d, %s", run, r.code, r.err)
			}
		}
		if !strings.HasSuffix(flag.Usage, want) {
			t.Errorf("%s --print: %q does not end with %q", cmd.CommandPath(), flag.Usage, want)
		}
	}
	visit(newRoot(&cli.App{Getenv: func(string) string { return "" }}))
}

// TestPrintedScriptRuns (M28): the script of --print runs in the database's own client and makes the feed.
func TestPrintedScriptRuns(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		db := e.New(t)
		db.Exec(t, createServerKV)
		db.Exec(t, "INSERT INTO kv VALUES (1, 'jim')")
		s := newShell(t)
		s.env["ROWFEED_DB"] = db.URL
		s.ok("init")
		byClient(t, db, s.ok("feed add kv --table kv --key id:bigint --print"))
		db.Exec(t, "UPDATE kv SET id = 2")
		s.ok("publish --once")
		if out := s.ok("fetch kv"); !strings.Contains(out, `"key":{"id":2},"row":{"id":2,"v":"jim"}`) {
			t.Errorf("fetch: %s", out)
		}
		if e == testdb.SQLite {
			s.ok("feed upgrade kv") // adds what the script cannot know: the hidden rowid
		}
		s.prints("check kv", "kv: in order\n")
		s.ok("feed drop kv")
		db.Exec(t, "INSERT INTO kv VALUES (3, 'no trigger is left')")
	})
}

// TestPrintedScriptsOfULIDFeedsRun (M28): so do the scripts of feeds with ULIDs. Afterwards `feed add` without --print
// finds the feed, and completes it.
func TestPrintedScriptsOfULIDFeedsRun(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		db := e.New(t)
		ulidType := map[string]string{"sqlite": "BLOB", "postgres": "uuid", "mysql": "binary(16)"}[e.Family]
		quote := map[string]string{"sqlite": "x'", "postgres": "'", "mysql": "x'"}[e.Family]
		db.Exec(t, "CREATE TABLE ev (id bigint NOT NULL PRIMARY KEY, shard int NOT NULL, ulid "+ulidType+" NOT NULL)")
		db.Exec(t, "CREATE UNIQUE INDEX ev_feed ON ev (shard, ulid)")
		db.Exec(t, "INSERT INTO ev VALUES (1, 7, "+quote+"01857302da88ffffbfffffffffffffff')")
		db.Exec(t, createServerKV)
		db.Exec(t, "INSERT INTO kv VALUES (1, 'jim'), (2, 'joe')")
		db.Dump(t) // opens connections before newShell counts goroutines
		s := newShell(t)
		s.env["ROWFEED_DB"] = db.URL
		s.ok("init")
		before := db.Dump(t)

		blocking := "feed add ev --table ev --mode blocking --key id:bigint --position-column ulid:" + ulidType +
			" --shard-column shard:int"
		byClient(t, db, s.ok(blocking+" --print"))
		if out := s.ok(blocking); !strings.HasSuffix(out, "ev already, nothing changed\n") {
			t.Errorf("feed add: %s", out)
		}
		s.prints("check ev", "ev: in order\n")
		s.prints("feed upgrade ev", "ev: in order, nothing changed\n")
		if out := s.ok("fetch ev"); !strings.Contains(out,
			`"position":"01GNSG5PM8ZZZVZZZZZZZZZZZZ","shard":7,"op":"upsert","key":{"id":1}`) {
			t.Errorf("fetch: %s", out)
		}

		outbox := "feed add kv --table kv --mode outbox --capture trigger --key id:bigint"
		byClient(t, db, s.ok(outbox+" --print"))
		if out := s.fails(cli.ExitFailed, "fetch kv --shard 0"); !strings.Contains(out, "feed backfill kv") {
			t.Errorf("fetch before back-fill: %s", out)
		}
		db.Exec(t, "INSERT INTO kv VALUES (3, 'jack')")
		if out := s.ok(outbox); !strings.HasSuffix(out, "2 rows placed behind the head by this call\n") {
			t.Errorf("feed add: %s", out)
		}
		if out := s.ok("fetch kv"); strings.Count(out, "\n") != 4 ||
			strings.Index(out, `"id":3`) < strings.Index(out, `"id":2`) {
			t.Errorf("fetch: %s", out)
		}
		s.prints("check kv", "kv: in order\n")
		s.prints("feed upgrade kv", "kv: in order, nothing changed\n")
		s.ok("feed drop ev")
		s.ok("feed drop kv")
		if after := db.Dump(t); after != before {
			t.Errorf("the schema has changed\nbefore: %s\n after: %s", before, after)
		}
	})
}
