package testdb

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// A crash test runs the code under test in a process of its own, and kills the process before every single statement
// in turn:
//
// 	func TestMain(m *testing.M) {
// 		testdb.RegisterChild("publish", func() {
// 			n, _ := strconv.ParseInt(os.Getenv("N"), 10, 64)
// 			db, err := testdb.OpenURL(os.Getenv("URL"), testdb.BlockAt(n))
// 			… publish …
// 		})
// 		testdb.Main(m)
// 	}
//
// 	func TestPublishCrash(t *testing.T) {
// 		for n := 1; ; n++ {
// 			d := e.New(t) // … prepare …
// 			child := testdb.CrashChild(t, "publish", "URL="+d.URL, fmt.Sprint("N=", n))
// 			if !child.WaitMarker(t.Context()) {
// 				break // the child has no n-th statement
// 			}
// 			child.Kill()
// 			… what must hold now? …
// 		}
// 	}

const (
	childVariable = "ROWFEED_TESTDB_CHILD"
	blockedMarker = "@testdb blocked before "
	doneMarker    = "@testdb finished"
)

var children = map[string]func(){}

// RegisterChild names a function that CrashChild can run in a child process. Call it in TestMain, before Main. A child
// that panics or exits by itself has failed.
func RegisterChild(name string, f func()) {
	if children[name] != nil {
		panic("testdb: two children are named " + name)
	}
	children[name] = f
}

// runChild is the child's main function.
func runChild(name string) {
	f := children[name]
	if f == nil {
		fmt.Fprintf(os.Stderr, "testdb: no child is registered as %q\n", name)
		os.Exit(2)
	}
	f()
	fmt.Println(doneMarker)
	stopAll()
	os.Exit(0)
}

// BlockAt makes hooks for a child. Before statement n is sent, they notify the parent and block forever. n counts from
// 1, as TapEvent.N does.
func BlockAt(n int64) Hooks {
	return Hooks{Before: func(_ context.Context, ev TapEvent) error {
		if ev.N == n {
			fmt.Printf("%s%d: %s %s\n", blockedMarker, n, ev.Kind, strings.Join(strings.Fields(ev.SQL), " "))
			for { // the runtime would report a bare channel as a deadlock
				time.Sleep(time.Hour)
			}
		}
		return nil
	}}
}

// Child is a process that CrashChild started.
type Child struct {
	t       testing.TB
	name    string
	cmd     *exec.Cmd
	marker  chan string   // gets blockedMarker's or doneMarker's line
	ended   chan struct{} // closed when the process has ended and its output is read
	waitErr error         // valid after ended is closed

	mu     sync.Mutex
	output strings.Builder
}

// CrashChild starts this test binary again, to run the registered function. env has further variables for the child, as
// "NAME=value". The child is killed at the end of the test, and when this process ends.
func CrashChild(t testing.TB, name string, env ...string) *Child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// If TestMain does not call Main, the child must at least run no test.
	cmd := exec.Command(self, "-test.run=^$")
	cmd.Env = append(append(os.Environ(), env...), childVariable+"="+name)
	stdout, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = out, out
	err = start(cmd)
	_ = out.Close()
	if err != nil {
		_ = stdout.Close()
		t.Fatal(err)
	}
	c := &Child{t: t, name: name, cmd: cmd, marker: make(chan string, 1), ended: make(chan struct{})}
	go c.read(stdout)
	t.Cleanup(c.Kill)
	return c
}

// read collects the child's output until it ends.
func (c *Child) read(stdout *os.File) {
	defer close(c.ended)
	defer stdout.Close()
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		c.mu.Lock()
		c.output.WriteString(line)
		c.mu.Unlock()
		if strings.HasPrefix(line, blockedMarker) || strings.HasPrefix(line, doneMarker) {
			select {
			case c.marker <- strings.TrimSpace(line):
			default: // a second connection is blocked, too
			}
		}
		if err != nil {
			break
		}
	}
	c.waitErr = c.cmd.Wait()
}

// WaitMarker waits until the child blocks before its statement (true), or has finished without reaching it (false). If
// the child fails or ctx ends first, the test fails.
func (c *Child) WaitMarker(ctx context.Context) (blocked bool) {
	c.t.Helper()
	select {
	case line := <-c.marker:
		if strings.HasPrefix(line, blockedMarker) {
			return true
		}
		select {
		case <-c.ended:
			if c.waitErr == nil {
				return false
			}
		case <-ctx.Done():
		}
	case <-c.ended:
		// The last line and the end arrive together: the marker counts.
		select {
		case line := <-c.marker:
			if line == doneMarker && c.waitErr == nil {
				return false
			}
		default:
		}
	case <-ctx.Done():
		c.Kill()
		c.t.Fatalf("child %s: %v\n%s", c.name, context.Cause(ctx), c.Output())
	}
	c.Kill()
	c.t.Fatalf("child %s failed: %v\n%s", c.name, c.waitErr, c.Output())
	return false
}

// Kill kills the child (SIGKILL) if it still runs, and returns when it has ended.
func (c *Child) Kill() {
	_ = c.cmd.Process.Kill()
	<-c.ended
}

// PID returns the child's process id, for SIGSTOP and SIGCONT.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Output is what the child has printed so far, to stdout and stderr, the
// The output includes the markers.
func (c *Child) Output() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.output.String()
}
