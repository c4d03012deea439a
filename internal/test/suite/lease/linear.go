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

// verb is an operation of a client. leap is a leap of the database's clock.
type verb string

const (
	acquire verb = "acquire"
	renew   verb = "renew"
	assert  verb = "assert"
	release verb = "release"
	leap    verb = "leap"
)

// deed is an operation and the epoch of its claim.
type deed struct {
	verb  verb
	epoch int64
}

// answer is the answer that the client got. sure is false after an error that does not tell whether the operation took
// effect.
type answer struct {
	done, sure bool
	epoch      int64 // the epoch that acquire returned
}

// row is the lease of the specification. The claim of its epoch owns it until its release. Others may acquire it once
// it has no owner or has ended.
type row struct {
	epoch       int64
	owned, ends bool
}

func (r row) holds(epoch int64) bool { return r.owned && !r.ends && r.epoch == epoch }

// leaseModel is the sequential specification of a lease.
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
				return nil // the lease refused an operation that is valid
			}
			return []any{r}
		case a.done != can:
			return nil // the lease accepted an operation that is invalid
		case a.done:
			return []any{after}
		}
		return []any{r}
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
}).ToModel()

// TestModelFindsInvalidHistories: the model of TestLeaseIsLinearizable rejects histories that no lease can have.
func TestModelFindsInvalidHistories(t *testing.T) {
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
		"two claims": {true, []step{
			yes(acquire, 1), no(acquire, 0), yes(renew, 1), yes(assert, 1), yes(release, 1), no(renew, 1),
			yes(acquire, 2),
		}},
		"a takeover": {true, []step{
			yes(acquire, 1), yes(leap, 0), no(assert, 1), yes(acquire, 2), no(release, 1), yes(renew, 2),
		}},
		"a late release": {true, []step{yes(acquire, 1), yes(leap, 0), yes(release, 1), no(release, 1)}},
		"no answer": {true, []step{
			unsure(acquire, 0), no(acquire, 0), yes(leap, 0), yes(acquire, 2),
		}},
		"no answer, no effect":        {true, []step{unsure(acquire, 0), yes(acquire, 1)}},
		"two holders":                 {false, []step{yes(acquire, 1), yes(acquire, 2)}},
		"an epoch twice":              {false, []step{yes(acquire, 1), yes(release, 1), yes(acquire, 1)}},
		"a zombie renews":             {false, []step{yes(acquire, 1), yes(leap, 0), yes(acquire, 2), yes(renew, 1)}},
		"a zombie releases":           {false, []step{yes(acquire, 1), yes(leap, 0), yes(acquire, 2), yes(release, 1)}},
		"an ended claim writes":       {false, []step{yes(acquire, 1), yes(leap, 0), yes(assert, 1)}},
		"refused although free":       {false, []step{no(acquire, 0)}},
		"lost without reason":         {false, []step{yes(acquire, 1), no(renew, 1)}},
		"without an answer, and both": {false, []step{unsure(acquire, 0), yes(acquire, 2)}},
	} {
		var history []porcupine.Operation
		for i, s := range c.history {
			history = append(history, porcupine.Operation{
				Input: s.deed, Call: int64(2 * i), Output: s.answer, Return: int64(2*i + 1),
			})
		}
		if good := porcupine.CheckOperations(leaseModel, history); good != c.good {
			t.Errorf("%s: linearizable %v, want %v", name, good, c.good)
		}
	}
}

// faults breaks statements of one client at random.
type faults struct {
	mu      sync.Mutex
	random  *rand.Rand
	commits int // COMMITs sent since the operation began
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
			return testdb.ErrInjected // it took effect, and its answer is lost
		},
	}
}

// begin resets the count of COMMITs. sent reports whether a COMMIT was sent since.
func (f *faults) begin()     { f.mu.Lock(); defer f.mu.Unlock(); f.commits = 0 }
func (f *faults) sent() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.commits > 0 }

// TestLeaseIsLinearizable (M49, M50, M52, H27): clients acquire, renew, assert and release one lease concurrently,
// while connections break before and after statements and COMMITs, and claims end. The operations must be linearizable.
func TestLeaseIsLinearizable(t *testing.T) {
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
					lines = append(lines, fmt.Sprintf("client %d: %d to %d: %s",
						o.ClientId, o.Call, o.Return, leaseModel.DescribeOperation(o.Input, o.Output)))
				}
				x.Fatalf("seed %d: %d operations with %d faults: %v\n%s",
					seed, len(history), broken, verdict, strings.Join(lines, "\n"))
			}
			x.Logf("seed %d: %d deeds with %d faults", seed, len(history), broken)
			x.Exec("DELETE FROM rowfeed_leases")
		}
	})
}

// leaseHistory runs clients of the lease "job", and returns their operations and the number of faults.
func leaseHistory(x *suite.Env, seed uint64, clients, deeds int) (history []porcupine.Operation, broken int) {
	x.Helper()
	start := time.Now()
	var mu sync.Mutex
	record := func(client int, d deed, call time.Time, a answer) {
		o := porcupine.Operation{
			ClientId: client, Input: d, Call: call.Sub(start).Nanoseconds(), Output: a, Return: math.MaxInt64,
		}
		if a.sure { // otherwise it may still take effect at any time
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
		for err != nil { // a fault was injected
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
					_, err := x.DB.Admin().ExecContext(x.Ctx,
						"UPDATE rowfeed_leases SET expires_at = 1 WHERE expires_at IS NOT NULL")
					if err != nil {
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
					if tx, err = pool.BeginTx(x.Ctx,
						x.Dialect.Begin(dialect.ForRecord, dialect.Names{}).Options); err == nil {
						if err = claim.Assert(x.Ctx, rowfeed.InTx(tx)); err == nil {
							err = tx.Commit()
						}
						tx.Rollback()
					}
				}
				a.done = err == nil
				refused := suite.IsCode(err, rowfeed.LeaseTaken) || suite.IsCode(err, rowfeed.LeaseLost)
				if d.verb == release || refused && d.verb != acquire {
					claim = nil // even if the release failed: the client no longer uses the claim
				}
				if err != nil && !refused {
					if !f.sent() || d.verb == renew || d.verb == assert {
						continue // the operation had no visible effect
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
