package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	relays "github.com/rowfeed/rowfeed/cmd/relay"
	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/cmd/sink/webhook"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestUnavailableSinkUsesNoAttempts (S6): while a sink is unavailable, for however long, no entry uses up an attempt,
// and the cursor stays.
func TestUnavailableSinkUsesNoAttempts(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(3)
		x.Publish(f)
		s, calls := &spy{Env: x}, 0
		s.decide = func(sink.Entry) sink.Result {
			if calls++; calls <= 60 { // 20 batches, at 3 attempts an entry
				return sink.Retry(0, suite.ErrOff)
			}
			return sink.Accept()
		}
		r := s.relay(f)
		r.SetAside = true
		var troubles int
		r.Observe = func(e relays.Event) {
			if e.Kind == relays.Delivered && e.Err != nil {
				troubles++
			}
		}
		ctx, cancel := context.WithCancel(x.Ctx)
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		x.Eventually("everything is delivered", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.took) == 3
		})
		x.Eventually("the cursor follows", func() bool { return x.StoredCursor() == "3" })
		cancel()
		if err := <-ended; err != nil {
			x.Error(err)
		}
		s.wantTaken(suite.Upserts(1, 3)...)
		if troubles != 20 {
			x.Errorf("%d failed batches were told of", troubles)
		}
		page, err := x.RF.Admin().DeadLetters(x.Ctx, suite.Letters(suite.TestConsumer, ""))
		all := page.Letters
		if err != nil || len(all) > 0 {
			x.Errorf("dead letters: %v, %v", all, err)
		}
	})
}

// refusing returns an address that refuses connections until listen is called. No other process can listen there,
// because the test has bound the port.
func refusing(t *testing.T) (address string, listen func() net.Listener) {
	t.Helper()
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	socket := os.NewFile(uintptr(fd), "a port of its own")
	t.Cleanup(func() { socket.Close() })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("127.0.0.1:", bound.(*syscall.SockaddrInet4).Port), func() net.Listener {
		t.Helper()
		if err := syscall.Listen(fd, 100); err != nil {
			t.Fatal(err)
		}
		l, err := net.FileListener(socket)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

// TestUnavailableWebhookSetsNothingAside (S6): an endpoint refuses connections for longer than all attempts of an entry
// would take. Nothing is set aside, and everything is delivered when the endpoint is back.
func TestUnavailableWebhookSetsNothingAside(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(3)
		x.Publish(f)
		address, listen := refusing(x.T)
		hook, err := webhook.New(webhook.Config{URL: "http://" + address, AllowPrivate: true})
		if err != nil {
			x.Fatal(err)
		}
		defer hook.Close()
		s := &spy{Env: x}
		r := s.relay(f)
		r.Sink, r.SetAside = hook, true
		var refused atomic.Int64
		r.Observe = func(e relays.Event) {
			if e.Kind == relays.Delivered && errors.Is(e.Err, syscall.ECONNREFUSED) {
				refused.Add(1)
			}
		}
		ctx, cancel := context.WithCancel(x.Ctx)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		x.Eventually("it has tried often enough", func() bool { return refused.Load() > 3*int64(r.Retry.MaxAttempts) })
		if n := x.Scalar("SELECT count(*) FROM rowfeed_dead_letters"); n > 0 || x.StoredCursor() != "" {
			x.Errorf("%d dead letters, cursor %q", n, x.StoredCursor())
		}
		var got atomic.Int64
		server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			got.Add(int64(strings.Count(string(body), `"op":"upsert"`)))
		})}
		go server.Serve(listen())
		defer server.Close()
		x.Eventually("the cursor follows", func() bool { return x.StoredCursor() == "3" })
		cancel()
		if err := <-ended; err != nil {
			x.Error(err)
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_dead_letters"); n > 0 || got.Load() != 3 {
			x.Errorf("%d dead letters, %d entries delivered", n, got.Load())
		}
	})
}
