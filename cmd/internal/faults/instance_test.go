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

// build builds the command from this repository.
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

// alive reports whether a program has not ended.
func alive(c *testdb.Child) bool { return syscall.Kill(c.PID(), 0) == nil }

// proxies are toxiproxy's.
type proxies struct {
	*testing.T
	server *toxiproxy.ApiServer
}

func newProxies(t *testing.T) *proxies {
	return &proxies{t, toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())}
}

// to makes a proxy to an address.
func (p *proxies) to(name, address string) *toxiproxy.Proxy {
	p.Helper()
	proxy := toxiproxy.NewProxy(p.server, name, "127.0.0.1:0", address)
	if err := proxy.Start(); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(proxy.Stop)
	return proxy
}

// through returns the URL with the address of a proxy.
func through(proxy *toxiproxy.Proxy, to string) (string, error) {
	u, err := url.Parse(to)
	if err != nil {
		return "", err
	}
	u.Host = proxy.Listen
	return u.String(), nil
}

// instance is a relay process behind proxies of its own. It is started again whenever it has ended.
type instance struct {
	t                  *testing.T
	i                  int
	program            []string // its command line, without the receiver
	hook               string
	database, receiver *toxiproxy.Proxy

	held sync.Mutex // while the instance is paused or killed

	mu    sync.Mutex
	run   int
	child *testdb.Child
	ended []string // the last output of runs that ended by themselves
}

// start starts the process again.
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

// revive starts the process if it has ended, as a supervisor would. A process may end while it starts, if it has no
// database. A process that has worked must not end.
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

// tail returns the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// poison adds a toxic to a proxy's connections until ctx ends, or until a paused end continues.
func poison(ctx context.Context, proxy *toxiproxy.Proxy, toxic string) error {
	if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		return fmt.Errorf("%s: %w", toxic, err)
	}
	<-ctx.Done()
	proxy.Toxics.ResetToxics(context.WithoutCancel(ctx))
	return nil
}
