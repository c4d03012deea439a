package plans

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// explainer tells what statements cost. Databases tell that in different ways.
type explainer interface {
	// cost explains a statement, asserts that no table is read whole, and returns what the database counted.
	cost(what string, s statement) cost
	// explainPlacing asserts the same of the statements that gave positions to rows.
	explainPlacing(state string, sent []testdb.TapEvent)
	// explainWalk asserts the same of the statements that gave other shards to a batch of keys. A batch is resumed if
	// it begins behind a key.
	explainWalk(state string, sent []testdb.TapEvent, resumed bool)
	// touched returns how many rows the statements of the transaction's session have read.
	touched(tx *sql.Tx) int
	// bound returns how many rows one statement may touch. Each step of a batch or a page is one or two lookups for
	// each of its keys.
	bound() int
}

// newExplainer returns the explainer of the database.
func newExplainer(p *plans) explainer {
	p.Helper()
	explainers := map[string]explainer{
		"lines":  byLines{p},
		"nodes":  byNodes{p, counted{}},
		"counts": byCounts{p, counted{}},
	}
	e, ok := explainers[p.Text("plans.explained_by")]
	if !ok {
		p.Fatalf("the fixture's text plans.explained_by is none of lines, nodes and counts")
	}
	return e
}

// counted is the part of an explainer whose database counts the rows that a session reads: touched has the count, so
// that the plans of the statements need not be read.
type counted struct{}

func (counted) explainPlacing(string, []testdb.TapEvent) {}

func (counted) explainWalk(string, []testdb.TapEvent, bool) {}

// byLines reads plans that are lines of text, one for each step. The database counts no rows.
type byLines struct{ *plans }

func (byLines) bound() int { return 0 }

func (byLines) touched(*sql.Tx) int { return 0 }

// planLine is a line of a plan. A line with another one's id as parent is a part of that step.
type planLine struct {
	id, parent int
	detail     string
}

func (e byLines) lines(query string, args []any) (lines []planLine) {
	e.Helper()
	rows, err := e.DB.Admin().QueryContext(e.Ctx, e.Text("plans.explain", query), args...)
	if err != nil {
		e.Fatalf("%v\n%s", err, query)
	}
	defer rows.Close()
	for rows.Next() {
		var l planLine
		var unused int
		if err := rows.Scan(&l.id, &l.parent, &unused, &l.detail); err != nil {
			e.Fatal(err)
		}
		lines = append(lines, l)
	}
	if err := rows.Err(); err != nil {
		e.Fatal(err)
	}
	return lines
}

var (
	// cutToLimit are the parts of SQLite's plan of a page that a LIMIT ends.
	cutToLimit = []string{"MATERIALIZE p", "CO-ROUTINE p", "CO-ROUTINE own", "CO-ROUTINE placed"}
	// endedByLimit are the statements whose scans a LIMIT ends.
	endedByLimit = []string{"has changes", "take changes", "last key of a range", "last shard", "has records",
		"list letters"}
	// smallTables are the names of tables that a statement may read whole: they have the rows of a batch or a page.
	smallTables = []string{"j", "json_each", "p", "sqlite_schema", "f", "s", "h", "own", "placed", "both_parts"}
)

func (e byLines) cost(what string, s statement) cost {
	e.Helper()
	var text strings.Builder
	bad := ""
	inside := map[int]bool{} // the parts of a page that a LIMIT ends
	for _, l := range e.lines(s.sql, s.args) {
		fmt.Fprintf(&text, "%d %d %s\n", l.id, l.parent, l.detail)
		inside[l.id] = inside[l.parent] || slices.Contains(cutToLimit, l.detail)
		if l.detail == "CO-ROUTINE both_parts" { // a LIMIT ends each part, so that at most two pages are sorted
			inside[l.id], inside[l.parent] = false, false
		}
		scan, isScan := strings.CutPrefix(l.detail, "SCAN ")
		table, _, _ := strings.Cut(scan, " ")
		whole := isScan && !slices.Contains(smallTables, table) && !strings.HasPrefix(scan, "CONSTANT") &&
			!slices.Contains(endedByLimit, s.name)
		onRange := strings.HasPrefix(l.detail, "SEARCH t ") && strings.Contains(s.name, "range") &&
			strings.Contains(s.sql, `t."ns"`)
		switch {
		case whole:
			bad = l.detail
		case onRange && !strings.Contains(l.detail, "(ns,k)>(") && !strings.Contains(l.detail, "(ns,k)<("):
			bad = l.detail // begins again at the first key with this ns
		case strings.Contains(l.detail, "TEMP B-TREE") && s.name != "assign positions" &&
			(s.name != "page" || inside[l.id]): // these two sort a batch or a page
			bad = l.detail
		}
	}
	if bad != "" {
		e.Errorf("%s: the plan has the step %q\n%s%s", what, bad, text.String(), s.sql)
	}
	return cost{}
}

// explainPlacing asserts that neither the table nor the positions are read whole.
func (e byLines) explainPlacing(state string, sent []testdb.TapEvent) {
	e.Helper()
	whole := regexp.MustCompile(`^SCAN (r|t|p$)`)
	for _, ev := range sent {
		if !strings.HasPrefix(ev.SQL, "UPDATE") && !strings.HasPrefix(ev.SQL, "DELETE") {
			continue
		}
		for _, l := range e.lines(ev.SQL, values(ev)) {
			if whole.MatchString(l.detail) && !strings.Contains(l.detail, "rowfeed_hot_row_waiting") {
				e.Errorf("%s: the plan has the step %q\n%s", state, l.detail, ev.SQL)
			}
		}
	}
}

// explainWalk asserts that keys are read in the order of an index, from the first key of the batch, and that their
// shards are written by index.
func (e byLines) explainWalk(state string, sent []testdb.TapEvent, resumed bool) {
	e.Helper()
	var seen []string
	for _, ev := range sent {
		read := strings.HasPrefix(ev.SQL, "SELECT t.feed_sync_id")
		if slices.Contains(seen, ev.SQL) || !read && !strings.HasPrefix(ev.SQL, "UPDATE") {
			continue
		}
		seen = append(seen, ev.SQL)
		for _, l := range e.lines(ev.SQL, values(ev)) {
			scan := strings.HasPrefix(l.detail, "SCAN") && !strings.HasPrefix(l.detail, "SCAN json_each")
			if strings.Contains(l.detail, "TEMP B-TREE") || scan && (!read || resumed) {
				e.Errorf("%s: the plan has the step %q\n%s", state, l.detail, ev.SQL)
			}
		}
	}
}

// values returns the arguments of a statement.
func values(ev testdb.TapEvent) (args []any) {
	for _, a := range ev.Args {
		args = append(args, a.Value)
	}
	return args
}

// byNodes reads plans that are trees of nodes, with the rows and pages that each node has read.
type byNodes struct {
	*plans
	counted
}

func (e byNodes) bound() int { return 2*e.batch + 100 }

func (e byNodes) touched(tx *sql.Tx) (n int) {
	e.Helper()
	if err := tx.QueryRowContext(e.Ctx, e.Text("plans.rows_read")).Scan(&n); err != nil {
		e.Fatal(err)
	}
	return n
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

// cost explains the plan that is made for the statement's values, and the one that a session keeps for all values.
func (e byNodes) cost(what string, s statement) (c cost) {
	e.Helper()
	for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
		c = e.costOfPlan(what+", "+mode, s, mode)
	}
	return c
}

func (e byNodes) costOfPlan(what string, s statement, mode string) cost {
	e.Helper()
	tx := e.Begin(sql.LevelReadCommitted)
	defer tx.Rollback()
	e.In(tx, s.settings...)
	e.In(tx, e.Statements("plans.prepare", mode, s.sql)...)
	args := ""
	for i, a := range s.args {
		args += map[bool]string{true: "(", false: ", "}[i == 0] + e.literal(a)
	}
	if args != "" {
		args += ")"
	}
	var text string
	if err := tx.QueryRowContext(e.Ctx, e.Text("plans.explain", args)).Scan(&text); err != nil {
		e.Fatalf("%s: %v\n%s", what, err, s.sql)
	}
	e.In(tx, e.Text("plans.deallocate"))
	var explained []struct {
		Plan node
		JIT  json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &explained); err != nil {
		e.Fatal(err)
	}
	plan := explained[0].Plan
	c := cost{pages: plan.Hit + plan.Read}
	bad := ""
	if explained[0].JIT != nil {
		bad = "the plan was compiled: " + string(explained[0].JIT)
	}
	if c.pages > 40*e.batch+500 {
		bad = fmt.Sprint(c.pages, " pages were read")
	}
	plan.each(func(n node) {
		c.rows = max(c.rows, int((n.Rows+n.Filtered+n.Joined)*n.Loops))
		tested := n.Relation == "hot" || strings.HasPrefix(n.Relation, "rowfeed_")
		if n.Type == "Seq Scan" && tested || strings.HasPrefix(n.Type, "Bitmap") {
			bad = "the plan has a " + n.Type + " on " + n.Relation
		}
	})
	if bad != "" || c.rows > e.bound() {
		e.Errorf("%s: %s\n%s\n%s", what, bad, s.sql, plan.text(""))
	}
	return c
}

// literal returns an argument as SQL.
func (e byNodes) literal(a any) string {
	if a == nil {
		return "NULL"
	}
	return e.Dialect.Literal(fmt.Sprint(a))
}

// byCounts runs a statement and reads how many rows the session has read.
type byCounts struct {
	*plans
	counted
}

// bound is greater than that of byNodes because the rows of all steps are counted together.
func (e byCounts) bound() int { return 10*e.batch + 200 }

func (e byCounts) touched(tx *sql.Tx) (n int) {
	e.Helper()
	rows, err := tx.QueryContext(e.Ctx, e.Text("plans.rows_read"))
	if err != nil {
		e.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var count int
		if err := rows.Scan(&name, &count); err != nil {
			e.Fatal(err)
		}
		n += count
	}
	if err := rows.Err(); err != nil {
		e.Fatal(err)
	}
	return n
}

func (e byCounts) cost(what string, s statement) cost {
	e.Helper()
	conn, err := e.DB.Admin().Conn(e.Ctx)
	if err != nil {
		e.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(e.Ctx, e.Text("plans.reset_counts")); err != nil {
		e.Fatal(err)
	}
	tx, err := conn.BeginTx(e.Ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		e.Fatal(err)
	}
	defer tx.Rollback()
	rows, err := tx.QueryContext(e.Ctx, s.sql, s.args...)
	if err != nil {
		e.Fatalf("%s: %v\n%s", what, err, s.sql)
	}
	for rows.Next() {
	}
	if err := rows.Close(); err != nil {
		e.Fatalf("%s: %v\n%s", what, err, s.sql)
	}
	return cost{rows: e.touched(tx)}
}
