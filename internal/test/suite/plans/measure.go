package plans

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// hot is one of the statements that run all day, as the library sent it.
type hot struct {
	name     string
	sql      string
	args     []any
	settings []string // what ran before it in its transaction, but for bounds on waiting
}

// hotName says which hot statement it is; empty for all others.
func hotName(text string) string {
	has := func(parts ...string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(text, p) })
	}
	switch {
	case strings.HasPrefix(text, "WITH batch"):
		return "publish alike"
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
	}
	return ""
}

// plans watches the feed "hot" and measures what its statements do.
type plans struct {
	*suite.Env
	batch int
	mu    sync.Mutex
	seen  []hot
	stop  bool // fail a publication at its last statement, so that nothing changes
	feed  *rowfeed.Feed
}

func newPlans(x *suite.Env, batch int) *plans {
	x.Helper()
	p := &plans{Env: x, batch: batch}
	settings := map[int64][]string{}
	before := func(_ context.Context, ev testdb.TapEvent) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case ev.Kind == testdb.Begin:
			settings[ev.Conn] = nil
		case ev.Kind == testdb.Exec && ev.InTx && len(ev.Args) == 0 && hotName(ev.SQL) == "" &&
			!strings.HasPrefix(ev.SQL, "UPDATE") && !strings.HasPrefix(ev.SQL, "INSERT"):
			settings[ev.Conn] = append(settings[ev.Conn], ev.SQL)
		case strings.HasPrefix(ev.SQL, "UPDATE") && p.stop &&
			(strings.Contains(ev.SQL, "SET value") || strings.Contains(ev.SQL, "SET time_ms")):
			return testdb.ErrInjected
		}
		if name := hotName(ev.SQL); name != "" {
			h := hot{name: name, sql: ev.SQL}
			if ev.InTx {
				h.settings = slices.Clone(settings[ev.Conn])
			} else if i := strings.LastIndex(ev.SQL, "; "); i > 0 { // settings in the same message
				h.settings, h.sql = []string{ev.SQL[:i]}, ev.SQL[i+2:]
			}
			for _, a := range ev.Args {
				h.args = append(h.args, a.Value)
			}
			p.seen = append(p.seen, h)
			if name == "publish alike" && p.stop {
				return testdb.ErrInjected // it is the last one
			}
		}
		return nil
	}
	pool := x.DB.OpenTapped(x.T, testdb.Hooks{Before: before})
	rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, &rowfeed.Config{BatchSize: batch})
	if err != nil {
		x.Fatal(err)
	}
	if p.feed, err = rf.Feed(x.Ctx, "hot"); err != nil {
		x.Fatal(err)
	}
	return p
}

// during collects the hot statements that do sends.
func (p *plans) during(do func() error) []hot {
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

// cost is what one statement did: rows touched, and pages where the database tells.
type cost struct{ rows, pages int }

// measure runs everything that happens all day and answers what each statement
// cost, having asserted that none of them reads a table whole.
func (p *plans) measure(state string) map[string]cost {
	p.Helper()
	head, err := p.feed.Fetch(p.Ctx, rowfeed.Request{After: rowfeed.Now})
	if err != nil {
		p.Fatal(err)
	}
	costs := map[string]cost{}
	note := func(where string, list []hot) {
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

// explain measures one statement by the means of the database.
func (p *plans) explain(what string, h hot) cost {
	p.Helper()
	var c cost
	switch p.Family() {
	case "sqlite":
		p.explainSQLite(what, h)
	case "postgres":
		for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
			c = p.explainPostgres(what+", "+mode, h, mode)
		}
	case "mysql":
		c = p.explainMySQL(what, h)
	}
	if c.rows > p.bound() {
		p.Errorf("%s: %d rows touched for a batch of %d\n%s", what, c.rows, p.batch, h.sql)
	}
	return c
}

// bound is how many rows one statement may touch: every step of a batch or a page is
// a lookup or two for each of its keys, and MySQL counts those of every step.
func (p *plans) bound() int {
	if p.Family() == "mysql" {
		return 10*p.batch + 200
	}
	return 2*p.batch + 100
}

// node is a node of a plan in PostgreSQL's JSON.
type node struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Index    string  `json:"Index Name"`
	Rows     float64 `json:"Actual Rows"`
	Loops    float64 `json:"Actual Loops"`
	Filtered float64 `json:"Rows Removed by Filter"`
	Joined   float64 `json:"Rows Removed by Join Filter"`
	Hit      int     `json:"Shared Hit Blocks"`
	Read     int     `json:"Shared Read Blocks"`
	Plans    []node  `json:"Plans"`
}

func (n node) each(do func(node)) {
	do(n)
	for _, child := range n.Plans {
		child.each(do)
	}
}

func (n node) text(indent string) string {
	t := fmt.Sprintf("%s%s %s %s: %.0f rows %.0f times, %.0f filtered, %.0f not joined, %d pages\n",
		indent, n.Type, n.Relation, n.Index, n.Rows, n.Loops, n.Filtered, n.Joined, n.Hit+n.Read)
	for _, child := range n.Plans {
		t += child.text(indent + "  ")
	}
	return t
}

func (p *plans) explainPostgres(what string, h hot, mode string) cost {
	p.Helper()
	tx := p.Begin(sql.LevelReadCommitted)
	defer func() { _ = tx.Rollback() }()
	p.In(tx, h.settings...)
	p.In(tx, "SET LOCAL plan_cache_mode = "+mode, "PREPARE hot AS "+h.sql)
	args := make([]string, len(h.args))
	for i, a := range h.args {
		args[i] = fmt.Sprintf("'%v'", a)
	}
	execute := "EXECUTE hot"
	if len(args) > 0 {
		execute += "(" + strings.Join(args, ", ") + ")"
	}
	var text string
	if err := tx.QueryRowContext(p.Ctx, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+execute).Scan(&text); err != nil {
		p.Fatalf("%s: %v\n%s", what, err, h.sql)
	}
	p.In(tx, "DEALLOCATE hot")
	var explained []struct {
		Plan node
		JIT  json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &explained); err != nil {
		p.Fatal(err)
	}
	c := cost{pages: explained[0].Plan.Hit + explained[0].Plan.Read}
	bad := ""
	if explained[0].JIT != nil {
		bad = "compiled: " + string(explained[0].JIT)
	}
	if c.pages > 40*p.batch+500 {
		bad = fmt.Sprint(c.pages, " pages")
	}
	explained[0].Plan.each(func(n node) {
		touched := int((n.Rows + n.Filtered + n.Joined) * n.Loops)
		c.rows = max(c.rows, touched)
		tested := n.Relation == "hot" || strings.HasPrefix(n.Relation, "rowfeed_")
		if n.Type == "Seq Scan" && tested || strings.HasPrefix(n.Type, "Bitmap") {
			bad = n.Type + " on " + n.Relation
		}
	})
	if bad != "" || c.rows > p.bound() {
		p.Errorf("%s: %s\n%s\n%s", what, bad, h.sql, explained[0].Plan.text(""))
	}
	return c
}

func (p *plans) explainMySQL(what string, h hot) cost {
	p.Helper()
	conn, err := p.DB.Admin().Conn(p.Ctx)
	if err != nil {
		p.Fatal(err)
	}
	defer conn.Close()
	run := func(query string, args ...any) {
		p.Helper()
		rows, err := conn.QueryContext(p.Ctx, query, args...)
		if err != nil {
			p.Fatalf("%s: %v\n%s", what, err, query)
		}
		for rows.Next() {
		}
		if err := rows.Close(); err != nil {
			p.Fatalf("%s: %v\n%s", what, err, query)
		}
	}
	run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
	run("FLUSH STATUS")
	run("START TRANSACTION")
	run(h.sql, h.args...)
	var c cost
	rows, err := conn.QueryContext(p.Ctx, "SHOW SESSION STATUS LIKE 'Handler_read_%'")
	if err != nil {
		p.Fatal(err)
	}
	var told []string
	for rows.Next() {
		var name string
		var n int
		if err := rows.Scan(&name, &n); err != nil {
			p.Fatal(err)
		}
		c.rows += n
		if n > 0 {
			told = append(told, fmt.Sprint(name, " ", n))
		}
	}
	_ = rows.Close()
	run("ROLLBACK")
	if c.rows > p.bound() {
		p.Log(what, told)
	}
	return c
}

var (
	// cutToLimit are the parts of SQLite's plan of a page that a LIMIT ends.
	cutToLimit = []string{"MATERIALIZE p", "CO-ROUTINE p", "CO-ROUTINE own", "CO-ROUTINE placed"}
	// endedByLimit are the statements whose scans a LIMIT ends.
	endedByLimit = []string{"has changes", "take changes", "last key of a range", "last shard", "has records"}
	// smallTables are the names of tables that a statement may read whole: they have the rows of a batch or a page.
	smallTables = []string{"j", "json_each", "p", "sqlite_schema", "f", "s", "h", "own", "placed", "both_parts"}
)

// explainSQLite looks at the plan alone: SQLite counts nothing that could be read.
func (p *plans) explainSQLite(what string, h hot) {
	p.Helper()
	rows, err := p.DB.Admin().QueryContext(p.Ctx, "EXPLAIN QUERY PLAN "+h.sql, h.args...)
	if err != nil {
		p.Fatalf("%s: %v\n%s", what, err, h.sql)
	}
	defer rows.Close()
	var text strings.Builder
	bad := ""
	inside := map[int]bool{} // of the part of a page that is cut to the limit
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			p.Fatal(err)
		}
		fmt.Fprintf(&text, "%d %d %s\n", id, parent, detail)
		inside[id] = inside[parent] || slices.Contains(cutToLimit, detail)
		if detail == "CO-ROUTINE both_parts" { // each of which is cut: what is sorted is two pages at most
			inside[id], inside[parent] = false, false
		}
		scan, isScan := strings.CutPrefix(detail, "SCAN ")
		table, _, _ := strings.Cut(scan, " ")
		whole := isScan && !slices.Contains(smallTables, table) && !strings.HasPrefix(scan, "CONSTANT") &&
			!slices.Contains(endedByLimit, h.name)
		onRange := strings.HasPrefix(detail, "SEARCH t ") && strings.Contains(h.name, "range") &&
			strings.Contains(h.sql, `t."ns"`)
		switch {
		case whole:
			bad = detail
		case onRange && !strings.Contains(detail, "(ns,k)>(") && !strings.Contains(detail, "(ns,k)<("):
			bad = detail // begins again at the first key of its ns
		case strings.Contains(detail, "TEMP B-TREE") && h.name != "assign positions" &&
			(h.name != "page" || inside[id]): // those sort a batch or a page
			bad = detail
		}
	}
	if bad != "" {
		p.Errorf("%s: %s\n%s%s", what, bad, text.String(), h.sql)
	}
}
