package main

import (
	"strings"
	"testing"
)

// TestBadInput asserts that messages name the object, the cause and the next step.
func TestBadInput(t *testing.T) {
	s := withFeed(t)
	s.sql("CREATE TABLE nokey (a TEXT)", "CREATE TABLE nullkey (a TEXT UNIQUE)", "CREATE VIEW view1 AS SELECT 1 AS a",
		"CREATE TABLE stamped (id INTEGER PRIMARY KEY)", "CREATE TRIGGER stamp AFTER UPDATE ON stamped BEGIN SELECT 1; END")
	writeFile(t, "bad.yaml", "db: sqlite:rowfeed.db\nlisten: 127.0.0.1:0\ncolour: red\n")
	writeFile(t, "text.db", strings.Repeat("this is no database\n", 100))
	tests := []struct {
		line string
		code int
		want []string // parts of the message
	}{
		{"publsih", exitUsage, []string{`"rowfeed publsih"`, "publish", "rowfeed --help"}},
		{"feed split kv", exitUsage, []string{`"rowfeed feed split"`, "rowfeed feed --help"}},
		{"publish --once --replica", exitFailed, []string{"kv", "opened as a replica", "without --replica"}},
		{"feed bump", exitUsage, []string{"feed bump", "NAME is missing", "rowfeed feed bump --help"}},
		{"mirror kv --to stdout", exitUsage, []string{`"rowfeed mirror"`, "rowfeed --help"}},
		{"bench kv", exitUsage,
			[]string{`there is no measure "kv"`, "Next: name some of writers, drain, pages, consume, latency, idle"}},
		{"bench --rows 0", exitUsage, []string{"--rows 0 is not between 1 and 100000000", "Next:"}},
		{"bench --payload 1000000", exitUsage, []string{"--payload 1000000 is not between 1 and 10000", "Next:"}},
		{"bench --writers 0", exitUsage, []string{"--writers 0 is not between 1 and 1000", "Next:"}},
		{"bench --repetitions 0", exitUsage, []string{"--repetitions 0 is not between 1 and 1000", "Next:"}},
		{"bench --seconds 0", exitUsage, []string{"--seconds", `"0" is no number of seconds`, "rowfeed bench --help"}},
		{"bench --seconds NaN", exitUsage, []string{"--seconds", `"NaN" is no number of seconds`, "--help"}},
		{"bench --rate 0", exitUsage, []string{"--rate", `"0"`, "100/s", "--help"}},
		{"bench --rate 1000000", exitUsage, []string{"--rate 1e+06 is not between", "Next:"}},
		{"bench --replica", exitFailed, []string{"it writes", "without --replica"}},
		{"bench --no-publish", exitFailed, []string{"--no-publish"}},
		{"bench --db sqlite:absent.db", exitFailed, []string{"no file absent.db", "Next:"}},
		{"bench --clean --db sqlite:absent.db", exitFailed, []string{"no file absent.db", "Next:"}},
		{"bench drain --clean", exitUsage, []string{`"drain" is one argument too many`, "rowfeed bench --help"}},
		{"bench --db sqlite:rowfeed.db?_synchronous=OFF", exitFailed, []string{"power cut", "--unsafe-durability"}},
		{"consumer pause", exitUsage, []string{"CONSUMER is missing", "rowfeed consumer pause --help"}},
		{"consumer pause mail", exitFailed,
			[]string{`consumer "mail"`, "there is no such cursor", "rowfeed consumer list"}},
		{"consumer seek mail --feed kv", exitUsage, []string{"give --feed and --to", "--help"}},
		{"consumer seek mail --feed kv --to soon", exitUsage, []string{`"soon" is no cursor`, "Next:"}},
		{"consumer seek mail --feed kv --to 99", exitFailed, []string{`feed "kv"`, "ahead"}},
		{"consumer purge mail --feed kv", exitFailed,
			[]string{`consumer "mail" of feed "kv"`, "there is no such cursor"}},
		{"consumer purge mail", exitUsage, []string{"give --feed"}},
		{"consumer lsit", exitUsage, []string{`"rowfeed consumer lsit"`, "list", "rowfeed consumer --help"}},
		{"dead retry mail", exitUsage, []string{"which keys? Give --key or --all"}},
		{"dead retry mail --all --key 1", exitUsage, []string{"which keys?"}},
		{"dead retry mail --key 1", exitFailed,
			[]string{`consumer "mail"`, "no dead letter with key 1", "rowfeed dead list mail"}},
		{"fetch", exitUsage, []string{"fetch", "NAME is missing", "rowfeed fetch --help"}},
		{"fetch kv other", exitUsage, []string{`"other"`, "too many", "--help"}},
		{"fetch kv --colour red", exitUsage, []string{"--colour", "rowfeed fetch --help"}},
		{"fetch kv --limit 0", exitUsage, []string{`feed "kv"`, "--limit 0", "between 1 and 10000", "Next:"}},
		{"fetch kv --limit 10001", exitUsage, []string{"--limit 10001", "Next:"}},
		{"fetch kv --limit many", exitUsage, []string{"--limit", `"many"`, "--help"}},
		{"tail kv --limit 0", exitUsage, []string{"--limit 0"}},
		{"fetch kv --after x", exitUsage, []string{"after", `"x" is no cursor`, "Next: send back"}},
		{"fetch kv --after at:noon", exitUsage, []string{`"noon"`, "RFC 3339", "Next:"}},
		{"fetch kv --after 99", exitFailed, []string{`feed "kv"`, "ahead", "Next: start again"}},
		{"fetch kv --after 7:1", exitFailed, []string{`feed "kv"`, "generation", "Next: start again"}},
		{"fetch kv --wait -3s", exitUsage, []string{"--wait"}},
		{"fetch kw", exitFailed, []string{`feed "kw"`, "no such feed", "rowfeed feed list"}},
		{"fetch KV", exitUsage, []string{`"KV" is no feed name`, "lower-case", "Next:"}},
		{"tail kv --url 127.0.0.1:8080", exitUsage, []string{"url", "http://127.0.0.1:8080"}},
		{"tail kv --url ftp://127.0.0.1", exitUsage, []string{"url", "http://"}},
		{"tail kv --url http://127.0.0.1:1", exitFailed, []string{`feed "kv"`, "127.0.0.1:1", "Next:"}},
		{"feed add Kv --table kv", exitUsage, []string{`"Kv" is no feed name`, "Next:"}},
		{"feed add " + strings.Repeat("a", 40) + " --table kv", exitUsage, []string{"is no feed name"}},
		{"feed add new", exitUsage, []string{"table", "name the table", "Next:"}},
		{"feed add new --table absent", exitFailed,
			[]string{`table "absent"`, "does not exist", "Next: check the name"}},
		{"feed add new --table a.b.c", exitUsage, []string{`"a.b.c"`, "schema.table"}},
		{"feed add new --table nokey", exitFailed, []string{`table "nokey"`, "primary key", "Next:"}},
		{"feed add new --table nullkey --key a", exitFailed, []string{`table "nullkey"`, "NULL", "Next:"}},
		{"feed add new --table kv --key v", exitFailed, []string{`table "kv"`, "unique index", "Next:"}},
		{"feed add new --table kv --columns w", exitFailed, []string{`table "kv"`, `"w"`, "Next:"}},
		{"feed add new --table view1", exitFailed, []string{"view1", "view"}},
		{"feed add new --table kv --mode outbox --tombstones 1h", exitUsage, []string{"tombstones", "omit it"}},
		{"feed add new --table kv --mode outbox --position-column id", exitUsage,
			[]string{"position-column", "omit it"}},
		{"feed add new --table kv --mode outbox --capture column", exitUsage, []string{`"column"`, "app, trigger"}},
		{"feed add new --table kv --mode outbox --shard-column nothing", exitFailed,
			[]string{`no column "nothing"`, "Next:"}},
		{"feed add new --table kv --mode fast", exitUsage, []string{`"fast"`, "sequence"}},
		{"feed add new --table kv --capture telepathy", exitUsage, []string{"telepathy", "trigger, app, column"}},
		{"feed add new --table stamped --capture column", exitFailed, []string{"stamp", "--accept-triggers"}},
		{"feed add new --table kv --adopt", exitUsage, []string{"only feeds with capture column"}},
		{"feed add new --table kv --data-shards 0", exitUsage,
			[]string{"--data-shards 0 is not between 1 and 65536", "Next:"}},
		{"feed add new --table kv --data-shards 65537", exitUsage,
			[]string{"--data-shards 65537 is not between 1 and 65536", "Next:"}},
		{"feed add new --table kv --data-shards -5", exitUsage,
			[]string{"--data-shards -5 is not between 1 and 65536", "Next: leave it out"}},
		{"feed add new --table kv --data-shards many", exitUsage, []string{"--data-shards", "--help"}},
		{"feed add new --table kv --data-shards 4 --shard-column v", exitFailed,
			[]string{`"v" is not an integer column of the key (id)`, "Next:"}},
		{"fetch kv --shard -1", exitUsage, []string{"-1 is none of the feed's data shards"}},
		{"fetch kv --shard 70000", exitUsage, []string{"70000 is none of the feed's data shards"}},
		{"fetch kv --shard 1", exitUsage, []string{"shard", "1 is none of the feed's data shards"}},
		{"fetch kv --shard 2 --shard-count 2", exitUsage, []string{"2 is none of 2 shards, which are 0 to 1"}},
		{"fetch kv --shard 0 --shard-count 0", exitUsage, []string{"--shard-count 0 is not between 1 and 65536"}},
		{"fetch kv --shard-count 2", exitUsage, []string{"--shard-count has no --shard beside it", "Next:"}},
		{"relay kv --to https://example.com/ --shard-count 0", exitUsage,
			[]string{"--shard-count 0 is not between 1 and 65536", "Next:"}},
		{"relay kv --to https://example.com/ --shard-count -1", exitUsage,
			[]string{"--shard-count -1 is not between 1 and 65536", "Next:"}},
		{"relay kv --to https://example.com/ --shard-count 65537", exitUsage,
			[]string{"--shard-count 65537 is not between 1 and 65536", "Next:"}},
		{"tail kv --shard x", exitUsage, []string{"--shard", "--help"}},
		{"tail kv --shard 7 --shard-count 4", exitUsage, []string{"7 is none of 4 shards"}},
		{"feed add new --table kv --tombstones soon", exitUsage, []string{`"soon"`, "30d", "--help"}},
		{"feed add new --table kv --tombstones 0", exitUsage, []string{"tombstones", "Next:"}},
		{"feed add new --table kv --tombstones 1ms", exitUsage, []string{"tombstones", "second"}},
		{"feed add new --table kv --print", exitUsage, []string{"key", "--key id:bigint"}},
		{"feed add new --table kv --key a,,b", exitUsage, []string{`"a,,b"`, "empty name"}},
		{"feed add kv --table nokey", exitFailed, []string{`table "nokey"`}},
		{"feed drop kw", exitFailed, []string{`feed "kw"`, "no such feed", "rowfeed feed list"}},
		{"republish kv", exitUsage, []string{"republish kv", "--key", "--where", "--all"}},
		{"consumer reset mail --shard one", exitUsage, []string{"--shard", `"one" is no number of a shard`, "--help"}},
		{"consumer reset mail --shard -1", exitFailed,
			[]string{`shard -1`, "there is no such cursor", "rowfeed consumer list"}},
		{"republish kv --all --key 1", exitUsage, []string{"republish kv"}},
		{`republish kv --key {"ns":"a"}`, exitUsage,
			[]string{`feed "kv"`, "id INTEGER", `member "id" is missing`, "Next:"}},
		{"republish kv --key [1,2]", exitUsage, []string{`"[1,2]"`, "2 values", "Next:"}},
		{"republish kv --key one", exitUsage,
			[]string{`feed "kv"`, `"one" is no number`, `column "id"`, "Next: write the key as entries show it"}},
		{`unpublish kv --key ["one"]`, exitUsage, []string{`feed "kv"`, `"one" is no number`, "Next:"}},
		{"fetch kv --wait 2h", exitUsage,
			[]string{`feed "kv"`, "--wait 2h0m0s", "between 0s and 1m0s", "rowfeed tail"}},
		{"republish kv --all --rate fast", exitUsage, []string{`"fast"`, "100/s"}},
		{"republish kv --where nonsense", exitFailed, []string{`feed "kv"`, "nonsense"}},
		{"unpublish kv", exitUsage, []string{"unpublish kv", "--key"}},
		{"status kv kw", exitUsage, []string{`"kw"`, "too many"}},
		{"status --prefix bad-prefix-", exitUsage, []string{"prefix", `"bad-prefix-"`}},
		{"status --prefix -", exitUsage, []string{"prefix", "Next:"}},
		{"status --config absent.yaml", exitFailed, []string{"absent.yaml", "no such file", "--config"}},
		{"status --config bad.yaml", exitFailed, []string{"bad.yaml:3", `"colour"`, "db, prefix, schema, listen"}},
		{"status --db rowfeed.db", exitUsage, []string{`"rowfeed.db"`, "no database URL", "sqlite:rowfeed.db"}},
		{"status --db oracle://x", exitUsage, []string{`"oracle://x"`, "sqlite:path.db, postgres://"}},
		{"status --db sqlserver://sa:secret-word@h/d", exitUsage,
			[]string{"sqlserver://sa:***@h/d", "not supported in this version"}},
		{"status --db sqlite:absent.db", exitFailed, []string{"sqlite:absent.db", "no file", "rowfeed init"}},
		{"init --db sqlite:absent/x.db", exitFailed,
			[]string{"sqlite:absent/x.db", "no directory absent", "Next: create it"}},
		{"init --db sqlite:.", exitFailed, []string{"is a directory", "Next:"}},
		{"init --db sqlite::memory:", exitUsage, []string{":memory:", "needs a file"}},
		{"status --db sqlite:text.db", exitFailed, []string{"sqlite:text.db", "not a database", "Next:"}},
		{"status --db postgres://u:secret-word@127.0.0.1:1/d", exitFailed,
			[]string{"postgres://u:***@127.0.0.1:1/d", "127.0.0.1:1", "Next: check that the database runs"}},
		{"status --db mysql://u:secret-word@127.0.0.1:1/d", exitFailed,
			[]string{"mysql://u:***@127.0.0.1:1/d", "refused", "Next: check that the database runs"}},
		{"status --db postgres://u:secret/word@h/d", exitUsage, []string{"percent-encoded"}},
		{"serve --listen nowhere", exitUsage, []string{`"nowhere"`, "host:port"}},
		{"demo --rate 0", exitUsage, []string{`"0"`, "100/s", "rowfeed demo --help"}},
		{"demo --duration 0s", exitUsage, []string{"duration", "Next:"}},
		{"demo --db sqlite:rowfeed.db", exitFailed, []string{"sqlite:rowfeed.db", "not the demo's", "Next:"}},
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

// TestNotInitialized has a database without rowfeed's tables.
func TestNotInitialized(t *testing.T) {
	s := newShell(t)
	s.sql(createKV)
	for _, line := range []string{"feed add kv --table kv", "feed list", "feed drop kv", "publish", "publish --once kv",
		"serve --listen 127.0.0.1:0", "fetch kv", "tail kv", "republish kv --all", "unpublish kv --key 1", "check kv",
		"repair kv", "status"} {
		if got := s.fails(exitFailed, line); !strings.Contains(got, "rowfeed_feeds") ||
			!strings.Contains(got, "Next: run `rowfeed init`") {
			t.Errorf("rowfeed %s says %q", line, got)
		}
	}
}
