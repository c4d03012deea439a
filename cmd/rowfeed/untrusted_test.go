package main

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
	"github.com/spf13/cobra"
)

// TestDatabaseURLComesFromVariableOrFile: env:NAME and file:PATH work in each place that accepts the URL of the
// database.
func TestDatabaseURLComesFromVariableOrFile(t *testing.T) {
	s := withFeed(t)
	s.env["WHERE"] = "sqlite:rowfeed.db"
	writeFile(t, "url", "sqlite:rowfeed.db\n")
	for _, db := range []string{"env:WHERE", "file:url"} {
		s.ok("check kv --db " + db)
		writeFile(t, "other.yaml", "db: "+db+"\n")
		s.ok("check kv --config other.yaml")
		s.env["ROWFEED_DB"] = db
		s.ok("check kv --config other.yaml")
		delete(s.env, "ROWFEED_DB")
	}
	for db, want := range map[string]string{
		"env:NOTHING": `no variable "NOTHING"`, "file:absent": `"absent" cannot be read`,
	} {
		if got := s.fails(cli.ExitUsage, "check kv --db "+db); !strings.Contains(got, want) ||
			!strings.Contains(got, "Next:") {
			t.Errorf("%s: %s", db, got)
		}
	}
}

// leaves returns the commands that do something.
func leaves(c *cobra.Command) (all []*cobra.Command) {
	for _, child := range c.Commands() {
		if child.HasSubCommands() {
			all = append(all, leaves(child)...)
		} else if child.RunE != nil {
			all = append(all, child)
		}
	}
	return all
}

// TestNoErrorShowsPassword: no command shows the database's password in an error, however the URL was given and
// whatever is wrong with it.
func TestNoErrorShowsPassword(t *testing.T) {
	s := newShell(t)
	urls := []string{"postgres://u:hunter22@127.0.0.1:1/d", "mysql://u:hunter22@127.0.0.1:1/d",
		"postgres://u:hunter22@h/d?sslmode=perhaps", "mysql://u:p@hunter22:x@h/d", "postgres://u:hunter22%@h/d"}
	ran := 0
	for _, c := range leaves(newRoot(&cli.App{})) {
		for i, rawURL := range urls {
			if i > 0 && c.Name() != "status" && c.Name() != "init" {
				break // the same code checks the URL for all commands
			}
			for _, given := range []string{"flag", "variable"} {
				arguments := append(strings.Fields(c.CommandPath())[1:], "kv", "--verbose")
				s.env = map[string]string{}
				if given == "flag" {
					arguments = append(arguments, "--db", rawURL)
				} else {
					s.env["ROWFEED_DB"] = rawURL
				}
				if c.Name() == "demo" && given != "flag" {
					continue // it does not read the variable
				}
				for _, without := range []bool{false, true} {
					if without { // without the name of a feed, for commands without arguments
						arguments = append(arguments[:len(strings.Fields(c.CommandPath()))-1],
							arguments[len(strings.Fields(c.CommandPath())):]...)
					}
					r := s.run(arguments...)
					if ran++; strings.Contains(r.out+r.err, "hunter22") {
						t.Errorf("rowfeed %s: %s%s", strings.Join(arguments, " "), r.out, r.err)
					}
				}
			}
		}
	}
	if ran < 100 {
		t.Errorf("only %d command lines were run", ran)
	}
}

// TestSQLInNamesIsNotRun: SQL in names, keys and cursors is refused or treated as a name.
func TestSQLInNamesIsNotRun(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		db := e.New(t)
		db.Exec(t, createServerKV)
		db.Exec(t, "INSERT INTO kv VALUES (1, 'jim')")
		s := newShell(t)
		s.env["ROWFEED_DB"] = db.URL
		s.ok("init")
		s.ok("feed add kv --table kv")
		s.ok("publish --once")
		before := s.ok("fetch kv")
		for _, text := range []string{"kv'; DROP TABLE kv; --", `kv"; DROP TABLE kv; --`, "kv`; DROP TABLE kv; -- "} {
			for _, arguments := range [][]string{
				{"fetch", text}, {"status", text}, {"feed", "show", text}, {"feed", "drop",
					text}, {"feed", "add", text, "--table", "kv"}, {"feed", "add", "new", "--table", text},
				{"feed", "add", "new", "--table", "kv", "--key", text}, {"feed", "add", "new", "--table", "kv",
					"--columns", text}, {"fetch", "kv", "--after", text}, {"fetch", "kv", "--shard", text},
				{"republish", "kv", "--key", text + "\x00"}, {"consumer", "pause", text}, {"consumer", "seek", text,
					"--feed", "kv", "--to", text}, {"consumer", "reset", text, "--feed", text},
				{"dead", "retry", text, "--key", text}, {"status", "--prefix", text}, {"status", "--schema", text},
			} {
				// republish may take the text as a key without a row
				if r := s.run(arguments...); r.code == cli.ExitDone && arguments[0] != "republish" {
					t.Errorf("rowfeed %q: %s", arguments, r.out)
				}
			}
			for _, arguments := range [][]string{
				{"dead", "list", text},
				{"consumer", "drop", text},
				{"lease", "release", text},
			} {
				s.run(arguments...) // these names are valid, and no object has them
			}
		}
		s.ok("publish --once")
		if after := s.ok("fetch kv"); after != before {
			t.Errorf("before: %s\nafter: %s", before, after)
		}
	})
}
