package main

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
)

// serves runs `rowfeed serve` until end is called. It returns the URL of the server.
func (s *shell) serves(args ...string) (url string, end func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	a, errs := quietApp(s.t)
	address, ended := make(chan string, 1), make(chan error, 1)
	a.OnListen = func(at string) { address <- at }
	root := newRoot(a)
	root.SetArgs(append([]string{"serve", "--listen", "127.0.0.1:0"}, args...))
	go func() { ended <- root.ExecuteContext(ctx) }()
	select {
	case at := <-address:
		return "http://" + at, func() {
			s.t.Helper()
			cancel()
			if err := <-ended; err != nil {
				s.t.Errorf("serve: %v", err)
			}
		}
	case err := <-ended:
		cancel()
		s.t.Fatalf("serve ended: %v\n%s", err, errs)
		return "", nil
	}
}

// TestReadyExitCodeTellsReadiness: the exit code is 0 for a ready server. It is 1 if the server is not ready, is no
// rowfeed server, or does not answer.
func TestReadyExitCodeTellsReadiness(t *testing.T) {
	s := withFeed(t)
	url, end := s.serves()
	s.prints("ready "+url, url+": ready\n")
	end()
	if text := s.fails(cli.ExitFailed, "ready "+url); !strings.Contains(text, "it does not answer") ||
		!strings.Contains(text, "Next: ") {
		t.Errorf("after the end of the server: %s", text)
	}
	s.sql("DROP TRIGGER " + trigger(t, s))
	url, end = s.serves("--no-publish")
	if text := s.fails(cli.ExitFailed, "ready "+url); !strings.Contains(text, "it is not ready") {
		t.Errorf("without its trigger: %s", text)
	}
	end()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	if text := s.fails(cli.ExitFailed, "ready "+other.URL); !strings.Contains(text, "is not a rowfeed server") {
		t.Errorf("another server: %s", text)
	}
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	}))
	defer hanging.Close()
	text := s.fails(cli.ExitFailed, "ready --timeout 50ms "+hanging.URL)
	if !strings.Contains(text, "it does not answer") {
		t.Errorf("a server that hangs: %s", text)
	}
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"ready":true,"reasons":[]}`)
	}))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // hides the error of the refused handshake
	secure.StartTLS()
	defer secure.Close()
	if text := s.fails(cli.ExitFailed, "ready "+secure.URL); !strings.Contains(text, "certificate") {
		t.Errorf("an unknown certificate: %s", text)
	}
	s.prints("ready --insecure "+secure.URL, secure.URL+": ready\n")
	if text := s.fails(cli.ExitUsage, "ready 127.0.0.1:8080"); !strings.Contains(text, "http://127.0.0.1:8080") {
		t.Errorf("no URL: %s", text)
	}
}

// trigger returns the name of one of the triggers of feed kv.
func trigger(t *testing.T, s *shell) (name string) {
	t.Helper()
	if err := s.pool().QueryRow("SELECT name FROM sqlite_master WHERE type = 'trigger' ORDER BY name").
		Scan(&name); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestSystemdIsNotified: systemd is told when the server accepts requests, and when it stops.
func TestSystemdIsNotified(t *testing.T) {
	s := withFeed(t)
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "notify", Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	t.Setenv("NOTIFY_SOCKET", "notify")
	message := func() string {
		t.Helper()
		if err := socket.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		text := make([]byte, 100)
		n, err := socket.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(text[:n])
	}
	url, end := s.serves()
	if got := message(); got != "READY=1" {
		t.Errorf("systemd gets %q", got)
	}
	s.prints("ready "+url, url+": ready\n")
	end()
	if got := message(); got != "STOPPING=1" {
		t.Errorf("at the end systemd gets %q", got)
	}
}
