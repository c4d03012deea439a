package main

import (
	"context"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// createServerKV creates a table on every database.
const createServerKV = "CREATE TABLE kv (id bigint NOT NULL PRIMARY KEY, v varchar(100))"

// TestFeedFromAddToDropOnEachDatabase (M72): the main commands work on each database, whose URL is in ROWFEED_DB.
func TestFeedFromAddToDropOnEachDatabase(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		db := e.New(t)
		db.Exec(t, createServerKV)
		before := db.Dump(t)
		s := newShell(t)
		s.env["ROWFEED_DB"] = db.URL
		s.ok("init")
		db.Exec(t, "INSERT INTO kv VALUES (1, 'jim'), (2, NULL)")
		if out := s.ok("feed add kv --table kv"); !strings.HasPrefix(out, "kv: follows table ") ||
			!strings.HasSuffix(out, "kv by key (id), capture trigger, 2 rows recorded by this call\n") {
			t.Errorf("feed add: %s", out)
		}
		if out := s.ok("feed add kv --table kv"); !strings.HasSuffix(out, "kv already, nothing changed\n") {
			t.Errorf("feed add again: %s", out)
		}
		db.Exec(t, "UPDATE kv SET v = 'joe' WHERE id = 1")
		s.prints("publish --once", "kv: 2 keys published, head 2.9k3f2c7adq\n")
		s.prints("fetch kv", `{"position":"1","shard":0,"op":"upsert","key":{"id":2},"row":{"id":2,"v":null}}
{"position":"2","shard":0,"op":"upsert","key":{"id":1},"row":{"id":1,"v":"joe"}}
{"cursor":"2.9k3f2c7adq","more":false,"base64":[]}
`)
		if got := s.fails(cli.ExitFailed, "fetch kv --after 3"); !strings.Contains(got, "ahead") {
			t.Errorf("ahead: %s", got)
		}
		if e.Family != "sqlite" { // SQLite stores any value in a column
			if got := s.fails(cli.ExitUsage,
				"republish kv --key one"); !strings.Contains(got, `"one" is not a key of (id bigint`) {
				t.Errorf("a bad key: %s", got)
			}
			if got := s.fails(cli.ExitUsage,
				`unpublish kv --key ["one"]`); !strings.Contains(got, "is not a value for column") {
				t.Errorf("a bad key: %s", got)
			}
		}
		s.ok("republish kv --all")
		s.ok("republish kv --key 1")
		s.ok("unpublish kv --key [2]")
		db.Exec(t, "DELETE FROM kv WHERE id = 1")
		s.prints("publish --once", "kv: 2 keys published, head 4.9k3f2c7adq\n")
		s.prints("fetch kv --after 2", `{"position":"3","shard":0,"op":"delete","key":{"id":2}}
{"position":"4","shard":0,"op":"delete","key":{"id":1}}
{"cursor":"4.9k3f2c7adq","more":false,"base64":[]}
`)
		var status struct {
			Head     int64    `json:"head"`
			Problems []string `json:"problems"`
		}
		s.decode(s.ok("status kv --json"), &status)
		if status.Head != 4 || len(status.Problems) > 0 {
			t.Errorf("status: %+v", status)
		}
		s.prints("check kv", "kv: in order\n")
		bump(s, db)
		s.ok("feed drop kv")
		s.ok("migrate down")
		if after := db.Dump(t); after != before {
			t.Errorf("the schema has changed\nbefore: %s\n after: %s", before, after)
		}
	})
}

// bump checks all forms of `feed bump` on a feed whose head is 4.
func bump(s *shell, db *testdb.Database) {
	s.t.Helper()
	var before, after struct {
		Generation int64 `json:"generation"`
		Changed    bool  `json:"changed"`
	}
	s.decode(s.ok("feed bump kv --json"), &before)
	if got := s.fails(cli.ExitFailed, "fetch kv --after 2"); !strings.Contains(got, "generation 1") ||
		!strings.Contains(got, `after=""`) {
		s.t.Errorf("a cursor of the old generation: %s", got)
	}
	if got := s.ok("feed bump kv"); !strings.HasPrefix(got, "kv: generation ") {
		s.t.Errorf("feed bump: %s", got)
	}
	db.Exec(s.t, "UPDATE rowfeed_feeds SET database_identity = 'elsewhere'")
	db.Exec(s.t, "INSERT INTO kv VALUES (9, 'new')")
	s.ok("publish --once")
	s.prints("feed bump kv --adopt-database",
		"kv: nothing changed: --adopt-database is for feeds with ULIDs; "+
			"a feed of mode sequence detects lost commits itself\n")
	s.decode(s.ok("feed bump kv --adopt-database --json"), &after)
	if after.Changed || after.Generation <= before.Generation {
		s.t.Errorf("adopted: %+v after %+v", after, before)
	}
	if got := s.ok("feed bump kv --print"); !strings.Contains(got, "SET generation = ") {
		s.t.Errorf("feed bump --print: %s", got)
	}
	if got := s.ok("feed bump kv --print --adopt-database"); !strings.Contains(got, "SET database_identity = NULL") {
		s.t.Errorf("feed bump --print --adopt-database: %s", got)
	}
}

// TestFeedOfULIDsIsAdopted: a feed with an outbox stops in another database, and continues when it is adopted there.
func TestFeedOfULIDsIsAdopted(t *testing.T) {
	testdb.Only(t, testdb.Servers...)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		db := e.New(t)
		db.Exec(t, createServerKV)
		s := newShell(t)
		s.env["ROWFEED_DB"] = db.URL
		s.ok("init")
		s.ok("feed add kv --table kv --mode outbox --capture trigger")
		s.prints("feed bump kv --adopt-database", "kv: belongs to this database already, nothing changed\n")
		db.Exec(t, "UPDATE rowfeed_feeds SET database_identity = 'elsewhere'")
		db.Exec(t, "INSERT INTO kv VALUES (9, 'new')")
		if got := s.fails(cli.ExitFailed, "publish --once"); !strings.Contains(got, "feed bump kv --adopt-database") {
			t.Errorf("in another database: %s", got)
		}
		s.prints("feed bump kv --adopt-database", "kv: belongs to this database from now on; cursors stay valid\n")
		s.ok("publish --once")
	})
}

// TestDemoRunsOnEachDatabase: the demo ends with feed and table in agreement.
func TestDemoRunsOnEachDatabase(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		db := e.New(t)
		s := newShell(t)
		r := s.run("demo", "--db", db.URL, "--listen", "127.0.0.1:0", "--duration", "300ms", "--rate", "500/s")
		if r.code != cli.ExitDone || r.err != "" || !strings.Contains(r.out, "feed and table agree") {
			t.Errorf("demo: %+v", r)
		}
	})
}

// TestPublishAndTailSurviveRestartOfDatabase: `publish` and `tail` continue after the server was killed and started
// again.
func TestPublishAndTailSurviveRestartOfDatabase(t *testing.T) {
	testdb.Only(t, testdb.Servers...)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		server := e.Dedicated(t)
		db := server.NewDatabase(t)
		db.Exec(t, createServerKV)
		db.Exec(t, "INSERT INTO kv VALUES (1, 'jim')")
		t.Chdir(t.TempDir())
		// Without newShell: a server starts and ends goroutines.
		s := &shell{t: t, env: map[string]string{"ROWFEED_DB": db.URL}}
		s.ok("init")
		s.ok("feed add kv --table kv")
		ctx, interrupt := context.WithCancel(t.Context())
		start := func(line string) (out, errs *lines, ended chan error) {
			out, errs, ended = newLines(ctx), newLines(ctx), make(chan error, 1)
			a := &cli.App{Stdout: out, Stderr: errs, Getenv: func(name string) string { return s.env[name] }}
			go func() {
				err := execute(ctx, a, line)
				if ctx.Err() == nil {
					t.Errorf("ended with %v", err)
					interrupt()
				}
				ended <- err
			}()
			return out, errs, ended
		}
		_, _, published := start("publish")
		out, errs, tailed := start("tail kv --limit 10")
		await := func(l *lines, part string) {
			t.Helper()
			for line := l.next(t); !strings.Contains(line, part); line = l.next(t) {
			}
		}
		await(out, `"v":"jim"`)
		server.Kill(t)
		await(errs, "trying again")
		server.Start(t)
		await(errs, "it is back")
		db.Exec(t, "UPDATE kv SET v = 'joe'")
		await(out, `"v":"joe"`)
		interrupt()
		for what, ended := range map[string]chan error{"publish": published, "tail": tailed} {
			if err := <-ended; err != nil {
				t.Errorf("%s ended with %v", what, err)
			}
		}
	})
}
