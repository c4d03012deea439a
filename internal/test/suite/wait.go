package suite

import (
	"database/sql/driver"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// Never is a pause between looks in which no test ends.
const Never = time.Hour

// HasArg tells whether a value goes with a statement: beside it, or in it, where the dialect
// writes values there.
func HasArg(ev testdb.TapEvent, value any) bool {
	if slices.ContainsFunc(ev.Args, func(a driver.NamedValue) bool { return fmt.Sprint(a.Value) == fmt.Sprint(value) }) {
		return true // drivers have different types of integers
	}
	if text, is := value.(string); is {
		return strings.Contains(ev.SQL, "'"+text+"'")
	}
	return regexp.MustCompile(fmt.Sprintf(` = %v\b`, value)).MatchString(ev.SQL)
}

// Looks matches the watcher's statements, readsStandings the one that reads how far feeds are, pageReads the
// one that reads a page's rows.
func Looks(ev testdb.TapEvent) bool {
	return ReadsStandings(ev) || ev.Kind == testdb.Query &&
		(strings.HasPrefix(ev.SQL, "SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE CAST(pg_current_snapshot()") || strings.Contains(ev.SQL, ", -1, 0, NULL, 0 FROM ("))
}

func ReadsStandings(ev testdb.TapEvent) bool {
	return ev.Kind == testdb.Query && strings.HasPrefix(ev.SQL, "SELECT s.name, f.generation, s.value, ")
}

// Fetched is what a Fetch answered.
type Fetched struct {
	Page rowfeed.Page
	Err  error
}

// WantWoken asserts what a waiter was answered.
func (x *Env) WantWoken(result <-chan Fetched, cursor rowfeed.Cursor, want ...string) {
	x.Helper()
	got := <-result
	if got.Err != nil {
		x.Fatal(got.Err)
	}
	var lines []string
	for _, e := range got.Page.Entries {
		lines = append(lines, Line(e))
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") || got.Page.Cursor != cursor {
		x.Fatalf("woken with %q and cursor %q, want %q and %q", lines, got.Page.Cursor, want, cursor)
	}
}

// Gate lets the first caller through only when it is opened, and says that it came.
type Gate struct {
	once          sync.Once
	Reached, Open chan struct{}
}

func NewGate() *Gate { return &Gate{Reached: make(chan struct{}), Open: make(chan struct{})} }

func (g *Gate) Pass() {
	g.once.Do(func() {
		close(g.Reached)
		<-g.Open
	})
}

func (x *Env) Drop() {
	x.Helper()
	if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
		x.Fatal(err)
	}
}
