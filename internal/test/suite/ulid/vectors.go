package ulid

import (
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// vector is a history of a shard in testdata/ulids.json.
type vector struct {
	Name  string
	Steps []struct {
		HintMillis int64 `json:"hint_ms"`
		Random     string
		Count      int64
		TimeMillis int64 `json:"time_ms"`
		High       int64 `json:"ulid_high"`
		Low        int64 `json:"ulid_low"`
	}
}

func vectors(t *testing.T) (all []vector) {
	t.Helper()
	data, err := os.ReadFile("../../../testdata/ulids.json")
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil || len(all) == 0 {
		t.Fatal(err)
	}
	return all
}

// inSQL computes ULIDState.Take in the database. ok reports whether the database can.
func inSQL(
	x *suite.Env, s dialect.ULIDState, hintMillis int64, random dialect.ULIDRandom, count int64,
) (next dialect.ULIDState, ok bool) {
	x.Helper()
	d, ok := x.Dialect.Routines.(interface {
		TakeULIDs(dialect.ULIDTerms) (timeMillis, high, low string)
	})
	if !ok {
		return next, false
	}
	number := func(n int64) string { return x.Text("ulid.bigint", n) }
	a, b, c := d.TakeULIDs(dialect.ULIDTerms{
		TimeMillis: number(s.TimeMillis), High: number(s.High), Low: number(s.Low), Hint: number(max(hintMillis, 1)),
		Random16: number(int64(binary.BigEndian.Uint16(random[:]))),
		Random64: number(int64(binary.BigEndian.Uint64(random[2:]))), Count: number(count),
	})
	row := x.DB.Admin().QueryRowContext(x.Ctx, "SELECT "+a+", "+b+", "+c+" + "+number(count))
	if err := row.Scan(&next.TimeMillis, &next.High, &next.Low); err != nil {
		x.Fatalf("state %+v, hint %d, random bits %x, count %d: %v", s, hintMillis, random, count, err)
	}
	return next, true
}

// TestSQLComputesULIDStatesOfVectors (M41): the databases that compute ULIDs by expressions get the states of the
// vectors. For the others, TestLockContinuesFromVectors shows what they compute.
func TestSQLComputesULIDStatesOfVectors(t *testing.T) {
	testdb.Quick(t)
	all := vectors(t)
	suite.Each(t, func(x *suite.Env) {
		for _, v := range all {
			var state dialect.ULIDState
			for i, step := range v.Steps {
				random, err := hex.DecodeString(step.Random)
				if err != nil {
					x.Fatal(err)
				}
				next, ok := inSQL(x, state, step.HintMillis, dialect.ULIDRandom(random), step.Count)
				if !ok {
					if x.Dialect.Routines != nil && !x.Has.ULIDStatements {
						x.Error("the dialect computes no ULIDs in SQL, but creates functions")
					}
					return
				}
				want := dialect.ULIDState{TimeMillis: step.TimeMillis, High: step.High, Low: step.Low}
				if next != want {
					x.Fatalf("%s, step %d: %+v, want %+v", v.Name, i, next, want)
				}
				state = next
			}
		}
	})
}

// TestSQLComputesSameULIDsAsGo (M41): states, hints, random bits and counts are random, and often near the limits. The
// database computes the same as Go.
func TestSQLComputesSameULIDsAsGo(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		rnd := rand.New(rand.NewPCG(suite.RaceSeed(t), 0))
		// Bits near the edges, and any.
		bits := func() int64 {
			edges := []int64{0, 1 << 62, math.MaxInt64, math.MinInt64, -1 << 62, -1}
			if rnd.IntN(3) == 0 {
				return int64(rnd.Uint64())
			}
			return edges[rnd.IntN(len(edges))] + rnd.Int64N(5) - 2
		}
		for range 200 {
			ms := 1_700_000_000_000 + rnd.Int64N(1000)
			state := dialect.ULIDState{TimeMillis: ms, High: ms<<16 | rnd.Int64N(1<<16), Low: bits()}
			if rnd.IntN(20) == 0 {
				state = dialect.ULIDState{}
			}
			var random dialect.ULIDRandom
			binary.BigEndian.PutUint16(random[:], uint16(rnd.Uint32()))
			binary.BigEndian.PutUint64(random[2:], uint64(bits()))
			hint := ms + rnd.Int64N(5) - 2
			room := max(1, math.MaxInt64-state.Low&math.MaxInt64)
			count := []int64{
				1, dialect.ULIDsPerLock, dialect.MaxULIDs,
				min(room, dialect.MaxULIDs), min(room, dialect.MaxULIDs-1) + 1,
			}[rnd.IntN(5)]
			_, want, err := state.Take(hint, random, count)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := inSQL(x, state, hint, random, count)
			if !ok {
				return
			}
			if got != want {
				t.Fatalf("state %+v, hint %d, random bits %x, count %d: SQL computes %+v, and Go %+v",
					state, hint, random, count, got, want)
			}
		}
	})
}

// TestLockContinuesFromVectors (M37, M41): a shard has the states of the vectors in turn. Feed.Lock and the functions
// continue from the state, or begin a millisecond, where the vectors do. A hint of the future is refused and changes
// nothing.
func TestLockContinuesFromVectors(t *testing.T) {
	all := vectors(t)
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(3, 1, 1)
		x.Exec("DELETE FROM events") // the states are set below it
		now, fresh := x.Now(), map[int64]bool{}
		take := func(plain bool, hint time.Time) (first dialect.ULIDState, err error) {
			tx := x.Begin(sql.LevelReadCommitted)
			defer tx.Rollback()
			var at ulid.ULID
			if plain {
				var h suite.Halves
				if h, err = x.LockBySQL(tx, 3, hintSQL(x.Env, hint)); err == nil {
					first.High, first.Low = h.High, h.Low
					copy(at[:], h.ULID)
				}
			} else {
				var u *rowfeed.ULIDs
				u, err = x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{3}, Hint: hint})
				if err == nil {
					first.High, first.Low, err = u.HighLow(3)
				}
				if err == nil {
					at, err = u.At(3, 0)
				}
			}
			if err != nil {
				return first, err
			}
			first.TimeMillis = int64(at.Time())
			if at != first.Position().Bytes() {
				x.Errorf("the ULID %s differs from the numbers %+v", at, first)
			}
			return first, tx.Commit()
		}
		for _, v := range all {
			var state dialect.ULIDState
			for i, step := range v.Steps {
				for _, plain := range []bool{false, true} {
					if plain && !x.Has.Functions {
						continue
					}
					x.Exec(fmt.Sprintf("UPDATE rowfeed_shards SET time_ms = %d, ulid_high = %d, ulid_low = %s "+
						"WHERE shard = 3", state.TimeMillis, state.High, x.Text("ulid.bigint", state.Low)))
					what := fmt.Sprintf("%s, step %d, by SQL %v", v.Name, i, plain)
					hint := time.UnixMilli(step.HintMillis)
					first, err := take(plain, hint)
					is := dialect.ULIDState{TimeMillis: x.Scalar("SELECT time_ms FROM rowfeed_shards WHERE shard = 3")}
					is.High, is.Low = stateOf(x.Env, 3)
					if hint.After(now.Add(time.Hour)) {
						if err == nil || is != state {
							t.Errorf("%s: a hint of the future is accepted: state %+v, error %v", what, is, err)
						}
						continue
					}
					if err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					want, _, err := state.Take(step.HintMillis, dialect.ULIDRandom{}, dialect.ULIDsPerLock)
					if err != nil {
						t.Fatal(err)
					}
					if want == state { // the lock continues from the state
						if first != want {
							t.Errorf("%s: from %+v the lock gets %+v, want %+v", what, state, first, want)
						}
					} else {
						if first.TimeMillis != want.TimeMillis || first.Low&(1<<62) != 0 {
							t.Errorf("%s: from %+v the lock gets %+v, want %+v with other random bits",
								what, state, first, want)
						}
						if fresh[first.Low] {
							t.Errorf("%s: two locks got the bits %d", what, first.Low)
						}
						fresh[first.Low] = true
					}
					if first.Low += dialect.ULIDsPerLock; is != first {
						t.Errorf("%s: the state after the lock is %+v, want %+v", what, is, first)
					}
				}
				state = dialect.ULIDState{TimeMillis: step.TimeMillis, High: step.High, Low: step.Low}
			}
		}
	})
}

// TestOneInsertUsesManyULIDs (M36, M39): one INSERT … SELECT uses the ULIDs of one lock for many rows, by the function
// or by the lock's two numbers. The ULIDs have one time and no gap, and are in the order of the rows.
// ROWFEED_TEST_ULIDS is the number of rows, by default 20,000. A million rows take about a minute.
func TestOneInsertUsesManyULIDs(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		rows := int(x.Number("ROWFEED_TEST_ULIDS", 20_000))
		for shard, way := range []string{"halves", "function"} {
			if way == "function" && !x.Has.Functions {
				return
			}
			tx := x.Begin(sql.LevelReadCommitted)
			var first, last ulid.ULID
			var expression string
			if way == "function" {
				h, err := x.LockBySQL(tx, shard, "NULL")
				if err != nil {
					t.Fatal(err)
				}
				copy(first[:], h.ULID)
				last = dialect.ULIDState{High: h.High, Low: h.Low + int64(rows) - 1}.Position().Bytes()
				expression = x.BySQL("i")
			} else {
				u := x.Lock(tx, rowfeed.LockRequest{Shards: []int{shard}})
				high, low, err := u.HighLow(shard)
				if err != nil {
					t.Fatal(err)
				}
				first, last = x.At(u, shard, 0), x.At(u, shard, int64(rows)-1)
				expression = x.Text("ulid.ulid_of_halves", high, low)
			}
			columns := fmt.Sprintf("i + %d, %d, %s", shard*rows, shard, expression)
			x.In(tx, "INSERT INTO events (id, shard, ulid) "+series(columns, rows))
			x.Commit(tx)
			n, previous := 0, ""
			for after, more := rowfeed.Beginning, true; more; {
				page := x.Page(x.Feed, shard, after, 10_000)
				for _, e := range page.Entries {
					at := ulid.MustParse(e.Position)
					id, _ := e.Key.Get("id")
					if id != int64(shard*rows+n) || e.Position <= previous || at.Time() != first.Time() {
						t.Fatalf("%s: row %v has %s after %s, and the first row %s",
							way, id, e.Position, previous, first)
					}
					n, previous = n+1, e.Position
					if n == 1 && at != first || n == rows && at != last {
						t.Errorf("%s: row %d has %s, want %s or %s", way, n, at, first, last)
					}
				}
				after, more = page.Cursor, page.More
			}
			if n != rows {
				t.Errorf("%s: got %d of %d rows", way, n, rows)
			}
		}
		x.WantSound(x.Feed)
	})
}
