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

// A crash test runs the code under test in a process of its own and kills that
// before every single statement in turn:
//
//	func TestMain(m *testing.M) {
//		testdb.RegisterChild("publish", func() {
//			n, _ := strconv.ParseInt(os.Getenv("N"), 10, 64)
//			db, err := testdb.OpenURL(os.Getenv("URL"), testdb.BlockAt(n))
//			… publish …
//		})
//		testdb.Main(m)
//	}
//
//	func TestPublishCrash(t *testing.T) {
//		for n := 1; ; n++ {
//			d := e.New(t) // … prepare …
//			child := testdb.CrashChild(t, "publish", "URL="+d.URL, fmt.Sprint("N=", n))
//			if !child.WaitMarker(t.Context()) {
//				break // it has no n-th statement: all are done
//			}
//			child.Kill()
//			… what must hold now? …
//		}
//	}

const (
	childVariable = "ROWFEED_TESTDB_CHILD"
	blockedMarker = "@testdb blocked before "
	doneMarker    = "@testdb finished"
)

var children = map[string]func(){}

// RegisterChild names a function that CrashChild can run in a child process.
// Call it in TestMain, before Main. A child that panics or exits by itself
// counts as failed.
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

// BlockAt makes hooks for a child: when statement n is about to be sent they
// tell the parent and block for ever. n counts as TapEvent.N does, from 1.
func BlockAt(n int64) Hooks {
	return Hooks{Before: func(_ context.Context, ev TapEvent) error {
		if ev.N == n {
			fmt.Printf("%s%d: %s %s\n", blockedMarker, n, ev.Kind, strings.Join(strings.Fields(ev.SQL), " "))
			for { // a bare channel would look like a deadlock to the runtime
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
	ended   chan struct{} // closed when the process is gone and its output read
	waitErr error         // valid after ended

	mu     sync.Mutex
	output strings.Builder
}

// CrashChild starts this test binary again, to run the registered function.
// env are further variables for it, as "NAME=value". The child is killed when
// the test ends, and with this process.
func CrashChild(t testing.TB, name string, env ...string) *Child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Should TestMain not call Main, the child must at least run no test.
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
			default: // a second connection blocked, too
			}
		}
		if err != nil {
			break
		}
	}
	c.waitErr = c.cmd.Wait()
}

// WaitMarker waits until the child blocks before its statement (true) or has
// finished without reaching it (false). It fails the test when the child fails
// or ctx ends first.
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
		// The last line and the end come together: the marker counts.
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

// Kill kills the child (SIGKILL), if it still runs, and returns when it is gone.
func (c *Child) Kill() {
	_ = c.cmd.Process.Kill()
	<-c.ended
}

// PID is the child's process id, for SIGSTOP and SIGCONT.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Output is what the child has printed so far, to stdout and stderr, the
// markers included.
func (c *Child) Output() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.output.String()
}
