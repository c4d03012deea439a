package publish

import (
	"context"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestRacingLosesNothing (G1, G2, G4, M1, M4, M8, M9, M13, M14, M55, H12, H13, H18): eight writers work in all
// isolation levels: with pauses, rollbacks, updates, deletes, key changes, rows that all of them change, and
// transactions held open. Three publishers run, one of which is killed with SIGKILL again and again, and three readers
// over HTTP. A separate program compares what each reader got with the table at the end. No writer may fail because of
// the publishers. ROWFEED_TEST_RACE_SECONDS is how long the writers write.
func TestRacingLosesNothing(t *testing.T) {
	bin := build(t)
	suite.EachFresh(t, func(x *suite.Env) {
		r := newRace(x, bin, false)
		ctx, cancel := context.WithCancel(x.Ctx)
		defer cancel()
		writing := r.write(ctx)
		kills, end := 0, time.Now().Add(x.Seconds("ROWFEED_TEST_RACE_SECONDS", 1.5))
		// The test lasts until the first kill at least, also on a slow machine.
		over := func() bool { return kills > 0 && time.Now().After(end) }
		for rnd := rand.New(rand.NewPCG(r.seed, 0)); !over(); {
			// Before the next kill, the publishers must have published something.
			goal := r.head() + 1 + rnd.Int64N(150)
			x.Eventually("a publisher publishes", func() bool { return r.head() >= goal || over() })
			if over() {
				break
			}
			i := rnd.IntN(len(r.publishers))
			x.WantAlive(r.publishers[i])
			r.publishers[i].Kill()
			r.wantNoTrouble(r.publishers[i])
			kills++
			r.publishers[i] = publisher(x, bin, i)
		}
		cancel()
		r.finish(writing)
		x.Logf("%d publishers killed", kills)
	})
}

// TestServerKillsLoseNothing (G2, G4, M13, H12, H13, H18): the same as TestRacingLosesNothing, while the database
// server is killed with SIGKILL and started again. Publishers and readers' servers keep running. If a writer does not
// know whether its COMMIT took effect, it reads the table.
func TestServerKillsLoseNothing(t *testing.T) {
	bin := build(t)
	for _, e := range []testdb.Engine{testdb.Postgres15, testdb.MariaDB} {
		for _, capture := range suite.Captures {
			t.Run(e.Name+"/"+string(capture), func(t *testing.T) {
				e.Require(t)
				server := e.Dedicated(t, testdb.Durable())
				x := suite.OpenEnv(t, server.NewDatabase(t), nil)
				x.Capture = capture
				r := newRace(x, bin, true)
				for _, p := range r.publishers { // a publisher that starts without a database ends
					x.WaitFor(p, regexp.MustCompile(`msg=publishing`))
				}
				ctx, cancel := context.WithCancel(x.Ctx)
				defer cancel()
				writing := r.write(ctx)
				for range 3 {
					// Writers write and publishers publish, also after an outage.
					transactions, head := r.transactions.Load(), r.head()
					x.Eventually("writers and publishers continue", func() bool {
						r.wantSurvivors()
						return r.transactions.Load() > transactions+200 && r.head() > head+200
					})
					server.Kill(t)
					x.Restart(server)
				}
				transactions := r.transactions.Load()
				x.Eventually("writers continue", func() bool { return r.transactions.Load() > transactions+100 })
				cancel()
				r.finish(writing)
				x.Logf("%d outages noticed by writers, %d times in COMMIT", r.outages.Load(), r.unknown.Load())
				if r.outages.Load() == 0 {
					x.Error("no writer noticed that the server was killed")
				}
			})
		}
	}
}

// race is a table, its feed, and the processes and writers that use them.
type race struct {
	*racers
	seed       uint64
	folder     string
	writers    []*writer
	publishers []*suite.Program
	servers    []*suite.Program
	followers  []*follower
}

// newRace makes the table and the feed, and starts the processes but no writers.
func newRace(x *suite.Env, bin programs, mortal bool) *race {
	x.Helper()
	x.Migrate()
	raceTable(x)
	x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
	x.Stays("kv")
	r := &race{racers: &racers{Env: x, mortal: mortal}, seed: suite.RaceSeed(x.T), folder: x.TempDir()}
	var last int64
	var mu sync.Mutex
	r.head = func() int64 { // the last known head while the database is down
		mu.Lock()
		defer mu.Unlock()
		var head int64
		row := x.Pool.QueryRowContext(x.Ctx, "SELECT value FROM rowfeed_sequences WHERE name = 'kv'")
		if err := row.Scan(&head); err == nil {
			last = head
		}
		return last
	}
	var urls []string
	for range 2 {
		server, url := serve(x, bin)
		r.servers, urls = append(r.servers, server), append(urls, url)
	}
	r.followers = followers(x, bin, r.folder, urls)
	for i := range 3 {
		r.publishers = append(r.publishers, publisher(x, bin, i))
	}
	for name := 1; name <= raceWriters; name++ {
		r.writers = append(r.writers, r.writer(name, r.seed))
	}
	return r
}

// write starts the writers and returns a function that waits for their end.
func (r *race) write(ctx context.Context) (wait func()) {
	var group sync.WaitGroup
	for _, w := range r.writers {
		group.Go(func() {
			if err := w.run(ctx); err != nil {
				r.Error(err)
			}
		})
	}
	return group.Wait
}

// wantSurvivors asserts that all processes are still running.
func (r *race) wantSurvivors() {
	r.Helper()
	for _, p := range slices.Concat(r.publishers, r.servers) {
		r.WantAlive(p)
	}
}

// wantNoTrouble asserts that a publisher logged no warning. A pass that succeeded when it was tried again has none.
func (r *race) wantNoTrouble(p *suite.Program) {
	r.Helper()
	if strings.Contains(p.Output(), "level=WARN") && !r.mortal {
		r.Errorf("a publisher warns:\n%s", p.Output())
	}
}

// finish waits until everything is published, and compares what readers got with the table.
func (r *race) finish(writing func()) {
	r.Helper()
	writing()
	if r.mortal { // a writer may have ended with a COMMIT whose result it does not know
		for _, w := range r.writers {
			if err := w.recover(r.Ctx); err != nil {
				r.Fatal(err)
			}
		}
	}
	r.Eventually("everything is published", func() bool { return r.Unpublished() == 0 })
	r.wantSurvivors()
	for _, p := range r.publishers {
		r.wantNoTrouble(p)
	}
	judge(r.Env, r.followers, r.folder)
	for _, w := range r.writers {
		w.wantModel()
	}
	f, err := r.RF.Feed(r.Ctx, "kv")
	if err != nil {
		r.Fatal(err)
	}
	r.WantSound(f)
	r.Logf("%d transactions, %d rolled back, %d conflicts among writers, head %d",
		r.transactions.Load(), r.rollbacks.Load(), r.conflicts.Load(), r.head())
	if r.transactions.Load() == 0 {
		r.Error("the writers committed no transaction")
	}
}
