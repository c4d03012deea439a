package lease

import (
	"database/sql"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestLeaseClockLeaps (H27): when the database's clock leaps ahead another may
// take over at once; the first holder, whose own clock says nothing of it, is refused
// from then on. When it leaps back the holder's next renewal puts the end right.
func TestLeaseClockLeaps(t *testing.T) {
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
		// Nobody has taken it, and still it is over.
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

// TestLeaseApplicationClock (H27): a process whose clock is a quarter of a
// century behind acquires, renews and is told like any other.
func TestLeaseApplicationClock(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		mine := acquireLease(x, x.RF.Lease("mine", suite.Long))
		url, d := x.DB.URL, x.Dialect
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

// TestLeaseSessionTimeZones (H27): sessions of any time zone agree on what is
// held and what has expired.
func TestLeaseSessionTimeZones(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		zones := map[string][]string{
			"postgres": {"timezone=Pacific/Kiritimati", "timezone=Etc/GMT+12"},
			"mysql":    {"time_zone=%27%2B13:00%27", "time_zone=%27-12:00%27"},
			"sqlite":   {"_", "_"}, // sessions have none
		}[x.Family()]
		east, west := stranger(x, testdb.Hooks{}, zones[0]), stranger(x, testdb.Hooks{}, zones[1])
		if x.Family() != "sqlite" {
			zone := func(pool *sql.DB) (name string) {
				if err := pool.QueryRow(x.By(map[string]string{"postgres": "SHOW timezone", "mysql": "SELECT @@SESSION.time_zone"})).Scan(&name); err != nil {
					x.Fatal(err)
				}
				return name
			}
			if a, b := zone(x.DB.OpenTapped(x.T, testdb.Hooks{}, zones[0])), zone(x.DB.OpenTapped(x.T, testdb.Hooks{}, zones[1])); a == b {
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
