package console_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/cmd/console"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/feedtype"
)

// manyLetters adds consumers billing and search of feed orders with a dead letter for each of 120 rows. Every third
// error of billing is a timeout with a number of its own.
func manyLetters(t *testing.T) *rowfeed.DB {
	t.Helper()
	pool, db := open(t)
	exec(t, pool, `CREATE TABLE orders (id INTEGER PRIMARY KEY, note TEXT)`)
	exec(t, pool, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120)
		INSERT INTO orders SELECT i, 'note <' || i || '>' FROM n`)
	f := addFeed(t, db, "orders")
	publish(t, f)
	for name, kinds := range map[string]int{"billing": 3, "search": 121} {
		c := &rowfeed.Consumer{Name: name, Source: f, DB: db, OnFailure: rowfeed.SetAside,
			Options: rowfeed.ConsumerOptions{Retry: rowfeed.Retry{MaxAttempts: 1, Backoff: 1}},
			Deliver: func(_ context.Context, entries []rowfeed.Entry) (refused []rowfeed.Refusal, _ error) {
				for i, e := range entries {
					id, _ := e.Key.Get("id")
					err := fmt.Errorf("no such customer & 100%% <b>")
					if number := int(id.(int64)); number%kinds == 0 {
						err = fmt.Errorf("timeout after %d ms", 100+number)
					}
					refused = append(refused, rowfeed.Refusal{Entry: i, Err: err})
				}
				return refused, nil
			}}
		if err := c.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// link returns the address of the first link on a page whose text or label is this.
func link(t *testing.T, body, which string) string {
	t.Helper()
	found := regexp.MustCompile(`<a[^>]*href="([^"]*)"[^>]*(?:aria-label="` + regexp.QuoteMeta(which) + `"[^>]*>|>` +
		regexp.QuoteMeta(which) + `</a>)`).FindStringSubmatch(body)
	if found == nil {
		t.Fatalf("no link %q: %s", which, body)
	}
	return "/" + strings.TrimLeft(html.UnescapeString(found[1]), "./")
}

// TestDeadLettersArePagedFilteredAndGrouped: each letter is on one page, beside its row. A group's actions say how many
// letters they concern before they are done, and concern no others.
func TestDeadLettersArePagedFilteredAndGrouped(t *testing.T) {
	db := manyLetters(t)
	h := pages(db, nil)
	seen := map[string]int{}
	key := regexp.MustCompile(`<bdi class="value">([^<]*)</bdi></th>`)
	path, read := "/dead-letters?consumer=billing", 0
	for ; path != ""; read++ {
		_, body := get(t, h, path)
		for _, found := range key.FindAllStringSubmatch(body, -1) {
			seen[found[1]]++
		}
		if path = ""; strings.Contains(body, ">Next page</a>") {
			path = "/dead-letters" + strings.TrimPrefix(link(t, body, "Next page"), "/")
		}
		if !strings.Contains(body, "120 dead letters, by error") || !strings.Contains(body, "note &lt;") {
			t.Errorf("the page lacks the number or the rows: %s", body)
		}
	}
	if len(seen) != 120 || read != 3 {
		t.Errorf("%d letters on %d pages", len(seen), read)
	}
	for key, times := range seen {
		if times != 1 {
			t.Errorf("%s is on %d pages", key, times)
		}
	}
	for query, want := range map[string]string{
		"error=NO+SUCH":              "no such customer &amp; 100% &lt;b&gt;",
		"key=7&feed=orders":          "note &lt;7&gt;",
		"consumer=nobody":            "No dead letter matches",
		"group=timeout+after+%23+ms": "timeout after 103 ms",
	} {
		if _, body := get(t, h, "/dead-letters?"+query); !strings.Contains(body, want) {
			t.Errorf("%s lacks %q: %s", query, want, body)
		}
	}
	_, body := get(t, h, "/dead-letters?consumer=billing&feed=orders")
	for _, act := range []struct{ link, asks, done string }{
		{"Retry 80 letters of billing", "80 dead letters to be retried", "the consumer retries 80 dead letters"},
		{"Drop 40 letters of billing", "40 dead letters to be dropped", "40 dead letters dropped"},
	} {
		_, asks := get(t, h, link(t, body, act.link))
		if !strings.Contains(asks, act.asks) {
			t.Errorf("%s does not say the number: %s", act.link, asks)
		}
		fields := form("confirmed", "yes")
		for _, f := range regexp.MustCompile(`type="hidden" name="([^"]*)" value="([^"]*)"`).
			FindAllStringSubmatch(asks, -1) {
			fields.Set(f[1], html.UnescapeString(f[2]))
		}
		unconfirmed := form("consumer", "billing", "feed", "orders", "group", fields.Get("group"))
		if _, again := post(t, h, "/act/"+strings.ToLower(act.link[:strings.Index(act.link, " ")]),
			unconfirmed); !strings.Contains(again, act.asks) {
			t.Errorf("%s is done without a question: %s", act.link, again)
		}
		r, _ := post(t, h, "/act/"+strings.ToLower(act.link[:strings.Index(act.link, " ")]), fields)
		if after := follow(t, h, r); !strings.Contains(after, act.done) {
			t.Errorf("%s: %s", act.link, after)
		}
	}
	for consumer, want := range map[string]int64{"billing": 80, "search": 120} {
		n, err := db.Admin().CountDeadLetters(t.Context(),
			rowfeed.LetterQuery{ConsumerID: rowfeed.ConsumerID{Consumer: consumer}})
		if err != nil || n != want {
			t.Errorf("%s has %d dead letters, want %d: %v", consumer, n, want, err)
		}
	}
}

// TestDeadLettersShowOnlyRowsOfTheToken: without the right to read, or with a view, a token sees no row.
func TestDeadLettersShowOnlyRowsOfTheToken(t *testing.T) {
	db := manyLetters(t)
	administers := access.Grant{Right: access.Administer, Feed: "orders"}
	reads := access.Grant{Right: access.Read, Feed: "orders"}
	for _, c := range []struct {
		who  access.Identity
		sees bool
	}{
		{access.Identity{Name: "operator", Grants: []access.Grant{administers}}, false},
		{access.Identity{Name: "both", Grants: []access.Grant{administers, reads}}, true},
		{access.Identity{Name: "masked", Grants: []access.Grant{administers, reads},
			View: feedtype.View{Mask: []string{"note"}}}, false},
	} {
		h := as(c.who, console.NewHandler(access.Over(feedhttp.Of(db)), console.Of(db), nil))
		if _, body := get(t, h, "/dead-letters"); strings.Contains(body, "note &lt;") != c.sees ||
			!strings.Contains(body, "no such customer") {
			t.Errorf("%s: %s", c.who.Name, body)
		}
	}
	other := access.Identity{Name: "other", Grants: []access.Grant{{Right: access.Administer, Feed: "kv"}}}
	h := as(other, console.NewHandler(access.Over(feedhttp.Of(db)), console.Of(db), nil))
	if r, _ := get(t, h, "/dead-letters?feed=orders"); r.StatusCode != http.StatusForbidden {
		t.Errorf("letters of a feed of others: %s", r.Status)
	}
	if _, body := get(t, h, "/dead-letters"); strings.Contains(body, "orders") ||
		!strings.Contains(body, "There are no dead letters") {
		t.Errorf("letters of others: %s", body)
	}
	two := access.Identity{Name: "two", Grants: append(other.Grants, administers)}
	h = as(two, console.NewHandler(access.Over(feedhttp.Of(db)), console.Of(db), nil))
	_, body := get(t, h, "/dead-letters")
	if _, body = get(t, h, "/dead-letters"+link(t, body, "orders")[1:]); !strings.Contains(body,
		"240 dead letters, by error") {
		t.Errorf("letters of the second feed: %s", body)
	}
}
