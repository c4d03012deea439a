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

// TestRacing (G1, G2, G4, M1, M4, M8, M9, M13, M14, M55, H12, H13, H18): eight writers with random
// think time, rollbacks, updates, deletes, hot rows, key changes and transactions
// held open, in all isolation levels, against three publishers, of which one is
// killed with SIGKILL again and again, and three readers over HTTP. An independent
// program judges each reader by the table in the end. No writer may fail because of
// the publishers. ROWFEED_TEST_RACE_SECONDS is how long writers write.
func TestRacing(t *testing.T) {
	bin := build(t)
	suite.EachFresh(t, func(x *suite.Env) {
		r := newRace(x, bin, false)
		ctx, cancel := context.WithCancel(x.Ctx)
		defer cancel()
		writing := r.write(ctx)
		kills, end := 0, time.Now().Add(x.Seconds("ROWFEED_TEST_RACE_SECONDS", 1.5))
		// On a slow machine it takes as long as the first kill does.
		over := func() bool { return kills > 0 && time.Now().After(end) }
		for rnd := rand.New(rand.NewPCG(r.seed, 0)); !over(); {
			// A publisher that has just begun is not killed before somebody published.
			goal := r.head() + 1 + rnd.Int64N(150)
			x.Eventually("somebody publishes", func() bool { return r.head() >= goal || over() })
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

// TestRacingServerKilled (G2, G4, M13, H12, H13, H18): the same while the database server is
// killed with SIGKILL and started again. Publishers and servers live on and go on;
// where a writer does not know whether its COMMIT took effect, the table in the end
// tells.
func TestRacingServerKilled(t *testing.T) {
	bin := build(t)
	for _, e := range []testdb.Engine{testdb.Postgres15, testdb.MariaDB} {
		for _, capture := range suite.Captures {
			t.Run(e.Name+"/"+string(capture), func(t *testing.T) {
				e.Require(t)
				server := e.Dedicated(t, testdb.Durable())
				x := suite.OpenEnv(t, server.NewDatabase(t), nil)
				x.Capture = capture
				r := newRace(x, bin, true)
				for _, p := range r.publishers { // one that begins without a database ends
					x.WaitFor(p, regexp.MustCompile(`msg=publishing`))
				}
				ctx, cancel := context.WithCancel(x.Ctx)
				defer cancel()
				writing := r.write(ctx)
				for range 3 {
					// Everybody works, also after an outage: writers write, publishers publish.
					transactions, head := r.transactions.Load(), r.head()
					x.Eventually("writers and publishers go on", func() bool {
						r.wantSurvivors()
						return r.transactions.Load() > transactions+200 && r.head() > head+200
					})
					server.Kill(t)
					x.Restart(server)
				}
				transactions := r.transactions.Load()
				x.Eventually("writers go on", func() bool { return r.transactions.Load() > transactions+100 })
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

// race is a table, its feed, and everybody around it.
type race struct {
	*racers
	seed       uint64
	folder     string
	writers    []*writer
	publishers []*suite.Program
	servers    []*suite.Program
	followers  []*follower
}

// newRace sets everything up but the writing.
func newRace(x *suite.Env, bin programs, mortal bool) *race {
	x.Helper()
	x.Migrate()
	raceTable(x)
	x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
	x.Stays("kv")
	r := &race{racers: &racers{Env: x, mortal: mortal}, seed: suite.RaceSeed(x.T), folder: x.TempDir()}
	var last int64
	var mu sync.Mutex
	r.head = func() int64 { // the last one known while the database is away
		mu.Lock()
		defer mu.Unlock()
		var head int64
		if err := x.Pool.QueryRowContext(x.Ctx, "SELECT value FROM rowfeed_sequences WHERE name = 'kv'").Scan(&head); err == nil {
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

// write starts the writers and answers what waits for them.
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

// wantSurvivors asserts that no process has ended by itself.
func (r *race) wantSurvivors() {
	r.Helper()
	for _, p := range slices.Concat(r.publishers, r.servers) {
		r.WantAlive(p)
	}
}

// wantNoTrouble asserts that a publisher had nothing to complain about: what it
// survives by trying again is no error here, since nothing has failed.
func (r *race) wantNoTrouble(p *suite.Program) {
	r.Helper()
	if strings.Contains(p.Output(), "level=WARN") && !r.mortal {
		r.Errorf("a publisher complains:\n%s", p.Output())
	}
}

// finish waits until everything is published, and judges.
func (r *race) finish(writing func()) {
	r.Helper()
	writing()
	if r.mortal { // a COMMIT of unknown outcome may have been the last thing before the end
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
	r.Logf("%d transactions, %d rolled back, %d conflicts among writers, head %d", r.transactions.Load(), r.rollbacks.Load(), r.conflicts.Load(), r.head())
	if r.transactions.Load() == 0 {
		r.Error("nothing was written")
	}
}
