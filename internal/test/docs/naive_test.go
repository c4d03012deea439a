package docs_test

import (
	"context"
	"database/sql"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// schedule is a table of NAIVE.md: the statements of each session, and their results.
type schedule struct {
	title   string
	engines []string
	steps   []step
}

type step struct{ who, statement, gets string }

var (
	scheduleStart = regexp.MustCompile(`^<!-- schedule: (.*) -->$`)
	scheduleStep  = regexp.MustCompile("^\\| (\\w+) \\| `(.*)` \\|(.*)\\|$")
)

func schedules(t *testing.T) (all []schedule) {
	t.Helper()
	text, err := os.ReadFile("NAIVE.md")
	if err != nil {
		t.Fatal(err)
	}
	title := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "## ") {
			title = line[3:]
		} else if m := scheduleStart.FindStringSubmatch(line); m != nil {
			all = append(all, schedule{title: title, engines: strings.Split(m[1], ", ")})
		} else if m := scheduleStep.FindStringSubmatch(line); m != nil && len(all) > 0 {
			last := &all[len(all)-1]
			last.steps = append(last.steps, step{m[1], m[2], strings.TrimSpace(m[3])})
		}
	}
	return all
}

// TestUsualDesignsLoseRows: the usual designs lose rows just as NAIVE.md says.
func TestUsualDesignsLoseRows(t *testing.T) {
	all := schedules(t)
	if len(all) < 8 {
		t.Fatalf("%d schedules", len(all))
	}
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		for _, s := range all {
			if slices.Contains(s.engines, e.Name) {
				t.Run(s.title, func(t *testing.T) { s.run(t, e.New(t)) })
			}
		}
	})
}

// run runs the statements of each session on a connection of its own.
func (s schedule) run(t *testing.T, db *testdb.Database) {
	ctx := context.Background()
	conns := map[string]*sql.Conn{}
	for _, step := range s.steps {
		conn := conns[step.who]
		if step.statement == "dies" {
			conn.Close()
			delete(conns, step.who)
			continue
		}
		if conn == nil {
			var err error
			if conn, err = db.Admin().Conn(ctx); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			conns[step.who] = conn
		}
		if step.gets == "" {
			if _, err := conn.ExecContext(ctx, step.statement); err != nil {
				t.Fatalf("%s: %s: %v", step.who, step.statement, err)
			}
			continue
		}
		var got []string
		rows, err := conn.QueryContext(ctx, step.statement)
		if err != nil {
			t.Fatalf("%s: %s: %v", step.who, step.statement, err)
		}
		for rows.Next() {
			var value string
			if err := rows.Scan(&value); err != nil {
				t.Fatal(err)
			}
			got = append(got, value)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		want := step.gets
		if want == "nothing" {
			want = ""
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %s gets %q, not %q", step.who, step.statement, got, step.gets)
		}
	}
}
