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

// publisher publishes the feed kv, and records its scans for changes, or for records of its outbox.
type publisher struct {
	*suite.Env
	feed          *rowfeed.Feed
	table, number string         // the table that it scans, and the column of sequence numbers
	part          rowfeed.Shards // the shard of an outbox that has the rows whose column v is 0
	openWriters   string         // a part of the statement that reads the open writers; empty if there is none

	mu       sync.Mutex
	failing  bool // the COMMIT of the next pass that deletes fails
	deleted  bool
	asked    int    // how often it has read the open writers
	last     string // the last scan
	reported []error

	whenAsked func() // runs once, before the publisher reads the open writers
	whenLocks func() // runs once, before a pass takes its locks
}

// eachPublisher runs f on every engine with a publisher of kv, whose mode is sequence or outbox.
func eachPublisher(t *testing.T, mode string, f func(p *publisher)) {
	t.Helper()
	suite.Each(t, func(x *suite.Env) { f(newPublisher(x, mode, 0)) })
}

// newPublisher makes the table kv, its feed and its publisher. Settings are those of the publisher's connections.
func newPublisher(x *suite.Env, mode string, batch int, settings ...string) *publisher {
	x.Helper()
	p := &publisher{Env: x, table: "rowfeed_changes_kv", number: "seq"}
	if mode == rowfeed.ModeOutbox {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT NOT NULL)")
		p.table, p.number, p.part = "rowfeed_outbox_kv", "order_sequence", rowfeed.One(0)
	} else {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
	}
	addFeed(x, mode)
	p.open(batch, settings)
	return p
}

// addFeed makes the feed kv of its table.
func addFeed(x *suite.Env, mode string) {
	x.Helper()
	spec := rowfeed.FeedSpec{Name: "kv", Table: "kv"}
	if mode == rowfeed.ModeOutbox {
		spec.Mode, spec.Capture, spec.ShardColumn = mode, feedtype.CaptureTrigger, "v"
	}
	x.Add(spec)
}

// readsWriters matches the statement with which a publisher reads the open writers.
func (p *publisher) readsWriters(ev testdb.TapEvent) bool {
	return p.openWriters != "" && strings.Contains(ev.SQL, p.openWriters)
}

func (p *publisher) open(batch int, settings []string) {
	p.Helper()
	if !p.Has.OneWriter {
		p.openWriters = p.Text("gap.open_writers")
	}
	column := "seq"
	if p.number != "seq" {
		column = "shard"
	}
	hooks := testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.readsWriters(ev) && p.whenAsked != nil {
			p.whenAsked()
			p.whenAsked = nil
		}
		if suite.LocksRows(ev) && p.whenLocks != nil {
			p.whenLocks()
			p.whenLocks = nil
		}
		p.deleted = p.deleted || strings.Contains(ev.SQL, "DELETE ") && strings.Contains(ev.SQL, p.table)
		if ev.Kind == testdb.Commit && p.failing && p.deleted {
			p.failing = false
			return testdb.ErrInjected
		}
		return nil
	}, After: func(_ context.Context, ev testdb.TapEvent, err error) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case p.readsWriters(ev):
			p.asked++
		case suite.AsksForFirst(ev, column):
			p.last = ev.SQL
		}
		return err
	}}
	observer := &rowfeed.Observer{Trouble: func(e rowfeed.TroubleEvent) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.reported = append(p.reported, e.Err)
	}}
	pool := p.DB.OpenTapped(p.T, hooks, settings...)
	rf, err := rowfeed.Open(p.Ctx, pool, p.Dialect, &rowfeed.Config{BatchSize: batch, Observer: observer})
	if err == nil {
		p.feed, err = rf.Feed(p.Ctx, "kv")
	}
	if err != nil {
		p.Fatal(err)
	}
}

// questions returns how often the publisher has read the open writers.
func (p *publisher) questions() int { p.mu.Lock(); defer p.mu.Unlock(); return p.asked }

// troubles returns the errors that the publisher has reported.
func (p *publisher) troubles() []error { p.mu.Lock(); defer p.mu.Unlock(); return p.reported }

func (p *publisher) wantNoTrouble(when string) {
	p.Helper()
	if found := p.troubles(); len(found) > 0 {
		p.Errorf("%s: the publisher reports %v", when, found)
	}
}

// publishUntilAsked publishes until the publisher has read the open writers n more times.
func (p *publisher) publishUntilAsked(n int) {
	p.Helper()
	enough := p.questions() + n
	p.Eventually("the publisher reads the open writers", func() bool {
		p.Publish(p.feed)
		return p.questions() >= enough
	})
}

// publishMany publishes so many changes that no scan goes back below them, except for a gap.
func (p *publisher) publishMany(from int) {
	p.Helper()
	for id := from; id < from+600; id += 50 {
		var values []string
		for i := range 50 {
			values = append(values, fmt.Sprintf("(%d, 'k', %d)", id+i, i%3))
		}
		p.Exec("INSERT INTO kv VALUES " + strings.Join(values, ", "))
	}
	if n := p.Publish(p.feed); n != 600 {
		p.Fatalf("%d keys published, want 600", n)
	}
}

// wantNextPass publishes once, and asserts how many keys that publishes.
func (p *publisher) wantNextPass(what string, keys int) {
	p.Helper()
	if n := p.Publish(p.feed); n != keys {
		p.Errorf("%s: the next pass published %d keys, want %d", what, n, keys)
	}
	p.wantNoTrouble(what)
}

// awaitNoGap publishes until no gap is open. With one writer at a time gaps stay open, which costs nothing there.
func (p *publisher) awaitNoGap() {
	p.Helper()
	if p.Has.OneWriter {
		return
	}
	p.Eventually("no gap is open", func() bool { p.Publish(p.feed); return p.noGap() })
}

// noGap tells whether the last scan began above all published numbers.
func (p *publisher) noGap() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Contains(p.last, "WHERE "+p.number+" > ") &&
		!strings.Contains(p.last, "BETWEEN") && !strings.Contains(p.last, " IN (")
}
