// Package history_test compares the terms of a sequence feed with a model: see package history.
package history_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/internal/test/fixture"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// commits are the commits that a state of a database descends from, by their numbers.
type commits map[int]bool

// copied is a database of the model, with its true history.
type copied struct {
	*suite.Env
	had commits
}

// backup is a copy of a database, with its true history.
type backup struct {
	saved *suite.Saved
	had   commits
}

// process has a publisher and reads for consumers. A proxy leads it to one of the databases.
type process struct {
	feed  *rowfeed.Feed
	lead  func(*testdb.Database)
	on    int
	fails atomic.Int32 // 1: the next COMMIT fails, 2: it succeeds, and the process never learns this
}

// consumer is a cursor, with all commits that the states had which it was read from.
type consumer struct {
	cursor rowfeed.Cursor
	seen   commits
}

// model is a world of databases, processes, backups and consumers.
type model struct {
	outer     *testing.T
	databases []*copied
	empty     *suite.Saved
	processes []*process
	backups   []backup
	consumers []consumer
	commits   int
}

func newModel(t *testing.T) *model {
	m := &model{outer: t}
	for range 2 {
		x := &suite.Env{T: t, Engine: testdb.SQLite, DB: testdb.SQLite.New(t), Dialect: sqlite.New(),
			Ctx: context.Background(), Has: fixture.Of(testdb.SQLite)}
		x.Pool = x.DB.OpenTapped(t, testdb.Hooks{}, "_pragma=synchronous(FULL)")
		rf, err := rowfeed.Open(x.Ctx, x.Pool, x.Dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		x.RF = rf
		x.Migrate()
		x.AddKV()
		m.databases = append(m.databases, &copied{Env: x, had: commits{}})
	}
	m.empty = m.databases[0].Save()
	return m
}

// begin forgets everything: both databases are copies of an empty one.
func (m *model) begin() {
	for _, x := range m.databases {
		x.Load(m.empty)
		x.had = commits{}
	}
	m.processes = []*process{m.start(0), m.start(0)}
	m.backups = []backup{{m.empty, commits{}}}
	m.consumers, m.commits = make([]consumer, 3), 0
}

// start starts a process that is led to a database.
func (m *model) start(on int) *process {
	p := &process{on: on}
	x := m.databases[on]
	pool, lead := x.DB.OpenSwitched(m.outer, testdb.Hooks{
		Before: func(_ context.Context, ev testdb.TapEvent) error {
			if ev.Kind == testdb.Commit && p.fails.CompareAndSwap(1, 0) {
				return testdb.ErrInjected
			}
			return nil
		},
		After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if ev.Kind == testdb.Commit && p.fails.CompareAndSwap(2, 0) {
				return testdb.ErrInjected
			}
			return err
		},
	})
	p.lead = lead
	rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, &rowfeed.Config{UnsafeDurability: true})
	if err != nil {
		m.outer.Fatal(err)
	}
	if p.feed, err = rf.Feed(x.Ctx, "kv"); err != nil {
		m.outer.Fatal(err)
	}
	return p
}

func pick[T any](t *rapid.T, of []T, label string) (int, T) {
	i := rapid.IntRange(0, len(of)-1).Draw(t, label)
	return i, of[i]
}

// publish writes some rows and publishes them, unless the COMMIT fails.
func (m *model) publish(t *rapid.T) {
	_, p := pick(t, m.processes, "process")
	x := m.databases[p.on]
	for id := range rapid.IntRange(1, 3).Draw(t, "rows") {
		x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0) ON CONFLICT (id) DO UPDATE SET v = v + 1", id))
	}
	how := rapid.SampledFrom([]int32{0, 0, 0, 0, 1, 2}).Draw(t, "outcome")
	p.fails.Store(how)
	before := x.Scalar("SELECT version FROM rowfeed_sequences")
	_, err := p.feed.Publish(x.Ctx)
	p.fails.Store(0)
	if err != nil && how == 0 {
		t.Fatalf("publish: %v", err)
	}
	if x.Scalar("SELECT version FROM rowfeed_sequences") != before {
		m.commits++
		x.had = maps.Clone(x.had)
		x.had[m.commits] = true
	}
}

// read reads a page, and compares the verdict on its cursor with the true history.
func (m *model) read(t *rapid.T) {
	_, p := pick(t, m.processes, "process")
	i, c := pick(t, m.consumers, "consumer")
	x := m.databases[p.on]
	if rapid.IntRange(0, 9).Draw(t, "start over") == 0 {
		c = consumer{}
	}
	limit := rapid.SampledFrom([]int{1, 1, 3}).Draw(t, "limit")
	page, err := p.feed.Fetch(x.Ctx, rowfeed.Request{After: c.cursor, Limit: limit})
	lost := slices.ContainsFunc(slices.Collect(maps.Keys(c.seen)), func(n int) bool { return !x.had[n] })
	switch {
	case err == nil && lost:
		t.Fatalf("cursor %q has seen %v, the database has had %v, and it is accepted", c.cursor, c.seen, x.had)
	case err != nil && !lost:
		t.Fatalf("cursor %q has seen %v, the database has had %v, and it is refused: %v", c.cursor, c.seen, x.had, err)
	case err != nil && !errors.Is(err, rowfeed.HistoryLost):
		t.Fatalf("cursor %q: %v", c.cursor, err)
	case err != nil:
		m.consumers[i] = consumer{}
		return
	}
	m.consumers[i] = consumer{page.Cursor, x.had}
	if page.Cursor == rowfeed.Beginning { // it has seen nothing
		m.consumers[i].seen = nil
	}
}

func (m *model) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"publish": m.publish, "publish more": m.publish, "read": m.read, "read more": m.read,
		"restart": func(t *rapid.T) {
			i, p := pick(t, m.processes, "process")
			m.processes[i] = m.start(p.on)
		},
		"lead": func(t *rapid.T) {
			_, p := pick(t, m.processes, "process")
			p.on = rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "database")
			p.lead(m.databases[p.on].DB)
		},
		"back up": func(t *rapid.T) {
			_, x := pick(t, m.databases, "database")
			m.backUp(x)
		},
		"restore": func(t *rapid.T) {
			_, x := pick(t, m.databases, "database")
			_, b := pick(t, m.backups, "backup")
			x.Load(b.saved)
			x.had = b.had
		},
		"lose":                          m.lose,
		"lose more":                     m.lose,
		"restore a dump of two moments": m.tear,
	}
}

// backUp copies a database, unless a change waits there.
func (m *model) backUp(x *copied) (b backup, ok bool) {
	if x.Unpublished() > 0 {
		return b, false
	}
	b = backup{x.Save(), x.had}
	m.backups = append(m.backups, b)
	return b, true
}

// lose restores a state of a moment ago.
func (m *model) lose(t *rapid.T) {
	x := m.databases[0]
	b, ok := m.backUp(x)
	if !ok {
		return
	}
	for range rapid.IntRange(1, 3).Draw(t, "lost") {
		m.publish(t)
		m.read(t)
	}
	x.Load(b.saved)
	x.had = b.had
}

// tear restores a dump whose terms are those of the present state, and whose sequence is of an earlier one.
func (m *model) tear(t *rapid.T) {
	x := m.databases[0]
	_, b := pick(t, m.backups, "backup")
	for n := range b.had {
		if !x.had[n] {
			return
		}
	}
	x.Load(b.saved.WithTermsOf(x.Save()))
	x.had = b.had
	for range rapid.IntRange(0, 3).Draw(t, "published") {
		m.publish(t)
	}
}

// TestOnlyReadersOfLostStatesAreRefused (M74, H15): publishers, restores, copies, proxies, commits whose outcome is
// unknown, and lagging consumers, at random. A cursor is refused exactly if its consumer has read a state that the
// database does not descend from.
func TestOnlyReadersOfLostStatesAreRefused(t *testing.T) {
	m := newModel(t)
	rapid.Check(t, func(rt *rapid.T) {
		m.begin()
		rt.Repeat(m.actions())
	})
}
