package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestUpgradeAndBumpSayWhoBeginsAgain (M72): on a terminal, `feed bump` and `feed upgrade --data-shards` name the
// consumers that get entries again, and ask. --dry-run says the same, and changes nothing. A script is not asked.
func TestUpgradeAndBumpSayWhoBeginsAgain(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		db := e.New(t)
		db.Exec(t, createServerKV)
		db.Exec(t, "INSERT INTO kv VALUES (1, 'jim')")
		s := newShell(t)
		s.env["ROWFEED_DB"] = db.URL
		s.ok("init")
		s.ok("feed add kv --table kv")
		s.ok("publish --once")
		const elsewhere = "So must every reader that stores its cursor elsewhere. "
		effect := "No consumer in this database has read it. " + elsewhere
		asked := func(line, change string) {
			t.Helper()
			question, out, errs := s.answers("n", line)
			if want := "kv: " + change + "? " + effect + "[y/N] "; question != want || out != "" ||
				!strings.Contains(errs, "nothing was changed") {
				t.Errorf("%s: asked %q, want %q; printed %q %q", line, question, want, out, errs)
			}
		}
		asked("feed bump kv", "begin a new generation")
		hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		defer hook.Close()
		for _, name := range []string{"mail", "billing --shard-count 8"} {
			s.ok("relay kv --to " + hook.URL + " --allow-private --once --consumer " + name)
		}
		effect = "2 consumers in this database must begin again at the beginning (billing, mail). " + elsewhere
		asked("feed bump kv", "begin a new generation")
		s.prints("feed bump kv --dry-run", "kv: "+effect+"Nothing was changed.\n")
		effect = "All cursors stay valid. "
		asked("feed upgrade kv --data-shards 1024", "change it from 1 to 1024 data shards")
		effect = "Cursors of the whole feed stay valid. Consumers of parts in this database begin at the lowest of " +
			"their cursors, and get what is above it again: billing. Readers of parts that store their cursors " +
			"elsewhere must begin at the lowest of theirs. Consumers with more than 7 shards fail until they are run " +
			"with fewer: billing. At most 7 readers can share the feed then, in place of 1024. "
		asked("feed upgrade kv --data-shards 7", "change it from 1 to 7 data shards")
		s.prints("feed bump kv --adopt-database --dry-run", "kv: Generation and cursors stay. Nothing was changed.\n")
		s.prints("feed upgrade kv --data-shards 7 --dry-run",
			"kv: to do: change it from 1 to 7 data shards. "+effect[:len(effect)-1]+"\nkv: nothing was changed\n")
		s.prints("feed upgrade kv --dry-run", "kv: nothing was changed\n")
		s.ok("feed add own --table kv --data-shards 4 --shard-column id")
		s.prints("feed upgrade own --data-shards 8 --dry-run", "own: to do: change it from 4 to 8 data shards. "+
			"Cursors of the whole feed stay valid. Readers of parts that store their cursors elsewhere must begin at "+
			"the lowest of theirs.\nown: nothing was changed\n")
		s.ok("feed drop own")
		for _, line := range []string{"feed upgrade kv", "feed upgrade kv --data-shards 1"} { // every reader goes on
			if question, out, errs := s.answers("", line); question != "" || out == "" || errs != "" {
				t.Errorf("%s: asked %q, printed %q %q", line, question, out, errs)
			}
		}
		if out := s.ok("feed list --json"); !strings.Contains(out, `"generation": 1,`) ||
			!strings.Contains(out, `"data_shards": 1`) {
			t.Errorf("the feed was changed: %s", out)
		}

		if e == testdb.SQLite {
			db.Exec(t, "DROP TRIGGER rowfeed_kv_insert")
			if out := s.ok("feed upgrade kv --dry-run"); !strings.Contains(out, "kv: to mend: ") ||
				s.fails(cli.ExitFailed, "check kv") == "" {
				t.Errorf("--dry-run with a trigger that is missing: %s", out)
			}
		}
		if question, out, _ := s.answers("y", "feed upgrade kv --data-shards 7"); question == "" ||
			!strings.Contains(out, "kv: 7 data shards\n") {
			t.Errorf("asked %q, printed %q", question, out)
		}
		if question, out, _ := s.answers("", "feed bump kv --yes"); question != "" ||
			!strings.Contains(out, "consumers start at the beginning") {
			t.Errorf("with --yes: asked %q, printed %q", question, out)
		}
		s.ok("feed bump kv")
	})
}

// TestUpgradeToTriggersSaysWhatItMakes (M28, M72): `feed upgrade --capture trigger` says beforehand what it makes on
// the team's table, and asks on a terminal. --dry-run says the same, and changes nothing. A script is not asked.
func TestUpgradeToTriggersSaysWhatItMakes(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		db := e.New(t)
		db.Exec(t, createServerKV)
		s := newShell(t)
		s.env["ROWFEED_DB"] = db.URL
		s.ok("init")
		s.ok("feed add kv --table kv --capture column")
		db.Exec(t, "INSERT INTO kv (id, v) VALUES (1, 'jim')")
		s.ok("publish --once")
		before := s.ok("feed show kv --json")
		question, _, errs := s.answers("n", "feed upgrade kv --capture trigger")
		change, effect, found := strings.Cut(strings.TrimSuffix(question, " [y/N] "), "? ")
		if !found || !strings.Contains(change, "make rowfeed's triggers on table") ||
			!strings.Contains(change, "drop those of a fence") ||
			!strings.Contains(effect, "your own columns, indexes and triggers stay") ||
			!strings.Contains(effect, "move readers that select it by SQL first") ||
			!strings.Contains(errs, "nothing was changed") {
			t.Errorf("asked %q, printed %q", question, errs)
		}
		s.prints("feed upgrade kv --capture trigger --dry-run",
			"kv: to do: "+strings.TrimPrefix(change, "kv: ")+". "+effect+"\nkv: nothing was changed\n")
		if after := s.ok("feed show kv --json"); after != before {
			t.Errorf("the feed was\n%s\nand is\n%s", before, after)
		}
		for _, line := range []string{"--capture column", "--capture trigger --fence",
			"--capture trigger --published-here", "--capture trigger --data-shards 4"} {
			if errs := s.fails(cli.ExitUsage, "feed upgrade kv "+line); !strings.Contains(errs, "--capture") {
				t.Errorf("%s: %s", line, errs)
			}
		}
		out := s.ok("feed upgrade kv --capture trigger")
		if !strings.Contains(out, "triggers record its changes from now on") {
			t.Errorf("printed %q", out)
		}
		db.Exec(t, "UPDATE kv SET v = 'bob' WHERE id = 1")
		s.ok("publish --once")
		if out := s.ok("fetch kv --after 1"); !strings.Contains(out, "bob") {
			t.Errorf("fetched %q", out)
		}
		if out := s.ok("feed upgrade kv --capture trigger"); !strings.Contains(out, "already") {
			t.Errorf("printed %q", out)
		}
		s.ok("feed add kv --table kv --capture trigger")
	})
}

// TestUpgradeSaysWhatItWrites (M18, M28): `feed upgrade --data-shards` says how many rows get their first data shard
// from a column of the table and are published again, in its question, with --dry-run, and to a script. It refuses to
// write a column shard that the table has of its own.
func TestUpgradeSaysWhatItWrites(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		db := e.New(t)
		db.Exec(t, "CREATE TABLE own (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL)")
		db.Exec(t, "CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL, feed_sync_id BIGINT NULL)")
		s := newShell(t)
		s.env["ROWFEED_DB"] = db.URL
		s.ok("init")
		s.ok("feed add own --table own --capture column --shard-column shard --data-shards 4")
		db.Exec(t, "INSERT INTO own (id, shard) VALUES (1, 3), (2, 6), (3, 9)")
		s.ok("publish --once")
		const effect = "Cursors of the whole feed stay valid. 1 row without a data shard so far will be published " +
			"again: rowfeed sets their feed_sync_id to NULL. Readers of parts that store their cursors elsewhere " +
			"must begin at the lowest of theirs."
		db.Exec(t, "UPDATE own SET shard = 1, feed_sync_id = NULL WHERE id = 3")
		s.ok("publish --once")
		s.prints("feed upgrade own --data-shards 8 --dry-run",
			"own: to do: change it from 4 to 8 data shards. "+effect+"\nown: nothing was changed\n")
		question, _, _ := s.answers("n", "feed upgrade own --data-shards 8")
		if want := "own: change it from 4 to 8 data shards? " + effect + " [y/N] "; question != want {
			t.Errorf("asked %q, want %q", question, want)
		}
		if out := s.ok("feed upgrade own --data-shards 8"); !strings.Contains(out, "1 row without a data shard") {
			t.Errorf("a script is told %s", out)
		}

		if r := s.run(strings.Fields("feed add kv --table kv --capture column --adopt")...); r.code != cli.ExitDone {
			t.Fatal(r)
		}
		for _, line := range []string{"feed upgrade kv --data-shards 8 --dry-run", "feed upgrade kv --data-shards 8"} {
			if errs := s.fails(cli.ExitFailed, line); !strings.Contains(errs, `column "shard" is its own`) {
				t.Errorf("%s: %s", line, errs)
			}
		}
	})
}

// TestFeedAddDryRunChangesNothing (M28): `feed add --dry-run` says what the command will say before it changes a table,
// and from which positions an adopting feed and its consumers go on. It refuses what the command refuses, and changes
// nothing.
func TestFeedAddDryRunChangesNothing(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		db := e.New(t)
		db.Exec(t, "CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL, feed_sync_id BIGINT NULL)")
		db.Exec(t, "CREATE TABLE plain (id BIGINT NOT NULL PRIMARY KEY)")
		db.Exec(t, "CREATE TABLE sequences (name VARCHAR(100) NOT NULL PRIMARY KEY, value BIGINT NOT NULL)")
		db.Exec(t, "CREATE TABLE cursors (name VARCHAR(100) NOT NULL PRIMARY KEY, value BIGINT NOT NULL)")
		db.Exec(t, "INSERT INTO kv VALUES (1, 3, 7), (2, 7, NULL)")
		db.Exec(t, "INSERT INTO sequences VALUES ('kv', 9)")
		db.Exec(t, "INSERT INTO cursors VALUES ('search', 6)")
		s := newShell(t)
		s.env["ROWFEED_DB"] = db.URL
		s.ok("init")
		before := s.ok("feed list") + s.ok("consumer list")
		const adopt = "feed add kv --table kv --capture column --adopt --adopt-sequence sequences --adopt-cursors " +
			"cursors --data-shards 512"
		const announced = "feed kv will add to table kv: indexes on feed_sync_id. It will write into its rows: " +
			"feed_sync_id, where it is NULL"
		s.prints(adopt+" --shard-column shard --dry-run", "kv: "+announced+
			"\nkv: rowfeed's positions will be above 9\n"+
			"kv: consumers without a cursor will get one: search at position 6\nkv: nothing was changed\n")
		if errs := s.fails(cli.ExitFailed, adopt+" --dry-run"); !strings.Contains(errs, "has values of its own") {
			t.Errorf("a column with values of its own: %s", errs)
		}
		s.prints("feed add plain --table plain --dry-run", "plain: feed plain will add to table plain: triggers. "+
			"It will write into its rows: nothing\nplain: nothing was changed\n")
		if after := s.ok("feed list") + s.ok("consumer list"); after != before {
			t.Errorf("--dry-run left\n%s\nof\n%s", after, before)
		}
		r := s.run(strings.Fields(adopt + " --shard-column shard")...)
		if r.code != cli.ExitDone || !strings.HasPrefix(r.err, "rowfeed: "+announced+"\n") {
			t.Errorf("announced %q, exit code %d", r.err, r.code)
		}
		s.prints(adopt+" --shard-column shard --dry-run", "kv: is a feed of table kv already, nothing changed\n")
		s.ok("feed drop kv")
		if out := s.ok(adopt + " --shard-column shard --dry-run"); !strings.Contains(out, "stay valid") {
			t.Errorf("of a dropped feed: %s", out)
		}
	})
}

// TestInterruptedDropIsTold (M28): a drop was interrupted. `feed drop` does not call the feed dropped already:
// --dry-run says what is left and removes nothing, and a plain drop says what was not handed back.
func TestInterruptedDropIsTold(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		db := e.New(t)
		db.Exec(t, "CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, feed_sync_id BIGINT NULL)")
		db.Exec(t, "CREATE TABLE sequences (name VARCHAR(100) NOT NULL PRIMARY KEY, value BIGINT NOT NULL)")
		db.Exec(t, "INSERT INTO kv VALUES (1, 7), (2, NULL)")
		db.Exec(t, "INSERT INTO sequences VALUES ('kv', 9)")
		s := newShell(t)
		s.env["ROWFEED_DB"] = db.URL
		s.ok("init")
		const add = "feed add kv --table kv --capture column --adopt --adopt-sequence sequences"
		if r := s.run(strings.Fields(add)...); r.code != cli.ExitDone {
			t.Fatal(r)
		}
		s.ok("publish --once")
		state := func(to string) {
			db.Exec(t, "UPDATE rowfeed_feeds SET state = '"+to+"' WHERE state <> '"+to+"'")
		}
		state("dropping")
		out := s.ok("feed drop kv --dry-run")
		if !strings.Contains(out, "An earlier drop was interrupted") ||
			!strings.HasSuffix(out, "Nothing was changed.\n") {
			t.Errorf("--dry-run prints %q", out)
		}
		state("active")
		s.ok("fetch kv") // the dry run has removed nothing
		s.ok("feed drop kv")
		const owed = ". It was not handed back: `rowfeed feed drop kv --hand-back` would write: table "
		state("dropping")
		for _, line := range []string{"feed drop kv --dry-run", "feed drop kv"} {
			if out := s.ok(line); !strings.Contains(out, "interrupted") || !strings.Contains(out, owed) {
				t.Errorf("%s prints %q", line, out)
			}
		}
		if out := s.ok("feed drop kv"); !strings.HasPrefix(out, "kv: is dropped already, nothing changed"+owed) {
			t.Errorf("a second drop prints %q", out)
		}
		state("dropping")
		s.run("feed", "drop", "kv", "--hand-back")
		s.prints("feed drop kv", "kv: is dropped already, nothing changed\n")
	})
}
