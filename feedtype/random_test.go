package feedtype

import (
	"math"
	"math/rand/v2"
	"testing"
)

// random draws values, including the limits of their ranges.
type random struct{ *rand.Rand }

// drawn calls a test with a thousand seeds, which are the same in every run.
func drawn(t *testing.T, f func(t *testing.T, r random)) {
	t.Helper()
	for seed := range uint64(1000) {
		f(t, random{rand.New(rand.NewPCG(seed, 0))})
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

// between returns a number from low to high. One time in four it is one of the two limits.
func (r random) between(low, high int64) int64 {
	switch r.IntN(8) {
	case 0:
		return low
	case 1:
		return high
	}
	return low + int64(r.Uint64()%max(uint64(high-low), 1))
}

func (r random) coin() bool { return r.IntN(2) == 0 }

func (r random) float() float64 {
	edges := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1, 5e-324, math.MaxFloat64}
	if r.coin() {
		return edges[r.IntN(len(edges))]
	}
	return math.Float64frombits(r.Uint64())
}

func (r random) bytes() []byte {
	b := make([]byte, r.IntN(12))
	for i := range b {
		b[i] = byte(r.IntN(256))
	}
	return b
}

func (r random) text() string {
	edges := []string{"", "null", "{}", `{"$binary":"AA=="}`, "\x00\x1f\"\\\u2028", "\xff\xfe"}
	switch r.IntN(3) {
	case 0:
		return edges[r.IntN(len(edges))]
	case 1:
		return string(r.bytes())
	}
	runes := make([]rune, r.IntN(12))
	for i := range runes {
		runes[i] = r.Int32N(0x11_0000)
	}
	return string(runes)
}
