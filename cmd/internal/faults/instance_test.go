package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// build builds the command, from the sources that this test goes with.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "rowfeed")
	cmd := exec.Command("go", "build", "-o", program, "./cmd/rowfeed")
	cmd.Dir = "../../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// start runs a program that dies with this process.
func start(t testing.TB, args ...string) *testdb.Child {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return testdb.CrashChild(t, "program", "PROGRAM="+string(text))
}

// alive tells whether a program has not ended.
func alive(c *testdb.Child) bool { return syscall.Kill(c.PID(), 0) == nil }

// proxies are toxiproxy's.
type proxies struct {
	*testing.T
	server *toxiproxy.ApiServer
}

func newProxies(t *testing.T) *proxies {
	return &proxies{t, toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())}
}

// to makes a proxy in front of an address.
func (p *proxies) to(name, address string) *toxiproxy.Proxy {
	p.Helper()
	proxy := toxiproxy.NewProxy(p.server, name, "127.0.0.1:0", address)
	if err := proxy.Start(); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(proxy.Stop)
	return proxy
}

// through is a URL that leads to the same place by way of a proxy.
func through(proxy *toxiproxy.Proxy, to string) (string, error) {
	u, err := url.Parse(to)
	if err != nil {
		return "", err
	}
	u.Host = proxy.Listen
	return u.String(), nil
}

// instance is one of the relay's, in a process of its own that is started again whenever
// it has ended, behind proxies of its own.
type instance struct {
	t                  *testing.T
	i                  int
	program            []string // its command line, but for the receiver
	hook               string
	database, receiver *toxiproxy.Proxy

	held sync.Mutex // by who pauses or kills it

	mu    sync.Mutex
	run   int
	child *testdb.Child
	ended []string // what runs that ended by themselves have said
}

// start starts it for the next time.
func (in *instance) start() {
	in.t.Helper()
	in.mu.Lock()
	in.run++
	run := in.run
	in.mu.Unlock()
	child := start(in.t, append(in.program, "--to", fmt.Sprintf("%s/%d/%d", in.hook, in.i, run))...)
	in.mu.Lock()
	in.child = child
	in.mu.Unlock()
}

func (in *instance) pid() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.child.PID()
}

func (in *instance) signal(s syscall.Signal) { _ = syscall.Kill(in.pid(), s) }

// revive starts it again if it has ended, as whatever supervises it would. A process may
// end while it starts, when it has no database; one that has worked must not.
func (in *instance) revive() {
	in.t.Helper()
	if alive(in.child) {
		return
	}
	in.child.Kill() // waits until its output is read
	in.ended = append(in.ended, in.child.Output())
	if out := in.child.Output(); strings.Contains(out, "relaying") ||
		strings.Contains(out, "this process has a shard") {
		in.t.Errorf("run %d of instance %d has ended by itself:\n%s", in.run, in.i, tail(in.child.Output(), 20))
	}
	in.start()
}

// tail is the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// poison puts a toxic into a proxy's connections for as long as ctx lasts, or until an end
// that is paused goes on.
func poison(ctx context.Context, proxy *toxiproxy.Proxy, toxic string) error {
	if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		return fmt.Errorf("%s: %w", toxic, err)
	}
	<-ctx.Done()
	proxy.Toxics.ResetToxics(context.WithoutCancel(ctx))
	return nil
}
