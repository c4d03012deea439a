package bench

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// Quantile returns the value that a share q of the values does not exceed. Without values it is 0.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// Median returns the middle value.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Over divides values by others of the same repetitions. A ratio to zero is 0.
func Over(values, others []float64) []float64 {
	ratios := make([]float64, min(len(values), len(others)))
	for i := range ratios {
		if others[i] != 0 {
			ratios[i] = values[i] / others[i]
		}
	}
	return ratios
}

// Count formats a number with separated thousands.
func Count(v float64) string {
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Milliseconds converts a duration to milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func seconds(d time.Duration) float64 { return rounded(d.Seconds(), 3) }

// perSecond counts a duration below a microsecond as a microsecond, so that it does not divide by zero.
func perSecond(n int, took time.Duration) float64 {
	return float64(n) / max(took, time.Microsecond).Seconds()
}

// rounded drops the digits that the measures do not know.
func rounded(v float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(v*scale) / scale
}
