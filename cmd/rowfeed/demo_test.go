package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/internal/demo"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/service"
)

// TestDemoServesAndRemovesItsFile: the demo writes, answers over HTTP until it is interrupted, and removes its
// database.
func TestDemoServesAndRemovesItsFile(t *testing.T) {
	t.Chdir(t.TempDir())
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	// signal.NotifyContext, too, cancels with a cause that is not the error of the context.
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupt := func() { cancel(errors.New("interrupt signal received")) }
	defer interrupt()
	var out, errs bytes.Buffer
	address := make(chan string, 1)
	enough := make(chan struct{})
	var once sync.Once
	a := &cli.App{Stdout: &out, Stderr: &errs, Getenv: func(string) string {
		return ""
	}, OnListen: func(at string) { address <- at }}
	o := &service.DemoOptions{Listen: "127.0.0.1:0", Rate: cli.Rate{PerSecond: 2000}, Wrote: func(n int64) {
		if n >= 100 {
			once.Do(func() { close(enough) })
		}
	}}
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx, a) }()
	at := <-address
	<-enough
	resp, err := http.Get("http://" + at + "/_feeds/" + demo.Feed)
	if err != nil {
		t.Fatal(err)
	}
	var info struct {
		Name string `json:"name"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&info); err != nil || info.Name != demo.Feed {
		t.Errorf("the server answers %+v (%v)", info, err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	interrupt()
	if err := <-ended; err != nil {
		t.Fatalf("ended with %v", err)
	}
	for _, want := range []string{at, "curl 'http://" + at +
		"/_feeds/fetch/kv?after=&limit=5'", " writes (", "feed and table agree", "sqlite:" + folder} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q: %s", want, &out)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("the demo left files: %v (%v)", left, err)
	}
	if errs.Len() > 0 {
		t.Errorf("stderr: %s", &errs)
	}
}

// TestDemoContinuesOnGivenFile: the demo runs twice on one database file and keeps it.
func TestDemoContinuesOnGivenFile(t *testing.T) {
	s := newShell(t)
	for range 2 {
		r := s.run("demo", "--db", "sqlite:demo.db", "--listen", "127.0.0.1:0", "--duration", "100ms", "--rate",
			"1000/s")
		if r.code != cli.ExitDone || r.err != "" || !strings.Contains(r.out, "feed and table agree") {
			t.Fatalf("demo: %+v", r)
		}
	}
	if out := s.ok("check kv --db sqlite:demo.db"); out != "kv: in order\n" {
		t.Errorf("check: %s", out)
	}
}

// TestUsedAddressIsNamed: the error names the address and the flag.
func TestUsedAddressIsNamed(t *testing.T) {
	s := withFeed(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := l.Addr().String()
	for _, line := range []string{"demo --listen " + at, "serve --listen " + at} {
		got := s.fails(cli.ExitFailed, line)
		if !strings.Contains(got, at) || !strings.Contains(got, "another process") ||
			!strings.Contains(got, "--listen") {
			t.Errorf("rowfeed %s says %q", line, got)
		}
	}
}

// TestServeAnswersUntilInterrupted: the server answers a fetch, and ends without an error.
func TestServeAnswersUntilInterrupted(t *testing.T) {
	withFeed(t)
	writeFile(t, "rowfeed.yaml", "listen: 127.0.0.1:0\n")
	a, _ := quietApp(t)
	address := make(chan string, 1)
	a.OnListen = func(at string) { address <- at }
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error, 1)
	go func() { ended <- execute(ctx, a, "serve") }()
	var at string
	select {
	case at = <-address:
	case err := <-ended:
		t.Fatal(err)
	}
	resp, err := http.Get("http://" + at + "/_feeds/fetch/kv?after=&limit=5")
	if err != nil {
		t.Fatal(err)
	}
	var page struct {
		Cursor string `json:"cursor"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil || !strings.HasPrefix(page.Cursor, "3.") {
		t.Errorf("the page is %+v (%v)", page, err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}
