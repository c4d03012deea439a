package frozen

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/golden"
)

// requests are sent one after another. Each has a path, then headers.
var requests = map[string][][]string{
	"feeds": {
		{"/_feeds"}, {"/_feeds/kv"}, {"/_feeds/ev"}, {"/_feeds/shards/ev"}, {"/_feeds/shards/kv"},
	},
	"fetch": {
		{"/_feeds/fetch/kv"}, {"/_feeds/fetch/kv?after=4"}, {"/_feeds/fetch/kv?after=now"},
		{"/_feeds/fetch/kv?after=2&limit=1"},
		{"/_feeds/fetch/kv?shard=0&shard_count=2"}, {"/_feeds/fetch/kv?shard=1&after=0"},
		{"/_feeds/fetch/kv?after=2&consistent=true"},
		{"/_feeds/fetch/kv?after=4&wait=1ms"}, {"/_feeds/fetch/ev?shard=7"},
	},
	"fetch-ndjson": {
		{"/_feeds/fetch/kv", "Accept", "application/x-ndjson"},
		{"/_feeds/fetch/kv?after=4", "Accept", "application/x-ndjson"},
	},
	"fetch-cloudevents": {
		{"/_feeds/fetch/kv", "Accept", "application/cloudevents-batch+json"}, {"/_feeds/http-feeds/kv"},
		{"/_feeds/http-feeds/kv?lastEventId=kv:1:0:2"}, {"/_feeds/http-feeds/kv?lastEventId=nothing"},
	},
	"stream": {{"/_feeds/stream/kv"}, {"/_feeds/stream/kv?after=2"},
		{"/_feeds/stream/kv?after=0", "Last-Event-ID", "2"}},
	"refused": {
		{"/nothing"}, {"/_feeds/fetch/nothing"}, {"POST /_feeds/fetch/kv"},
		{"/_feeds/fetch/kv", "Accept", "text/html"},
		{"/_feeds/fetch/kv?after=9"}, {"/_feeds/fetch/kv?after=2:1"},
		{"/_feeds/fetch/kv?after=4.7k3f2c7adr"}, {"/_feeds/fetch/kv?after=4~9.7k3f2c7adq"},
		{"/_feeds/fetch/kv?after=x"}, {"/_feeds/fetch/kv?limit=0"},
		{"/_feeds/fetch/kv?limit=1&limit=2"}, {"/_feeds/fetch/kv?nothing=1"},
		{"/_feeds/fetch/kv?shard=4"}, {"/_feeds/fetch/kv?wait=x"},
		{"/_feeds/fetch/ev"}, {"/_feeds/stream/kv?after=9"},
	},
}

// TestHTTPAnswersEqualRecordedFiles: a server's answers over HTTP are in the files of testdata/http. Each has requests
// with the status, headers and body of their answers.
func TestHTTPAnswersEqualRecordedFiles(t *testing.T) {
	db := small(t)
	config := &feedhttp.Config{Heartbeat: time.Hour}
	handler := feedhttp.NewHandler(feedhttp.Of(db), config)
	texts := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(requests)) { // reading moves the records of an outbox
		texts[name+".txt"] = exchange(t, handler, requests[name])
	}

	etag := regexp.MustCompile(`(?m)^Etag: (.*)$`)
	page := []string{"/_feeds/fetch/kv?after=2"}
	found := etag.FindStringSubmatch(exchange(t, handler, [][]string{page}))
	if found == nil {
		t.Fatal("a page has no ETag")
	}
	texts["etag.txt"] = exchange(t, handler, [][]string{page, append(page, "If-None-Match", found[1])})

	guarded := feedhttp.NewHandler(access.Over(feedhttp.Of(db)), config)
	text, _, err := db.Admin().AddToken(t.Context(), admin.TokenSpec{Name: "reader",
		Grants: []admin.TokenGrant{{Right: admin.RightRead, Feed: "kv"}}})
	if err != nil {
		t.Fatal(err)
	}
	guard := access.Identify(access.NewTokens(db))(access.Required(guarded))
	bearer := []string{"Authorization", "Bearer " + text}
	texts["tokens.txt"] = exchange(t, guard, [][]string{{"/_feeds"}, {"/_feeds", "Authorization", "Bearer wrong"},
		append([]string{"/_feeds/fetch/kv?after=3"}, bearer...), append([]string{"/_feeds/fetch/ev?shard=7"},
			bearer...)})

	var b strings.Builder
	for _, code := range codes(t) {
		failure := &rowfeed.Error{Code: rowfeed.Code(code), Object: `feed "kv"`, Cause: "the cause",
			Next: "do this", Err: errors.New("hidden")}
		handler := feedhttp.NewHandler(broken{failure}, nil)
		b.WriteString("code " + code + ": " + exchange(t, handler, [][]string{{"/_feeds/fetch/kv"}}))
	}
	texts["problems.txt"] = b.String()
	golden.Compare(t, "testdata/http", texts)
}

// codes are the codes of all problems, sorted.
func codes(t *testing.T) (all []string) {
	t.Helper()
	for _, file := range []string{"feedtype/errors.go", "feedhttp/problem.go"} {
		text, err := os.ReadFile(filepath.Join("../../..", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`Code += "([a-z-]+)"`).FindAllStringSubmatch(string(text), -1) {
			all = append(all, m[1])
		}
	}
	if slices.Sort(all); len(all) < 20 {
		t.Fatalf("%d codes were found", len(all))
	}
	return all
}

// broken is a catalog that fails.
type broken struct{ err error }

func (b broken) Names(context.Context) ([]string, error)                { return nil, b.err }
func (b broken) Source(context.Context, string) (rowfeed.Source, error) { return nil, b.err }

// small is a database with a feed kv of four data shards and a delete, and a feed ev with ULIDs.
func small(t *testing.T) *rowfeed.DB {
	t.Helper()
	ctx := t.Context()
	pool, d, err := open.Open(ctx, "sqlite:"+filepath.Join(t.TempDir(), "small.db"), open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	db, err := rowfeed.Open(ctx, pool, d, nil)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	exec := func(statement string) {
		t.Helper()
		_, err := pool.ExecContext(ctx, statement)
		must(err)
	}
	must(err)
	_, err = db.Migrate(ctx)
	must(err)
	exec("CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT, price REAL, b BLOB)")
	exec("CREATE TABLE ev (id INTEGER PRIMARY KEY, shard INTEGER NOT NULL)")
	exec("INSERT INTO kv VALUES (1, 'fred', 1.5, NULL), (2, '<b>&\"', NULL, x'00ff'), (3, 'ü', 1e300, NULL)")
	kv, err := db.AddFeed(ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: 4}, nil)
	must(err)
	_, err = db.AddFeed(ctx, rowfeed.FeedSpec{Name: "ev", Table: "ev", Mode: rowfeed.ModeOutbox,
		Capture: "trigger", ShardColumn: "shard"}, nil)
	must(err)
	_, err = kv.Publish(ctx)
	must(err)
	exec("DELETE FROM kv WHERE id = 1")
	exec("INSERT INTO ev VALUES (1, 7), (2, 7)")
	_, err = kv.Publish(ctx)
	must(err)
	// Terms are random, and stamps are times. No request gives a position, so these stay.
	exec("UPDATE rowfeed_sequences SET term = 268400102451642")
	exec("UPDATE rowfeed_positions_kv SET published_at = 1764000000000000 + feed_sync_id")
	return db
}

// exchange sends requests and formats them with their answers. Of a stream it reads the first entries.
func exchange(t *testing.T, handler http.Handler, all [][]string) string {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	var b strings.Builder
	for _, words := range all {
		method, path, ok := strings.Cut(words[0], " ")
		if !ok {
			method, path = http.MethodGet, words[0]
		}
		ctx, cancel := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept-Encoding", "identity")
		fmt.Fprintf(&b, "%s %s\n", method, path)
		for i := 1; i < len(words); i += 2 {
			request.Header.Set(words[i], words[i+1])
			b.WriteString(steady(words[i]+": "+words[i+1]) + "\n")
		}
		answer, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n%s\n", answer.Status)
		var headers []string
		for name, values := range answer.Header {
			if name != "Date" {
				headers = append(headers, name+": "+strings.Join(values, ", ")+"\n")
			}
		}
		slices.Sort(headers)
		var body strings.Builder
		streams, blocks := answer.Header.Get("Content-Type") == "text/event-stream", 0
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			body.WriteString(lines.Text() + "\n")
			if streams && lines.Text() == "" {
				if blocks++; blocks == 3 {
					break
				}
			}
		}
		cancel()
		answer.Body.Close()
		head := strings.Join(headers, "")
		if steady(body.String()) != body.String() {
			head = regexp.MustCompile(`Etag: .*`).ReplaceAllString(head, `Etag: "VARIES"`)
		}
		b.WriteString(steady(head+"\n"+body.String()) + "\n")
	}
	return b.String()
}

// varying has the texts that differ between two runs, and their replacements.
var varying = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{26}\b`), "ULID"},
	{regexp.MustCompile(`\brf_[\w-]{20,}`), "TOKEN"},
	{regexp.MustCompile(`\b1-[0-9a-f]{32}\b`), "DIGEST"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "HOST"},
}

func steady(text string) string {
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.with)
	}
	return text
}
