// Package testleaks finds goroutines that a test leaves behind.
package testleaks

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines may take to end: goleak by itself gives them less than half a second, for which
// one may stand still on a machine that does other work.
const patience = time.Minute

// None fails the test when goroutines are left that were not there when it was called, after everything that
// is cleaned up later has been.
func None(t testing.TB, known ...goleak.Option) {
	t.Helper()
	known = append(known, goleak.IgnoreCurrent())
	t.Cleanup(func() {
		left := goleak.Find(known...)
		for deadline := time.Now().Add(patience); left != nil && time.Now().Before(deadline); {
			left = goleak.Find(known...)
		}
		if left != nil {
			t.Error(left)
		}
	})
}
