package ulid

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestWritersOfShardTakeTurns (M31, M34, M60): a writer locks a shard that another writer has locked. It waits until
// the other writer commits or rolls back, and gets ULIDs above those of a commit. A writer of another shard does not
// wait, if the database has several writers.
func TestWritersOfShardTakeTurns(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		ends := []string{"commit", "rollback", "commit, by SQL"}
		if !x.Has.Functions {
			ends = ends[:2]
		}
		x.Write(1, 100, 100)
		// With an old hint, only the state keeps the ULIDs apart.
		request := rowfeed.LockRequest{Shards: []int{1}, Hint: time.UnixMilli(1), Wait: time.Hour}
		for _, end := range ends {
			first := x.Begin(sql.LevelReadCommitted)
			u := x.Lock(first, request)
			x.Event(first, 1, 1, x.At(u, 1, 0), "")
			if !x.Has.OneWriter {
				other := x.Begin(sql.LevelReadCommitted)
				x.Lock(other, rowfeed.LockRequest{Shards: []int{2}})
				x.Commit(other)
			}
			var began, ended atomic.Bool
			pool := x.Writer(testdb.Hooks{Before: func(context.Context, testdb.TapEvent) error {
				began.Store(true)
				return nil
			}})
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
					h, err = lockPatiently(x, tx, 1, "'2000-01-01 00:00:00'")
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

// TestRangesOfULIDsNeverOverlap (M36, M37, M38, M39, M40): the ULIDs of one lock, and of two locks in a transaction,
// grow, do not overlap, have one time for each lock and end at ULIDsPerLock.
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
		second, next := x.At(u, 3, 1), x.At(v, 3, 0)
		ids := []ulid.ULID{low, second, last, next}
		if !slices.IsSortedFunc(ids, ulid.ULID.Compare) || len(slices.Compact(ids)) != 4 || low.Time() != last.Time() {
			t.Errorf("the lock has %s, %s … %s, and the next lock %s", low, second, last, next)
		}
		at, err := u.Time(3)
		if err != nil || !at.Equal(suite.Millis(low)) || at.Sub(x.Now()).Abs() > time.Minute {
			t.Errorf("the lock has the time %s, and its first ULID is %s (%v)", at, low, err)
		}
		high, lower, err := u.HighLow(3)
		if err != nil {
			t.Fatal(err)
		}
		var computed ulid.ULID
		binary.BigEndian.PutUint64(computed[:8], uint64(high))
		binary.BigEndian.PutUint64(computed[8:], uint64(lower+12345))
		if want := x.At(u, 3, 12345); computed != want {
			t.Errorf("the numbers of the lock give %s, want %s", computed, want)
		}
		if err := errors.Join(u.Verify(x.Ctx), v.Verify(x.Ctx)); err != nil {
			t.Error(err)
		}
		x.Commit(tx)
		x.WantCode(u.Verify(x.Ctx), rowfeed.InvalidRequest)
	})
}

// TestTimeFollowsHintsAndNeverGoesBack (M41, M60, H8, H19): the time of ULIDs follows the hints of locks, but never
// goes back. A hint more than a minute ahead is refused and changes nothing. Pages after a time have the rows since
// then.
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
				t.Errorf("with the hint %s the lock gets %s (%s) after %s", hint, id, suite.Millis(id), last)
			}
			last = id.String()
			x.Event(tx, i+1, 0, id, "")
			x.Commit(tx)
		}
		tx := x.Begin(sql.LevelReadCommitted)
		_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Hint: x.Now().Add(2 * time.Minute)})
		x.WantCode(err, rowfeed.InvalidRequest)
		if err := tx.Commit(); err != nil && !x.Has.AbortingErrors {
			t.Fatal(err)
		}
		tx = x.Begin(sql.LevelReadCommitted)
		id := x.At(x.Lock(tx, rowfeed.LockRequest{Hint: base.Add(11 * time.Minute)}), 0, 0)
		if !suite.Millis(id).Equal(base.Add(11 * time.Minute)) {
			t.Errorf("after a refused hint, the lock has the time %s", suite.Millis(id))
		}
		x.Commit(tx)
		for after, want := range map[time.Duration][]int{
			-time.Hour: {1, 2, 3, 4, 5}, time.Second: {2, 3, 4, 5}, 3 * time.Minute: {2, 3, 4, 5}, 4 * time.Minute: {5},
			24 * time.Hour: nil,
		} {
			x.WantIDs(x.Page(x.Feed, 0, rowfeed.At(base.Add(after)), 10), false, want...)
		}
	})
}

// TestLockNeedsTransaction (M33): Lock fails without a transaction, in one that has ended, and for a sequence feed. No
// state changes.
func TestLockNeedsTransaction(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		tx := x.Begin(sql.LevelReadCommitted)
		x.In(tx, "COMMIT")
		_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{})
		x.WantCode(err, rowfeed.InvalidRequest)
		if n := x.Scalar("SELECT count(*) FROM rowfeed_shards WHERE ulid_high <> 0"); n != 0 {
			t.Errorf("%d shards have a new state", n)
		}
		for _, none := range []rowfeed.Tx{nil, rowfeed.InTx(nil)} {
			_, err = x.Feed.Lock(x.Ctx, none, rowfeed.LockRequest{})
			x.WantCode(err, rowfeed.InvalidRequest)
		}
		kv := x.AddKV()
		x.WantCode(kv.Republish(x.Ctx, nil, rowfeed.Key{1}), rowfeed.InvalidRequest)
		_, err = kv.Lock(x.Ctx, rowfeed.InTx(x.Begin(sql.LevelReadCommitted)), rowfeed.LockRequest{})
		if x.WantCode(err, rowfeed.Refused); !errors.Is(err, errors.ErrUnsupported) {
			t.Error(err)
		}
	})
}

// TestVerifyDetectsRolledBackSavepoint (M40, H8): a savepoint is rolled back. ULIDs of a lock after the savepoint are
// invalid, and Verify says so. ULIDs of locks before it are still valid.
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
			for range 6 { // after eight later locks, Verify knows nothing of the first one
				x.Lock(tx, rowfeed.LockRequest{Shards: []int{1}})
			}
			err := before.Verify(x.Ctx)
			if !errors.Is(err, rowfeed.Conflict) ||
				!strings.Contains(err.Error(), "or the transaction has locked the shard 8 times since") {
				t.Error(level, err)
			}
			if err := after.Verify(x.Ctx); err != nil {
				t.Error(level, err)
			}
			x.Commit(tx)
		}
	})
}

// TestLockIgnoresOldSnapshot (H9, H20): a transaction reads before another one locks a shard. Its own lock gets ULIDs
// above those of the other, or fails if the database cannot read the newest state.
func TestLockIgnoresOldSnapshot(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(1, 1, 1)
		for i, level := range isolations(x.Env) {
			tx := x.Begin(level)
			var n int
			if err := tx.QueryRowContext(x.Ctx, "SELECT count(*) FROM rowfeed_shards").Scan(&n); err != nil {
				t.Fatal(err)
			}
			if x.Has.LockingSerializable && level == sql.LevelSerializable {
				tx.Rollback() // the other writer would wait for this transaction
				continue
			}
			x.Write(1, 2+i, 2+i)
			request := rowfeed.LockRequest{Shards: []int{1}, Hint: time.UnixMilli(1)} // so that only the state decides
			u, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), request)
			if x.Has.OneWriter || x.Has.AbortingSnapshots && level != sql.LevelReadCommitted {
				x.WantCode(err, rowfeed.Locked)
				tx.Rollback()
				continue
			}
			if err != nil {
				t.Fatal(level, err)
			}
			last := x.Page(x.Feed, 1, "", 10)
			if at := x.At(u, 1, 0).String(); at <= last.Entries[len(last.Entries)-1].Position {
				t.Errorf("%s: the lock gets %s, which is not above the committed rows", level, at)
			}
			x.Commit(tx)
		}
	})
}
