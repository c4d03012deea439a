package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/service"
)

// TestPublishCoversFeedsAddedLater: the publisher also publishes feeds that are added while it runs, and ends without
// an error.
func TestPublishCoversFeedsAddedLater(t *testing.T) {
	s := withFeed(t)
	a, errs := quietApp(t)
	events := make(chan rowfeed.PublishEvent, 100)
	a.OnPublish = func(e rowfeed.PublishEvent) { events <- e }
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&service.PublishOptions{Discover: time.Millisecond}).Run(ctx, a) }()
	await := func(feed string) {
		t.Helper()
		select {
		case e := <-events:
			if e.Feed != feed {
				t.Errorf("published %+v, want one of %s", e, feed)
			}
		case err := <-ended:
			t.Fatalf("ended: %v", err)
		}
	}
	s.sql("INSERT INTO kv VALUES (4, 'a', 'd', '')")
	await("kv")
	s.sql("CREATE TABLE more (id INTEGER PRIMARY KEY)", "INSERT INTO more VALUES (1)")
	s.ok("feed add more --table more")
	await("more")
	s.ok("feed drop more")
	s.sql("INSERT INTO kv VALUES (5, 'a', 'e', '')")
	await("kv")
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	if log := errs.String(); !strings.Contains(log, "feed=more") {
		t.Errorf("the log does not mention the new feed: %s", log)
	}
}

// TestPublishEndsIfItsFeedIsDropped: a publisher of one named feed ends with an error after the feed was dropped.
func TestPublishEndsIfItsFeedIsDropped(t *testing.T) {
	s := withFeed(t)
	a, _ := quietApp(t)
	events := make(chan rowfeed.PublishEvent, 100)
	a.OnPublish = func(e rowfeed.PublishEvent) { events <- e }
	ended := make(chan error, 1)
	go func() { ended <- execute(t.Context(), a, "publish kv") }()
	s.sql("INSERT INTO kv VALUES (4, 'a', 'd', '')")
	<-events
	s.ok("feed drop kv")
	if err := <-ended; !errors.Is(err, rowfeed.UnknownFeed) {
		t.Errorf("ended with %v", err)
	}
}

// TestPublisherAndRelayServeMetrics: publishers and relays serve metrics only with --metrics. Without a host in the
// address, only this machine can reach them.
func TestPublisherAndRelayServeMetrics(t *testing.T) {
	s := withFeed(t)
	scrape := func(line, want string) {
		t.Helper()
		a, _ := quietApp(t)
		at := make(chan string, 1)
		a.OnListen = func(address string) { at <- address }
		ctx, interrupt := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- execute(ctx, a, line) }()
		var address string
		select {
		case address = <-at:
		case err := <-ended:
			t.Fatalf("ended: %v", err)
		}
		if !strings.HasPrefix(address, "127.0.0.1:") {
			t.Errorf("the process listens on %s", address)
		}
		get := func(path, host string) (int, string) {
			req, err := http.NewRequestWithContext(ctx, "GET", "http://"+address+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return resp.StatusCode, string(body)
		}
		body := ""
		for give := time.Now().Add(time.Minute); !strings.Contains(body, want); {
			if time.Now().After(give) {
				t.Fatalf("there is no %s in\n%s", want, body)
			}
			_, body = get("/metrics", "")
		}
		for _, c := range []struct {
			path, host string
			want       int
		}{{"/healthz", "", 200}, {"/_feeds", "", 404}, {"/", "", 404}, {"/metrics", "evil.example", 421}} {
			if status, _ := get(c.path, c.host); status != c.want {
				t.Errorf("%s of %q: %d", c.path, c.host, status)
			}
		}
		http.DefaultClient.CloseIdleConnections()
		interrupt()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	s.sql("INSERT INTO kv VALUES (4, 'a', 'd', '')")
	scrape("publish --metrics :0", `rowfeed_publish_keys_total{feed="kv"} `)
	s.ok("publish --once")
	scrape("relay kv --to stdout: --consumer out --metrics :0",
		`rowfeed_consumed_entries_total{consumer="out",feed="kv"} `)
	writeFile(t, "rowfeed.yaml", "metrics: nowhere\n")
	if err := s.fails(cli.ExitUsage, "publish"); !strings.Contains(err, `metrics: "nowhere" is not an address`) {
		t.Error(err)
	}
	s.ok("publish --once") // with --once the invalid address is not used
}

// TestServeWithoutTLSFilesIgnoresSIGHUP: a server without TLS files keeps running after SIGHUP.
func TestServeWithoutTLSFilesIgnoresSIGHUP(t *testing.T) {
	withFeed(t)
	a, _ := quietApp(t)
	ctx, interrupt := context.WithCancel(t.Context())
	log := newLines(ctx)
	a.Stderr = log
	ended, at := make(chan error, 1), make(chan string, 1)
	a.OnListen = func(address string) { at <- address }
	go func() { ended <- execute(ctx, a, "serve --listen 127.0.0.1:0") }()
	address := <-at
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for line := ""; !strings.Contains(line, "SIGHUP: there are no files"); line = log.next(t) {
	}
	resp, err := http.Get("http://" + address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	interrupt()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestHangupEndsPublisher: SIGHUP ends a publisher like any other signal: it releases its lease.
func TestHangupEndsPublisher(t *testing.T) {
	s := withFeed(t)
	a, _ := quietApp(t)
	published := make(chan struct{}, 1)
	a.OnPublish = func(rowfeed.PublishEvent) { published <- struct{}{} }
	s.sql("INSERT INTO kv VALUES (4, 'a', 'd', '')")
	ended := make(chan error, 1)
	go func() { ended <- (&service.PublishOptions{Discover: time.Millisecond}).Run(t.Context(), a) }()
	<-published
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if out := s.ok("lease list --json"); !strings.Contains(out, `"state": "free"`) {
		t.Error(out)
	}
}
