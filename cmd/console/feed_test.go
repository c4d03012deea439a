package console_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/console"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/terms"
)

func TestFeedPageEscapesRows(t *testing.T) {
	pool, db := open(t)
	h := pages(db, &console.Config{Problems: func(feed string) []string {
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
	exec(t, pool, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20) INSERT INTO kv `+
		`SELECT 'filler ' || i, NULL, NULL FROM n`)
	publish(t, f)
	exec(t, pool, `INSERT INTO kv VALUES ('<script>', '</td><img src=x>', x'00ff'), ('gone', 'v', NULL), ('long', `+
		`?, x'')`, strings.Repeat("é", 500))
	addFeed(t, db, "broken")
	publish(t, f)
	exec(t, pool, `DELETE FROM kv WHERE id = 'gone'`)
	publish(t, f)

	r, body := get(t, h, "/feeds/kv", "Host", "feeds.example:81")
	if r.StatusCode != 200 || r.Header.Get("Content-Type") != "text/html; charset=utf-8" ||
		r.Header.Get("Cache-Control") != "no-store" ||
		!strings.Contains(r.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%s %v", r.Status, r.Header)
	}
	for _, want := range []string{
		`<h1 id="feed-name">kv</h1>`, `data-feed="kv" data-cursor="25.9k3f2c7adq"`,
		`&lt;script&gt;`, `&lt;b&gt;`, `&lt;/td&gt;&lt;img src=x&gt;`, `AP8=`, strings.Repeat("é", 160) + "…<",
		`<span class="op delete">delete</span>`, `row deleted`, `<span class="null">empty</span>`,
		`term <code>9k3f2c7adq</code>`,
		`curl 'http://feeds.example:81/_feeds/fetch/kv?after=25.9k3f2c7adq'`, `<noscript>`,
	} {
		if !strings.Contains(terms.Fix(body), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, not := range []string{"<img src=x", "<b>", "<i>trigger", " style=", "onclick", "javascript:", "http://www",
		"https://"} {
		if strings.Contains(body, not) {
			t.Errorf("the page has %q", not)
		}
	}
	if n := strings.Count(body, "<script"); n != 2 {
		t.Errorf("%d scripts", n)
	}
	if got := positions(body); !strings.HasPrefix(got, "25 24 22 21 20 ") {
		t.Errorf("newest first: positions %s", got)
	}
	if _, body = get(t, h, "/"); !strings.Contains(body, "&lt;i&gt;trigger&lt;/i&gt; is missing") ||
		!strings.Contains(body, "1 problem<") ||
		!strings.Contains(body, `href="./feeds/kv"`) {
		t.Error("the page does not show the feeds with their problems")
	}
	if _, body = get(t, h, "/feeds/kv", "Host", "x';rm -rf;'", "X-Forwarded-Proto", "https"); !strings.Contains(body,
		"curl 'https://127.0.0.1:8080/") {
		t.Error("a host with quotes is in a command")
	}
	if r, _ = get(t, h, "/?feed=kv"); r.StatusCode != 303 || r.Header.Get("Location") != "./feeds/kv" {
		t.Errorf("the old address of a feed: %s %v", r.Status, r.Header)
	}

	for _, path := range []string{"/feeds/%3Cb%3E", "/feeds/nope", "/feeds/", "/feeds", "/feeds/kv/more"} {
		r, body = get(t, h, path)
		if r.StatusCode != 404 || strings.Contains(body, "<b>") || !strings.Contains(body, "Show the feeds") {
			t.Errorf("%s: %s %s", path, r.Status, body)
		}
	}
	exec(t, pool, `DROP TABLE broken`)
	if r, body = get(t, h, "/feeds/broken"); r.StatusCode != 200 || !strings.Contains(body, "is gone") {
		t.Errorf("broken feed: %s %s", r.Status, body)
	}
	if r, body = get(t, h, "/"); r.StatusCode != 200 || !strings.Contains(body, "/feeds/kv") {
		t.Errorf("beside a broken feed: %s %s", r.Status, body)
	}
}

// TestEntryIsShownInFull: a long entry is shown in full. The page says so if the entry has a later position.
func TestEntryIsShownInFull(t *testing.T) {
	pool, db := open(t)
	exec(t, pool, `CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT, n TEXT)`)
	long := strings.Repeat("long & <b>", 100_000)
	exec(t, pool, `INSERT INTO kv VALUES (1, 'a', NULL), (2, ?, NULL)`, long)
	f := addFeed(t, db, "kv")
	h := pages(db, nil)
	_, body := get(t, h, "/feeds/kv")
	if len(body) > 50_000 {
		t.Errorf("the list shows all of it: %d bytes", len(body))
	}
	link := regexp.MustCompile(`href="\.\./(feeds/kv\?entry=[^"]*position=2[^"]*)"`).FindStringSubmatch(body)
	if link == nil {
		t.Fatalf("no entry has a link: %s", body)
	}
	path := "/" + strings.ReplaceAll(link[1], "&amp;", "&")
	if r, body := get(t, h, path); r.StatusCode != 200 || strings.Contains(body, "<b>") ||
		strings.Count(body, "long &amp; &lt;b&gt;") != 100_000 ||
		!strings.Contains(body, `<span class="null">NULL</span>`) {
		t.Errorf("%s: %s, %d bytes", path, r.Status, len(body))
	}
	exec(t, pool, `UPDATE kv SET v = 'b' WHERE id = 2`)
	publish(t, f)
	if r, body := get(t, h, path); r.StatusCode != 200 ||
		!strings.Contains(body, "There is no entry at this position") {
		t.Errorf("moved: %s %s", r.Status, body)
	}
	if r, body := get(t, h, "/feeds/kv?entry=%3Cb%3E"); r.StatusCode != 200 ||
		!strings.Contains(body, "This feed has a problem") ||
		strings.Contains(body, "<b>") {
		t.Errorf("no cursor: %s %s", r.Status, body)
	}
}

// A key is found wherever it stands, as it is typed or in part; what is not seen is not found.
func TestSearchFindsKeys(t *testing.T) {
	pool, db := open(t)
	exec(t, pool, `CREATE TABLE kv (ns TEXT NOT NULL, k TEXT NOT NULL, v TEXT, PRIMARY KEY (ns, k))`)
	exec(t, pool, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200) INSERT INTO kv `+
		`SELECT 'a', 'k' || i, 'v' FROM n`)
	exec(t, pool, `CREATE TABLE one (id INTEGER PRIMARY KEY)`)
	exec(t, pool, `INSERT INTO one VALUES (7), (17)`)
	addFeed(t, db, "kv")
	addFeed(t, db, "one")
	h := pages(db, nil)
	for _, c := range []struct{ path, key, parts, want string }{
		{"/feeds/kv", `{"ns":"a","k":"k777"}`, "", "1 entry found. 1,000 entries searched"},
		{"/feeds/kv", `{"k":"k777", "ns":"a"}`, "", "1 entry found"},
		{"/feeds/kv", `k777`, "", "0 entries found. 1,200 entries searched"},
		{"/feeds/kv", `K777`, "yes", "1 entry found. 1,200 entries searched"},
		{"/feeds/kv", `k77`, "yes", "11 entries found"},
		{"/feeds/one", `7`, "", "1 entry found"},
		{"/feeds/one", `7`, "yes", "2 entries found"},
		{"/feeds/one", `<b>`, "", "0 entries found"},
	} {
		r, body := get(t, h, c.path+"?parts="+c.parts+"&key="+url.QueryEscape(c.key))
		if r.StatusCode != 200 || !strings.Contains(body, c.want) || strings.Contains(body, "<b>") {
			t.Errorf("%s %s: %s lacks %q", c.path, c.key, r.Status, c.want)
		}
	}
	blind := as(may("administer one"), console.NewHandler(feedhttp.Of(db), console.Of(db), nil))
	if _, body := get(t, blind, "/feeds/one?key=7"); strings.Contains(body, "found") ||
		!strings.Contains(body, "You may not read this feed") {
		t.Error("the page shows rows without the right to read them")
	}
}

var positionCell = regexp.MustCompile(`<td class="number"><a class="open" href="[^"]*">(\d+)</a></td>`)

func positions(body string) string {
	var all []string
	for _, m := range positionCell.FindAllStringSubmatch(body, -1) {
		all = append(all, m[1])
	}
	return strings.Join(all, " ")
}

// The page shows the newest entries however many there are and whenever they came.
func TestFeedPageShowsNewestEntries(t *testing.T) {
	newest := func(head, n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprint(head-i))
		}
		return strings.Join(all, " ")
	}
	rows := `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO kv SELECT %d ` +
		`+ i FROM n`
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
				exec(t, pool, `UPDATE rowfeed_positions_kv SET published_at = (SELECT max(published_at) FROM `+
					`rowfeed_positions_kv) - ? WHERE feed_sync_id > ?`, c.ages[i], total)
				total += n
			}
			_, body := get(t, pages(db, nil), "/feeds/kv")
			if got := positions(body); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if !strings.Contains(body, fmt.Sprintf(`data-cursor="%d.`, total)) {
				t.Error("the page does not go on from the head")
			}
		})
	}
}

// TestULIDFeedIsShownByShard: a feed with ULIDs, each shard of which is a feed by itself, is shown shard by shard: that
// is no trouble of it, and the commands on the page name the shard.
func TestULIDFeedIsShownByShard(t *testing.T) {
	pool, db := open(t)
	exec(t, pool, `CREATE TABLE ev (id INTEGER PRIMARY KEY, shard INTEGER NOT NULL)`)
	f, err := db.AddFeed(
		t.Context(),
		rowfeed.FeedSpec{
			Name:        "ev",
			Table:       "ev",
			Mode:        rowfeed.ModeOutbox,
			Capture:     feedtype.CaptureTrigger,
			ShardColumn: "shard",
		},
		nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	h := pages(db, nil)
	show := func(path string, want, not []string) {
		t.Helper()
		r, body := get(t, h, path)
		for _, w := range want {
			if r.StatusCode != 200 || !strings.Contains(body, w) {
				t.Errorf("%s: %s lacks %q:\n%s", path, r.Status, w, body)
			}
		}
		for _, n := range append(not, "This feed has a problem") {
			if strings.Contains(body, n) {
				t.Errorf("%s has %q", path, n)
			}
		}
	}
	show("/feeds/ev", []string{"There is no entry yet", `/_feeds/fetch/ev'`}, []string{"data-shard"})
	exec(t, pool, `INSERT INTO ev VALUES (1, 0), (2, 0)`)
	publish(t, f)
	show(
		"/feeds/ev",
		[]string{
			`data-feed="ev" data-shard="0"`,
			`<span class="big number small" data-head>`,
			`/_feeds/fetch/ev?shard=0'`,
			`>2<`,
		},
		[]string{`aria-label="Shards"`},
	)
	exec(t, pool, `INSERT INTO ev VALUES (3, -5), (40, 77)`)
	publish(t, f)
	show(
		"/feeds/ev",
		[]string{
			`data-shard="-5"`,
			`<span class="label">Shards</span><span class="big number">3</span>`,
			`<a href="?shard=77">77</a>`,
			`<a href="?shard=-5" aria-current="page">-5</a>`,
			`>3<`,
			`after=now&amp;shard=-5'`,
		},
		[]string{`>40<`, `data-head>`},
	)
	show("/feeds/ev?shard=77", []string{`data-shard="77"`, `>40<`}, nil)
	show("/feeds/ev?shard=1000", []string{`data-shard="1000"`, "There is no entry yet"}, nil) // a shard is any integer
	show("/feeds/ev?shard=%3Cb%3E", []string{`data-shard="-5"`}, []string{"<b>"})
}

// TestSearchFindsBothTextsOfAKey (V1): a search finds a key by the text that its entries have, and by the one
// that its row has now; the entry shows both.
func TestSearchFindsBothTextsOfAKey(t *testing.T) {
	pool, db := open(t)
	h := pages(db, nil)
	exec(t, pool, `CREATE TABLE kv (k TEXT COLLATE NOCASE PRIMARY KEY NOT NULL, v TEXT)`)
	f := addFeed(t, db, "kv")
	exec(t, pool, `INSERT INTO kv VALUES ('fred', 'here')`)
	publish(t, f)
	exec(t, pool, `UPDATE kv SET k = 'FRED'`)
	publish(t, f)
	for key, found := range map[string]bool{"fred": true, "FRED": true, `{"k":"FRED"}`: true, "Fred": false} {
		if _, body := get(t, h, "/feeds/kv?key="+url.QueryEscape(key)); strings.Contains(body, ">here<") != found {
			t.Errorf("%s: found %v, want %v", key, !found, found)
		}
	}
	if _, body := get(t, h, "/feeds/kv?key=fred"); !strings.Contains(body, ">FRED<") {
		t.Error("the page does not show the text of the row")
	}
}
