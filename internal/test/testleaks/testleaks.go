// Package testleaks finds goroutines that a test leaves behind.
package testleaks

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines may take to end. goleak itself allows less than half a second, which is not enough on
// a busy machine.
const patience = time.Minute

// None fails the test if goroutines remain that did not exist when it was called. It checks after all later clean-up
// functions.
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
