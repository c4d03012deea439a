package conformance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// long is a term that does not end during a test by itself.
const long = time.Hour

// stranger is rowfeed in another process, as far as the database can tell.
func (x *env) stranger(h testdb.Hooks, params ...string) *rowfeed.DB {
	x.Helper()
	rf, err := rowfeed.Open(x.ctx, x.db.OpenTapped(x.T, h, params...), x.dialect, nil)
	if err != nil {
		x.Fatal(err)
	}
	return rf
}

func (x *env) acquire(l *rowfeed.Lease) *rowfeed.Term {
	x.Helper()
	t, err := l.TryAcquire(x.ctx)
	if err != nil {
		x.Fatal(err)
	}
	return t
}

func (x *env) wantTaken(l *rowfeed.Lease) {
	x.Helper()
	t, err := l.TryAcquire(x.ctx)
	if t != nil || !isCode(err, rowfeed.LeaseTaken) {
		x.Fatalf("acquired %v, %v; want %s", t, err, rowfeed.LeaseTaken)
	}
}

// job is the status of the lease "job".
func (x *env) job() *rowfeed.LeaseStatus {
	x.Helper()
	all, err := x.rf.Admin().Leases(x.ctx)
	if err != nil {
		x.Fatal(err)
	}
	for _, l := range all {
		if l.Name == "job" {
			return l
		}
	}
	return nil
}

// leap moves the database's clock, as far as leases can tell: their ends move the
// other way.
func (x *env) leap(d time.Duration) {
	x.Helper()
	x.exec(fmt.Sprintf("UPDATE rowfeed_leases SET expires_at = expires_at - %d", d.Microseconds()))
}

// assert calls Assert in a transaction of the test's own and ends it.
func (x *env) assert(t *rowfeed.Term) error {
	x.Helper()
	tx := x.begin(sql.LevelReadCommitted)
	err := t.Assert(x.ctx, rowfeed.InTx(tx))
	if err == nil {
		x.commit(tx)
	}
	tx.Rollback()
	return err
}

// wantOver asserts that a term can do nothing any more, and touches nothing of what is.
func (x *env) wantOver(t *rowfeed.Term) {
	x.Helper()
	before := x.job()
	x.wantCode(x.assert(t), rowfeed.LeaseLost)
	x.wantCode(t.Renew(x.ctx), rowfeed.LeaseLost)
	x.wantCode(t.Release(x.ctx), rowfeed.LeaseLost)
	if t.Context().Err() == nil {
		x.Error("a term is over, and its context does not tell")
	}
	after := x.job()
	if before.State != after.State || before.Owner != after.Owner || before.Epoch != after.Epoch || before.Renewals != after.Renewals {
		x.Errorf("a term that is over changed the lease from %+v to %+v", before, after)
	}
}

// TestLease (M48, M49, M52, M58): a lease is there as soon as the tables are. Who
// comes second is told who has it; after the release the next one gets it at once,
// with a higher epoch; leases of other names are others.
func TestLease(t *testing.T) {
	each(t, func(x *env) {
		if x.job() != nil {
			x.Error("there is a lease before the first acquire")
		}
		other := x.stranger(testdb.Hooks{})
		first := x.acquire(x.rf.Lease("job", long))
		if first.Epoch() != 1 || first.Context().Err() != nil {
			x.Errorf("epoch %d, context %v", first.Epoch(), first.Context().Err())
		}
		if s := x.job(); s.State != rowfeed.LeaseHeld || s.Owner != first.Owner() || s.Epoch != 1 || s.ExpiresInSeconds <= 0 || s.ExpiresInSeconds > long.Seconds() {
			x.Errorf("status %+v", s)
		}
		for _, l := range []*rowfeed.Lease{other.Lease("job", long), x.rf.Lease("job", long)} {
			if _, err := l.TryAcquire(x.ctx); !isCode(err, rowfeed.LeaseTaken) || !strings.Contains(err.Error(), first.Owner()) {
				x.Errorf("the second one is told %v", err)
			}
		}
		x.acquire(other.Lease("job2", long))
		if err := x.assert(first); err != nil {
			x.Errorf("assert: %v", err)
		}
		if err := first.Renew(x.ctx); err != nil {
			x.Errorf("renew: %v", err)
		}
		if err := first.Release(x.ctx); err != nil {
			x.Errorf("release: %v", err)
		}
		x.wantCode(context.Cause(first.Context()), rowfeed.LeaseLost)
		if s := x.job(); s.State != rowfeed.LeaseFree || s.Owner != "" || s.Epoch != 1 {
			x.Errorf("status after the release: %+v", s)
		}
		second := x.acquire(other.Lease("job", long))
		if second.Epoch() != 2 {
			x.Errorf("the second epoch is %d", second.Epoch())
		}
		x.wantOver(first)
		if err := x.assert(second); err != nil {
			x.Errorf("the second term: %v", err)
		}
		for _, bad := range []*rowfeed.Lease{x.rf.Lease("", long), x.rf.Lease("a b", long), x.rf.Lease("ü", long), x.rf.Lease(strings.Repeat("n", 101), long), x.rf.Lease("job", 0)} {
			_, err := bad.TryAcquire(x.ctx)
			x.wantCode(err, rowfeed.InvalidRequest)
		}
	})
}

// TestLeaseNullExpiry (M49, H27): a row without an end is free, whoever wrote it.
func TestLeaseNullExpiry(t *testing.T) {
	each(t, func(x *env) {
		x.exec("INSERT INTO rowfeed_leases (name, owner, epoch, expires_at, acquired_at, renewals) VALUES ('job', 'somebody', 7, NULL, 0, 0)")
		if term := x.acquire(x.rf.Lease("job", long)); term.Epoch() != 8 {
			x.Errorf("epoch %d, want 8", term.Epoch())
		}
		x.wantTaken(x.rf.Lease("job", long))
	})
}

// TestLeaseStaleRead (M50): what was read before an acquire never decides. Between the
// look that finds the lease free and the statement that takes it somebody else takes
// it, takes and releases it, or the end moves away; nobody gets a lease that is held,
// nor an epoch that was given.
func TestLeaseStaleRead(t *testing.T) {
	testdb.Quick(t)
	each(t, func(x *env) {
		type outcome struct {
			term *rowfeed.Term
			err  error
		}
		late := func(between func()) outcome {
			held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Begin })
			rf := x.stranger(testdb.Hooks{Before: held.Before})
			done := make(chan outcome, 1)
			go func() {
				term, err := rf.Lease("job", long).TryAcquire(x.ctx)
				done <- outcome{term, err}
			}()
			<-held.Reached
			between()
			held.Release()
			return <-done
		}
		// Nobody has ever had it: two inserts.
		var won *rowfeed.Term
		o := late(func() { won = x.acquire(x.rf.Lease("job", long)) })
		if !isCode(o.err, rowfeed.LeaseTaken) {
			x.Errorf("the first lease twice: %+v", o)
		}
		x.leap(2 * long)
		o = late(func() { won = x.acquire(x.rf.Lease("job", long)) })
		if !isCode(o.err, rowfeed.LeaseTaken) || won.Epoch() != 2 {
			x.Errorf("an expired lease twice: %+v, and epoch %d", o, won.Epoch())
		}
		if err := x.assert(won); err != nil {
			x.Errorf("whoever was first lost it: %v", err)
		}
		x.leap(2 * long)
		o = late(func() {
			if err := x.acquire(x.rf.Lease("job", long)).Release(x.ctx); err != nil {
				x.Error(err)
			}
		})
		if o.err != nil || o.term.Epoch() != 4 {
			x.Errorf("taken and released in between: %+v", o)
		}
		x.leap(2 * long)
		o = late(func() { x.leap(-2 * long) })
		if !isCode(o.err, rowfeed.LeaseTaken) {
			x.Errorf("the end moved away in between: %+v", o)
		}
	})
}

// TestLeaseOwnersAndEpochs (H3, H27): each acquire has another owner and the next
// epoch, also in one process, and a term needs both to be its own: an epoch comes
// again after a failover that lost commits, an owner where somebody writes host names.
func TestLeaseOwnersAndEpochs(t *testing.T) {
	each(t, func(x *env) {
		lease := x.rf.Lease("job", long)
		zombie := x.acquire(lease)
		x.leap(2 * long)
		again := x.acquire(lease)
		if again.Owner() == zombie.Owner() || again.Epoch() != zombie.Epoch()+1 {
			x.Errorf("the same process acquired it as %s, epoch %d, and then as %s, epoch %d", zombie.Owner(), zombie.Epoch(), again.Owner(), again.Epoch())
		}
		x.wantOver(zombie)
		if err := x.assert(again); err != nil {
			x.Errorf("the second term: %v", err)
		}
		// The commit of epoch 2 is lost in a failover; somebody else gets 2.
		x.exec("UPDATE rowfeed_leases SET owner = 'somebody else'")
		x.wantOver(again)
		// The same owner with the next epoch.
		x.leap(2 * long)
		third := x.acquire(lease)
		x.exec("UPDATE rowfeed_leases SET epoch = epoch + 1")
		x.wantOver(third)
	})
}

// TestLeaseClockLeaps (H27): when the database's clock leaps ahead another may
// take over at once; the first holder, whose own clock says nothing of it, is refused
// from then on. When it leaps back the holder's next renewal puts the end right.
func TestLeaseClockLeaps(t *testing.T) {
	each(t, func(x *env) {
		first := x.acquire(x.rf.Lease("job", long))
		x.leap(-24 * long)
		if left := x.job().ExpiresInSeconds; left <= long.Seconds() {
			x.Fatalf("the clock did not leap: %v s are left", left)
		}
		x.wantTaken(x.rf.Lease("job", long))
		if err := first.Renew(x.ctx); err != nil {
			x.Error(err)
		}
		if left := x.job().ExpiresInSeconds; left > long.Seconds() {
			x.Errorf("after a renewal %v s are left", left)
		}
		x.leap(2 * long)
		// Nobody has taken it, and still it is over.
		if first.Context().Err() != nil {
			x.Error("the holder cannot know yet")
		}
		x.wantCode(x.assert(first), rowfeed.LeaseLost)
		second := x.acquire(x.stranger(testdb.Hooks{}).Lease("job", long))
		x.wantOver(first)
		if err := x.assert(second); err != nil {
			x.Error(err)
		}
		x.leap(2 * long)
		x.wantCode(second.Renew(x.ctx), rowfeed.LeaseLost)
		if s := x.job(); s.State != rowfeed.LeaseExpired {
			x.Errorf("status %+v", s)
		}
	})
}

// TestLeaseApplicationClock (H27): a process whose clock is a quarter of a
// century behind acquires, renews and is told like any other.
func TestLeaseApplicationClock(t *testing.T) {
	each(t, func(x *env) {
		mine := x.acquire(x.rf.Lease("mine", long))
		url, d := x.db.URL, x.dialect
		synctest.Test(x.T, func(t *testing.T) { // a bubble's clock begins in the year 2000
			if year := time.Now().UTC().Year(); year != 2000 {
				t.Fatalf("it is %d", year)
			}
			pool, err := testdb.OpenURL(url, testdb.Hooks{})
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			rf, err := rowfeed.Open(t.Context(), pool, d, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := rf.Lease("mine", long).TryAcquire(t.Context()); !isCode(err, rowfeed.LeaseTaken) {
				t.Errorf("acquired what is held: %v", err)
			}
			term, err := rf.Lease("job", long).TryAcquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := term.Renew(t.Context()); err != nil {
				t.Error(err)
			}
			if d := time.Until(term.Deadline()); d <= 0 || d > long {
				t.Errorf("the local deadline is %s away", d)
			}
		})
		if s := x.job(); s.State != rowfeed.LeaseHeld || s.ExpiresInSeconds > long.Seconds() {
			x.Errorf("status %+v", s)
		}
		x.wantTaken(x.rf.Lease("job", long))
		if err := x.assert(mine); err != nil {
			x.Error(err)
		}
	})
}

// TestLeaseSessionTimeZones (H27): sessions of any time zone agree on what is
// held and what has expired.
func TestLeaseSessionTimeZones(t *testing.T) {
	each(t, func(x *env) {
		zones := map[string][]string{
			"postgres": {"timezone=Pacific/Kiritimati", "timezone=Etc/GMT+12"},
			"mysql":    {"time_zone=%27%2B13:00%27", "time_zone=%27-12:00%27"},
			"sqlite":   {"_", "_"}, // sessions have none
		}[x.family()]
		east, west := x.stranger(testdb.Hooks{}, zones[0]), x.stranger(testdb.Hooks{}, zones[1])
		if x.family() != "sqlite" {
			zone := func(pool *sql.DB) (name string) {
				if err := pool.QueryRow(x.by(map[string]string{"postgres": "SHOW timezone", "mysql": "SELECT @@SESSION.time_zone"})).Scan(&name); err != nil {
					x.Fatal(err)
				}
				return name
			}
			if a, b := zone(x.db.OpenTapped(x.T, testdb.Hooks{}, zones[0])), zone(x.db.OpenTapped(x.T, testdb.Hooks{}, zones[1])); a == b {
				x.Fatalf("both sessions have time zone %s", a)
			}
		}
		for _, pair := range [][2]*rowfeed.DB{{east, west}, {west, east}} {
			term := x.acquire(pair[0].Lease("job", long))
			x.wantTaken(pair[1].Lease("job", long))
			if s := x.job(); s.ExpiresInSeconds <= long.Seconds()/2 || s.ExpiresInSeconds > long.Seconds() {
				x.Errorf("status %+v", s)
			}
			if err := term.Renew(x.ctx); err != nil {
				x.Error(err)
			}
			x.leap(2 * long)
			taken := x.acquire(pair[1].Lease("job", long))
			x.wantOver(term)
			if err := taken.Release(x.ctx); err != nil {
				x.Error(err)
			}
		}
	})
}

// TestLeaseRenewTwice (H27): a renewal that leaves the end as it is, since the
// clock has not moved, counts all the same; MySQL counts the rows that have changed.
func TestLeaseRenewTwice(t *testing.T) {
	each(t, func(x *env) {
		rf := x.rf
		if x.family() == "mysql" { // a session whose clock stands still
			rf = x.stranger(testdb.Hooks{}, fmt.Sprintf("timestamp=%d", x.scalar("SELECT UNIX_TIMESTAMP()")))
		}
		term := x.acquire(rf.Lease("job", long))
		for range 5 {
			if err := term.Renew(x.ctx); err != nil {
				x.Fatal(err)
			}
		}
		if s := x.job(); s.Renewals != 5 {
			x.Errorf("%d renewals, want 5", s.Renewals)
		}
	})
}

// TestLeaseContenders (M49, M50): many contenders, and exactly one of them has each
// term, whatever the server's default isolation level.
func TestLeaseContenders(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		levels := []string{"default"}
		if e.HasServer() {
			levels = []string{"read-committed", "repeatable-read", "serializable"}
		}
		for _, level := range levels {
			t.Run(level, func(t *testing.T) {
				x := newEnv(t, e, nil)
				x.migrate()
				var params []string
				switch {
				case x.family() == "postgres":
					x.exec("ALTER DATABASE " + x.db.Name + " SET default_transaction_isolation = '" + strings.ReplaceAll(level, "-", " ") + "'")
				case e == testdb.MariaDB:
					params = []string{"tx_isolation=%27" + strings.ToUpper(level) + "%27"}
				case e == testdb.MySQL:
					params = []string{"transaction_isolation=%27" + strings.ToUpper(level) + "%27"}
				}
				x.contend(params)
			})
		}
	})
}

func (x *env) contend(params []string) {
	const contenders, rounds = 6, 15
	var mu sync.Mutex
	holders := map[int64]string{} // by epoch
	inside := 0
	var group sync.WaitGroup
	for range contenders {
		lease := x.stranger(testdb.Hooks{}, params...).Lease("job", long)
		lease.LookEvery = time.Millisecond
		group.Go(func() {
			for range rounds {
				term, err := lease.Acquire(x.ctx)
				if err != nil {
					x.Errorf("acquire: %v", err)
					return
				}
				mu.Lock()
				inside++
				if other, twice := holders[term.Epoch()]; twice || inside != 1 {
					x.Errorf("epoch %d: %d holders at once, %s and %s", term.Epoch(), inside, term.Owner(), other)
				}
				holders[term.Epoch()] = term.Owner()
				mu.Unlock()
				if err := x.assert(term); err != nil {
					x.Errorf("assert: %v", err)
				}
				mu.Lock()
				inside--
				mu.Unlock()
				if err := term.Release(x.ctx); err != nil {
					x.Errorf("release: %v", err)
				}
			}
		})
	}
	group.Wait()
	if s := x.job(); s.State != rowfeed.LeaseFree || s.Epoch != contenders*rounds || len(holders) != contenders*rounds {
		x.Errorf("%d terms for %d acquires; %+v", len(holders), contenders*rounds, s)
	}
}

// TestLeaseWaits (M53): who waits for a lease looks with one statement, outside any
// transaction, at pauses that grow to LookEvery; a bubble's clock counts them.
func TestLeaseWaits(t *testing.T) {
	testdb.SQLite.Require(t)
	x := newEnv(t, testdb.SQLite, nil)
	x.migrate()
	holder := x.acquire(x.rf.Lease("job", 24*time.Hour))
	synctest.Test(t, func(t *testing.T) {
		var looks []time.Time
		pool, err := testdb.OpenURL(x.db.URL, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if ev.InTx || ev.Kind != testdb.Query {
				t.Errorf("while it waits: %s %s", ev.Kind, ev.SQL)
			}
			looks = append(looks, time.Now())
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		rf, err := rowfeed.Open(t.Context(), pool, x.dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		looks = nil
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if _, err := rf.Lease("job", long).Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("acquired: %v", err)
		}
		if n := len(looks); n < 10*60/7 || n > 10*60/5+6 {
			t.Errorf("%d looks in ten minutes", n)
		}
		pauses := map[time.Duration]bool{}
		for i := 1; i < len(looks); i++ {
			d := looks[i].Sub(looks[i-1])
			pauses[d] = true
			if least := 5 * time.Second / 16 << min(i-1, 4); d < least || d > least+least/4+20*time.Millisecond {
				t.Errorf("pause %d is %s", i, d)
			}
		}
		if len(pauses) < len(looks)/2 {
			t.Errorf("%d pauses of %d lengths: no jitter", len(looks)-1, len(pauses))
		}
	})
	if err := holder.Release(x.ctx); err != nil {
		t.Error(err)
	}
}
