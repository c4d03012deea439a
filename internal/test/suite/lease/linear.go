package lease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// verb is what a client of a lease does; leap is the database's clock.
type verb string

const (
	acquire verb = "acquire"
	renew   verb = "renew"
	assert  verb = "assert"
	release verb = "release"
	leap    verb = "leap"
)

// deed is an operation, with the epoch of the claim that it is about.
type deed struct {
	verb  verb
	epoch int64
}

// answer is what the client was told. sure is false after an error that leaves open
// whether the deed was done.
type answer struct {
	done, sure bool
	epoch      int64 // that acquire has got
}

// row is the lease as the specification has it: owned by the claim of its epoch until
// that is released, and open to others once it is not owned or has ended.
type row struct {
	epoch       int64
	owned, ends bool
}

func (r row) holds(epoch int64) bool { return r.owned && !r.ends && r.epoch == epoch }

// leaseModel says what a lease answers, one deed after the other.
var leaseModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{row{}} },
	Step: func(state, input, output any) []any {
		r, d, a := state.(row), input.(deed), output.(answer)
		after, can := r, false
		switch d.verb {
		case acquire:
			can = !r.owned || r.ends
			after = row{epoch: r.epoch + 1, owned: true}
			if a.done && a.epoch != after.epoch {
				return nil
			}
		case renew, assert:
			can = r.holds(d.epoch)
		case release:
			can = r.owned && r.epoch == d.epoch
			after.owned = false
		case leap:
			can = true
			after.ends = r.owned
		}
		switch {
		case !a.sure && can:
			return []any{r, after}
		case !a.sure || a.done != can && !a.done:
			if a.sure {
				return nil // it was refused what it could have had
			}
			return []any{r}
		case a.done != can:
			return nil // it got what it could not have
		case a.done:
			return []any{after}
		}
		return []any{r}
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
}).ToModel()

// TestLeaseModel: the judge of TestLeaseLinearizable finds what must not be.
func TestLeaseModel(t *testing.T) {
	type step = struct {
		deed
		answer
	}
	yes := func(v verb, epoch int64) step { return step{deed{v, epoch}, answer{true, true, epoch}} }
	no := func(v verb, epoch int64) step { return step{deed{v, epoch}, answer{false, true, 0}} }
	unsure := func(v verb, epoch int64) step { return step{deed{v, epoch}, answer{}} }
	for name, c := range map[string]struct {
		good    bool
		history []step
	}{
		"a life":                {true, []step{yes(acquire, 1), no(acquire, 0), yes(renew, 1), yes(assert, 1), yes(release, 1), no(renew, 1), yes(acquire, 2)}},
		"taken over":            {true, []step{yes(acquire, 1), yes(leap, 0), no(assert, 1), yes(acquire, 2), no(release, 1), yes(renew, 2)}},
		"a late release":        {true, []step{yes(acquire, 1), yes(leap, 0), yes(release, 1), no(release, 1)}},
		"who knows":             {true, []step{unsure(acquire, 0), no(acquire, 0), yes(leap, 0), yes(acquire, 2)}},
		"who knows, it was not": {true, []step{unsure(acquire, 0), yes(acquire, 1)}},
		"two holders":           {false, []step{yes(acquire, 1), yes(acquire, 2)}},
		"an epoch twice":        {false, []step{yes(acquire, 1), yes(release, 1), yes(acquire, 1)}},
		"a zombie renews":       {false, []step{yes(acquire, 1), yes(leap, 0), yes(acquire, 2), yes(renew, 1)}},
		"a zombie releases":     {false, []step{yes(acquire, 1), yes(leap, 0), yes(acquire, 2), yes(release, 1)}},
		"an ended claim writes": {false, []step{yes(acquire, 1), yes(leap, 0), yes(assert, 1)}},
		"nobody, and yet taken": {false, []step{no(acquire, 0)}},
		"lost without reason":   {false, []step{yes(acquire, 1), no(renew, 1)}},
		"who knows, and both":   {false, []step{unsure(acquire, 0), yes(acquire, 2)}},
	} {
		var history []porcupine.Operation
		for i, s := range c.history {
			history = append(history, porcupine.Operation{Input: s.deed, Call: int64(2 * i), Output: s.answer, Return: int64(2*i + 1)})
		}
		if good := porcupine.CheckOperations(leaseModel, history); good != c.good {
			t.Errorf("%s: linearizable %v, want %v", name, good, c.good)
		}
	}
}

// faults breaks statements of one client, at random.
type faults struct {
	mu      sync.Mutex
	random  *rand.Rand
	commits int // COMMITs sent since the deed began
	broken  int
}

func (f *faults) strikes() bool {
	if f.random.IntN(25) > 0 {
		return false
	}
	f.broken++
	return true
}

func (f *faults) hooks() testdb.Hooks {
	return testdb.Hooks{
		Before: func(_ context.Context, ev testdb.TapEvent) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			if ev.Kind == testdb.Rollback || !f.strikes() {
				if ev.Kind == testdb.Commit {
					f.commits++
				}
				return nil
			}
			if f.random.IntN(2) == 0 {
				return driver.ErrBadConn
			}
			return testdb.ErrInjected
		},
		After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			if err != nil || ev.Kind == testdb.Rollback || ev.Kind == testdb.Begin || !f.strikes() {
				return err
			}
			return testdb.ErrInjected // done, and its answer lost
		},
	}
}

// begin forgets the COMMITs of the deed before; sent tells whether there was one since.
func (f *faults) begin()     { f.mu.Lock(); defer f.mu.Unlock(); f.commits = 0 }
func (f *faults) sent() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.commits > 0 }

// TestLeaseLinearizable (M49, M50, M52, H27): clients acquire, renew, assert and release one
// lease at once, while connections break before and after statements and COMMITs, and
// claims end. Some order of all that was done, consistent with when it was done, must be
// the life of one lease.
func TestLeaseLinearizable(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		const histories, clients, deeds = 15, 5, 30
		first := suite.RaceSeed(x.T)
		for i := range uint64(histories) {
			seed := first + i
			history, broken := leaseHistory(x, seed, clients, deeds)
			verdict, _ := porcupine.CheckOperationsVerbose(leaseModel, history, time.Minute)
			if verdict != porcupine.Ok {
				var lines []string
				for _, o := range history {
					lines = append(lines, fmt.Sprintf("client %d: %d to %d: %s", o.ClientId, o.Call, o.Return, leaseModel.DescribeOperation(o.Input, o.Output)))
				}
				x.Fatalf("seed %d: %d deeds with %d faults: %v\n%s", seed, len(history), broken, verdict, strings.Join(lines, "\n"))
			}
			x.Logf("seed %d: %d deeds with %d faults", seed, len(history), broken)
			x.Exec("DELETE FROM rowfeed_leases")
		}
	})
}

// leaseHistory lets clients loose on the lease "job", and answers what they did.
func leaseHistory(x *suite.Env, seed uint64, clients, deeds int) (history []porcupine.Operation, broken int) {
	x.Helper()
	start := time.Now()
	var mu sync.Mutex
	record := func(client int, d deed, call time.Time, a answer) {
		o := porcupine.Operation{ClientId: client, Input: d, Call: call.Sub(start).Nanoseconds(), Output: a, Return: math.MaxInt64}
		if a.sure { // else it may still be done at any time
			o.Return = time.Since(start).Nanoseconds()
		}
		mu.Lock()
		defer mu.Unlock()
		history = append(history, o)
	}
	var group sync.WaitGroup
	all := make([]*faults, clients)
	for c := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(c)))
		all[c] = &faults{random: rand.New(rand.NewPCG(seed, uint64(1000+c)))}
		f := all[c]
		pool := x.DB.OpenTapped(x.T, f.hooks())
		rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, nil)
		for err != nil { // a fault has struck
			rf, err = rowfeed.Open(x.Ctx, pool, x.Dialect, nil)
		}
		lease := rf.Lease("job", suite.Long)
		group.Go(func() {
			var claim *rowfeed.Claim
			for range deeds {
				d := deed{verb: acquire}
				if claim != nil {
					d = deed{[]verb{renew, renew, assert, release, acquire}[random.IntN(5)], claim.Epoch()}
				}
				if random.IntN(10) == 0 {
					d = deed{verb: leap}
				}
				f.begin()
				call := time.Now()
				var err error
				a := answer{sure: true}
				switch d.verb {
				case leap:
					if _, err := x.DB.Admin().ExecContext(x.Ctx, "UPDATE rowfeed_leases SET expires_at = 1 WHERE expires_at IS NOT NULL"); err != nil {
						x.Error(err)
					}
				case acquire:
					var got *rowfeed.Claim
					if got, err = lease.TryAcquire(x.Ctx); err == nil {
						claim, a.epoch = got, got.Epoch()
					}
				case renew:
					err = claim.Renew(x.Ctx)
				case release:
					err = claim.Release(x.Ctx)
				case assert:
					var tx *sql.Tx
					if tx, err = pool.BeginTx(x.Ctx, x.Dialect.TxOptions(dialect.ForRecord)); err == nil {
						if err = claim.Assert(x.Ctx, rowfeed.InTx(tx)); err == nil {
							err = tx.Commit()
						}
						tx.Rollback()
					}
				}
				a.done = err == nil
				refused := suite.IsCode(err, rowfeed.LeaseTaken) || suite.IsCode(err, rowfeed.LeaseLost)
				if d.verb == release || refused && d.verb != acquire {
					claim = nil // also when the release failed: the claim has ended here, and maybe nowhere else
				}
				if err != nil && !refused {
					if !f.sent() || d.verb == renew || d.verb == assert {
						continue // it did nothing, or nothing that anybody can see
					}
					a.sure = false
				}
				record(c, d, call, a)
			}
		})
	}
	group.Wait()
	for _, f := range all {
		broken += f.broken
	}
	return history, broken
}
