// Package dialect_test has the tests of package dialect that need more than the standard library.
package dialect_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"os"
	"testing"

	"github.com/oklog/ulid/v2"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"pgregory.net/rapid"
)

// ulidVectors are those of testdata/ulids.json, which another implementation has written.
func ulidVectors(t *testing.T) (all []struct {
	Name  string
	Steps []struct {
		HintMillis int64 `json:"hint_ms"`
		Random     string
		Count      int64
		First      string
		Last       string
		TimeMillis int64 `json:"time_ms"`
		High       int64 `json:"ulid_high"`
		Low        int64 `json:"ulid_low"`
	}
}) {
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

// TestULIDStatesMatchVectors (M37, M41, M42, H19): the rule of the state, step by step.
func TestULIDStatesMatchVectors(t *testing.T) {
	for _, v := range ulidVectors(t) {
		var state dialect.ULIDState
		for i, step := range v.Steps {
			random, err := hex.DecodeString(step.Random)
			if err != nil {
				t.Fatal(err)
			}
			first, next, err := state.Take(step.HintMillis, dialect.ULIDRandom(random), step.Count)
			if err != nil {
				t.Fatal(err)
			}
			state = next
			if want := (dialect.ULIDState{TimeMillis: step.TimeMillis, High: step.High, Low: step.Low}); next != want {
				t.Errorf("%s, step %d: state %+v, want %+v", v.Name, i, next, want)
			}
			if got := first.Position().String(); got != step.First {
				t.Errorf("%s, step %d: first %s, want %s", v.Name, i, got, step.First)
			}
			if got := next.Given().String(); got != step.Last {
				t.Errorf("%s, step %d: last %s, want %s", v.Name, i, got, step.Last)
			}
		}
	}
}

// TestULIDsGrow (M41, M60): for all hints, random bits and counts, each range of ULIDs is above all earlier ranges. All
// ULIDs of a range have the millisecond of the first one, which is never before the hint.
func TestULIDsGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var state dialect.ULIDState
		last := feedtype.Position{}
		base := int64(1_700_000_000_000)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			hint := base + rapid.Int64Range(-3, 3).Draw(t, "hint")
			random := dialect.ULIDRandom(rapid.SliceOfN(rapid.OneOf(rapid.Byte(), rapid.Just(byte(0xff)),
				rapid.Just(byte(0))), 10, 10).Draw(t, "random"))
			count := rapid.OneOf(rapid.Int64Range(1, 5), rapid.Just(int64(dialect.ULIDsPerLock)),
				rapid.Int64Range(1<<60, dialect.MaxULIDs)).Draw(t, "count")
			first, next, err := state.Take(hint, random, count)
			if err != nil {
				t.Fatal(err)
			}
			if !first.Position().Above(last) {
				t.Fatalf("%s does not follow %s", first.Position(), last)
			}
			last = next.Given()
			if n := last.Low - first.Position().Low; last.High != first.Position().High || n != uint64(count-1) {
				t.Fatalf("%d ULIDs from %s to %s", count, first.Position(), last)
			}
			if ms := int64(ulid.ULID(last.Bytes()).Time()); ms != next.TimeMillis || ms < hint {
				t.Fatalf("the time of %s is %d, of the state %d, of the hint %d", last, ms, next.TimeMillis, hint)
			}
			state = next
		}
	})
}

// TestInvalidULIDCountsAreRefused: an invalid count is refused, and changes nothing.
func TestInvalidULIDCountsAreRefused(t *testing.T) {
	var state dialect.ULIDState
	for _, count := range []int64{math.MinInt64, -1, 0, dialect.MaxULIDs + 1, math.MaxInt64} {
		if first, next, err := state.Take(1, dialect.ULIDRandom{}, count); err == nil || first != state ||
			next != state {
			t.Errorf("%d: %v, %v, %v", count, first, next, err)
		}
	}
}

// TestULIDsContinueAboveGivenOnes: a shard whose ULIDs were made elsewhere continues above them, also if their bits
// leave no room and the clock is behind.
func TestULIDsContinueAboveGivenOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		last := feedtype.Position{High: uint64(rapid.Int64Range(1<<16, 1<<62).Draw(t, "high")),
			Low: rapid.OneOf(rapid.Uint64(), rapid.Just(uint64(math.MaxUint64))).Draw(t, "low")}
		state := dialect.ULIDsAbove(last)
		if last.Above(state.Given()) {
			t.Fatalf("a cursor at %s would be ahead of %s", last, state.Given())
		}
		first, _, err := state.Take(rapid.Int64Range(0, 1<<47).Draw(t, "clock"), dialect.ULIDRandom{},
			dialect.ULIDsPerLock)
		if err != nil || !first.Position().Above(state.Given()) {
			t.Fatalf("%s follows %s: %v", first.Position(), state.Given(), err)
		}
	})
}

// TestNoULIDsAboveTheLastMillisecond (M37): there are no ULIDs above those of the last millisecond, and none below the
// given ones is made.
func TestNoULIDsAboveTheLastMillisecond(t *testing.T) {
	for _, low := range []uint64{0, 1, math.MaxUint64 - 1} {
		last := feedtype.Position{High: math.MaxUint64 - 1, Low: low}
		state := dialect.ULIDsAbove(last)
		if last.Above(state.Given()) {
			t.Errorf("%s is above %s", last, state.Given())
		}
		if first, _, err := state.Take(1, dialect.ULIDRandom{}, 1); !errors.Is(err, dialect.ErrNoULIDsLeft) {
			t.Errorf("%s follows %s: %v", first.Position(), last, err)
		}
	}
}

// TestPositionTextRoundTrips: the text of a position identifies it and sorts as Ordered. An invalid text is refused.
func TestPositionTextRoundTrips(t *testing.T) {
	position := rapid.Custom(func(t *rapid.T) feedtype.Position {
		if rapid.Bool().Draw(t, "ulid") {
			return feedtype.Position{High: rapid.Uint64Min(1).Draw(t, "high"), Low: rapid.Uint64().Draw(t, "low")}
		}
		return feedtype.Numbered(rapid.Int64Min(0).Draw(t, "number"))
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := position.Draw(t, "a"), position.Draw(t, "b")
		if got, err := feedtype.ParsePosition(a.String()); err != nil || got != a {
			t.Fatalf("%s is read as %v: %v", a, got, err)
		}
		if a.IsULID() == b.IsULID() && (a.Ordered() < b.Ordered()) != b.Above(a) {
			t.Fatalf("%s and %s sort differently from %s and %s", a, b, a.Ordered(), b.Ordered())
		}
		if !a.IsZero() && (!a.Above(a.Before()) || a.Before().Max(a) != a || a.Min(a.Before()) != a.Before()) {
			t.Fatalf("%s is not below %s", a.Before(), a)
		}
	})
	for _, text := range []string{"", "-1", "+1", " 1", "1.0", "9223372036854775808", "00000000000000000000000000",
		"8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "01GNSG5PM8ZZZVZZZZZZZZZZZU", "01GNSG5PM8ZZZVZZZZZZZZZZZ",
		"01GNSG5PM8ZZZVZZZZZZZZZZZZZ"} {
		if p, err := feedtype.ParsePosition(text); err == nil {
			t.Errorf("%q is parsed as %s", text, p)
		}
	}
}
