package conformance

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

	"github.com/rowfeed/rowfeed"
	relays "github.com/rowfeed/rowfeed/cmd/relay"
	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/cmd/sink/webhook"
)

// TestRelayDown (S6): a sink that is away costs no entry an attempt, however
// long that is, and keeps the cursor where it is.
func TestRelayDown(t *testing.T) {
	each(t, func(x *env) {
		f := x.addKV()
		x.fill(3)
		x.publish(f)
		s, calls := &spy{env: x}, 0
		s.decide = func(sink.Entry) sink.Result {
			if calls++; calls <= 60 { // 20 batches, at 3 attempts an entry
				return sink.Retry(0, errOff)
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
		ctx, cancel := context.WithCancel(x.ctx)
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		x.eventually("everything is delivered", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.took) == 3 })
		x.eventually("the cursor follows", func() bool { return x.storedCursor() == "3" })
		cancel()
		if err := <-ended; err != nil {
			x.Error(err)
		}
		s.wantTaken(upserts(1, 3)...)
		if troubles != 20 {
			x.Errorf("%d failed batches were told of", troubles)
		}
		all, err := x.rf.Admin().DeadLetters(x.ctx, rowfeed.ConsumerID{Consumer: "test", Feed: "kv"}, nil)
		if err != nil || len(all) > 0 {
			x.Errorf("dead letters: %v, %v", all, err)
		}
	})
}

// refusing answers an address where connections are refused until somebody listens, which the test alone can: the
// port is taken all the time.
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

// TestRelayDownByWebhook (S6): an endpoint that refuses connections for longer
// than all attempts of an entry would take. Nothing is set aside, and everything is
// delivered when it is back.
func TestRelayDownByWebhook(t *testing.T) {
	each(t, func(x *env) {
		f := x.addKV()
		x.fill(3)
		x.publish(f)
		address, listen := refusing(x.T)
		hook, err := webhook.New(webhook.Config{URL: "http://" + address, AllowPrivate: true})
		if err != nil {
			x.Fatal(err)
		}
		defer hook.Close()
		s := &spy{env: x}
		r := s.relay(f)
		r.Sink, r.SetAside = hook, true
		var refused atomic.Int64
		r.Observe = func(e relays.Event) {
			if e.Kind == relays.Delivered && errors.Is(e.Err, syscall.ECONNREFUSED) {
				refused.Add(1)
			}
		}
		ctx, cancel := context.WithCancel(x.ctx)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		x.eventually("it has tried often enough", func() bool { return refused.Load() > 3*int64(r.Retry.MaxAttempts) })
		if n := x.scalar("SELECT count(*) FROM rowfeed_dead_letters"); n > 0 || x.storedCursor() != "" {
			x.Errorf("%d dead letters, cursor %q", n, x.storedCursor())
		}
		var got atomic.Int64
		server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			got.Add(int64(strings.Count(string(body), `"op":"upsert"`)))
		})}
		go server.Serve(listen())
		defer server.Close()
		x.eventually("the cursor follows", func() bool { return x.storedCursor() == "3" })
		cancel()
		if err := <-ended; err != nil {
			x.Error(err)
		}
		if n := x.scalar("SELECT count(*) FROM rowfeed_dead_letters"); n > 0 || got.Load() != 3 {
			x.Errorf("%d dead letters, %d entries delivered", n, got.Load())
		}
	})
}
