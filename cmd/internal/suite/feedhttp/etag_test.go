package feedhttp_test

import (
	"context"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
)

// TestUnchangedPageIsNotSentAgain: a client that has a page gets 304 without the page while the page is unchanged. It
// gets the page after the content of one row has changed, although no position has.
func TestUnchangedPageIsNotSentAgain(t *testing.T) {
	x := kvFixture(t)
	x.exec(t, `INSERT INTO kv VALUES (9, '', 'long', ?, NULL)`, strings.Repeat("text ", 1000))
	f, err := x.db.Feed(t.Context(), "kv")
	if err != nil {
		t.Fatal(err)
	}
	x.publish(t, f)

	for _, accept := range []string{"application/json", "application/x-ndjson", "application/cloudevents-batch+json"} {
		for _, coding := range []string{"identity", "gzip", "zstd"} {
			header := []string{"Accept", accept, "Accept-Encoding", coding}
			first := ask(t, x.server, "GET", "/_feeds/fetch/kv", header...)
			tag := first.header.Get("ETag")
			if strong := strings.HasPrefix(tag, `"`); len(tag) < 34 || strong != (coding == "identity") ||
				first.header.Get("Cache-Control") != "private, no-cache" {
				t.Fatalf("%s, %s: tag %q, %v", accept, coding, tag, first.header)
			}
			for sent, known := range map[string]bool{tag: true, strings.TrimPrefix(tag, "W/"): true,
				"W/" + strings.TrimPrefix(tag, "W/"): true, "*": true,
				`"a,b", ` + tag: true, `"x"`: false, `"x", ` + tag + `, "y"`: true, strings.Trim(tag, `W/"`): false,
				`"` + tag: false, "": false} {
				for _, method := range []string{"GET", "HEAD"} {
					got := ask(t, x.server, method, "/_feeds/fetch/kv", append(header, "If-None-Match", sent)...)
					if !known {
						if got.status != 200 || method == "GET" && got.body != first.body {
							t.Errorf("%s %s: %d", method, sent, got.status)
						}
						continue
					}
					if got.status != 304 || got.body != "" || got.header.Get("ETag") != tag ||
						got.header.Get("Vary") != first.header.Get("Vary") ||
						got.header.Get("Cache-Control") != "private, no-cache" ||
						got.header.Get("Rowfeed-Columns") == "" || got.header.Get("Content-Type") != "" ||
						got.header.Get("Content-Encoding") != "" {
						t.Errorf("%s %s: %d %q %v", method, sent, got.status, got.body, got.header)
					}
				}
			}
			x.exec(t, `UPDATE kv SET v = v || 'x' WHERE id = 1`)
			second := ask(t, x.server, "GET", "/_feeds/fetch/kv", append(header, "If-None-Match", tag)...)
			if second.status != 200 || second.header.Get("ETag") == tag || second.body == first.body {
				t.Errorf("%s, %s: a row has changed: %d, tag %q", accept, coding, second.status,
					second.header.Get("ETag"))
			}
		}
	}
	if a, b := ask(t, x.server, "GET", "/_feeds/fetch/kv?after=now"),
		ask(t, x.server, "GET", "/_feeds/fetch/kv?after=now", "Accept",
			"application/x-ndjson"); a.header.Get("ETag") == b.header.Get("ETag") {
		t.Error("two forms of a page have one tag")
	}
}

// TestColumnsChangeTheTag: a page of the same bytes has another tag if a column has another type.
func TestColumnsChangeTheTag(t *testing.T) {
	page := pageOf(t, 3, 100)
	other := page
	other.Columns = append([]rowfeed.Column(nil), page.Columns...)
	other.Columns[1].Type = "varchar"
	tags := map[string]bool{}
	for _, p := range []rowfeed.Page{page, other} {
		tags[ask(t, serving(t, p, false, nil, make(chan struct{}, 1)), "GET",
			"/_feeds/fetch/kv").header.Get("ETag")] = true
	}
	if len(tags) != 2 {
		t.Errorf("the tags are %v", tags)
	}
}

// TestUnchangedDescriptionsAreNotSentAgain: the list and descriptions of feeds have tags.
func TestUnchangedDescriptionsAreNotSentAgain(t *testing.T) {
	x := kvFixture(t)
	for _, path := range []string{"/_feeds", "/_feeds/kv", "/_feeds/openapi.json"} {
		first := ask(t, x.server, "GET", path)
		again := ask(t, x.server, "GET", path, "If-None-Match", first.header.Get("ETag"))
		if first.status != 200 || first.header.Get("Cache-Control") != "private, no-cache" || again.status != 304 ||
			again.body != "" {
			t.Errorf("%s: %d %v, then %d", path, first.status, first.header, again.status)
		}
	}
}

// TestAnswersWithoutTagAreNoStore: streams and pages that are sent while they are made are no-store, whatever the
// client sends. checkProblem asserts the same of problems.
func TestAnswersWithoutTagAreNoStore(t *testing.T) {
	s := serving(t, pageOf(t, 5000, 200), false, nil, make(chan struct{}, 10))
	for _, coding := range []string{"identity", "gzip", "zstd"} {
		if got := ask(t, s, "GET", "/_feeds/fetch/kv", "Accept-Encoding", coding, "If-None-Match",
			"*"); got.status != 200 || got.header.Get("ETag") != "" || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v", coding, got.status, got.header)
		}
	}
	failed := serve(t, feedhttp.NewHandler(stubCatalog{failing(context.DeadlineExceeded)}, nil))
	checkProblem(t, ask(t, failed, "GET", "/_feeds/fetch/kv", "If-None-Match", "*"),
		feedhttp.Problem{Type: "unavailable", Status: 503, Detail: "in time"})
}

// TestCursorChangesTheTag: a batch of events has another tag if the cursor in its header has changed.
func TestCursorChangesTheTag(t *testing.T) {
	at := rowfeed.Cursor("5")
	s := serve(t, handlerOf(stubSource{fetch: func(context.Context, rowfeed.Request) (rowfeed.Page, error) {
		return rowfeed.Page{Cursor: at}, nil
	}}))
	first := ask(t, s, "GET", "/_feeds/fetch/kv?after=5", "Accept", batch)
	at = "6"
	again := ask(t, s, "GET", "/_feeds/fetch/kv?after=5", "Accept", batch, "If-None-Match", first.header.Get("ETag"))
	if first.body != "[]\n" || again.status != 200 || again.header.Get("Rowfeed-Cursor") != "6" ||
		again.header.Get("ETag") == first.header.Get("ETag") {
		t.Errorf("%+v, then %+v", first, again)
	}
}
