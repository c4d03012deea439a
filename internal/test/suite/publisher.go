package suite

import (
	"context"
	"regexp"
	"runtime"
	"sync"

	"github.com/rowfeed/rowfeed"
)

// Parked counts the goroutines that wait in a select of the function.
func (x *Env) Parked(function string) int {
	waiting := regexp.MustCompile(`\[select[^\n]*\]:\n[^\n]*` + regexp.QuoteMeta(function))
	return len(waiting.FindAllStringIndex(Stacks(), -1))
}

// Stacks returns the stacks of all goroutines.
func Stacks() string {
	text := make([]byte, 1<<20)
	for {
		n := runtime.Stack(text, true)
		if n < len(text) {
			return string(text[:n])
		}
		text = make([]byte, 2*len(text))
	}
}

// Waits tells whether a session of the database waits for a lock. A database with one writer cannot tell: there a
// transaction that has begun to wait for that writer counts.
func (x *Env) Waits() bool { return x.LockWaits() > 0 }

// LockWaits returns the number of sessions of the database that wait for a lock.
func (x *Env) LockWaits() int64 {
	x.Helper()
	x.RestForLockViews()
	return x.Scalar(x.Text("suite.lock_waits"))
}

// running is a publisher of the feed kv as another process runs it.
type running struct {
	Feed *rowfeed.Feed
	Stop func()
}

// RunPublisher starts a publisher of the feed kv, with a DB of its own.
func (x *Env) RunPublisher() running {
	x.Helper()
	own := OpenEnv(x.T, x.DB, nil)
	f, err := own.RF.Feed(x.Ctx, "kv")
	if err != nil {
		x.Fatal(err)
	}
	ctx, cancel := context.WithCancel(x.Ctx)
	ended := make(chan error, 1)
	go func() { ended <- f.RunPublisher(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			x.Errorf("RunPublisher: %v", err)
		}
	})
	x.Cleanup(stop)
	return running{f, stop}
}
