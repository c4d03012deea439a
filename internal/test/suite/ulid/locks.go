package ulid

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestWritersOfShardTakeTurns (M31, M34, M60): the second writer of a shard waits until the first has ended, one of
// another shard does not, where a database has more than one writer at all (M31, M34).
func TestWritersOfShardTakeTurns(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		ends := []string{"commit", "rollback", "commit, by SQL"}
		if x.Family() == "sqlite" {
			ends = ends[:2] // it has no functions
		}
		x.Write(1, 100, 100)
		// Nothing but the state tells them apart: all of them count on in the same millisecond.
		request := rowfeed.LockRequest{Shards: []int{1}, Hint: time.UnixMilli(1), Wait: time.Hour}
		for _, end := range ends {
			first := x.Begin(sql.LevelReadCommitted)
			u := x.Lock(first, request)
			x.Event(first, 1, 1, x.At(u, 1, 0), "")
			if x.Family() != "sqlite" {
				other := x.Begin(sql.LevelReadCommitted)
				x.Lock(other, rowfeed.LockRequest{Shards: []int{2}})
				x.Commit(other)
			}
			var began, ended atomic.Bool
			pool := x.Writer(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error { began.Store(true); return nil }})
			done := make(chan error, 1)
			go func() {
				tx, err := pool.BeginTx(x.Ctx, &sql.TxOptions{})
				if err != nil {
					done <- err
					return
				}
				defer tx.Rollback()
				var is ulid.ULID
				if strings.HasSuffix(end, "by SQL") {
					var h suite.Halves
					h, err = lockInTime(x, tx, 1, "'2000-01-01 00:00:00'")
					copy(is[:], h.ULID)
				} else if v, failed := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), request); failed != nil {
					err = failed
				} else {
					is, err = v.At(1, 0)
				}
				if err == nil && !ended.Load() {
					err = errors.New("the second writer did not wait")
				}
				if err == nil {
					was, _ := u.At(1, rowfeed.ULIDsPerLock-1)
					if end != "rollback" && is.Compare(was) <= 0 {
						err = errors.New("the second writer's ULIDs are not above the first one's")
					}
				}
				done <- err
			}()
			x.Eventually("the second writer waits", func() bool { return len(done) > 0 || began.Load() && x.Waits() })
			ended.Store(true)
			if end != "rollback" {
				x.Commit(first)
			} else if err := first.Rollback(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(end, err)
			}
			x.Exec("DELETE FROM events WHERE id = 1")
		}
	})
}

// TestRangesOfULIDsNeverOverlap (M36, M37, M38, M39, M40): of one call and of several in a transaction, ULIDs grow, never
// overlap, have one time each, and end where they end (M36, M37, M38, M39, M42).
func TestRangesOfULIDsNeverOverlap(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		tx := x.Begin(sql.LevelReadCommitted)
		u := x.Lock(tx, rowfeed.LockRequest{Shards: []int{3, -3, 3}})
		v := x.Lock(tx, rowfeed.LockRequest{Shards: []int{3}})
		for _, i := range []int64{-1, rowfeed.ULIDsPerLock, math.MaxInt64, math.MinInt64} {
			_, err := u.At(3, i)
			x.WantCode(err, rowfeed.InvalidRequest)
		}
		_, err := u.At(0, 0)
		x.WantCode(err, rowfeed.InvalidRequest)
		low, last := x.At(u, 3, 0), x.At(u, 3, rowfeed.ULIDsPerLock-1)
		if low.Compare(x.At(u, 3, 1)) >= 0 || x.At(u, 3, 1).Compare(last) >= 0 || last.Compare(x.At(v, 3, 0)) >= 0 || low.Time() != last.Time() {
			t.Errorf("%s, %s, %s, then %s", low, x.At(u, 3, 1), last, x.At(v, 3, 0))
		}
		at, err := u.Time(3)
		if err != nil || !at.Equal(suite.Millis(low)) || at.Sub(x.Now()).Abs() > time.Minute {
			t.Errorf("time %s of %s, %v", at, low, err)
		}
		high, lower, err := u.HighLow(3)
		var bytes [16]byte
		for i := range 8 {
			bytes[i], bytes[8+i] = byte(high>>(56-8*i)), byte((lower+12345)>>(56-8*i))
		}
		if err != nil || bytes != x.At(u, 3, 12345) {
			t.Errorf("%x, %s, %v", bytes, x.At(u, 3, 12345), err)
		}
		if err := errors.Join(u.Verify(x.Ctx), v.Verify(x.Ctx)); err != nil {
			t.Error(err)
		}
		x.Commit(tx)
		x.WantCode(u.Verify(x.Ctx), rowfeed.InvalidRequest)
	})
}

// TestTimeFollowsHintsAndNeverGoesBack (M41, M60, H8, H19): time follows hints, but never goes back, and a hint from beyond a minute
// ahead is refused and changes nothing (M41, M60, hazard 8).
func TestTimeFollowsHintsAndNeverGoesBack(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		base := x.Now().Add(-time.Hour).Truncate(time.Millisecond)
		want := []time.Duration{0, 3 * time.Minute, 3 * time.Minute, 3 * time.Minute, 10 * time.Minute}
		last := ""
		for i, hint := range []time.Duration{0, 3 * time.Minute, 2 * time.Minute, time.Minute, 10 * time.Minute} {
			tx := x.Begin(sql.LevelReadCommitted)
			u := x.Lock(tx, rowfeed.LockRequest{Hint: base.Add(hint)})
			id := x.At(u, 0, 0)
			if !suite.Millis(id).Equal(base.Add(want[i])) || id.String() <= last {
				t.Errorf("hint %s gives %s (%s) after %s", hint, id, suite.Millis(id), last)
			}
			last = id.String()
			x.Event(tx, i+1, 0, id, "")
			x.Commit(tx)
		}
		tx := x.Begin(sql.LevelReadCommitted)
		_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Hint: x.Now().Add(2 * time.Minute)})
		x.WantCode(err, rowfeed.InvalidRequest)
		if err := tx.Commit(); err != nil && x.Family() != "postgres" { // whoever goes on all the same; there the transaction has failed
			t.Fatal(err)
		}
		tx = x.Begin(sql.LevelReadCommitted)
		id := x.At(x.Lock(tx, rowfeed.LockRequest{Hint: base.Add(11 * time.Minute)}), 0, 0)
		if !suite.Millis(id).Equal(base.Add(11 * time.Minute)) {
			t.Errorf("after a refused hint: %s", suite.Millis(id))
		}
		x.Commit(tx)
		// By time a shard is found without a search.
		for after, want := range map[time.Duration][]int{-time.Hour: {1, 2, 3, 4, 5}, time.Second: {2, 3, 4, 5}, 3 * time.Minute: {2, 3, 4, 5}, 4 * time.Minute: {5}, 24 * time.Hour: nil} {
			x.WantIDs(x.Page(x.Feed, 0, rowfeed.At(base.Add(after)), 10), false, want...)
		}
	})
}

// TestLockNeedsTransaction (M33): without a transaction, or in one that has ended, nothing is locked and no
// state changes (M33).
func TestLockNeedsTransaction(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		tx := x.Begin(sql.LevelReadCommitted)
		x.In(tx, "COMMIT")
		_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{})
		x.WantCode(err, rowfeed.InvalidRequest)
		if n := x.Scalar("SELECT count(*) FROM rowfeed_shards WHERE ulid_high <> 0"); n != 0 {
			t.Errorf("%d shards were advanced", n)
		}
		_, err = x.Feed.Lock(x.Ctx, rowfeed.InTx(nil), rowfeed.LockRequest{})
		x.WantCode(err, rowfeed.InvalidRequest)
		_, err = x.AddKV().Lock(x.Ctx, rowfeed.InTx(x.Begin(sql.LevelReadCommitted)), rowfeed.LockRequest{})
		if x.WantCode(err, rowfeed.Refused); !errors.Is(err, errors.ErrUnsupported) {
			t.Error(err)
		}
	})
}

// TestVerifyDetectsRolledBackSavepoint (M40, H8): a savepoint that is rolled back takes the ULIDs of a Lock after it
// back, and Verify knows; those from before stay good (hazard 8).
func TestVerifyDetectsRolledBackSavepoint(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		for _, level := range isolations(x.Env) {
			tx := x.Begin(level)
			before := x.Lock(tx, rowfeed.LockRequest{Shards: []int{1}})
			x.In(tx, "SAVEPOINT s")
			within := x.Lock(tx, rowfeed.LockRequest{Shards: []int{1, 2}})
			if err := errors.Join(before.Verify(x.Ctx), within.Verify(x.Ctx)); err != nil {
				t.Fatal(err)
			}
			x.In(tx, "ROLLBACK TO SAVEPOINT s")
			x.WantCode(within.Verify(x.Ctx), rowfeed.Conflict)
			after := x.Lock(tx, rowfeed.LockRequest{Shards: []int{1, 2}})
			later := x.Lock(tx, rowfeed.LockRequest{Shards: []int{1, 2}})
			x.WantCode(within.Verify(x.Ctx), rowfeed.Conflict)
			for _, u := range []*rowfeed.ULIDs{before, after, later} {
				if err := u.Verify(x.Ctx); err != nil {
					t.Fatal(level, err)
				}
			}
			for range 6 { // before has eight behind it now, and could have been taken back
				x.Lock(tx, rowfeed.LockRequest{Shards: []int{1}})
			}
			if err := before.Verify(x.Ctx); !errors.Is(err, rowfeed.Conflict) || !strings.Contains(err.Error(), "or the transaction has locked the shard 8 times since") {
				t.Error(level, err)
			}
			if err := after.Verify(x.Ctx); err != nil {
				t.Error(level, err)
			}
			x.Commit(tx)
		}
	})
}

// TestLockIgnoresOldSnapshot (H9, H20): a transaction that has read before others took ULIDs gets ULIDs above
// theirs, or none: databases that cannot see the newest state then refuse (hazards 8 and 9).
func TestLockIgnoresOldSnapshot(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(1, 1, 1)
		for i, level := range isolations(x.Env) {
			tx := x.Begin(level)
			var n int
			if err := tx.QueryRowContext(x.Ctx, "SELECT count(*) FROM rowfeed_shards").Scan(&n); err != nil {
				t.Fatal(err)
			}
			if x.Family() == "mysql" && level == sql.LevelSerializable {
				tx.Rollback() // what it reads it locks: nobody else takes anything
				continue
			}
			x.Write(1, 2+i, 2+i)
			// The clock is no help: it counts on from the state.
			u, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{1}, Hint: time.UnixMilli(1)})
			if refuses := x.Family() == "sqlite" || x.Family() == "postgres" && level != sql.LevelReadCommitted; refuses {
				x.WantCode(err, rowfeed.Locked)
				tx.Rollback()
				continue
			}
			if err != nil {
				t.Fatal(level, err)
			}
			last := x.Page(x.Feed, 1, "", 10)
			if at := x.At(u, 1, 0).String(); at <= last.Entries[len(last.Entries)-1].Position {
				t.Errorf("%s: %s is not above what was committed before", level, at)
			}
			x.Commit(tx)
		}
	})
}
