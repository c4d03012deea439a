package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/read"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/terms"
)

// TestTailFollowsFeed: `tail` prints the entries of the database as they come, and ends without an error.
func TestTailFollowsFeed(t *testing.T) {
	s := withFeed(t)
	a, errs := quietApp(t)
	ctx, interrupt := context.WithCancel(t.Context())
	out := newLines(ctx)
	a.Stdout = out
	ended := make(chan error, 1)
	go func() { ended <- execute(ctx, a, "tail kv --limit 2") }()
	for _, want := range []string{
		`{"position":"1"`, `{"position":"2"`, `{"cursor":"2@3.9k3f2c7adq","more":true,`, `{"position":"3"`,
		`{"cursor":"3.9k3f2c7adq","more":false,`,
	} {
		if line := terms.Fix(out.next(t)); !strings.HasPrefix(line, want) {
			t.Errorf("got %s, want %s…", line, want)
		}
	}
	s.sql("DELETE FROM kv WHERE id = 2")
	s.ok("publish --once")
	for _, want := range []string{
		`{"position":"4","shard":0,"op":"delete","key":{"id":2}}`, `{"cursor":"4.9k3f2c7adq","more":false,"base64":[]}`,
	} {
		if line := terms.Fix(out.next(t)); line != want {
			t.Errorf("got %s, want %s", line, want)
		}
	}
	interrupt()
	if err := <-ended; err != nil || errs.Len() > 0 {
		t.Errorf("ended with %v, stderr %s", err, errs)
	}
}

// TestTailStartsAtHead: with --after now, `tail` prints the head first.
func TestTailStartsAtHead(t *testing.T) {
	s := withFeed(t)
	a, _ := quietApp(t)
	ctx, interrupt := context.WithCancel(t.Context())
	out := newLines(ctx)
	a.Stdout = out
	ended := make(chan error, 1)
	go func() { ended <- execute(ctx, a, "tail kv --limit 10 --after now") }()
	if line := out.next(t); !strings.HasPrefix(line, `{"cursor":"3.`) {
		t.Errorf("starts with %s", line)
	}
	s.ok("republish kv --key 1")
	s.ok("publish --once")
	if line := out.next(t); !strings.HasPrefix(line, `{"position":"4"`) {
		t.Errorf("continues with %s", line)
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

// TestTailReadsServer: with --url, `tail` reads from a server.
func TestTailReadsServer(t *testing.T) {
	withFeed(t)
	pool, d, err := open.Open(t.Context(), "sqlite:rowfeed.db", open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	db, err := rowfeed.Open(t.Context(), pool, d, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(feedhttp.NewHandler(feedhttp.Of(db), nil))
	defer server.Close()
	a, _ := quietApp(t)
	ctx, interrupt := context.WithCancel(t.Context())
	out := newLines(ctx)
	a.Stdout = out
	ended := make(chan error, 1)
	go func() { ended <- execute(ctx, a, "tail kv --limit 10 --url "+server.URL) }()
	want := `{"position":"1","shard":0,"op":"upsert","key":{"id":1},"row":{"id":1,"ns":"","k":"fred","v":"jim"}}`
	if line := terms.Fix(out.next(t)); line != want {
		t.Errorf("got %s, want %s", line, want)
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

// script is a Source with prepared answers.
type script struct {
	rowfeed.Source
	steps []func() (rowfeed.Page, error)
	after []rowfeed.Cursor
}

func (s *script) Fetch(_ context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	s.after = append(s.after, req.After)
	step := s.steps[0]
	s.steps = s.steps[1:]
	return step()
}

// TestTailContinuesAfterOutage: `tail` reports an outage and continues at its cursor. It ends if the error cannot pass.
func TestTailContinuesAfterOutage(t *testing.T) {
	page := func(cursor rowfeed.Cursor) func() (rowfeed.Page, error) {
		return func() (rowfeed.Page, error) { return rowfeed.Page{Cursor: cursor}, nil }
	}
	fail := func(code rowfeed.Code) func() (rowfeed.Page, error) {
		return func() (rowfeed.Page, error) {
			return rowfeed.Page{}, &rowfeed.Error{Code: code, Object: `feed "kv"`, Cause: "it is " + string(code)}
		}
	}
	a, errs := quietApp(t)
	source := &script{steps: []func() (rowfeed.Page, error){page("7"), fail(rowfeed.Unavailable),
		fail(rowfeed.Unavailable), fail(rowfeed.Locked), page("9"), fail(rowfeed.CursorAhead)}}
	err := (&read.TailOptions{Name: "kv", Limit: 1, After: "5"}).Follow(t.Context(), a, source)
	if !errors.Is(err, rowfeed.CursorAhead) {
		t.Errorf("ended with %v", err)
	}
	want := `rowfeed: feed "kv": it is unavailable; trying again until it is back
rowfeed: feed "kv": it is locked; trying again until it is back
rowfeed: it is back
`
	if errs.String() != want {
		t.Errorf("stderr: %s", errs)
	}
	if got, want := source.after, []rowfeed.Cursor{"5", "7", "7", "7", "7", "9"}; !equal(got, want) {
		t.Errorf("fetched after %q, want %q", got, want)
	}

	first := &script{steps: []func() (rowfeed.Page, error){fail(rowfeed.Unavailable)}}
	err = (&read.TailOptions{Name: "kv", Limit: 1}).Follow(t.Context(), a, first)
	if !errors.Is(err, rowfeed.Unavailable) {
		t.Errorf("a source that never answered ended with %v", err)
	}
}

// held is a Source that answers when the test sends a page.
type held struct {
	rowfeed.Source
	answer chan rowfeed.Page
}

func (h *held) Fetch(ctx context.Context, _ rowfeed.Request) (rowfeed.Page, error) {
	select {
	case page := <-h.answer:
		return page, nil
	case <-ctx.Done():
		return rowfeed.Page{}, ctx.Err()
	}
}

// TestTailReportsSilentServer: `tail` reports that the server does not answer, and prints the answer when it comes.
func TestTailReportsSilentServer(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	a, _ := quietApp(t)
	out, errs := newLines(ctx), newLines(ctx)
	a.Stdout, a.Stderr = out, errs
	source, ended := &held{answer: make(chan rowfeed.Page)}, make(chan error, 1)
	o := &read.TailOptions{Name: "kv", Limit: 1, URL: "http://127.0.0.1:8080", Silence: time.Nanosecond}
	go func() { ended <- o.Follow(ctx, a, source) }()
	if line := errs.next(t); line != `rowfeed: feed "kv": the server has not answered for 1ns; still waiting` {
		t.Errorf("stderr: %s", line)
	}
	source.answer <- rowfeed.Page{Cursor: "7"}
	if line := out.next(t); line != `{"cursor":"7","more":false,"base64":[]}` {
		t.Errorf("stdout: %s", line)
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func equal(a, b []rowfeed.Cursor) bool {
	return strings.Join(texts(a), " ") == strings.Join(texts(b), " ")
}

func texts(cursors []rowfeed.Cursor) []string {
	var all []string
	for _, c := range cursors {
		all = append(all, string(c))
	}
	return all
}

// TestTailEndsIfOutputIsClosed: `tail` ends also if it has nothing to write.
func TestTailEndsIfOutputIsClosed(t *testing.T) {
	withFeed(t)
	a, _ := quietApp(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	a.Stdout = w
	ended := make(chan error, 1)
	go func() { ended <- execute(t.Context(), a, "tail kv --limit 10 --after now") }()
	buffer := make([]byte, 1000)
	if _, err := r.Read(buffer); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if err := <-ended; err != nil && a.Report(t.Context(), err) != cli.ExitDone {
		t.Errorf("ended with %v", err)
	}
}
