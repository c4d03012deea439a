package main

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/internal/test/terms"
)

// consume runs the consumer "mail" of the feed kv once; it cannot handle the key bad.
func (s *shell) consume(bad int64) { s.consumeBy(1, bad) }

// consumeBy runs consume with a number of shards.
func (s *shell) consumeBy(shards int, bad int64) {
	s.t.Helper()
	pool := s.pool()
	defer pool.Close()
	db, err := rowfeed.Open(s.t.Context(), pool, sqlite.New(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	f, err := db.Feed(s.t.Context(), "kv")
	if err != nil {
		s.t.Fatal(err)
	}
	c := rowfeed.Consumer{Name: "mail", ShardCount: shards, Source: f, DB: db, OnFailure: rowfeed.SetAside,
		Options: rowfeed.ConsumerOptions{Retry: rowfeed.Retry{MaxAttempts: 1, Backoff: time.Millisecond}},
		Handle: func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
			for _, e := range entries {
				if id, _ := e.Key.Get("id"); id == bad {
					return errors.New("no such address\nin two lines")
				}
			}
			return nil
		}}
	if err := c.RunOnce(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// times and ages match what differs between two runs of a command.
var (
	times = regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	ages  = regexp.MustCompile(`("behind_seconds": )[0-9.e-]+`)
)

// shows runs a command whose output must be want, apart from times, ages, terms and the widths of columns.
func (s *shell) shows(line, want string) {
	s.t.Helper()
	got := times.ReplaceAllString(terms.Fix(s.ok(line)), "2026-01-31T12:00:00Z")
	if got = ages.ReplaceAllString(got, "${1}AGE"); narrow(got) != narrow(want) {
		s.t.Errorf("rowfeed %s\n got: %s\nwant: %s", line, got, want)
	}
}

// TestConsumerCommandsShowAndMoveCursors (M72): an operator lists, pauses, resumes, moves and drops a consumer.
func TestConsumerCommandsShowAndMoveCursors(t *testing.T) {
	s := withFeed(t)
	s.prints("consumer list",
		"there are no consumers; a consumer creates its cursor when it starts, see rowfeed.Consumer\n")
	s.prints("consumer list mail --json", "[]\n")
	s.consume(0)
	s.shows("consumer list", `
CONSUMER  FEED  SHARD   BEHIND  STATE  DEAD LETTERS
mail      kv    0 of 1  0       ok     0
`[1:])
	s.shows("consumer list -o wide", `
CONSUMER  FEED  SHARD   CURSOR        BEHIND  STATE  DEAD LETTERS  MOVED                 HOLDER
mail      kv    0 of 1  3.9k3f2c7adq  0       ok     0             2026-01-31T12:00:00Z  -
`[1:])
	s.prints("consumer pause mail", "mail: paused\n")
	s.sql("INSERT INTO kv VALUES (4, 'd', 'e', 'f')")
	s.ok("publish --once")
	s.shows("consumer list mail --feed kv --shard 0 --json", `[
  {
    "consumer": "mail",
    "feed": "kv",
    "shard": 0,
    "shard_count": 1,
    "cursor": "3.9k3f2c7adq",
    "generation": 1,
    "epoch": 0,
    "paused": true,
    "dead_letters": 0,
    "moved_at": "2026-01-31T12:00:00Z",
    "failure": null,
    "target": "",
    "lease": null,
    "behind": 1,
    "behind_seconds": AGE
  }
]
`)
	if out := s.ok("status"); !regexp.MustCompile(`kv: consumer mail is 1 \(\S+\) behind, cursor "3\.\w+", paused\n`).
		MatchString(out) {
		t.Errorf("status: %s", out)
	}
	s.prints("consumer resume mail --feed kv", "mail of kv: resumed\n")
	s.prints("consumer seek mail --feed kv --to 2", "mail of kv: set to 2\n")
	if out := s.ok("consumer list --json"); !strings.Contains(out, `"cursor": "2"`) {
		t.Errorf("after seek: %s", out)
	}
	for to, cause := range map[string]string{
		"": "--to is empty", "99": "ahead of the feed's head", "x": "not a cursor", "7:1": "generation 7",
	} {
		code := cli.ExitFailed
		if to == "" || to == "x" {
			code = cli.ExitUsage
		}
		if text := s.fails(code, "consumer seek mail --feed kv --to="+to); !strings.Contains(text, cause) ||
			strings.Contains(text, "after") {
			t.Errorf("seek to %q: %s", to, text)
		}
	}
	if out := s.ok("consumer list --json"); !strings.Contains(out, `"cursor": "2"`) {
		t.Errorf("after refused seeks: %s", out)
	}
	s.prints("consumer reset mail", "mail: set back to the beginning\n")
	if out := s.ok("consumer list -o wide"); !strings.Contains(out, ` ""      4, `) {
		t.Errorf("after reset: %s", out)
	}
	const noMatch = "no cursor matches; `rowfeed consumer list` shows all consumers\n"
	for _, filter := range []string{"mai", "mail --feed other", "--shard 7"} {
		s.prints("consumer list "+filter, noMatch)
	}
	s.prints("consumer purge mail --feed kv", "mail of kv: 0 processed ids deleted\n")
	s.prints("consumer purge mail --feed kv --to 3", "mail of kv: 0 processed ids deleted\n")
	s.prints("consumer drop mail", "mail: dropped\n")
	s.prints("consumer list mail", noMatch)
}

const noLetters = "there are no dead letters in this database; a consumer has its dead letters in the database " +
	"of its cursor, see --db\n"

// TestDeadCommandsShowRetryAndDropLetters (M72): an operator lists dead letters, has them tried again, and drops them.
func TestDeadCommandsShowRetryAndDropLetters(t *testing.T) {
	s := withFeed(t)
	s.prints("dead list", noLetters)
	s.prints("dead list --json", "{\n  \"letters\": [],\n  \"next\": \"\"\n}\n")
	s.consume(2)
	s.shows("dead list mail", `
CONSUMER  FEED  KEY       STATE  ATTEMPTS  ERROR
mail      kv    {"id":2}  aside  2         no such address in two lines
`[1:])
	s.shows("dead list mail -o wide", `
CONSUMER  FEED  SHARD  KEY       OP      POSITION  STATE  ATTEMPTS  JOINED  SINCE                 ERROR
mail  kv  0  {"id":2}  upsert  2  aside  2  0  2026-01-31T12:00:00Z  no such address in two lines
`[1:])
	if out := terms.Fix(s.ok("status kv")); !strings.Contains(out,
		`consumer mail is 0 behind, cursor "3.9k3f2c7adq", 1 dead letter`) {
		t.Errorf("status: %s", out)
	}
	s.shows("dead show mail --key 2", `mail of kv, shard 0: key {"id":2}, upsert at position 2 (generation 1), aside
  set aside 2026-01-31T12:00:00Z, last tried or joined 2026-01-31T12:00:00Z, 2 attempts, 0 later versions joined
  no such address
  in two lines
  row: {"id":2,"ns":"a","k":"b","v":null}
`)
	s.shows("dead show mail --json", `{
  "letters": [
    {
      "consumer": "mail",
      "feed": "kv",
      "shard": 0,
      "data_shard": 0,
      "key": {
        "id": 2
      },
      "generation": 1,
      "position": "2",
      "op": "upsert",
      "state": "aside",
      "attempts": 2,
      "collapsed": 0,
      "error": "no such address\nin two lines",
      "first_at": "2026-01-31T12:00:00Z",
      "last_at": "2026-01-31T12:00:00Z",
      "row": {
        "id": 2,
        "ns": "a",
        "k": "b",
        "v": null
      }
    }
  ],
  "next": ""
}
`)
	s.prints(`dead retry mail --key {"id":2}`, "mail: 1 dead letter to be tried again by the consumer\n")
	s.consume(2) // the consumer fails again
	if out := s.ok("dead list --json"); !strings.Contains(out, `"attempts": 3`) ||
		!strings.Contains(out, `"state": "aside"`) {
		t.Errorf("after a retry that failed: %s", out)
	}
	s.prints("dead retry mail --all --yes", "mail: 1 dead letter to be tried again by the consumer\n")
	s.consume(0)
	s.prints("dead list", noLetters)
	s.ok("republish kv --all")
	s.ok("publish --once")
	s.consume(3)
	s.prints("dead drop mail --key 3", "mail: 1 dead letter given up\n")
	s.prints("dead drop mail --all", "mail: 0 dead letters given up\n")
	for _, verb := range []string{"retry", "drop"} { // of a mistyped consumer
		for _, keys := range []string{"--all", "--key 3"} {
			if out := s.fails(1, "dead "+verb+" male "+keys); !strings.Contains(out, "rowfeed consumer list") &&
				!strings.Contains(out, "rowfeed dead list") {
				t.Errorf("dead %s of an unknown consumer: %s", verb, out)
			}
		}
	}
}

// TestConsumerCommandsSelectShards (M22, M72): the commands work on one shard of a consumer and on all.
func TestConsumerCommandsSelectShards(t *testing.T) {
	s := newShell(t)
	s.sql(createKV, "INSERT INTO kv VALUES (1, '', 'fred', 'jim'), (2, 'a', 'b', NULL), (3, 'a', 'c', 'x')")
	s.ok("init")
	s.ok("feed add kv --table kv --data-shards 8") // row 1 is in data shard 7, row 2 in 5, row 3 in 3
	s.ok("publish --once")
	s.consumeBy(2, 2)
	s.prints("consumer pause mail --feed kv --shard 1", "mail of kv, shard 1: paused\n")
	s.shows("consumer list mail -o wide", `
CONSUMER  FEED  SHARD   CURSOR              BEHIND  STATE   DEAD LETTERS  MOVED                 HOLDER
mail      kv    0 of 2  3.9k3f2c7adq_0-4-8  0       ok      0             2026-01-31T12:00:00Z  -
mail      kv    1 of 2  3.9k3f2c7adq_4-8-8  0       paused  1             2026-01-31T12:00:00Z  -
`[1:])
	s.prints("consumer seek mail --feed kv --shard 0 --to 2", "mail of kv, shard 0: set to 2\n")
	for _, note := range []string{
		`kv: consumer mail, shard 0 of 2, is 1 \(\S+\) behind, cursor "2_0-4-8"\n`,
		`kv: consumer mail, shard 1 of 2, is 0 behind, cursor "3\.\w+_4-8-8", paused, 1 dead letter\n`,
	} {
		if out := s.ok("status"); !regexp.MustCompile(note).MatchString(out) {
			t.Errorf("status does not say %s: %s", note, out)
		}
	}
	if out := s.ok("dead list mail --shard 1 --json"); !strings.Contains(out, `"shard": 1,`) ||
		!strings.Contains(out, `"data_shard": 5,`) {
		t.Errorf("dead list: %s", out)
	}
	s.prints("dead list mail --shard 0", "no dead letter matches the consumer and the filters\n")
	s.prints("dead retry mail --shard 0 --all", "mail: 0 dead letters to be tried again by the consumer\n")
	s.prints("dead drop mail --shard 1 --key 2", "mail: 1 dead letter given up\n")
	s.prints("consumer resume mail", "mail: resumed\n")
	s.prints("consumer reset mail --shard 1", "mail, shard 1: set back to the beginning\n")
	for _, line := range []string{
		"consumer pause mail --shard 2", "consumer seek mail --feed kv --shard 2 --to 1",
		"dead drop mail --shard 2 --all --yes",
	} {
		if out := s.fails(1, line); !strings.Contains(out,
			"shard 2: there is no such cursor, but there are some of feed kv (shards 0 to 1)") ||
			!strings.Contains(out, "rowfeed consumer list") {
			t.Errorf("%s: %s", line, out)
		}
	}
	s.fails(2, "consumer drop mail --shard 1")
	s.prints("consumer drop mail", "mail: dropped\n")
}
