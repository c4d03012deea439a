package suite

import (
	"context"
	"regexp"
	"runtime"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed"
)

// Parked counts the goroutines that a select of the function holds: they have done all
// that comes before it.
func (x *Env) Parked(function string) int {
	return len(regexp.MustCompile(`\[select[^\n]*\]:\n[^\n]*`+regexp.QuoteMeta(function)).FindAllStringIndex(Stacks(), -1))
}

// Stacks are those of all goroutines.
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

// Waits tells whether some session of the database waits for a lock. SQLite cannot
// tell; there whoever has sent BEGIN IMMEDIATE waits.
func (x *Env) Waits() bool { return x.LockWaits() > 0 }

// LockWaits is how many wait.
func (x *Env) LockWaits() int64 {
	x.Helper()
	query := x.By(map[string]string{
		"sqlite":   "SELECT 1",
		"postgres": "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
		"mysql":    "SELECT count(*) FROM information_schema.innodb_trx t JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()",
	})
	if x.Family() == "mysql" {
		Rest(x.Ctx, 150*time.Millisecond) // innodb_trx is refreshed only when nobody has read it for 100 ms
	}
	return x.Scalar(query)
}

// running is a publisher with a DB of its own.
type running struct {
	Feed *rowfeed.Feed
	Stop func()
}

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
