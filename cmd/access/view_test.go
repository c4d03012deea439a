package access

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/terms"
)

// acme creates a token that sees the rows of acme, without their secrets.
func acme(g *guarded, name string, feeds ...string) string {
	return g.token(admin.TokenSpec{Name: name, View: feedtype.View{
		Where: []feedtype.ViewFilter{{Column: "ns", Values: []string{"acme"}}}, Mask: []string{"secret"},
	}}, feeds...)
}

// TestViewHidesRowsAndColumns: a token's view hides rows and columns in pages, streams and descriptions. Cursors
// pass the hidden entries. A delete of a hidden row is hidden, too.
func TestViewHidesRowsAndColumns(t *testing.T) {
	g := guard(t)
	token := acme(g, "acme", "kv")
	want := func(path, page string) {
		t.Helper()
		if got := terms.Fix(g.rows(path, token)); got != page+"\n" {
			t.Errorf("%s: %s\nwant %s", path, got, page)
		}
	}
	entry := func(position int, k string, v int) string {
		return fmt.Sprintf(
			`{"position":"%d","shard":0,"op":"upsert","key":{"k":"%s","ns":"acme"},"row":{"ns":"acme","k":"%s",`+
				`"v":"%d"}}`,
			position, k, k, v,
		)
	}
	page := func(cursor string, more bool, entries ...string) string {
		return fmt.Sprintf(`{"feed":"kv","entries":[%s],"cursor":"%s.%s","more":%v,"base64":[]}`,
			strings.Join(entries, ","), cursor, terms.Fixed, more)
	}
	want("/_feeds/fetch/kv", page("3", false, entry(1, "a", 1), entry(3, "c", 3)))
	want("/_feeds/fetch/kv?limit=1", page("1@3", true, entry(1, "a", 1)))
	// The view hides the second page completely, so the third is answered instead.
	want("/_feeds/fetch/kv?limit=1&after=1@3", page("3", false, entry(3, "c", 3)))
	for _, path := range []string{"/_feeds", "/_feeds/kv"} {
		if info := g.rows(path, token); strings.Contains(info, "secret") || !strings.Contains(info, `"name":"v"`) {
			t.Errorf("%s: %s", path, info)
		}
	}

	g.exec("DELETE FROM kv WHERE ns = 'evil'", "INSERT INTO kv VALUES ('evil', 'd', '4', 'hush')",
		"UPDATE kv SET ns = 'evil' WHERE k = 'a'")
	g.publish()
	_, body, header := g.ask("/_feeds/fetch/kv?after=3", bearing(token))
	if strings.Contains(body, "evil") || strings.Count(body, `"op"`) != 1 ||
		!strings.Contains(body, `"op":"delete","key":{"k":"a","ns":"acme"}`) ||
		!strings.Contains(body, `"more":false`) {
		t.Errorf("a row went elsewhere: %s", body)
	}
	if tag := header.Get("Rowfeed-Columns"); tag == "" || tag == g.tag("/_feeds/fetch/kv?after=3") {
		t.Errorf("its columns are tagged %q, as all columns are", tag)
	}
	stream := g.begin("/_feeds/stream/kv", bearing(token))
	defer stream.Body.Close()
	if all := g.readUntil(bufio.NewReader(stream.Body), `"k":"c"`); strings.Contains(all, "evil") ||
		strings.Contains(all, "hush") {
		t.Errorf("streamed %s", all)
	}
}

// tag returns the tag of the columns that a client without a view sees.
func (g *guarded) tag(path string) string {
	g.Helper()
	_, _, header := g.ask(path, bearing(g.token(admin.TokenSpec{Name: "all"}, "kv")))
	return header.Get("Rowfeed-Columns")
}

// TestHiddenEntryDoesNotEndAWait: a hidden entry does not end a wait, and a visible one does.
func TestHiddenEntryDoesNotEndAWait(t *testing.T) {
	g := guard(t)
	token := acme(g, "acme", "kv")
	got := make(chan string, 1)
	go func() { got <- g.rows("/_feeds/fetch/kv?after=3&wait=1m", token) }()
	g.await("it waits", func() bool { return g.waiters() == 1 })
	for i := range 3 {
		g.exec(fmt.Sprintf("INSERT INTO kv VALUES ('evil', 'e%d', '', '')", i))
		g.publish()
	}
	select {
	case body := <-got:
		t.Fatalf("answered %s", body)
	default:
	}
	g.exec("INSERT INTO kv VALUES ('acme', 'n', '', '')")
	g.publish()
	if body := <-got; !strings.Contains(body, `"k":"n"`) || strings.Contains(body, "evil") ||
		!strings.Contains(body, `"cursor":"7.`) {
		t.Error(body)
	}
}

// TestLargeEntryBehindHiddenOneEndsWait: an entry behind a hidden one ends a wait from "now", also if it is larger than
// the memory that its page got.
func TestLargeEntryBehindHiddenOneEndsWait(t *testing.T) {
	g := guard(t)
	g.server.Config.Handler = Identify(g.tokens)(Required(feedhttp.NewHandler(Over(feedhttp.Of(g.db)),
		&feedhttp.Config{PageMemory: 1 << 20})))
	token := acme(g, "acme", "kv")
	got := make(chan string, 1)
	go func() { got <- g.rows("/_feeds/fetch/kv?after=now&wait=1m", token) }()
	g.await("it waits", func() bool { return g.waiters() == 1 })
	g.exec("INSERT INTO kv VALUES ('evil', 'e', '', '')")
	g.publish()
	g.exec("INSERT INTO kv VALUES ('acme', 'n', '" + strings.Repeat("v", 1<<20) + "', '')")
	g.publish()
	if body := <-got; !strings.Contains(body, `"k":"n"`) || strings.Contains(body, "evil") {
		t.Errorf("%.300s", body)
	}
}

// TestViewsDoNotSharePages: clients with different views do not share encoded pages.
func TestViewsDoNotSharePages(t *testing.T) {
	g := guard(t)
	tokens := map[string]string{"all": g.token(admin.TokenSpec{Name: "all"}, "kv"), "acme": acme(g, "acme", "kv"),
		"evil": g.token(admin.TokenSpec{Name: "evil",
			View: feedtype.View{Where: []feedtype.ViewFilter{{Column: "ns", Values: []string{"evil"}}}}}, "kv"),
		"mask": g.token(admin.TokenSpec{Name: "mask", View: feedtype.View{Mask: []string{"v"}}}, "kv")}
	type answer struct{ who, body string }
	answers := make(chan answer, 20)
	for who, token := range tokens {
		for range 5 {
			go func() { answers <- answer{who, g.rows("/_feeds/fetch/kv?after=3&wait=1m", token)} }()
		}
	}
	g.await("all wait", func() bool { return g.waiters() == 20 })
	g.exec("INSERT INTO kv VALUES ('acme', 'n', 'seen', 'hush'), ('evil', 'n', 'seen', 'hush')")
	g.publish()
	for range 20 {
		a := <-answers
		for text, by := range map[string]string{
			`"ns":"acme"`: "all acme mask", `"ns":"evil"`: "all evil mask", "hush": "all evil mask",
			"seen": "all acme evil",
		} {
			if strings.Contains(a.body, text) != strings.Contains(by, a.who) {
				t.Errorf("%s got %s", a.who, a.body)
			}
		}
	}
}

// TestViewOfMissingColumnHidesFeed: a feed that has lost a column of the view, or has renamed it, is not shown, and the
// error does not name the column.
func TestViewOfMissingColumnHidesFeed(t *testing.T) {
	g := guard(t)
	masked := acme(g, "acme", "kv")
	filtered := g.token(admin.TokenSpec{Name: "filtered",
		View: feedtype.View{Where: []feedtype.ViewFilter{{Column: "ns", Values: []string{"acme"}}}}}, "kv")
	g.exec("ALTER TABLE kv RENAME COLUMN secret TO hidden")
	for _, path := range []string{"/_feeds/kv", "/_feeds/fetch/kv", "/_feeds/stream/kv"} {
		status, body, _ := g.ask(path, bearing(masked))
		if status != 403 || strings.Contains(body, "hush") || strings.Contains(body, "secret") ||
			strings.Contains(body, "hidden") || !strings.Contains(body, "ask for another token") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	g.exec("ALTER TABLE kv RENAME COLUMN ns TO tenant")
	for _, path := range []string{"/_feeds/fetch/kv", "/_feeds/stream/kv"} {
		if status, body, _ := g.ask(path, bearing(filtered)); status < 400 || strings.Contains(body, "hush") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// TestViewAppliesToAllFeedsOfToken: a view applies to every feed that the token reads, and a cursor gives no right.
func TestViewAppliesToAllFeedsOfToken(t *testing.T) {
	g := guard(t)
	token := acme(g, "acme", "kv")
	if status, body, _ := g.ask("/_feeds/fetch/other?after=0", bearing(token)); status != 403 ||
		strings.Contains(body, `"o"`) {
		t.Errorf("%d %s", status, body)
	}
	_, _, err := g.db.Admin().AddToken(t.Context(), admin.TokenSpec{Name: "both",
		Grants: []Grant{{Right: Read, Feed: EveryFeed}}, View: feedtype.View{Mask: []string{"secret"}}})
	if !errors.Is(err, rowfeed.Refused) {
		t.Error(err)
	}
	// A later feed that the view does not fit is refused.
	g.exec("CREATE TABLE plain (id INTEGER PRIMARY KEY, v TEXT)", "INSERT INTO plain VALUES (1, 'x')")
	later := g.token(admin.TokenSpec{Name: "v", View: feedtype.View{Mask: []string{"v"}}}, EveryFeed)
	if _, err := g.db.AddFeed(t.Context(), rowfeed.FeedSpec{Name: "later", Table: "plain", Columns: []string{"id"}},
		nil); err != nil {
		t.Fatal(err)
	}
	if status, body, _ := g.ask("/_feeds/fetch/later", bearing(later)); status != 403 {
		t.Errorf("%d %s", status, body)
	}
	if status, body, _ := g.ask("/_feeds", bearing(later)); status != 200 ||
		!strings.Contains(body, `{"name":"other","mode"`) ||
		!strings.Contains(body, `{"name":"later","problem":{"type":"urn:rowfeed:problem:forbidden"`) {
		t.Errorf("%d %s", status, body)
	}
	if got := g.rows("/_feeds/fetch/other", later); !strings.Contains(got, `"row":{"id":1}`) {
		t.Error(got)
	}
}

// endless is a feed that returns the same page of hidden rows again and again. Each page takes some time.
type endless struct {
	rowfeed.Source
	page rowfeed.Page
}

func (e endless) Fetch(_ context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	<-time.After(skipping / 10)
	page := e.page
	page.Cursor, page.More = req.After+"1", true
	return page, nil
}

// TestViewHidingAllRowsAdvancesCursor: the view hides all entries of a feed. A request still ends in time, with an
// empty page and a higher cursor. The test runs on virtual time.
func TestViewHidingAllRowsAdvancesCursor(t *testing.T) {
	g := guard(t)
	feed, err := feedhttp.Of(g.db).Source(t.Context(), "kv")
	if err != nil {
		t.Fatal(err)
	}
	page, err := feed.Fetch(t.Context(), rowfeed.Request{After: "1", Limit: 1})
	if err != nil || len(page.Entries) != 1 {
		t.Fatal(page, err)
	}
	s := source{endless{feed, page}, "kv", Identity{Name: "a",
		View: feedtype.View{Where: []feedtype.ViewFilter{{Column: "ns", Values: []string{"acme"}}}}}}
	for _, wait := range []time.Duration{0, time.Minute} { // the wait is for new entries only
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			page, err := s.Fetch(t.Context(), rowfeed.Request{Wait: wait})
			if took := time.Since(begun); err != nil || took > 2*skipping || len(page.Entries) != 0 || !page.More ||
				len(page.Cursor) < 2 {
				t.Errorf("%s: after %s %+v %v", wait, took, page, err)
			}
		})
	}
}
