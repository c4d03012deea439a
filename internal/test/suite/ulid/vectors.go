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

// vector is a shard's history of testdata/ulids.json.
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

// inSQL computes ULIDState.Take by a database; ok is whether it can.
func inSQL(x *suite.Env, s dialect.ULIDState, hintMillis int64, random dialect.ULIDRandom, count int64) (next dialect.ULIDState, ok bool) {
	x.Helper()
	d, ok := x.Dialect.(interface {
		TakeULIDs(dialect.ULIDTerms) (timeMillis, high, low string)
	})
	if !ok {
		return next, false
	}
	// Not as its smallest literal, which is read as the negation of what does not fit.
	number := func(n int64) string {
		return fmt.Sprintf("CAST('%d' AS %s)", n, x.By(map[string]string{"postgres": "bigint", "mysql": "SIGNED"}))
	}
	a, b, c := d.TakeULIDs(dialect.ULIDTerms{TimeMillis: number(s.TimeMillis), High: number(s.High), Low: number(s.Low), Hint: number(max(hintMillis, 1)),
		Random16: number(int64(binary.BigEndian.Uint16(random[:]))), Random64: number(int64(binary.BigEndian.Uint64(random[2:]))), Count: number(count)})
	if err := x.DB.Admin().QueryRowContext(x.Ctx, "SELECT "+a+", "+b+", "+c+" + "+number(count)).Scan(&next.TimeMillis, &next.High, &next.Low); err != nil {
		x.Fatalf("%+v, %d, %x, %d: %v", s, hintMillis, random, count, err)
	}
	return next, true
}

// TestSQLComputesVectors (M41): the databases compute states as the vectors have them (M41, M42).
func TestSQLComputesVectors(t *testing.T) {
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
					if steps := x.Dialect.ULIDUp(nil); len(steps) != 0 {
						x.Error("a database that computes no ULIDs has functions for them")
					}
					return
				}
				if want := (dialect.ULIDState{TimeMillis: step.TimeMillis, High: step.High, Low: step.Low}); next != want {
					x.Fatalf("%s, step %d: %+v, want %+v", v.Name, i, next, want)
				}
				state = next
			}
		}
	})
}

// TestSQLComputesSameULIDsAsGo (M41): whatever the state, the hint, the random bits and the number, a database
// computes what Go does (M41).
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
			count := []int64{1, dialect.ULIDsPerLock, dialect.MaxULIDs, min(room, dialect.MaxULIDs), min(room, dialect.MaxULIDs-1) + 1}[rnd.IntN(5)]
			_, want, err := state.Take(hint, random, count)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := inSQL(x, state, hint, random, count)
			if !ok {
				return
			}
			if got != want {
				t.Fatalf("%+v, %d, %x, %d: %+v, in Go %+v", state, hint, random, count, got, want)
			}
		}
	})
}

// TestLockContinuesFromVectors (M37, M41): from every state of the vectors Feed.Lock, and the functions, take what
// the rule says: they count on where it counts on, and begin the millisecond where it begins
// one; a hint from the future is refused and changes nothing (M37, M41, hazard 8).
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
				if h, err = x.LockBySQL(tx, 3, timestamp(x.Env, hint)); err == nil {
					first.High, first.Low = h.High, h.Low
					copy(at[:], h.ULID)
				}
			} else if u, failed := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{3}, Hint: hint}); failed != nil {
				err = failed
			} else if first.High, first.Low, err = u.HighLow(3); err == nil {
				at, err = u.At(3, 0)
			}
			if err != nil {
				return first, err
			}
			first.TimeMillis = int64(at.Time())
			if at != first.Position().Bytes() {
				x.Errorf("%s is not %+v", at, first)
			}
			return first, tx.Commit()
		}
		for _, v := range all {
			var state dialect.ULIDState
			for i, step := range v.Steps {
				for _, plain := range []bool{false, true} {
					if plain && x.Family() == "sqlite" {
						continue // it has no functions
					}
					x.Exec(fmt.Sprintf("UPDATE rowfeed_shards SET time_ms = %d, ulid_high = %d, ulid_low = CAST('%d' AS %s) WHERE shard = 3", state.TimeMillis, state.High, state.Low,
						x.By(map[string]string{"sqlite": "INTEGER", "postgres": "bigint", "mysql": "SIGNED"})))
					what := fmt.Sprintf("%s, step %d, by SQL %v", v.Name, i, plain)
					hint := time.UnixMilli(step.HintMillis)
					first, err := take(plain, hint)
					var is dialect.ULIDState
					if e := x.DB.Admin().QueryRowContext(x.Ctx, "SELECT time_ms, ulid_high, ulid_low FROM rowfeed_shards WHERE shard = 3").Scan(&is.TimeMillis, &is.High, &is.Low); e != nil {
						t.Fatal(e)
					}
					if hint.After(now.Add(time.Hour)) {
						if err == nil || is != state {
							t.Errorf("%s: a hint from the future is followed: %+v, %v", what, is, err)
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
					if want == state { // it counts on
						if first != want {
							t.Errorf("%s: from %+v %+v is taken, want %+v", what, state, first, want)
						}
					} else {
						if first.TimeMillis != want.TimeMillis || first.Low&(1<<62) != 0 {
							t.Errorf("%s: from %+v %+v is taken, want %+v but for random bits", what, state, first, want)
						}
						if fresh[first.Low] {
							t.Errorf("%s: the bits %d are not random", what, first.Low)
						}
						fresh[first.Low] = true
					}
					if first.Low += dialect.ULIDsPerLock; is != first {
						t.Errorf("%s: the state behind is %+v, want %+v", what, is, first)
					}
				}
				state = dialect.ULIDState{TimeMillis: step.TimeMillis, High: step.High, Low: step.Low}
			}
		}
	})
}

// TestOneInsertUsesManyULIDs (M36, M39): one INSERT … SELECT makes the ULIDs of as many rows as it likes, by the
// function or from the halves: all of one time, one after the other without a gap, in the order of
// the numbers. ROWFEED_TEST_ULIDS is how many rows, by default 20,000; a million take a minute or so.
func TestOneInsertUsesManyULIDs(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		rows := int(x.Number("ROWFEED_TEST_ULIDS", 20_000))
		series := x.By(map[string]string{
			"sqlite":   "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i + %d, %d, %s FROM n",
			"postgres": "SELECT i + %[2]d, %[3]d, %[4]s FROM generate_series(0::bigint, %[1]d) n (i)",
			"mysql":    "WITH RECURSIVE d (x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM d WHERE x < 999) SELECT i + %[2]d, %[3]d, %[4]s FROM (SELECT a.x + 1000 * b.x AS i FROM d b JOIN d a) n WHERE i <= %[1]d",
		})
		for shard, way := range []string{"halves", "function"} {
			if way == "function" && x.Family() == "sqlite" {
				return // it has none
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
				expression = fmt.Sprintf(x.By(map[string]string{
					"sqlite":   "unhex(printf('%%016x%%016x', %d, %d + i))",
					"postgres": "CAST(encode(int8send(%d) || int8send(CAST('%d' AS bigint) + i), 'hex') AS uuid)",
					"mysql":    "UNHEX(CONCAT(LPAD(HEX(%d), 16, '0'), LPAD(HEX(CAST('%d' AS SIGNED) + i), 16, '0')))",
				}), high, low)
			}
			x.In(tx, "INSERT INTO events (id, shard, ulid) "+fmt.Sprintf(series, rows-1, shard*rows, shard, expression))
			x.Commit(tx)
			n, previous := 0, ""
			for after, more := rowfeed.Beginning, true; more; {
				page := x.Page(x.Feed, shard, after, 10_000)
				for _, e := range page.Entries {
					at := ulid.MustParse(e.Position)
					if id, _ := e.Key.Get("id"); id != int64(shard*rows+n) || e.Position <= previous || at.Time() != first.Time() {
						t.Fatalf("%s: row %v has %s after %s, the first has %s", way, id, e.Position, previous, first)
					}
					n, previous = n+1, e.Position
					if n == 1 && at != first || n == rows && at != last {
						t.Errorf("%s: row %d has %s, want %s or %s", way, n, at, first, last)
					}
				}
				after, more = page.Cursor, page.More
			}
			if n != rows {
				t.Errorf("%s: %d of %d rows", way, n, rows)
			}
		}
		x.WantSound(x.Feed)
	})
}
