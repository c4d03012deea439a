package main

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
)

// answers runs a command on a terminal where a user gives the answer. It returns the question, stdout and stderr.
func (s *shell) answers(answer, line string) (question, out, errs string) {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	a := &cli.App{Stdout: &stdout, Stderr: &stderr, Getenv: func(name string) string { return s.env[name] },
		Ask: func(_ context.Context, text string) (string, error) {
			question = text
			return answer, nil
		}}
	a.Report(s.t.Context(), execute(s.t.Context(), a, line))
	return question, stdout.String(), stderr.String()
}

// withLetters makes a database whose consumer "mail" has 250 dead letters: keys 2 and 1001 to 1249.
func withLetters(t *testing.T) *shell {
	s := withFeed(t)
	s.consume(2)
	s.sql("WITH RECURSIVE n (i) AS (SELECT 1001 UNION ALL SELECT i + 1 FROM n WHERE i < 1249) INSERT INTO "+
		"rowfeed_dead_letters SELECT consumer, feed, shard, i, replace(key_json, '2', i), generation, position, op, "+
		"state, attempts, collapsed, 'status ' || (500 + i % 3) || ' after ' || i || ' s', first_at + i, "+
		"last_at + i, data_shard FROM rowfeed_dead_letters, n", "UPDATE rowfeed_cursors SET aside = 250")
	return s
}

// TestDeadListHasPagesAndGroups (M72): an operator reads thousands of dead letters page by page, filters them by error
// and key, and sees how many there are of each error.
func TestDeadListHasPagesAndGroups(t *testing.T) {
	s := withLetters(t)
	end := regexp.MustCompile(`\n100 of 250 dead letters are shown; for the next page, ` +
		`repeat the command with --after (\S+)\n$`)
	seen, line := 0, "dead list mail"
	for pages := 1; ; pages++ {
		out := s.ok(line)
		seen += strings.Count(out, `{"id":`)
		next := end.FindStringSubmatch(out)
		if next == nil {
			if pages != 3 || seen != 250 {
				t.Errorf("%d letters on %d pages, want 250 on 3", seen, pages)
			}
			break
		}
		line = "dead list mail --after " + next[1]
	}
	if out := s.ok("dead list --limit 1 --json"); strings.Count(out, `"key"`) != 1 ||
		strings.Contains(out, `"next": ""`) {
		t.Errorf("a page of one letter: %s", out)
	}
	s.shows("dead list --group --json --error status", `[
  {
    "consumer": "mail",
    "feed": "kv",
    "error": "status # after # s",
    "letters": 249,
    "first_at": "2026-01-31T12:00:00Z",
    "last_at": "2026-01-31T12:00:00Z"
  }
]
`)
	if out := s.ok("dead list --group"); !regexp.MustCompile(`249 .* status # after # s`).MatchString(out) ||
		!regexp.MustCompile(` 1 .* no such address`).MatchString(out) {
		t.Errorf("the groups are %s", out)
	}
	if out := s.ok("dead list --key 2 --json"); strings.Count(out, `"key"`) != 1 {
		t.Errorf("the letter of key 2: %s", out)
	}
	s.prints("dead list --error 404", "no dead letter matches the consumer and the filters\n")
	for _, flags := range []string{"--after 12", "--after W10", "--after bnVsbA", "--group --after W10", "--limit 0",
		"--limit -1", "--limit 1001", "--key 2 --key 3"} {
		s.fails(cli.ExitUsage, "dead list "+flags)
	}
	if out := s.fails(cli.ExitUsage, "dead show mail --limit 5000"); !strings.Contains(out, "1 to 1000") {
		t.Errorf("too high a limit: %s", out)
	}
	s.ok("dead list --key 2 --key 2")
	s.sql("UPDATE rowfeed_dead_letters SET collapsed = 1")
	if out := s.ok("dead show mail --key 2"); !strings.Contains(out, "1 later version joined") {
		t.Errorf("one later version: %s", out)
	}
	s.ok("feed drop kv")
	if out := s.ok("dead show mail --key 2"); !strings.Contains(out, "row: the feed is not in this database\n") {
		t.Errorf("without the feed: %s", out)
	}
}

// TestUnknownConsumerIsNamed: commands about dead letters, and a preview of a reset, refuse a consumer, feed or shard
// without a cursor.
func TestUnknownConsumerIsNamed(t *testing.T) {
	s := withLetters(t)
	for _, line := range []string{"dead list nosuch", "dead list --feed nosuch", "dead list mail --shard 9",
		"dead list nosuch --group", "dead show nosuch", "dead drop nosuch --all --dry-run", "dead drop nosuch --all",
		"consumer reset nosuch --dry-run", "consumer reset mail --shard 9 --dry-run", "consumer reset nosuch"} {
		if out := s.fails(cli.ExitFailed, line); !strings.Contains(out, "there is no such cursor") {
			t.Errorf("%s: %s", line, out)
		}
	}
}

// TestEmptyKeySelectsNothing: an empty --key, --feed, --error or CONSUMER, as of a variable that is not set, is
// refused. It would select all dead letters, or all feeds. A key that is the empty text is written as JSON.
func TestEmptyKeySelectsNothing(t *testing.T) {
	s := withLetters(t)
	for _, verb := range []string{"retry", "drop", "show", "list"} {
		for _, args := range [][]string{{"mail", "--key", ""}, {"mail", "--key="}, {"mail", "--key", "", "--key", "2"},
			{"mail", "--key", "2", "--key", ""}, {"", "--key", "2"}, {"mail", "--feed", ""}, {"mail", "--error="}} {
			r := s.run(append([]string{"dead", verb}, args...)...)
			if r.code != cli.ExitUsage || !strings.Contains(r.err, "empty") {
				t.Errorf("dead %s %q: exit code %d, %s %s", verb, args, r.code, r.out, r.err)
			}
		}
	}
	for _, verb := range []string{"reset", "pause"} {
		if r := s.run("consumer", verb, "mail", "--feed", ""); r.code != cli.ExitUsage ||
			!strings.Contains(r.err, "leave the flag out") {
			t.Errorf("consumer %s: exit code %d, %s %s", verb, r.code, r.out, r.err)
		}
	}
	if r := s.run("dead", "drop", "mail", "--key", ""); !strings.Contains(r.err, "--key: ") ||
		!strings.Contains(r.err, `--key '""'`) {
		t.Errorf("the flag and the next step: %s", r.err)
	}
	s.prints("dead list mail --key 2 --limit 1 --error 404", "no dead letter matches the consumer and the filters\n")
	s.prints("dead drop mail --key 2 --key 2 --dry-run", "mail: 1 dead letter selected; nothing was changed\n")
	s.prints("dead drop mail --key 2 --key 2", "mail: 1 dead letter given up\n")
	s.prints("dead drop mail --all --dry-run", "mail: 249 dead letters selected; nothing was changed\n")
}

// TestDeadRetryAndDropAskWithCount (M72): before dead letters are retried or dropped, a terminal shows how many there
// are and asks. Without a terminal nothing is changed, unless --yes is given or keys are named.
func TestDeadRetryAndDropAskWithCount(t *testing.T) {
	s := withLetters(t)
	left := func(want int) {
		t.Helper()
		var n, aside int
		if err := s.pool().QueryRow("SELECT (SELECT count(*) FROM rowfeed_dead_letters), "+
			"(SELECT aside FROM rowfeed_cursors)").Scan(&n, &aside); err != nil || n != want || aside != want {
			t.Errorf("%d letters are left and the cursor counts %d, want %d, %v", n, aside, want, err)
		}
	}
	for _, verb := range []string{"retry", "drop"} {
		for _, of := range []string{"mail --all", "--all", "mail --error after"} {
			out := s.fails(cli.ExitFailed, "dead "+verb+" "+of)
			if !strings.Contains(out, verb+" 2") || !strings.Contains(out, "repeat the command with --yes") {
				t.Errorf("dead %s %s without a terminal: %s", verb, of, out)
			}
		}
		for _, answer := range []string{"", "n\n", "x"} {
			question, out, errs := s.answers(answer, "dead "+verb+" mail --all")
			if !strings.HasPrefix(question, "mail: "+verb+" 250 dead letters? ") || out != "" ||
				!strings.Contains(errs, "nothing was changed") {
				t.Errorf("the answer %q: asked %q, printed %q %q", answer, question, out, errs)
			}
		}
		if question, _, _ := s.answers("", "dead "+verb+" --error after"); !strings.HasPrefix(question,
			"all consumers: "+verb+" 249 dead letters? ") {
			t.Errorf("asked %q", question)
		}
		s.fails(cli.ExitUsage, "dead "+verb)
		s.fails(cli.ExitUsage, "dead "+verb+" --all --error after")
	}
	s.prints("dead drop --all --dry-run", "all consumers: 250 dead letters selected; nothing was changed\n")
	s.prints("dead retry mail --error after --dry-run", "mail: 249 dead letters selected; nothing was changed\n")
	left(250)
	if out := s.ok("dead list --json --limit 1000"); strings.Contains(out, `"state": "retry"`) {
		t.Errorf("a letter is to be retried: %.200s", out)
	}
	question, out, _ := s.answers("y\n", "dead drop mail --error 404")
	if question != "" || !strings.HasPrefix(out, "mail: 0 ") {
		t.Errorf("without letters: asked %q, printed %q", question, out)
	}
	s.prints("dead retry --error 501 --yes", "all consumers: 83 dead letters to be tried again by the consumer\n")
	if _, out, errs := s.answers("Yes\n", "dead drop mail --error after"); out != "mail: 249 dead letters given up\n" {
		t.Errorf("dropped: %q %q", out, errs)
	}
	left(1)
	if question, _, _ := s.answers("", "dead retry mail --key 2"); question != "" {
		t.Errorf("a letter named by its key: asked %q", question)
	}
	s.prints("dead drop mail --key 2", "mail: 1 dead letter given up\n")
	left(0)
}

// TestSeekResetAndDropSayTheirEffect (M72): on a terminal, `consumer seek`, `consumer reset` and `feed drop` say how
// much is skipped, sent again or lost, and ask. An impossible cursor is refused before. A script is not asked.
func TestSeekResetAndDropSayTheirEffect(t *testing.T) {
	s := withFeed(t)
	s.consume(0)
	for _, c := range []struct{ line, question string }{
		{"consumer seek mail --feed kv --to 1",
			"mail of kv: set it to 1? The consumer receives the entries at the last 2 positions again. "},
		{"consumer seek mail --feed kv --to now", "mail of kv: set it to now? The cursor does not move. "},
		{"consumer seek mail --feed kv --to at:2001-02-03T04:05:06Z", "mail of kv: set it to " +
			"at:2001-02-03T04:05:06Z? The consumer receives the entries at the last 3 positions again. "},
		{"consumer reset mail",
			"mail: set it back to the beginning? The consumer receives the entries at the last 3 positions again. "},
		{"feed drop kv", "kv: drop the feed? 1 consumer in this database can no longer read it (mail). " +
			"Its changes and positions are lost. "},
	} {
		question, out, errs := s.answers("n\n", c.line)
		if question != c.question+"[y/N] " || out != "" || !strings.Contains(errs, "nothing was changed") {
			t.Errorf("%s: asked %q, printed %q %q", c.line, question, out, errs)
		}
		if out := s.ok(c.line + " --dry-run"); !strings.HasSuffix(out, "Nothing was changed.\n") {
			t.Errorf("%s --dry-run: %s", c.line, out)
		}
	}
	if question, _, errs := s.answers("y", "consumer seek mail --feed kv --to 99"); question != "" ||
		!strings.Contains(errs, "99") {
		t.Errorf("a cursor above the head: asked %q, printed %q", question, errs)
	}
	if out := s.ok("consumer list mail --json"); !strings.Contains(out, `"cursor": "3.`) {
		t.Errorf("the consumer was moved: %s", out)
	}
	s.prints("consumer seek mail --feed kv --to 1", "mail of kv: set to 1\n")
	if question, _, _ := s.answers("y", "consumer seek mail --feed kv --to now"); !strings.Contains(question,
		"The consumer never receives the entries at the next 2 positions.") {
		t.Errorf("forward: asked %q", question)
	}
	question, out, _ := s.answers("", "consumer reset mail --yes")
	if question != "" || !strings.Contains(out, "set back") {
		t.Errorf("with --yes: asked %q, printed %q", question, out)
	}
	s.prints("feed drop kv", "kv: dropped\n")
}
