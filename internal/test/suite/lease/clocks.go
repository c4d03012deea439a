package lease

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestClockLeapEndsOrExtendsClaim (H27): when the database's clock leaps ahead, another process may acquire the lease
// at once, and the first holder is refused from then on, although its own clock shows nothing. When the clock leaps
// back, the holder's next renewal corrects the end.
func TestClockLeapEndsOrExtendsClaim(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		first := acquireLease(x, x.RF.Lease("job", suite.Long))
		leapClock(x, -24*suite.Long)
		if left := job(x).ExpiresInSeconds; left <= suite.Long.Seconds() {
			x.Fatalf("the clock did not leap: %v s are left", left)
		}
		wantTaken(x, x.RF.Lease("job", suite.Long))
		if err := first.Renew(x.Ctx); err != nil {
			x.Error(err)
		}
		if left := job(x).ExpiresInSeconds; left > suite.Long.Seconds() {
			x.Errorf("after a renewal %v s are left", left)
		}
		leapClock(x, 2*suite.Long)
		// The claim has ended although no other process has the lease.
		if first.Context().Err() != nil {
			x.Error("the holder cannot know yet")
		}
		x.WantCode(assertClaim(x, first), rowfeed.LeaseLost)
		second := acquireLease(x, stranger(x, testdb.Hooks{}).Lease("job", suite.Long))
		wantOver(x, first)
		if err := assertClaim(x, second); err != nil {
			x.Error(err)
		}
		leapClock(x, 2*suite.Long)
		x.WantCode(second.Renew(x.Ctx), rowfeed.LeaseLost)
		if s := job(x); s.State != rowfeed.LeaseExpired {
			x.Errorf("status %+v", s)
		}
	})
}

// TestWrongApplicationClockIsHarmless (H27): a process whose clock is a quarter of a century behind acquires and renews
// like any other, and gets correct durations.
func TestWrongApplicationClockIsHarmless(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		mine := acquireLease(x, x.RF.Lease("mine", suite.Long))
		url, d := x.DB.URL, x.Dialect
		synctest.Test(x.T, func(t *testing.T) { // the synthetic clock begins in the year 2000
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
			if _, err := rf.Lease("mine", suite.Long).TryAcquire(t.Context()); !suite.IsCode(err, rowfeed.LeaseTaken) {
				t.Errorf("acquired what is held: %v", err)
			}
			claim, err := rf.Lease("job", suite.Long).TryAcquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := claim.Renew(t.Context()); err != nil {
				t.Error(err)
			}
			if d := time.Until(claim.Deadline()); d <= 0 || d > suite.Long {
				t.Errorf("the local deadline is %s away", d)
			}
		})
		if s := job(x); s.State != rowfeed.LeaseHeld || s.ExpiresInSeconds > suite.Long.Seconds() {
			x.Errorf("status %+v", s)
		}
		wantTaken(x, x.RF.Lease("job", suite.Long))
		if err := assertClaim(x, mine); err != nil {
			x.Error(err)
		}
	})
}

// TestTimeZonesAgreeOnExpiry (H27): sessions of any time zone agree on which claims are held and which have expired.
func TestTimeZonesAgreeOnExpiry(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		zones := []string{x.Text("lease.east"), x.Text("lease.west")}
		east, west := stranger(x, testdb.Hooks{}, zones[0]), stranger(x, testdb.Hooks{}, zones[1])
		if x.Has.TimeZones {
			zone := func(setting string) (name string) {
				pool := x.DB.OpenTapped(x.T, testdb.Hooks{}, setting)
				if err := pool.QueryRow(x.Text("lease.time_zone")).Scan(&name); err != nil {
					x.Fatal(err)
				}
				return name
			}
			if a, b := zone(zones[0]), zone(zones[1]); a == b {
				x.Fatalf("both sessions have time zone %s", a)
			}
		}
		for _, pair := range [][2]*rowfeed.DB{{east, west}, {west, east}} {
			claim := acquireLease(x, pair[0].Lease("job", suite.Long))
			wantTaken(x, pair[1].Lease("job", suite.Long))
			if s := job(x); s.ExpiresInSeconds <= suite.Long.Seconds()/2 || s.ExpiresInSeconds > suite.Long.Seconds() {
				x.Errorf("status %+v", s)
			}
			if err := claim.Renew(x.Ctx); err != nil {
				x.Error(err)
			}
			leapClock(x, 2*suite.Long)
			taken := acquireLease(x, pair[1].Lease("job", suite.Long))
			wantOver(x, claim)
			if err := taken.Release(x.Ctx); err != nil {
				x.Error(err)
			}
		}
	})
}
