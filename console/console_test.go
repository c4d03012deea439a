package console_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/console"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

func open(t *testing.T) (*sql.DB, *rowfeed.DB) {
	t.Helper()
	pool := testdb.SQLite.New(t).OpenTapped(t, testdb.Hooks{})
	db, err := rowfeed.Open(t.Context(), pool, sqlite.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return pool, db
}

func exec(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func addFeed(t *testing.T, db *rowfeed.DB, name string) *rowfeed.Feed {
	t.Helper()
	f, err := db.AddFeed(t.Context(), rowfeed.FeedSpec{Name: name, Table: name}, nil)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, f)
	return f
}

func publish(t *testing.T, f *rowfeed.Feed) {
	t.Helper()
	if _, err := f.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, h http.Handler, path string, header ...string) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	body, _ := io.ReadAll(w.Result().Body)
	return w.Result(), string(body)
}

func TestPage(t *testing.T) {
	pool, db := open(t)
	h := console.NewHandler(feedhttp.Of(db), &console.Config{Problems: func(feed string) []string {
		if feed == "broken" {
			return []string{`<i>trigger</i> is missing`}
		}
		return nil
	}})
	if r, body := get(t, h, "/"); r.StatusCode != 200 || !strings.Contains(body, "There is no feed yet") {
		t.Errorf("without feeds: %s %s", r.Status, body)
	}
	exec(t, pool, `CREATE TABLE broken (id INTEGER PRIMARY KEY)`)
	exec(t, pool, `CREATE TABLE kv (id TEXT PRIMARY KEY NOT NULL, "<b>" TEXT, b BLOB)`)
	exec(t, pool, `INSERT INTO kv VALUES ('old', NULL, NULL)`)
	f := addFeed(t, db, "kv")
	exec(t, pool, `UPDATE rowfeed_positions_kv SET published_at = published_at - 3600000000`)
	exec(t, pool, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20) INSERT INTO kv SELECT 'filler ' || i, NULL, NULL FROM n`)
	publish(t, f)
	exec(t, pool, `INSERT INTO kv VALUES ('<script>', '</td><img src=x>', x'00ff'), ('gone', 'v', NULL), ('long', ?, x'')`, strings.Repeat("é", 500))
	addFeed(t, db, "broken")
	publish(t, f)
	exec(t, pool, `DELETE FROM kv WHERE id = 'gone'`)
	publish(t, f)

	r, body := get(t, h, "/?feed=kv", "Host", "feeds.example:81")
	if r.StatusCode != 200 || r.Header.Get("Content-Type") != "text/html; charset=utf-8" || r.Header.Get("Cache-Control") != "no-store" ||
		!strings.Contains(r.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%s %v", r.Status, r.Header)
	}
	for _, want := range []string{
		`<h1 id="feed-name">kv</h1>`, `data-feed="kv" data-cursor="25"`, `1 problem<`,
		`&lt;script&gt;`, `&lt;b&gt;`, `&lt;/td&gt;&lt;img src=x&gt;`, `AP8=`, strings.Repeat("é", 160) + "…<",
		`<span class="op delete">delete</span>`, `the row is gone`, `<span class="null">empty</span>`,
		`curl 'http://feeds.example:81/_feeds/fetch/kv?after=25'`, `<noscript>`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, not := range []string{"<img src=x", "<b>", "<i>trigger", " style=", "onclick", "javascript:", "http://www", "https://"} {
		if strings.Contains(body, not) {
			t.Errorf("the page has %q", not)
		}
	}
	if n := strings.Count(body, "<script"); n != 1 {
		t.Errorf("%d scripts", n)
	}
	if got := positions(body); !strings.HasPrefix(got, "25 24 22 21 20 ") {
		t.Errorf("newest first: positions %s", got)
	}
	if _, body = get(t, h, "/"); !strings.Contains(body, "&lt;i&gt;trigger&lt;/i&gt; is missing") || !strings.Contains(body, "No entry yet") {
		t.Error("the first feed's problem is not told")
	}
	if _, body = get(t, h, "/?feed=kv", "Host", "x';rm -rf;'", "X-Forwarded-Proto", "https"); !strings.Contains(body, "curl 'https://127.0.0.1:8080/") {
		t.Error("a host with quotes is in a command")
	}

	r, body = get(t, h, "/?feed=%3Cb%3E")
	if r.StatusCode != 404 || !strings.Contains(body, "there is no such feed") || strings.Contains(body, "<b>") || !strings.Contains(body, "?feed=kv") {
		t.Errorf("unknown feed: %s %s", r.Status, body)
	}
	exec(t, pool, `DROP TABLE broken`)
	if r, body = get(t, h, "/?feed=broken"); r.StatusCode != 200 || !strings.Contains(body, "is gone") || !strings.Contains(body, "?feed=kv") {
		t.Errorf("broken feed: %s %s", r.Status, body)
	}
}

var positionCell = regexp.MustCompile(`<td class="number">(\d+)</td>`)

func positions(body string) string {
	var all []string
	for _, m := range positionCell.FindAllStringSubmatch(body, -1) {
		all = append(all, m[1])
	}
	return strings.Join(all, " ")
}

// The page shows the newest entries however many there are and whenever they came.
func TestLatest(t *testing.T) {
	newest := func(head, n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprint(head-i))
		}
		return strings.Join(all, " ")
	}
	rows := `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO kv SELECT %d + i FROM n`
	const hour = 3600 * 1000000
	for _, c := range []struct {
		name    string
		batches []int // each published at a time of its own
		ages    []int // microseconds
		want    string
	}{
		{"a few now", []int{3}, []int{0}, newest(3, 3)},
		{"many now", []int{2000}, []int{0}, newest(2000, 20)},
		{"many long ago", []int{3000}, []int{900 * hour}, newest(3000, 20)},
		{"many long ago, a few now", []int{3000, 2}, []int{900 * hour, 0}, newest(3002, 20)},
		{"few, ever older", []int{5, 5, 5, 5, 5}, []int{9000 * hour, 90 * hour, hour, hour / 60, 0}, newest(25, 20)},
		{"more of one time than are read, and a few later", []int{5600, 2}, []int{hour, 0}, newest(5602, 2)},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool, db := open(t)
			exec(t, pool, `CREATE TABLE kv (id INTEGER PRIMARY KEY)`)
			f := addFeed(t, db, "kv")
			total := 0
			for i, n := range c.batches {
				exec(t, pool, fmt.Sprintf(rows, n, total))
				publish(t, f)
				exec(t, pool, `UPDATE rowfeed_positions_kv SET published_at = (SELECT max(published_at) FROM rowfeed_positions_kv) - ? WHERE feed_sync_id > ?`, c.ages[i], total)
				total += n
			}
			_, body := get(t, console.NewHandler(feedhttp.Of(db), nil), "/")
			if got := positions(body); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if !strings.Contains(body, fmt.Sprintf(`data-cursor="%d"`, total)) {
				t.Error("the page does not go on from the head")
			}
		})
	}
}

func TestAssets(t *testing.T) {
	_, db := open(t)
	h := console.NewHandler(feedhttp.Of(db), nil)
	for path, mediaType := range map[string]string{
		"/_console/style.css": "text/css; charset=utf-8",
		"/_console/app.js":    "text/javascript; charset=utf-8",
		"/_console/icon.svg":  "image/svg+xml",
	} {
		r, body := get(t, h, path)
		if r.StatusCode != 200 || r.Header.Get("Content-Type") != mediaType || body == "" {
			t.Errorf("%s: %s %v", path, r.Status, r.Header)
		}
		if strings.Contains(strings.ReplaceAll(body, "http://www.w3.org/2000/svg", ""), "//www") {
			t.Errorf("%s loads from elsewhere", path)
		}
		if r, _ = get(t, h, path, "If-None-Match", r.Header.Get("ETag")); r.StatusCode != 304 {
			t.Errorf("%s again: %s", path, r.Status)
		}
	}
	for _, path := range []string{"/nope", "/_console/", "/_console/page.html", "/_console/../console.go"} {
		if r, _ := get(t, h, path); r.StatusCode != 404 {
			t.Errorf("%s: %s", path, r.Status)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "/", nil))
	if w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d", w.Code)
	}
	w = httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("HEAD", "/", nil))
	if w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("HEAD: %d, %d bytes", w.Code, w.Body.Len())
	}
}

// TestShards: a feed with ULIDs, each shard of which is a feed by itself, is shown shard by shard: that is no
// trouble of it, and the commands on the page name the shard.
func TestShards(t *testing.T) {
	pool, db := open(t)
	exec(t, pool, `CREATE TABLE ev (id INTEGER PRIMARY KEY, shard INTEGER NOT NULL)`)
	f, err := db.AddFeed(t.Context(), rowfeed.FeedSpec{Name: "ev", Table: "ev", Mode: rowfeed.ModeOutbox, Capture: dialect.CaptureTrigger, ShardColumn: "shard"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := console.NewHandler(feedhttp.Of(db), nil)
	show := func(path string, want, not []string) {
		t.Helper()
		r, body := get(t, h, path)
		for _, w := range want {
			if r.StatusCode != 200 || !strings.Contains(body, w) {
				t.Errorf("%s: %s lacks %q:\n%s", path, r.Status, w, body)
			}
		}
		for _, n := range append(not, "Something is wrong") {
			if strings.Contains(body, n) {
				t.Errorf("%s has %q", path, n)
			}
		}
	}
	show("/", []string{"No entry yet", `/_feeds/fetch/ev'`}, []string{"data-shard"})
	exec(t, pool, `INSERT INTO ev VALUES (1, 0), (2, 0)`)
	publish(t, f)
	show("/", []string{`data-feed="ev" data-shard="0"`, `data-head-of="ev"`, `/_feeds/fetch/ev?shard=0'`, `>2<`}, []string{`aria-label="Shards"`})
	exec(t, pool, `INSERT INTO ev VALUES (3, -5), (40, 77)`)
	publish(t, f)
	show("/?feed=ev", []string{`data-shard="-5"`, `<span class="number">3</span> <span class="label">shards</span>`, `<a href="?feed=ev&amp;shard=77">77</a>`,
		`<a href="?feed=ev&amp;shard=-5" aria-current="page">-5</a>`, `>3<`, `limit=5&amp;shard=-5'`}, []string{`>40<`, `data-head-of="ev"`})
	show("/?feed=ev&shard=77", []string{`data-shard="77"`, `>40<`}, nil)
	show("/?feed=ev&shard=1000", []string{`data-shard="1000"`, "No entry yet"}, nil) // any number is a shard
	show("/?feed=ev&shard=%3Cb%3E", []string{`data-shard="-5"`}, []string{"<b>"})
}

type down struct{}

func (down) Names(context.Context) ([]string, error) {
	return nil, &rowfeed.Error{Code: rowfeed.Unavailable, Object: "database", Cause: "cannot be reached", Err: errors.New("secret")}
}
func (down) Source(context.Context, string) (rowfeed.Source, error) { panic("not asked") }

func TestWithoutDatabase(t *testing.T) {
	r, body := get(t, console.NewHandler(down{}, nil), "/")
	if r.StatusCode != 503 || !strings.Contains(body, "cannot be reached") || strings.Contains(body, "secret") || strings.Contains(body, "no feed yet") {
		t.Errorf("%s %s", r.Status, body)
	}
}
