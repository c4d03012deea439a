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
	"github.com/rowfeed/rowfeed/dialect/sqlite"
)

// consume runs the consumer "mail" of the feed kv once; it cannot handle the key bad.
func (s *shell) consume(bad int64) {
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
	c := rowfeed.Consumer{Name: "mail", Source: f, DB: db, OnFailure: rowfeed.SetAside, Retry: rowfeed.Retry{MaxAttempts: 1, Backoff: time.Millisecond},
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

// Moments and ages in an output become the same ones.
var (
	times = regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	ages  = regexp.MustCompile(`("behind_seconds": )[0-9.e-]+`)
)

// shows runs a line whose output, but for moments, must be this.
func (s *shell) shows(line, want string) {
	s.t.Helper()
	got := times.ReplaceAllString(s.ok(line), "2026-01-31T12:00:00Z")
	if got = ages.ReplaceAllString(got, "${1}AGE"); got != want {
		s.t.Errorf("rowfeed %s\n got: %s\nwant: %s", line, got, want)
	}
}

// TestConsumerCommands (M72) is a consumer's life as operators see it.
func TestConsumerCommands(t *testing.T) {
	s := withFeed(t)
	s.prints("consumer list", "there are no consumers; each makes its cursor when it starts, see rowfeed.Consumer\n")
	s.prints("consumer list mail --json", "[]\n")
	s.consume(0)
	s.shows("consumer list", `┌──────────┬──────┬────────┬────────┬────────┬────────┬──────────────┬──────────────────────┐
│ consumer │ feed │ shard  │ cursor │ behind │ paused │ dead letters │ moved                │
├──────────┼──────┼────────┼────────┼────────┼────────┼──────────────┼──────────────────────┤
│ mail     │ kv   │ 0 of 1 │ 3      │ 0      │ no     │            0 │ 2026-01-31T12:00:00Z │
└──────────┴──────┴────────┴────────┴────────┴────────┴──────────────┴──────────────────────┘
`)
	s.prints("consumer pause mail", "mail: paused\n")
	s.sql("INSERT INTO kv VALUES (4, 'd', 'e', 'f')")
	s.ok("publish --once")
	s.shows("consumer list mail --feed kv --shard 0 --json", `[
  {
    "consumer": "mail",
    "feed": "kv",
    "shard": 0,
    "shard_count": 1,
    "cursor": "3",
    "generation": 1,
    "epoch": 0,
    "paused": true,
    "dead_letters": 0,
    "moved_at": "2026-01-31T12:00:00Z",
    "behind": 1,
    "behind_seconds": AGE
  }
]
`)
	if out := s.ok("status"); !regexp.MustCompile(`kv: consumer mail is 1, \S+ behind, cursor "3", paused\n`).MatchString(out) {
		t.Errorf("status: %s", out)
	}
	s.prints("consumer resume mail --feed kv", "mail of kv: resumed\n")
	s.prints("consumer seek mail --feed kv --to 2", "mail of kv: set to 2\n")
	if out := s.ok("consumer list --json"); !strings.Contains(out, `"cursor": "2"`) {
		t.Errorf("after seek: %s", out)
	}
	s.prints("consumer reset mail", "mail: set back to the beginning\n")
	if out := s.ok("consumer list"); !strings.Contains(out, `│ ""     │ 4, `) {
		t.Errorf("after reset: %s", out)
	}
	s.prints("consumer purge mail --feed kv", "mail of kv: 0 processed ids forgotten\n")
	s.prints("consumer purge mail --feed kv --to 3", "mail of kv: 0 processed ids forgotten\n")
	s.prints("consumer drop mail", "mail: dropped\n")
	s.prints("consumer list mail", "there is no cursor of a consumer mail\n")
}

// TestDeadCommands: dead letters as operators see them.
func TestDeadCommands(t *testing.T) {
	s := withFeed(t)
	s.prints("dead list", "there are no dead letters\n")
	s.prints("dead list --json", "[]\n")
	s.consume(2)
	s.shows("dead list mail", `┌──────────┬──────┬──────────┬────────┬──────────┬───────┬──────────┬────────┬──────────────────────┬─────────────────┐
│ consumer │ feed │ key      │ op     │ position │ state │ attempts │ joined │ since                │ error           │
├──────────┼──────┼──────────┼────────┼──────────┼───────┼──────────┼────────┼──────────────────────┼─────────────────┤
│ mail     │ kv   │ {"id":2} │ upsert │ 2        │ aside │        2 │      0 │ 2026-01-31T12:00:00Z │ no such address │
└──────────┴──────┴──────────┴────────┴──────────┴───────┴──────────┴────────┴──────────────────────┴─────────────────┘
`)
	if out := s.ok("status kv"); !strings.Contains(out, `consumer mail is 0 behind, cursor "3", 1 dead letter`) {
		t.Errorf("status: %s", out)
	}
	s.shows("dead show mail --key 2", `mail of kv: key {"id":2}, upsert at position 2 (generation 1), aside
  set aside 2026-01-31T12:00:00Z, last tried or joined 2026-01-31T12:00:00Z, 2 attempts, 0 later versions joined
  no such address
  in two lines
`)
	s.shows("dead show mail --json", `[
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
    "last_at": "2026-01-31T12:00:00Z"
  }
]
`)
	s.prints(`dead retry mail --key {"id":2}`, "mail: 1 dead letter to be tried again by the consumer\n")
	s.consume(2) // it fails again
	if out := s.ok("dead list --json"); !strings.Contains(out, `"attempts": 3`) || !strings.Contains(out, `"state": "aside"`) {
		t.Errorf("after a retry that failed: %s", out)
	}
	s.prints("dead retry mail --all", "mail: 1 dead letter to be tried again by the consumer\n")
	s.consume(0)
	s.prints("dead list", "there are no dead letters\n")
	s.ok("republish kv --all")
	s.ok("publish --once")
	s.consume(3)
	s.prints("dead drop mail --key 3", "mail: 1 dead letter given up\n")
	s.prints("dead drop mail --all", "mail: 0 dead letters given up\n")
}
