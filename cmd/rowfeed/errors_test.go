package main

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
)

// TestErrorNamesObjectCauseAndNextStep: each wrong command line ends with one line on stderr that names the object, the
// cause and the next step.
func TestErrorNamesObjectCauseAndNextStep(t *testing.T) {
	s := withFeed(t)
	s.sql("CREATE TABLE nokey (a TEXT)", "CREATE TABLE nullkey (a TEXT UNIQUE)", "CREATE VIEW view1 AS SELECT 1 AS a",
		"CREATE TABLE stamped (id INTEGER PRIMARY KEY)",
		"CREATE TRIGGER stamp AFTER UPDATE ON stamped BEGIN SELECT 1; END")
	writeFile(t, "bad.yaml", "db: sqlite:rowfeed.db\nlisten: 127.0.0.1:0\ncolour: red\n")
	writeFile(t, "text.db", strings.Repeat("this is no database\n", 100))
	tests := []struct {
		line string
		code int
		want []string // parts of the message
	}{
		{"publsih", cli.ExitUsage, []string{`"rowfeed publsih"`, "publish", "rowfeed --help"}},
		{"feed split kv", cli.ExitUsage, []string{`"rowfeed feed split"`, "rowfeed feed --help"}},
		{"publish --once --replica", cli.ExitFailed, []string{"kv", "opened as a replica", "without --replica"}},
		{"feed bump", cli.ExitUsage, []string{"feed bump", "NAME is missing", "rowfeed feed bump --help"}},
		{"mirror kv --to stdout", cli.ExitUsage, []string{`"rowfeed mirror"`, "rowfeed --help"}},
		{"bench kv", cli.ExitUsage,
			[]string{`there is no measure "kv"`, "Next: name some of writers, drain, pages, consume, latency, idle"}},
		{"bench --rows 0", cli.ExitUsage, []string{"--rows 0 is not between 1 and 100000000", "Next:"}},
		{"bench --payload 1000000", cli.ExitUsage, []string{"--payload 1000000 is not between 1 and 10000", "Next:"}},
		{"bench --writers 0", cli.ExitUsage, []string{"--writers 0 is not between 1 and 1000", "Next:"}},
		{"bench --repetitions 0", cli.ExitUsage, []string{"--repetitions 0 is not between 1 and 1000", "Next:"}},
		{"bench --seconds 0", cli.ExitUsage,
			[]string{"--seconds", `"0" is not a number of seconds`, "rowfeed bench --help"}},
		{"bench --seconds NaN", cli.ExitUsage, []string{"--seconds", `"NaN" is not a number of seconds`, "--help"}},
		{"bench --rate 0", cli.ExitUsage, []string{"--rate", `"0"`, "100/s", "--help"}},
		{"bench --rate 1000000", cli.ExitUsage, []string{"--rate 1e+06 is not between", "Next:"}},
		{"bench --replica", cli.ExitFailed, []string{"it writes", "without --replica"}},
		{"bench --no-publish", cli.ExitFailed, []string{"--no-publish"}},
		{"bench --db sqlite:absent.db", cli.ExitFailed, []string{"no file absent.db", "Next:"}},
		{"bench --clean --db sqlite:absent.db", cli.ExitFailed, []string{"no file absent.db", "Next:"}},
		{"bench drain --clean", cli.ExitUsage, []string{`"drain" is one argument too many`, "rowfeed bench --help"}},
		{"bench --db sqlite:rowfeed.db?_synchronous=OFF", cli.ExitFailed, []string{"power cut", "--unsafe-durability"}},
		{"consumer pause", cli.ExitUsage, []string{"CONSUMER is missing", "rowfeed consumer pause --help"}},
		{"consumer pause mail", cli.ExitFailed,
			[]string{`consumer "mail"`, "there is no such cursor", "rowfeed consumer list"}},
		{"consumer seek mail --feed kv", cli.ExitUsage, []string{"give --feed and --to", "--help"}},
		{"consumer seek mail --feed kv --to soon", cli.ExitUsage, []string{`"soon" is not a cursor`, "Next:"}},
		{"consumer seek mail --feed kv --to 99", cli.ExitFailed, []string{`feed "kv"`, "ahead"}},
		{"consumer purge mail --feed kv", cli.ExitFailed,
			[]string{`consumer "mail" of feed "kv"`, "there is no such cursor"}},
		{"consumer purge mail", cli.ExitUsage, []string{"give --feed"}},
		{"consumer lsit", cli.ExitUsage, []string{`"rowfeed consumer lsit"`, "list", "rowfeed consumer --help"}},
		{"dead retry mail", cli.ExitUsage, []string{"which keys? Give --key, --error or --all"}},
		{"dead retry mail --all --key 1", cli.ExitUsage, []string{"which keys?"}},
		{"dead retry mail --key 1", cli.ExitFailed,
			[]string{`consumer "mail"`, "no dead letter with key 1", "rowfeed dead list mail"}},
		{"fetch", cli.ExitUsage, []string{"fetch", "NAME is missing", "rowfeed fetch --help"}},
		{"fetch kv other", cli.ExitUsage, []string{`"other"`, "too many", "--help"}},
		{"fetch kv --colour red", cli.ExitUsage, []string{"--colour", "rowfeed fetch --help"}},
		{"fetch kv --limit 0", cli.ExitUsage, []string{`feed "kv"`, "--limit 0", "between 1 and 10000", "Next:"}},
		{"fetch kv --limit 10001", cli.ExitUsage, []string{"--limit 10001", "Next:"}},
		{"fetch kv --limit many", cli.ExitUsage,
			[]string{`rowfeed: fetch: --limit: "many" is not a whole number. Next`}},
		{"fetch kv --limt 1", cli.ExitUsage, []string{"there is no flag --limt (did you mean --limit?)"}},
		{"fetch kv --limit", cli.ExitUsage, []string{"--limit needs a value"}},
		{"feed list -o yaml", cli.ExitUsage, []string{`feed list: --output: "yaml" is not one of: wide, json`}},
		{"version -o yaml", cli.ExitUsage, []string{`"yaml" is not one of: wide, json`}},
		{"tail kv --limit 0", cli.ExitUsage, []string{"--limit 0"}},
		{"fetch kv --after x", cli.ExitUsage, []string{"after", `"x" is not a cursor`, "Next: send back"}},
		{"fetch kv --after at:noon", cli.ExitUsage, []string{`"noon"`, "RFC 3339", "Next:"}},
		{"fetch kv --after 99", cli.ExitFailed, []string{`feed "kv"`, "ahead", "Next: start again"}},
		{"fetch kv --after 7:1", cli.ExitFailed, []string{`feed "kv"`, "generation", "Next: start again"}},
		{"fetch kv --wait -3s", cli.ExitUsage, []string{"--wait"}},
		{"fetch kvv", cli.ExitFailed,
			[]string{`feed "kvv"`, `write "kv" if you mean that one; `, "rowfeed feed list"}},
		{"fetch kw", cli.ExitFailed, []string{`feed "kw"`, "no such feed", "rowfeed feed list"}},
		{"fetch KV", cli.ExitUsage, []string{`"KV" is not a feed name`, "lower-case", `Next: write "kv"`}},
		{"tail kv --url 127.0.0.1:8080", cli.ExitUsage, []string{"url", "http://127.0.0.1:8080"}},
		{"tail kv --url ftp://127.0.0.1", cli.ExitUsage, []string{"url", "http://"}},
		{"tail kv --url http://127.0.0.1:1", cli.ExitFailed, []string{`feed "kv"`, "127.0.0.1:1", "Next:"}},
		{"feed add Kv --table kv", cli.ExitUsage, []string{`"Kv" is not a feed name`, "Next:"}},
		{"feed add " + strings.Repeat("a", 40) + " --table kv", cli.ExitUsage, []string{"is not a feed name"}},
		{"feed add new", cli.ExitUsage, []string{"table", "name the table", "Next:"}},
		{"feed add new --table absent", cli.ExitFailed,
			[]string{`table "absent"`, "does not exist", "Next: check the name"}},
		{"feed add new --table a.b.c", cli.ExitUsage, []string{`"a.b.c"`, "schema.table"}},
		{"feed add new --table nokey", cli.ExitFailed, []string{`table "nokey"`, "primary key", "Next:"}},
		{"feed add new --table nullkey --key a", cli.ExitFailed, []string{`table "nullkey"`, "NULL", "Next:"}},
		{"feed add new --table kv --key v", cli.ExitFailed, []string{`table "kv"`, "unique index", "Next:"}},
		{"feed add new --table kv --columns w", cli.ExitFailed, []string{`table "kv"`, `"w"`, "Next:"}},
		{"feed add new --table view1", cli.ExitFailed, []string{"view1", "view"}},
		{"feed add new --table kv --mode outbox --tombstones 1h", cli.ExitUsage, []string{"tombstones", "omit it"}},
		{"feed add new --table kv --mode outbox --position-column id", cli.ExitUsage,
			[]string{"position-column", "omit it"}},
		{"feed add new --table kv --mode outbox --capture column", cli.ExitUsage, []string{`"column"`, "app, trigger"}},
		{"feed add new --table kv --mode outbox --shard-column nothing", cli.ExitFailed,
			[]string{`no column "nothing"`, "Next:"}},
		{"feed add new --table kv --mode fast", cli.ExitUsage, []string{`"fast"`, "sequence"}},
		{"feed add new --table kv --capture telepathy", cli.ExitUsage, []string{"telepathy", "trigger, app, column"}},
		{"feed add new --table stamped --capture column", cli.ExitFailed, []string{"stamp", "--accept-triggers"}},
		{"feed add new --table kv --adopt", cli.ExitUsage, []string{"only feeds with capture column"}},
		{"feed add new --table kv --data-shards 0", cli.ExitUsage,
			[]string{"--data-shards 0 is not between 1 and 65536", "Next:"}},
		{"feed add new --table kv --data-shards 65537", cli.ExitUsage,
			[]string{"--data-shards 65537 is not between 1 and 65536", "Next:"}},
		{"feed add new --table kv --data-shards -5", cli.ExitUsage,
			[]string{"--data-shards -5 is not between 1 and 65536", "Next: leave it out"}},
		{"feed add new --table kv --data-shards many", cli.ExitUsage, []string{"--data-shards", "--help"}},
		{"feed add new --table kv --data-shards 4 --shard-column v", cli.ExitFailed,
			[]string{`its column "v" is `, "not an integer", "Next:"}},
		{"fetch kv --shard -1", cli.ExitUsage, []string{"-1 is not a data shard of the feed"}},
		{"fetch kv --shard 70000", cli.ExitUsage, []string{"70000 is not a data shard of the feed"}},
		{"fetch kv --shard 1", cli.ExitUsage, []string{"shard", "1 is not a data shard of the feed"}},
		{"fetch kv --shard 2 --shard-count 2", cli.ExitUsage,
			[]string{"2 is not one of the 2 shards, which are numbered 0 to 1"}},
		{"fetch kv --shard 0 --shard-count 0", cli.ExitUsage, []string{"--shard-count 0 is not between 1 and 65536"}},
		{"fetch kv --shard-count 2", cli.ExitUsage, []string{"--shard-count is given without --shard", "Next:"}},
		{"relay kv --to https://example.com/ --shard-count 0", cli.ExitUsage,
			[]string{"--shard-count 0 is not between 1 and 65536", "Next:"}},
		{"relay kv --to https://example.com/ --shard-count -1", cli.ExitUsage,
			[]string{"--shard-count -1 is not between 1 and 65536", "Next:"}},
		{"relay kv --to https://example.com/ --shard-count 65537", cli.ExitUsage,
			[]string{"--shard-count 65537 is not between 1 and 65536", "Next:"}},
		{"tail kv --shard x", cli.ExitUsage, []string{"--shard", "--help"}},
		{"tail kv --shard 7 --shard-count 4", cli.ExitUsage, []string{"7 is not one of the 4 shards"}},
		{"feed add new --table kv --tombstones soon", cli.ExitUsage, []string{`"soon"`, "30d", "--help"}},
		{"feed add new --table kv --tombstones 0", cli.ExitUsage, []string{"tombstones", "Next:"}},
		{"feed add new --table kv --tombstones 1ms", cli.ExitUsage, []string{"tombstones", "second"}},
		{"feed add new --table kv --print", cli.ExitUsage, []string{"key", "--key id:bigint"}},
		{"feed add new --table kv --key a,,b", cli.ExitUsage, []string{`"a,,b"`, "empty name"}},
		{"feed add kv --table nokey", cli.ExitFailed, []string{`table "nokey"`}},
		{"feed drop kw", cli.ExitFailed, []string{`feed "kw"`, "no such feed", "rowfeed feed list"}},
		{"republish kv", cli.ExitUsage, []string{"republish: which rows?", "--key", "--where", "--all"}},
		{"consumer reset mail --shard one", cli.ExitUsage,
			[]string{"--shard", `"one" is not the number of a shard`, "--help"}},
		{"consumer reset mail --shard -1", cli.ExitFailed,
			[]string{`shard -1`, "there is no such cursor", "rowfeed consumer list"}},
		{"republish kv --all --key 1", cli.ExitUsage, []string{"republish: which rows?"}},
		{`republish kv --key {"ns":"a"}`, cli.ExitUsage,
			[]string{`feed "kv"`, "id INTEGER", `member "id" is missing`, "Next:"}},
		{"republish kv --key [1,2]", cli.ExitUsage, []string{`"[1,2]"`, "2 values", "Next:"}},
		{"republish kv --key one", cli.ExitUsage,
			[]string{`feed "kv"`, `"one" is not a number`, `column "id"`, "Next: write the key as entries show it"}},
		{`unpublish kv --key ["one"]`, cli.ExitUsage, []string{`feed "kv"`, `"one" is not a number`, "Next:"}},
		{"fetch kv --wait 2h", cli.ExitUsage,
			[]string{`feed "kv"`, "--wait 2h0m0s", "between 0s and 1m0s", "rowfeed tail"}},
		{"republish kv --all --rate fast", cli.ExitUsage, []string{`"fast"`, "100/s"}},
		{"republish kv --where nonsense", cli.ExitFailed,
			[]string{`feed "kv"`, "nonsense", "Next: check the condition"}},
		{"feed add new --table kv --key nope", cli.ExitFailed, []string{`"kv": it has no column "nope"`, "--key"}},
		{"status --schema other", cli.ExitUsage,
			[]string{`schema "other"`, "main database", "Next: leave --schema out"}},
		{"help nothing", cli.ExitUsage, []string{`there is no command "rowfeed nothing"`, "rowfeed --help"}},
		{"help feed lsit", cli.ExitUsage, []string{`"rowfeed feed lsit"`, "list", "rowfeed feed --help"}},
		{"conform 127.0.0.1:8080", cli.ExitUsage,
			[]string{"url: it does not have", "Next: write it like http://127.0.0.1:8080"}},
		{"unpublish kv", cli.ExitUsage, []string{"unpublish: which rows?", "--key"}},
		{"status kv kw", cli.ExitUsage, []string{`"kw"`, "too many"}},
		{"status --prefix bad-prefix-", cli.ExitUsage, []string{"prefix", `"bad-prefix-"`}},
		{"status --prefix -", cli.ExitUsage, []string{"prefix", "Next:"}},
		{"status --config absent.yaml", cli.ExitFailed, []string{"absent.yaml", "no such file", "--config"}},
		{"status --config bad.yaml", cli.ExitFailed, []string{"bad.yaml:3", `"colour"`, "db, prefix, schema, listen"}},
		{"status --db rowfeed.db", cli.ExitUsage, []string{`"rowfeed.db"`, "not a database URL", "sqlite:rowfeed.db"}},
		{"status --db root:secret-word@tcp(h)/shop", cli.ExitUsage,
			[]string{`"root:***@tcp(h)/shop"`, "a DSN", "Next: write mysql://user:password@host:3306/database"}},
		{"status --db oracle://x", cli.ExitUsage, []string{`"oracle://x"`, "sqlite:path.db, postgres://"}},
		{"status --db sqlserver://sa:secret-word@h", cli.ExitUsage,
			[]string{"sqlserver://sa:***@h", "names no database", "sqlserver://user:password@host:1433/database"}},
		{"status --db sqlite:absent.db", cli.ExitFailed, []string{"sqlite:absent.db", "no file", "rowfeed init"}},
		{"init --db sqlite:absent/x.db", cli.ExitFailed,
			[]string{"sqlite:absent/x.db", "no directory absent", "Next: create it"}},
		{"init --db sqlite:.", cli.ExitFailed, []string{"is a directory", "Next:"}},
		{"init --db sqlite::memory:", cli.ExitUsage, []string{":memory:", "needs a file"}},
		{"status --db sqlite:text.db", cli.ExitFailed, []string{"sqlite:text.db", "not a database", "Next:"}},
		{"status --db postgres://u:secret-word@127.0.0.1:1/d", cli.ExitFailed,
			[]string{"postgres://u:***@127.0.0.1:1/d", "127.0.0.1:1", "Next: check that the database runs"}},
		{"status --db mysql://u:secret-word@127.0.0.1:1/d", cli.ExitFailed,
			[]string{"mysql://u:***@127.0.0.1:1/d", "refused", "Next: check that the database runs"}},
		{"status --db postgres://u:secret/word@h/d", cli.ExitUsage, []string{"percent-encoded"}},
		{"serve --listen nowhere", cli.ExitUsage, []string{`"nowhere"`, "host:port"}},
		{"demo --rate 0", cli.ExitUsage, []string{`"0"`, "100/s", "rowfeed demo --help"}},
		{"demo --duration 0s", cli.ExitUsage, []string{"duration", "Next:"}},
		{"demo --db sqlite:rowfeed.db", cli.ExitFailed,
			[]string{"sqlite:rowfeed.db", "the demo did not create", "Next:"}},
	}
	for _, test := range tests {
		t.Run(test.line, func(t *testing.T) {
			s := &shell{t: t, env: map[string]string{}}
			r := s.run(strings.Fields(test.line)...)
			if r.code != test.code {
				t.Errorf("exit code %d, want %d", r.code, test.code)
			}
			if !strings.HasPrefix(r.err, "rowfeed: ") || strings.Count(r.err, "\n") != 1 || r.out != "" {
				t.Errorf("not one line on stderr: %q, stdout %q", r.err, r.out)
			}
			for _, part := range test.want {
				if !strings.Contains(r.err, part) {
					t.Errorf("%q lacks %q", r.err, part)
				}
			}
			if strings.Contains(r.err, "secret") {
				t.Errorf("%q shows a password", r.err)
			}
		})
	}
}

// TestCommandsAskForInit: without rowfeed's tables each command says to run `rowfeed init`.
func TestCommandsAskForInit(t *testing.T) {
	s := newShell(t)
	s.sql(createKV)
	for _, line := range []string{"feed add kv --table kv", "feed list", "feed drop kv", "publish", "publish --once kv",
		"serve --listen 127.0.0.1:0", "fetch kv", "tail kv", "republish kv --all", "unpublish kv --key 1", "check kv",
		"repair kv", "status"} {
		if got := s.fails(cli.ExitFailed, line); !strings.Contains(got, "rowfeed_feeds") ||
			!strings.Contains(got, "Next: run `rowfeed init`") {
			t.Errorf("rowfeed %s says %q", line, got)
		}
	}
}
