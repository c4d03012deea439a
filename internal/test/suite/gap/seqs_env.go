package gap

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// looker is a publisher of kv whose looks for changes, or for records of its outbox, are noted.
type looker struct {
	*suite.Env
	feed          *rowfeed.Feed
	table, number string         // what waits, and the column of its numbers
	part          rowfeed.Shards // where the rows of an outbox are whose column v is 0

	mu      sync.Mutex
	failing bool // the COMMIT of the next pass that deletes fails
	deleted bool
	asked   int    // how often it asked who is at work
	last    string // the last look
	trouble []error

	whenAsked func() // runs once, before it asks who is at work
	whenLocks func() // runs once, before it locks what a pass locks
}

// asksWho matches the statement that asks who is at work.
func asksWho(ev testdb.TapEvent) bool {
	return strings.Contains(ev.SQL, "pg_locks") || strings.Contains(ev.SQL, "auto_increment_increment")
}

// eachLooker runs f with a publisher of kv, in mode sequence or outbox.
func eachLooker(t *testing.T, mode string, f func(l *looker)) {
	t.Helper()
	suite.Each(t, func(x *suite.Env) { f(lookerOf(x, mode, 0)) })
}

func lookerOf(x *suite.Env, mode string, batch int, settings ...string) *looker {
	x.Helper()
	if mode == rowfeed.ModeSequence {
		x.AddKV()
		return newLooker(x, settings...)
	}
	x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT NOT NULL)")
	addAgain(x, mode)
	return lookerAt(x, &looker{Env: x, table: "rowfeed_outbox_kv", number: "order_sequence", part: rowfeed.One(0)}, batch, settings...)
}

// addAgain makes the feed kv of the table that is there.
func addAgain(x *suite.Env, mode string) {
	x.Helper()
	spec := rowfeed.FeedSpec{Name: "kv", Table: "kv"}
	if mode == rowfeed.ModeOutbox {
		spec.Mode, spec.Capture, spec.ShardColumn = mode, feedtype.CaptureTrigger, "v"
	}
	x.Add(spec)
}

func newLooker(x *suite.Env, settings ...string) *looker {
	return lookerAt(x, &looker{Env: x, table: "rowfeed_changes_kv", number: "seq"}, 0, settings...)
}

func lookerAt(x *suite.Env, l *looker, batch int, settings ...string) *looker {
	x.Helper()
	first := "SELECT seq FROM (SELECT seq FROM"
	if l.number != "seq" {
		first = "SELECT shard FROM (SELECT shard FROM"
	}
	hooks := testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if asksWho(ev) && l.whenAsked != nil {
			l.whenAsked()
			l.whenAsked = nil
		}
		if strings.Contains(ev.SQL, "FOR UPDATE") && l.whenLocks != nil {
			l.whenLocks()
			l.whenLocks = nil
		}
		l.deleted = l.deleted || strings.Contains(ev.SQL, "DELETE ") && strings.Contains(ev.SQL, l.table)
		if ev.Kind == testdb.Commit && l.failing && l.deleted {
			l.failing = false
			return testdb.ErrInjected
		}
		return nil
	}, After: func(_ context.Context, ev testdb.TapEvent, err error) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case asksWho(ev):
			l.asked++
		case !ev.InTx && strings.Contains(ev.SQL, first):
			l.last = ev.SQL
		}
		return err
	}}
	rf, err := rowfeed.Open(x.Ctx, x.DB.OpenTapped(x.T, hooks, settings...), x.Dialect, &rowfeed.Config{BatchSize: batch, Observer: &rowfeed.Observer{Trouble: func(e rowfeed.TroubleEvent) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.trouble = append(l.trouble, e.Err)
	}}})
	if err == nil {
		l.feed, err = rf.Feed(x.Ctx, "kv")
	}
	if err != nil {
		x.Fatal(err)
	}
	return l
}

func (l *looker) asks() int { l.mu.Lock(); defer l.mu.Unlock(); return l.asked }

func (l *looker) troubles() []error { l.mu.Lock(); defer l.mu.Unlock(); return l.trouble }

// tells says whether the server tells who is at work.
func (l *looker) toldWho() bool { return l.Engine.HasServer() }

// askedAgain publishes until it was asked n times more who is at work.
func (l *looker) askedAgain(n int) {
	l.Helper()
	enough := l.asks() + n
	l.Eventually("it asks who is at work", func() bool { l.Publish(l.feed); return l.asks() >= enough })
}

// many publishes more changes than are looked at again for the sake of a gap.
func (l *looker) many(from int) {
	l.Helper()
	for id := from; id < from+600; id += 50 {
		var values []string
		for i := range 50 {
			values = append(values, fmt.Sprintf("(%d, 'k', %d)", id+i, i%3))
		}
		l.Exec("INSERT INTO kv VALUES " + strings.Join(values, ", "))
	}
	if n := l.Publish(l.feed); n != 600 {
		l.Fatalf("%d keys of 600", n)
	}
}

// wantNext publishes once, which must find exactly these.
func (l *looker) wantNext(what string, keys int) {
	l.Helper()
	if n := l.Publish(l.feed); n != keys {
		l.Errorf("%s: %d keys published at once, want %d", what, n, keys)
	}
	if found := l.troubles(); len(found) > 0 {
		l.Errorf("%s: %v", what, found)
	}
}

// gone waits until no look goes back to what was published; where nobody tells who is at work
// gaps stay.
func (l *looker) gone() {
	l.Helper()
	if !l.toldWho() {
		return
	}
	l.Eventually("gaps are given up", func() bool { l.Publish(l.feed); return l.areGone() })
}

func (l *looker) areGone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.last, "WHERE "+l.number+" > ") && !strings.Contains(l.last, "BETWEEN") && !strings.Contains(l.last, " IN (")
}
