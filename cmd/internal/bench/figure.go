package bench

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// Quantile is the value that a share q of all does not exceed; 0 of none.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// Median is the middle value.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Over are values in proportion to others of the same repetitions; 0 where there is nothing
// to compare with.
func Over(values, others []float64) []float64 {
	ratios := make([]float64, min(len(values), len(others)))
	for i := range ratios {
		if others[i] != 0 {
			ratios[i] = values[i] / others[i]
		}
	}
	return ratios
}

// Count writes a number with thousands set apart.
func Count(v float64) string {
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Milliseconds of a duration.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func seconds(d time.Duration) float64 { return rounded(d.Seconds(), 3) }

// perSecond never divides by nothing.
func perSecond(n int, took time.Duration) float64 {
	return float64(n) / max(took, time.Microsecond).Seconds()
}

// rounded keeps figures readable: nothing here is known to more digits.
func rounded(v float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(v*scale) / scale
}
