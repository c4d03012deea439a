package plans

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// statement is one of the statements that publishers and readers run all the time, as the library sent it.
type statement struct {
	name     string
	sql      string
	args     []any
	settings []string // the settings of its transaction
}

// nameOf returns the name of a statement that publishers and readers run all the time, and "" for all others.
func nameOf(text string) string {
	has := func(parts ...string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(text, p) })
	}
	switch {
	case has("SELECT consumer, feed", "dead_letters", "ORDER BY consumer"):
		return "list letters"
	case strings.HasPrefix(text, "UPDATE") && has("dead_letters", "key_digest IN"):
		return "retry letters"
	case strings.HasPrefix(text, "WITH batch"):
		return "publish batch"
	case has("SELECT seq FROM", "LIMIT 1"):
		return "has changes"
	case has("SELECT seq, kind"):
		return "take changes"
	case has("SELECT value, version"):
		return "lock sequence"
	case has("SELECT shard FROM", "outbox_hot", "WHERE shard > "):
		return "shards of records"
	case has("SELECT order_sequence, time_hint"):
		return "take records"
	case has("SELECT order_sequence FROM", "DESC"):
		return "newest record"
	case has("SELECT shard FROM", "outbox_hot", "LIMIT 1"):
		return "has records"
	case has("SELECT shard FROM", "outbox_hot"):
		return "list shards"
	case (strings.HasPrefix(text, "INSERT") || strings.HasPrefix(text, "WITH own")) && has("feed_hot"):
		return "place records"
	case strings.HasPrefix(text, "DELETE") && has("outbox_hot"):
		return "delete records"
	case has("LEFT JOIN (SELECT"):
		return "page"
	case has("SELECT g.", " DESC, g.", " DESC LIMIT 1"):
		return "last shard"
	case strings.HasPrefix(text, "INSERT") && has("positions_hot"):
		return "assign positions"
	case strings.HasPrefix(text, "SELECT") && has("OFFSET"):
		return "last key of a range"
	case strings.HasPrefix(text, "INSERT") && has("changes_hot", "SELECT"):
		return "record a range"
	case strings.HasPrefix(text, "DELETE") && has("changes_hot"):
		return "delete changes"
	case strings.HasPrefix(text, "UPDATE") && has("SET value"):
		return "advance sequence"
	case strings.HasPrefix(text, "UPDATE") && has("SET time_ms"):
		return "advance shard"
	}
	return ""
}

// plans records and explains the statements of the feed "hot".
type plans struct {
	*suite.Env
	explainer
	batch int
	mu    sync.Mutex
	seen  []statement
	stop  bool // make a publication's commit fail, so that nothing changes
	rf    *rowfeed.DB
	feed  *rowfeed.Feed
}

func newPlans(x *suite.Env, batch int) *plans {
	x.Helper()
	p := &plans{Env: x, batch: batch}
	p.explainer = newExplainer(p)
	settings := map[int64][]string{}
	published := map[int64]bool{} // the connections whose transaction has published
	before := func(_ context.Context, ev testdb.TapEvent) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case ev.Kind == testdb.Begin:
			settings[ev.Conn], published[ev.Conn] = nil, false
		case ev.Kind == testdb.Exec && ev.InTx && len(ev.Args) == 0 && nameOf(ev.SQL) == "" &&
			!strings.HasPrefix(ev.SQL, "UPDATE") && !strings.HasPrefix(ev.SQL, "INSERT"):
			settings[ev.Conn] = append(settings[ev.Conn], ev.SQL)
		case ev.Kind == testdb.Commit && published[ev.Conn] && p.stop:
			return testdb.ErrInjected
		}
		if name := nameOf(ev.SQL); name != "" {
			h := statement{name: name, sql: ev.SQL}
			if ev.InTx {
				h.settings = slices.Clone(settings[ev.Conn])
			} else if i := strings.LastIndex(ev.SQL, "; "); i > 0 { // settings in the same message
				h.settings, h.sql = []string{ev.SQL[:i]}, ev.SQL[i+2:]
			}
			h.args = values(ev)
			p.seen = append(p.seen, h)
			published[ev.Conn] = published[ev.Conn] || name == "advance sequence" || name == "advance shard"
			if name == "publish batch" && p.stop {
				return testdb.ErrInjected // it is the only statement, and commits
			}
		}
		return nil
	}
	pool := x.DB.OpenTapped(x.T, testdb.Hooks{Before: before})
	rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, &rowfeed.Config{BatchSize: batch})
	if err != nil {
		x.Fatal(err)
	}
	p.rf = rf
	if p.feed, err = rf.Feed(x.Ctx, "hot"); err != nil {
		x.Fatal(err)
	}
	return p
}

// during returns the statements with a name that do sends. Publications change nothing.
func (p *plans) during(do func() error) []statement {
	p.Helper()
	p.mu.Lock()
	p.seen, p.stop = nil, true
	p.mu.Unlock()
	if err := do(); err != nil && !errors.Is(err, testdb.ErrInjected) {
		p.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stop = false
	return p.seen
}

// cost is how many rows and pages a statement read, as far as the database counts them.
type cost struct{ rows, pages int }

// measure publishes and reads pages, asserts that no statement reads a table whole, and returns what each one cost.
func (p *plans) measure(state string) map[string]cost {
	p.Helper()
	head, err := p.feed.Fetch(p.Ctx, rowfeed.Request{After: rowfeed.Now})
	if err != nil {
		p.Fatal(err)
	}
	costs := map[string]cost{}
	note := func(where string, list []statement) {
		p.Helper()
		for _, h := range list {
			name := h.name
			if where != "" {
				name += " " + where
			}
			if _, done := costs[name]; !done {
				costs[name] = p.explain(state+", "+name, h)
			}
		}
	}
	note("", p.during(func() error { _, err := p.feed.Publish(p.Ctx); return err }))
	var position int64
	_, _ = fmt.Sscan(string(head.Cursor), &position)
	cursors := cursorsUpTo(position)
	cursors["at the head"] = rowfeed.Cursor(fmt.Sprint(position))
	for where, after := range cursors {
		note(where, p.during(func() error {
			_, err := p.feed.Fetch(p.Ctx, rowfeed.Request{After: after, Limit: p.batch})
			return err
		}))
	}
	return costs
}

// cursorsUpTo returns three cursors below a position.
func cursorsUpTo(position int64) map[string]rowfeed.Cursor {
	return map[string]rowfeed.Cursor{
		"at the start":  "0",
		"in the middle": rowfeed.Cursor(fmt.Sprint(position / 2)),
		"at the end":    rowfeed.Cursor(fmt.Sprint(max(0, position-10))),
	}
}

// explain measures one statement, and asserts that it touches few rows.
func (p *plans) explain(what string, s statement) cost {
	p.Helper()
	c := p.cost(what, s)
	if c.rows > p.bound() {
		p.Errorf("%s: %d rows were touched for a batch of %d\n%s", what, c.rows, p.batch, s.sql)
	}
	return c
}
