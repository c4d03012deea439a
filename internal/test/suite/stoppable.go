package suite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// pause keeps a process from starting transactions and statements as long as a file exists. It prints "paused" when
// none is in progress. A process that is stopped then holds no lock for which others would wait: the test is about its
// leases, not about its locks.
type pause struct {
	file string // empty for a process that is never stopped

	mu   sync.Mutex
	open int // transactions, and statements outside of them
}

func (p *pause) hooks() testdb.Hooks {
	if p.file == "" {
		return testdb.Hooks{}
	}
	begins := func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Begin || ev.SQL != "" && !ev.InTx }
	return testdb.Hooks{
		Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if !begins(ev) {
				return nil
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			for printed := false; p.open == 0 && p.wanted(); Rest(context.WithoutCancel(ctx), time.Millisecond) {
				if !printed {
					fmt.Println("paused")
					printed = true
				}
			}
			p.open++
			return nil
		},
		After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			ended := ev.Kind == testdb.Commit || ev.Kind == testdb.Rollback
			if ended || begins(ev) && (ev.Kind != testdb.Begin || err != nil) {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.open--
			}
			return err
		},
	}
}

func (p *pause) wanted() bool {
	_, err := os.Stat(p.file)
	return err == nil
}

// Stoppable starts a process that can be stopped between its transactions. stop sends it SIGSTOP, goOn SIGCONT.
func (x *Env) Stoppable(child string) (p *Program, stop, goOn func()) {
	x.Helper()
	file := filepath.Join(x.TempDir(), "paused")
	p = &Program{testdb.CrashChild(x.T, child, "URL="+x.DB.URL, "PAUSE="+file), []string{"", child}}
	send := func(s syscall.Signal) {
		x.Helper()
		if err := syscall.Kill(p.PID(), s); err != nil {
			x.Fatal(err)
		}
	}
	return p, func() {
			x.Helper()
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				x.Fatal(err)
			}
			x.WaitFor(p, regexp.MustCompile("paused\n"))
			send(syscall.SIGSTOP)
		}, func() {
			x.Helper()
			if err := os.Remove(file); err != nil {
				x.Fatal(err)
			}
			send(syscall.SIGCONT)
		}
}
