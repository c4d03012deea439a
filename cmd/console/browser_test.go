package console_test

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/cmd/console"
	"github.com/rowfeed/rowfeed/feedhttp"
)

// browserTimeout bounds all that is done in a browser.
const (
	browserTimeout = 15 * time.Minute
	waitTimeout    = 3 * time.Minute
)

// site is a server of feeds and console, and its database.
type site struct {
	*httptest.Server
	sql  *sql.DB
	db   *rowfeed.DB
	feed *rowfeed.Feed
}

// newSite serves a database that fills every page. With tokens, every request needs one.
func newSite(t *testing.T, tokens bool) *site {
	t.Helper()
	pool, db := open(t)
	x := &site{sql: pool, db: db}
	exec(t, pool, `CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, total DECIMAL(10,2), note TEXT, `+
		`photo BLOB)`)
	exec(t, pool, `CREATE TABLE kv (k TEXT PRIMARY KEY NOT NULL, v TEXT)`)
	exec(t, pool, `CREATE TABLE ev (id INTEGER PRIMARY KEY, shard INTEGER NOT NULL)`)
	exec(t, pool, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1204)
		INSERT INTO orders SELECT i, 'customer ' || (i * 7 % 41), (i * 137 % 9000) / 100.0,
			CASE i % 3 WHEN 0 THEN NULL ELSE 'leave it at the door' END, NULL FROM n`)
	exec(t, pool, `INSERT INTO orders VALUES (2001, '<b>Robert</b>', 12.5, ?, x'00ff10'), (2002, ?, 1, '', NULL)`,
		strings.Repeat("a long note ", 40), "\u202eשלום عليكم")
	exec(t, pool, `INSERT INTO kv VALUES ('colour', 'teal')`)
	x.feed = addFeed(t, db, "orders")
	exec(t, pool, `DELETE FROM orders WHERE id = 7`)
	publish(t, x.feed)
	addFeed(t, db, "kv")
	exec(t, pool, `UPDATE kv SET v = 'green'`) // waits
	ev, err := db.AddFeed(t.Context(),
		rowfeed.FeedSpec{Name: "ev", Table: "ev", Mode: rowfeed.ModeOutbox, Capture: "trigger", ShardColumn: "shard"},
		nil)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, pool, `INSERT INTO ev VALUES (1, 0), (2, 3), (3, -5)`)
	publish(t, ev)
	consume(t, db, x.feed, "billing", 2, 2001)
	consume(t, db, x.feed, "search")
	if _, err := db.Admin().SeekConsumer(t.Context(), rowfeed.ConsumerID{Consumer: "search", Feed: "orders"},
		"400"); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		exec(t, pool, `INSERT INTO rowfeed_cursors
			(consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at)
			VALUES ('mirror', 'orders', ?, 6, ?, 1, 0, 1, ?, 0, ?)`,
			i, fmt.Sprint(1200-i*i*40), i/5, time.Now().UnixMicro())
	}
	exec(t, pool, `UPDATE rowfeed_cursors SET target = 'webhook https://hooks.example/orders'
		WHERE consumer = 'mirror'`)
	exec(t, pool, `UPDATE rowfeed_cursors SET failure = ?, failing_since = ?, attempts = 12, next_try = ?
		WHERE consumer = 'mirror' AND shard = 3`,
		"POST https://hooks.example/orders: 503 Service Unavailable. Next: see the receiver's log",
		time.Now().Add(-22*time.Minute).UnixMicro(), time.Now().Add(40*time.Second).UnixMicro())
	for _, name := range []string{"publish:orders", "publish:kv", "relay:orders:warehouse",
		"consumer:orders:mirror/6/0", "nightly-report"} {
		lease(t, db, name)
	}
	if err := db.Admin().Audited(t.Context(),
		admin.Act{Actor: "ops@db-1", Act: "feed add", Object: "orders", Detail: "--table=orders"},
		func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	cfg, data := &console.Config{}, console.Of(db)
	data.Feeds = busy{data.Feeds}
	identify := func(next http.Handler) http.Handler { return as(access.Everyone(), next) }
	if tokens {
		known := access.NewTokens(db)
		cfg.Login, identify = known.Of, access.Identify(known)
	}
	mux := http.NewServeMux()
	feeds := feedhttp.NewHandler(access.Over(feedhttp.Of(db)), nil)
	mux.Handle("/_feeds/", access.Required(feeds))
	pages := console.NewHandler(access.Over(feedhttp.Of(db)), data, cfg)
	pages.SetPast(90, "orders", func(i int) (string, int64) {
		return fmt.Sprint(i*13 + int(25*math.Sin(float64(i)/7)) + i*i*i%10), int64(i*i*3%70 + i%7*4)
	})
	mux.Handle("/", pages)
	x.Server = httptest.NewServer(identify(mux))
	t.Cleanup(func() { feeds.Close(); x.Server.CloseClientConnections(); x.Server.Close() })
	return x
}

// busy adds an open transaction, because SQLite does not list transactions.
type busy struct{ console.Feeds }

func (b busy) Blocked(ctx context.Context, feed string) (found console.Blocked, err error) {
	age := 1843.0
	if found, err = b.Feeds.Blocked(ctx, feed); feed == "orders" {
		found.Blockers = append(
			found.Blockers,
			admin.Blocker{
				Session:    "4711",
				User:       "app",
				Host:       "10.0.0.7:51234",
				AgeSeconds: &age,
				Scope:      "has written to the table",
				Statement: "UPDATE orders SET note = 'left at the neighbour''s' WHERE id IN (SELECT id FROM orders " +
					"WHERE total > 100 AND customer LIKE 'customer%' ORDER BY total DESC LIMIT 5000) RETURNING *",
			},
		)
	}
	return found, err
}

// tab is a page in the browser that all tests share. trouble has its errors.
type tab struct {
	context.Context
	t       *testing.T
	site    *site
	mu      sync.Mutex
	trouble []string
}

// newTab opens a tab with a storage of its own.
func newTab(t *testing.T, browser context.Context, x *site) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b := &tab{Context: ctx, t: t, site: x}
	if err := chromedp.Listen(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.trouble = append(b.trouble, e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			b.trouble = append(b.trouble, fmt.Sprint("console.", e.Type))
		case *log.EventEntryAdded:
			b.trouble = append(b.trouble, e.Entry.Text+" "+e.Entry.URL)
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(e.Request.URL, x.URL+"/") {
				b.trouble = append(b.trouble, "request to "+e.Request.URL)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	b.do(size(1600))
	t.Cleanup(func() {
		b.asked(503, "/_console/sample") // a busy machine may refuse a sample; the page asks again
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, trouble := range b.trouble {
			t.Errorf("in the browser: %s", trouble)
		}
	})
	return b
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b, actions...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) open(path string) { b.t.Helper(); b.do(chromedp.Navigate(b.site.URL + path)) }

// wait waits until an expression is true, also on a page that is loaded meanwhile.
func (b *tab) wait(expression string) {
	b.t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	bounded, cancel := context.WithTimeout(b, waitTimeout)
	defer cancel()
	for {
		if is, err := chromedp.Run(bounded, chromedp.Evaluate[bool]("Boolean("+expression+")")); err == nil && is {
			return
		}
		select {
		case <-again.C:
		case <-bounded.Done():
			text, err := chromedp.Run(b, chromedp.Evaluate[string](`location.href + "\n" + `+
				`document.querySelector("main").innerText.slice(0, 1500)`))
			b.t.Fatalf("%s is not true: %s %v", expression, text, err)
		}
	}
}

// click clicks with the mouse on the first link or button that has the selector or the text.
func (b *tab) click(which string) {
	b.t.Helper()
	found := fmt.Sprintf(`[...document.querySelectorAll("main a, main button, header button")].find((e) => `+
		`e.textContent.trim() === %[1]q || e.matches(%[1]q))`, which)
	if !strings.ContainsAny(which, "[.#") {
		found = fmt.Sprintf(`[...document.querySelectorAll("main a, main button, header button")].find((e) => `+
			`e.textContent.trim() === %q)`, which)
	}
	b.wait(`document.readyState === "complete" && ` + found)
	at, err := chromedp.Run(b, chromedp.Evaluate[[]float64](`((e) => { e.scrollIntoView({block: "center"}); const r `+
		`= e.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; })(`+found+`)`))
	if err != nil {
		b.t.Fatalf("%s: %v", which, err)
	}
	b.do(chromedp.MouseClickXY(at[0], at[1]))
}

// with calls a method of the browser on the tab.
func with[P any](command cdp.Command[P, cdp.Empty], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}

func size(width int64) chromedp.Action[chromedp.Void] {
	return chromedp.EmulateViewport(width, map[int64]int64{390: 844, 900: 1000, 1600: 1000}[width])
}

func colours(scheme string) chromedp.Action[chromedp.Void] {
	return with(
		emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: scheme},
				{Name: "prefers-reduced-motion", Value: "reduce"},
			},
		},
	)
}

// TestBrowser (O3): the console works in a browser.
func TestBrowser(t *testing.T) {
	bounded, cancel := context.WithTimeout(t.Context(), browserTimeout)
	defer cancel()
	browser := startBrowser(t, bounded)
	x := newSite(t, false)
	t.Run("tail", func(t *testing.T) { tail(newTab(t, browser, x)) })
	t.Run("keys", func(t *testing.T) { keyboard(newTab(t, browser, x)) })
	t.Run("looks", func(t *testing.T) { looks(newTab(t, browser, x)) })
	t.Run("actions", func(t *testing.T) { clicking(newTab(t, browser, x)) })
	t.Run("no scripts", func(t *testing.T) { scriptless(newTab(t, browser, x)) })
	t.Run("login", func(t *testing.T) { loggingIn(t, browser) })
}

// tail: new rows appear, an entry can be shown in full, and a paused list does not change.
func tail(b *tab) {
	b.open("/feeds/orders")
	b.wait(`document.querySelector("[data-status]").textContent === "Live"`)
	for _, plot := range []string{"rate", "waiting"} { // of the last 15 minutes, although this is the first visit
		b.wait(`document.querySelector("[data-plot=` + plot + `] .line")?.getAttribute("d").split("L").length > 80`)
	}
	insert := func(id int, note string) {
		exec(b.t, b.site.sql, `INSERT INTO orders VALUES (?, 'new', 9007199254740993, ?, NULL)`, id, note)
		publish(b.t, b.site.feed)
	}
	insert(3001, "<img src=x onerror=alert(1)>"+strings.Repeat("z", 300))
	b.wait(`document.querySelector(".entries tbody tr.new td:nth-child(3)")?.textContent.includes("3001")`)
	b.wait(`[...document.querySelectorAll(".entries tbody tr.new .value")].some((v) => ` +
		`v.textContent.startsWith("<img src=x") && v.textContent.endsWith("z…"))`)
	b.wait(`document.querySelector(".entries tbody tr.new").textContent.includes("9007199254740993")`) // all its digits
	b.click(`.entries tbody tr.new a.open`)
	b.wait(`document.querySelector("#viewer[open] pre + *, #viewer[open] ` +
		`[data-viewer]").textContent.includes("z".repeat(300))`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.click("[data-pause]")
	b.wait(`document.querySelector("[data-status]").textContent === "Paused" && ` +
		`!document.querySelector("#viewer[open]")`)
	insert(3002, "later")
	b.click("[data-pause]")
	b.wait(`document.querySelector(".entries tbody tr").textContent.includes("3002")`)
	label := `document.querySelector("[data-oldest]").parentElement.textContent`
	exec(b.t, b.site.sql, `UPDATE orders SET note = 'now' WHERE id = 3`)
	b.wait(`/^Pending changes, the oldest for \d+ m?s$/.test(` + label + `)`)
	publish(b.t, b.site.feed)
	b.wait(label + ` === "Pending changes"`)
	b.wait(`document.querySelector("[data-plot=waiting] .line") !== null && ` +
		`Number(document.querySelector("[data-head]").textContent.replaceAll(",", "")) >= 1208`)
}

// keyboard: every function works without a mouse.
func keyboard(b *tab) {
	b.open("/")
	b.wait(`document.readyState === "complete"`)
	b.do(chromedp.KeyEvent(kb.Tab))
	b.wait(`document.activeElement.className === "skip"`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.wait(`location.hash === "#main"`)
	b.do(chromedp.KeyEvent("?"))
	b.wait(`document.querySelector("#help[open]") !== null`)
	b.do(chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent("j"), chromedp.KeyEvent("j"))
	b.wait(`document.activeElement.textContent === "kv"`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.wait(`location.pathname === "/feeds/kv" && document.readyState === "complete"`)
	b.do(chromedp.KeyEvent("/"))
	b.wait(`document.activeElement.id === "key"`)
	// the simulated key also types into the field
	b.wait(`(document.activeElement.value = "") === ""`)
	b.do(chromedp.KeyEvent("colour" + kb.Enter))
	b.wait(`document.querySelector(".found")?.textContent.includes("1 entry found") && document.readyState === ` +
		`"complete"`)
	b.do(chromedp.KeyEvent("t"), chromedp.KeyEvent("t"))
	b.wait(`document.documentElement.dataset.theme === "dark" && getComputedStyle(document.body).backgroundColor ` +
		`=== "rgb(14, 20, 19)"`)
	// the second key has to come soon after the first
	b.do(chromedp.Evaluate[chromedp.Void](`((now) => { Date.now = () => now; })(Date.now())`))
	b.do(chromedp.KeyEvent("g"), chromedp.KeyEvent("c"))
	b.wait(`location.pathname === "/consumers" && document.readyState === "complete" && ` +
		`document.documentElement.dataset.theme === "dark"`)
}

// clicking: an action that cannot be undone asks, and each action shows a message.
func clicking(b *tab) {
	b.open("/consumers/search")
	b.click("Pause")
	b.wait(`document.querySelector(".notice.good")?.textContent.includes("1 shard paused")`)
	b.click("Resume")
	b.wait(`document.querySelector(".notice.good")?.textContent.includes("1 shard resumed")`)
	b.open("/dead-letters")
	b.click(`a[aria-label='Drop key {"id":2}']`)
	b.wait(`document.querySelector("h1").textContent === "Drop?"`)
	b.click("Drop")
	b.wait(`document.querySelector(".notice.good")?.textContent.includes("1 dead letter dropped") && ` +
		`!document.querySelector("[id=letters]").textContent.includes('{"id":2}')`)
}

// scriptless: pages and actions work without JavaScript.
func scriptless(b *tab) {
	b.do(with(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	b.open("/feeds/orders")
	b.wait(`((t) => t.includes("customer") && t.includes("reload the page") && ` +
		`!t.includes("Connecting"))(document.querySelector("main").innerText)`)
	b.click("a.open")
	b.wait(`document.querySelector("[data-entry] h1") && location.search.includes("entry=")`)
	b.open("/consumers/search")
	b.click("Pause")
	b.wait(`document.querySelector(".notice.good")?.textContent.includes("1 shard paused")`)
	b.click("Reset…")
	b.wait(`document.querySelector("h1").textContent === "Set back to the beginning?"`)
	b.click("Set back to the beginning")
	b.wait(`document.querySelector(".notice.good")?.textContent.includes("set back to the beginning")`)
}

// loggingIn: pages and streams need a token. Actions that the token does not allow have no button.
func loggingIn(t *testing.T, browser context.Context) {
	x := newSite(t, true)
	token, _, err := x.db.Admin().
		AddToken(t.Context(), admin.TokenSpec{Name: "reader",
			Grants: []admin.TokenGrant{{Right: access.Read, Feed: "orders"}}})
	if err != nil {
		t.Fatal(err)
	}
	b := newTab(t, browser, x)
	b.open("/feeds/orders")
	b.wait(`location.pathname === "/login"`)
	b.wait(`document.readyState === "complete" && document.activeElement.id === "token"`) // it has the focus
	b.do(chromedp.KeyEvent(token + kb.Enter))
	b.wait(`location.pathname === "/feeds/orders" && document.querySelector("[data-status]").textContent === "Live"`)
	b.wait(`document.cookie === "" && !document.body.textContent.includes("Republish")`)
	b.open("/")
	b.wait(`document.querySelectorAll("[data-feed-row]").length === 1`)
	b.click("Log out")
	b.wait(`location.pathname === "/login"`)
	b.open("/consumers")
	b.wait(`location.pathname === "/login"`)
	b.asked(401, "/_console/sample") // the page before may have sent one more request
}
