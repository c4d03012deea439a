package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/cobra"
)

// harmlessCommands are not in the audit log: they read, or publish and deliver.
var harmlessCommands = []string{
	"demo", "version", "bench", "docs man", "docs markdown", "config check", "config reference", "config schema",
	"completion", "migrate status", "feed list", "feed show", "check", "status", "fetch", "tail", "publish", "serve",
	"relay", "conform", "ready", "consumer list", "dead list", "dead show", "lease list", "token list", "audit list",
}

// TestEveryCommandIsRecordedOrHarmless: each command is in exactly one of the two lists. The author of a new command
// has to choose one.
func TestEveryCommandIsRecordedOrHarmless(t *testing.T) {
	a, _ := quietApp(t)
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		path := strings.TrimPrefix(cmd.CommandPath(), "rowfeed ")
		recorded, harmless := slices.Contains(administrative,
			path), slices.ContainsFunc(harmlessCommands, func(known string) bool {
			return path == known || strings.HasPrefix(path, known+" ")
		})
		if !cmd.HasSubCommands() && cmd.Name() != "help" && recorded == harmless {
			t.Errorf("%q: recorded %v, harmless %v", path, recorded, harmless)
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(a))
}

// acts returns the audit log, the oldest act first, as "act|object|detail|outcome".
func (s *shell) acts() (all []string) {
	s.t.Helper()
	var log []admin.Act
	if err := json.Unmarshal([]byte(s.ok("audit list --limit 1000 --json")), &log); err != nil {
		s.t.Fatal(err)
	}
	for _, a := range slices.Backward(log) {
		if !strings.Contains(a.Actor, "@") {
			s.t.Errorf("the actor is %q, without a host", a.Actor)
		}
		all = append(all, strings.Join([]string{a.Act, a.Object, a.Detail, a.Outcome}, "|"))
	}
	return all
}

// TestAuditLogHasChangesAndRefusals: the audit log has each change of an operator, with its arguments and its outcome,
// also if the change was refused. It does not have commands that only read or only print.
func TestAuditLogHasChangesAndRefusals(t *testing.T) {
	s := newShell(t)
	s.sql(createKV, "INSERT INTO kv VALUES (1, '', 'a', 'b')")
	s.ok("init")
	s.ok("feed add kv --table kv --key id:integer --print")
	s.ok("feed add kv --table kv --print=false")
	s.ok("publish --once")
	s.ok("fetch kv")
	s.ok("status")
	s.ok("republish kv --key 1 --db sqlite:rowfeed.db")
	s.fails(cli.ExitFailed, "lease release nothing")
	s.fails(cli.ExitFailed, "feed drop nothing")
	s.fails(cli.ExitUsage, "dead retry billing")
	s.run("token", "add", "shop", "--feed", "kv", "--right", "read")
	s.ok("feed drop kv")
	want := []string{
		"init|||done", "feed add|kv|--print=false --table=kv|done", "republish|kv|--key=[1]|done",
		"lease release|nothing||refused: unknown-lease", "feed drop|nothing||refused: unknown-feed",
		"token add|shop|--feed=[kv] --right=[read]|done", "feed drop|kv||done",
	}
	if got := s.acts(); !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	if out := s.ok("audit list --limit 1"); !strings.Contains(out, "feed drop") || strings.Contains(out, "token add") {
		t.Error(out)
	}
	if err := s.fails(cli.ExitUsage, "audit purge --older-than 1h"); !strings.Contains(err, "less than 24h") {
		t.Error(err)
	}
	s.sql("UPDATE rowfeed_audit SET at = at - 401 * 86400000000 WHERE act = 'init'")
	s.prints("audit purge", "1 act deleted from the audit log\n")
	if got := s.acts(); got[0] != want[1] || got[len(got)-1] != "audit purge|||done" {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	s.ok("migrate down") // this removes the audit log as well
	if err := s.fails(cli.ExitFailed, "audit list"); !strings.Contains(err, "rowfeed init") {
		t.Error(err)
	}
}

// TestCommandRunsIfAuditLogCannotBeWritten: the command runs and says so on stderr. A user with the database's password
// could make the change without rowfeed.
func TestCommandRunsIfAuditLogCannotBeWritten(t *testing.T) {
	s := withFeed(t)
	s.sql("CREATE TRIGGER full BEFORE INSERT ON rowfeed_audit BEGIN SELECT RAISE(ABORT, 'nothing can be written'); END")
	r := s.run("republish", "kv", "--key", "1")
	if r.code != cli.ExitDone || !strings.Contains(r.err, "rowfeed: not in the audit log: ") {
		t.Errorf("%+v", r)
	}
}
