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

// Never is a duration that is longer than any test.
const Never = time.Hour

// HasArg tells whether a statement has a value, as an argument or in its text, depending on the dialect.
func HasArg(ev testdb.TapEvent, value any) bool {
	// They are compared as text, because drivers have different types of integers.
	equal := func(a driver.NamedValue) bool { return fmt.Sprint(a.Value) == fmt.Sprint(value) }
	if slices.ContainsFunc(ev.Args, equal) {
		return true
	}
	if text, is := value.(string); is {
		return strings.Contains(ev.SQL, "'"+text+"'")
	}
	return regexp.MustCompile(fmt.Sprintf(` = %v\b`, value)).MatchString(ev.SQL)
}

// Looks matches the statements with which the watcher polls: those of ReadsStandings, and those that ask whether
// anything was committed.
func (x *Env) Looks(ev testdb.TapEvent) bool {
	stamp := x.Dialect.Stamp
	return ReadsStandings(ev) || ev.Kind == testdb.Query &&
		(stamp != "" && strings.HasPrefix(ev.SQL, stamp) || strings.Contains(ev.SQL, ", -1, 0, NULL, 0, 0 FROM ("))
}

// ReadsStandings matches the statement that reads the watermarks of feeds.
func ReadsStandings(ev testdb.TapEvent) bool {
	return ev.Kind == testdb.Query && strings.HasPrefix(ev.SQL, "SELECT s.name, f.generation, s.value, ")
}

// ReadsULIDPage matches the statement that reads a page of a feed with ULIDs.
func ReadsULIDPage(ev testdb.TapEvent) bool {
	return ev.Kind == testdb.Query && strings.Contains(ev.SQL, "SELECT f.generation, COALESCE")
}

// ReadsNewestRecord matches the statement that reads the newest record of a shard.
func ReadsNewestRecord(ev testdb.TapEvent) bool {
	return strings.HasPrefix(strings.Replace(ev.SQL, "TOP (1) ", "", 1), "SELECT order_sequence FROM ")
}

// AsksForFirst matches the statement with which a publisher asks, before a transaction, whether there is a change, or
// a record. The column is the one that it reads of it.
func AsksForFirst(ev testdb.TapEvent, column string) bool {
	return !ev.InTx && regexp.MustCompile(`\(SELECT (TOP \(1\) )?`+column+` FROM `).MatchString(ev.SQL)
}

// LocksRows matches statements that lock the rows that they read.
func LocksRows(ev testdb.TapEvent) bool {
	return strings.Contains(ev.SQL, "FOR UPDATE") || strings.Contains(ev.SQL, "UPDLOCK")
}

// AsksForOpenChange matches the statements of dialect.Replicas for a sequence feed.
func AsksForOpenChange(ev testdb.TapEvent) bool {
	return ev.Kind == testdb.Query &&
		(strings.Contains(ev.SQL, "SELECT xmax") || strings.Contains(ev.SQL, "CONCAT_WS(' ', f.generation") ||
			strings.Contains(ev.SQL, "LEVEL READ UNCOMMITTED"))
}

// Fetched is the result of a Fetch.
type Fetched struct {
	Page rowfeed.Page
	Err  error
}

// WantWoken asserts the result of a waiting Fetch.
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
	if strings.Join(lines, "\n") != strings.Join(want, "\n") || Place(got.Page.Cursor) != cursor {
		x.Fatalf("the waiter got %q and cursor %q, want %q and %q", lines, got.Page.Cursor, want, cursor)
	}
}

// Gate holds the first caller of Pass until Open is closed. Reached is closed when that caller has arrived.
type Gate struct {
	once          sync.Once
	Reached, Open chan struct{}
}

// NewGate makes a closed gate.
func NewGate() *Gate { return &Gate{Reached: make(chan struct{}), Open: make(chan struct{})} }

// Pass waits in the first call until the gate is open. Further calls that come during it wait, too.
func (g *Gate) Pass() {
	g.once.Do(func() {
		close(g.Reached)
		<-g.Open
	})
}

// Drop drops the feed kv.
func (x *Env) Drop() {
	x.Helper()
	if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
		x.Fatal(err)
	}
}
