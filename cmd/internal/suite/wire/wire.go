package wire

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/tap"
	"github.com/rowfeed/rowfeed/internal/test/fixture"
	"github.com/rowfeed/rowfeed/internal/test/golden"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// wireFolder has one folder for each family of databases.
const wireFolder = "wire/testdata"

// layout is one kind of feed, of a table kv that the scenario creates and writes.
type layout struct {
	name   string
	create string
	spec   rowfeed.FeedSpec
	insert string // a row's VALUES, with its number in place of %d
	where  string // the condition for a row, with its number in place of %d
	key    func(id int) rowfeed.Key
}

func layouts(x *suite.Env) []layout {
	kv := layout{
		create: "CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT NOT NULL)",
		insert: "%[1]d, 'k', 1", where: "id = %d", key: func(id int) rowfeed.Key { return rowfeed.Key{int64(id)} },
	}
	with := func(name string, spec rowfeed.FeedSpec) layout {
		l := kv
		l.name, l.spec = name, spec
		return l
	}
	composite := layout{
		name:   "composite",
		create: "CREATE TABLE kv (ns VARCHAR(50) NOT NULL, k VARCHAR(50) NOT NULL, v BIGINT, PRIMARY KEY (ns, k))",
		insert: "'ns', 'k%d', 1", where: "ns = 'ns' AND k = 'k%d'",
		key: func(id int) rowfeed.Key { return rowfeed.Key{"ns", fmt.Sprintf("k%d", id)} },
	}
	outbox := with("outbox", rowfeed.FeedSpec{Mode: rowfeed.ModeOutbox})
	captured := with("outbox-trigger",
		rowfeed.FeedSpec{Mode: rowfeed.ModeOutbox, Capture: feedtype.CaptureTrigger, ShardColumn: "v"})
	blocking := with("blocking",
		rowfeed.FeedSpec{Mode: rowfeed.ModeBlocking, PositionColumn: "u", ShardColumn: "v"})
	blocking.create = "CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, v INT NOT NULL, u " + x.ULIDType() +
		" NOT NULL)"
	return []layout{
		with("one-key", rowfeed.FeedSpec{}), composite,
		with("column", rowfeed.FeedSpec{Capture: feedtype.CaptureColumn}),
		with("sharded", rowfeed.FeedSpec{DataShards: 4}),
		with("sharded-column", rowfeed.FeedSpec{DataShards: 4, Capture: feedtype.CaptureColumn}),
		outbox, captured, blocking,
	}
}

// TestSentStatementsEqualRecordedFiles: the statements that rowfeed sends to each database, for each kind of feed, are
// those of the files in testdata/wire. A file has the statements of one scenario: each statement once, under the first
// step that sends it.
func TestSentStatementsEqualRecordedFiles(t *testing.T) {
	testdb.Quick(t)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		w := newWire(t, e)
		w.database()
		texts := map[string]string{"database.sql": w.text()}
		for _, l := range layouts(w.Env) {
			w := newWire(t, e)
			w.silently(w.Migrate)
			w.layout(l)
			texts[l.name+".sql"] = w.text()
		}
		w.Needs("wire.golden_folder")
		golden.Compare(t, filepath.Join(wireFolder, w.Text("wire.golden_folder")), texts)
	})
}

// step is a part of the scenario, with the statements that were first sent in it.
type step struct {
	name   string
	sent   []string
	sorted bool // goroutines send the statements in any order
}

// recording is an Env whose pool records the statements of every step.
type recording struct {
	*suite.Env

	mu     sync.Mutex
	silent bool
	known  int    // consecutive statements that were sent before
	again  func() // called when known has reached repeated
	seen   map[string]bool
	steps  []step
}

func newWire(t *testing.T, e testdb.Engine) *recording {
	t.Helper()
	x := &suite.Env{T: t, Engine: e, DB: e.New(t), Ctx: t.Context(), Has: fixture.Of(e)}
	w := &recording{Env: x, seen: map[string]bool{}}
	hooks := &tap.Hooks{Before: func(_ context.Context, ev tap.Event) error { w.note(ev); return nil }}
	cfg := rowfeed.Config{IdlePoll: time.Millisecond, WatchPoll: time.Millisecond, PublisherLease: time.Hour}
	var err error
	if w.Pool, w.Dialect, err = suite.Open(w.Ctx, w.DB.URL, hooks); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Pool.Close() })
	if w.RF, err = rowfeed.Open(w.Ctx, w.Pool, w.Dialect, &cfg); err != nil {
		t.Fatal(err)
	}
	return w
}

// note records a statement that was not sent before. For a transaction it records how it began.
func (w *recording) note(ev tap.Event) {
	statement := w.normal(ev.SQL)
	switch ev.Kind {
	case tap.Begin:
		statement = "BEGIN -- isolation: " + sql.IsolationLevel(ev.Opts.Isolation).String()
		if ev.Opts.ReadOnly {
			statement += ", read only"
		}
	case tap.Commit, tap.Rollback:
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.silent || len(w.steps) == 0 {
		return
	}
	if w.known++; !w.seen[statement] {
		w.seen[statement], w.known = true, 0
		last := &w.steps[len(w.steps)-1]
		last.sent = append(last.sent, statement)
	}
	if w.known == repeated && w.again != nil {
		w.again()
	}
}

// repeated is the number of consecutive known statements after which no new one is expected.
const repeated = 30

// repeats sets the function to call when only known statements are sent. nil removes it.
func (w *recording) repeats(again func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.again, w.known = again, 0
}

func (w *recording) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	for _, s := range w.steps {
		if s.sorted {
			slices.Sort(s.sent)
		}
		fmt.Fprintf(&b, "-- %s\n%s\n", s.name, strings.Join(append(s.sent, ""), "\n"))
	}
	return b.String()
}

// step begins a named step.
func (w *recording) step(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps = append(w.steps, step{name: name})
}

// sorted begins a named step of several goroutines.
func (w *recording) sorted(name string) {
	w.step(name)
	w.steps[len(w.steps)-1].sorted = true
}

// silently calls a function whose statements are not recorded.
func (w *recording) silently(do func()) {
	set := func(silent bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.silent = silent
	}
	set(true)
	defer set(false)
	do()
}

// must is for calls that must succeed.
func (w *recording) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// refused is for calls that a kind of feed refuses.
func (w *recording) refused(err error) {
	w.Helper()
	if err == nil {
		w.Fatal("no error")
	}
}

// token is a part of a statement that is kept as it is: a literal, a quoted name, a body between dollar
// quotes, a comment. What is between such parts is white space and the rest.
var token = regexp.MustCompile(`(?s)'(?:[^'\\]|\\.|'')*'|"(?:[^"]|"")*"|` + "`(?:[^`]|``)*`" +
	`|\$(\w*)\$.*?\$\w*\$|--[^\n]*\n|\s+`)

// varying is text that differs between two runs, with its replacement.
var varying = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`[\w.-]+/\d+/[a-z2-7]{26}(/[a-z2-7]{26})?`), "OWNER"},
	{regexp.MustCompile(`\b[a-z2-7]{26}\b`), "RANDOM"},
	{regexp.MustCompile(`\browfeed\.[0-9a-f]{32}\b`), "rowfeed.DIGEST"}, // the digest of the database's name
	{regexp.MustCompile(`/\* [0-9a-f]{1,16} \*/`), "/* MARK */"},
	{regexp.MustCompile(`server_uuid [0-9a-f-]{36}`), "server_uuid UUID"},
	{regexp.MustCompile(`'system \d+, timeline \w+, database \d+, table \d+'`), "'IDENTITY'"},
	{regexp.MustCompile(`CAST\('\d+' AS oid\)`), "CAST('OID' AS oid)"},
	{regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{26}(z?)\b`), "ULID$1"},
	{regexp.MustCompile(`\.[0-9a-v]{10}('|_\d)`), ".TERM${1}"},
	{regexp.MustCompile(`'(\d{19})[0-9a-v]{10,11}'`), "'${1}STAMP'"},
	{regexp.MustCompile(`, '[\w-]{16}', (\d+), `), ", 'NONCE', $1, "},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "DIGEST"},
	{regexp.MustCompile(`-?\b\d{13,}\b`), "NUMBER"},        // times, and halves of ULIDs
	{regexp.MustCompile(`\+ \d+ WHERE`), "+ NUMBER WHERE"}, // pauses before the next try
	{regexp.MustCompile(`\b1[7-9]\d{8}\b`), "SECONDS"},     // generations
}

// normal returns a statement with each run of white space outside literals collapsed, and without what differs
// between two runs.
func (w *recording) normal(statement string) string {
	statement = token.ReplaceAllStringFunc(strings.TrimSpace(statement), func(part string) string {
		if strings.TrimSpace(part) == "" {
			return " "
		}
		return part
	})
	statement = strings.ReplaceAll(statement, w.DB.Name, "DATABASE")
	for _, v := range varying {
		statement = v.pattern.ReplaceAllStringFunc(statement, func(found string) string {
			if strings.Contains(found, "922337203685477580") { // the ends of BIGINT are constants
				return found
			}
			return v.pattern.ReplaceAllString(found, v.name)
		})
	}
	return statement
}
