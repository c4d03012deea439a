package access

import (
	"bufio"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/feedhttp"
)

// TestRequestsNeedValidCredentials: requests without credentials and with wrong ones are answered with 401. Tokens are
// read from header and cookie, never from the URL.
func TestRequestsNeedValidCredentials(t *testing.T) {
	g := guard(t)
	text := g.token(admin.TokenSpec{Name: "shop"}, "kv")
	gone := g.token(admin.TokenSpec{Name: "gone"}, "kv")
	if _, err := g.db.Admin().RevokeToken(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	wrong := feedhttp.Challenge + `, error="invalid_token"`
	for _, c := range []struct {
		path      string
		headers   []string
		status    int
		challenge string
	}{
		{"", nil, 401, feedhttp.Challenge},
		{"?token=" + text, nil, 401, feedhttp.Challenge},
		{"?access_token=" + text, nil, 401, feedhttp.Challenge},
		{"", []string{bearing(text)}, 200, ""},
		{"", []string{"authorization: bearer  " + text}, 200, ""},
		{"", []string{"Cookie: " + Cookie + "=" + text}, 200, ""},
		{"", []string{"Cookie: " + Cookie + "=" + gone}, 401, feedhttp.Challenge},
		{"", []string{"Cookie: " + Cookie + "="}, 401, feedhttp.Challenge},
		{"", []string{bearing(gone)}, 401, wrong},
		{"", []string{bearing(gone), "Cookie: " + Cookie + "=" + text}, 401, wrong},
		{"", []string{bearing(text), bearing(text)}, 401, wrong},
		{"", []string{bearing(text[:len(text)-1])}, 401, wrong},
		{"", []string{bearing(text + "A")}, 401, wrong},
		{"", []string{bearing("' OR '1'='1")}, 401, wrong},
		{"", []string{bearing("")}, 401, wrong},
		{"", []string{"Authorization: " + text}, 401, wrong},
		{"", []string{"Authorization: Basic " + text}, 401, wrong},
	} {
		status, body, header := g.ask("/_feeds/fetch/kv"+c.path, c.headers...)
		if status != c.status || header.Get("WWW-Authenticate") != c.challenge || strings.Contains(body, text) ||
			strings.Contains(body, gone) {
			t.Errorf("%s %q: %d %q %s", c.path, c.headers, status, header.Get("WWW-Authenticate"), body)
		}
		if status == 401 && (header.Get("Content-Type") != "application/problem+json" ||
			!strings.Contains(body, "urn:rowfeed:problem:unauthorized") || header.Get("Cache-Control") != "no-store") {
			t.Errorf("%q: %v %s", c.headers, header, body)
		}
	}
	client := &feedhttp.Client{URL: g.server.URL, Feed: "kv", HTTP: g.server.Client(), Token: text}
	if page, err := client.Fetch(t.Context(), rowfeed.Request{}); err != nil || len(page.Entries) != 3 {
		t.Errorf("%+v %v", page, err)
	}
	client.Token = gone
	if _, err := client.Fetch(t.Context(), rowfeed.Request{}); !errors.Is(err, rowfeed.Unauthorized) ||
		strings.Contains(err.Error(), gone) {
		t.Error(err)
	}
	if strings.Contains(g.log.String(), "rf_") {
		t.Errorf("a token is in the log: %s", g.log.String())
	}
}

// TestTokenRevealsNothingOfOtherFeeds (O2): a token is valid for the feeds that it names, for each right separately. It
// reveals nothing about other feeds, not even whether they exist.
func TestTokenRevealsNothingOfOtherFeeds(t *testing.T) {
	g := guard(t)
	kv := g.token(admin.TokenSpec{Name: "kv"}, "kv")
	all := g.token(admin.TokenSpec{Name: "all"}, EveryFeed)
	publisher := g.token(admin.TokenSpec{Name: "publisher", Grants: []Grant{{Right: Publish, Feed: "kv"}}}, "kv",
		"other")
	admin := g.token(admin.TokenSpec{Name: "admin", Grants: []Grant{{Right: Administer, Feed: EveryFeed}}})
	want := func(token, path string, status int, has, hasNot string) {
		t.Helper()
		got, body, _ := g.ask(path, bearing(token))
		if got != status || !strings.Contains(body, has) || hasNot != "" && strings.Contains(body, hasNot) {
			t.Errorf("%s: %d %s", path, got, body)
		}
	}
	want(kv, "/_feeds", 200, `"name":"kv"`, "other")
	want(all, "/_feeds", 200, `"name":"other"`, "")
	want(admin, "/_feeds", 200, `{"feeds":[]}`, "")
	for _, path := range []string{"/_feeds/%s", "/_feeds/fetch/%s", "/_feeds/stream/%s", "/_feeds/shards/%s"} {
		want(kv, fmt.Sprintf(path, "other"), 403, "urn:rowfeed:problem:forbidden", "")
		want(kv, fmt.Sprintf(path, "nothing"), 403, "urn:rowfeed:problem:forbidden", "")
		want(kv, fmt.Sprintf(path, "kv%2f%2e%2e%2fother"), 404, "urn:rowfeed:problem:not-found", "")
		want(kv, fmt.Sprintf(path, "kv%00"), 403, "urn:rowfeed:problem:forbidden", "")
		want(admin, fmt.Sprintf(path, "kv"), 403, "urn:rowfeed:problem:forbidden", "")
		want(all, fmt.Sprintf(path, "nothing"), 404, "urn:rowfeed:problem:unknown-feed", "")
	}
	want(kv, "/_feeds/fetch/kv?consistent=true", 403, "publish", "entries")
	want(publisher, "/_feeds/fetch/kv?consistent=true&wait=1m", 200, `"entries"`, "")
	want(publisher, "/_feeds/fetch/other?consistent=true", 403, "publish", "entries")
	want(publisher, "/_feeds/fetch/other", 200, `"entries"`, "")
}

// TestRevocationEndsWaits (O2): a stream and a request that wait for an entry end when their token is revoked or
// expires, and show nothing that was written since.
func TestRevocationEndsWaits(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(*guarded)
	}{
		{"revoked", func(g *guarded) {
			if ended, err := g.db.Admin().RevokeToken(g.Context(), "shop"); err != nil || !ended {
				g.Error(ended, err)
			}
		}},
		{"expired", func(g *guarded) {
			g.exec("UPDATE rowfeed_tokens SET expires_at = 1 WHERE name = 'shop'")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := guard(t)
			g.tokens.Trust = time.Millisecond
			text := g.token(admin.TokenSpec{Name: "shop"}, "kv")
			stays := g.token(admin.TokenSpec{Name: "stays"}, "kv")
			stream, other := g.begin("/_feeds/stream/kv", bearing(text)), g.begin("/_feeds/stream/kv", bearing(stays))
			defer stream.Body.Close()
			defer other.Body.Close()
			lines, others := bufio.NewReader(stream.Body), bufio.NewReader(other.Body)
			g.readUntil(lines, `"k":"c"`)
			g.readUntil(others, `"k":"c"`)
			type answer struct {
				status int
				body   string
			}
			waited := make(chan answer, 1)
			go func() {
				status, body, _ := g.ask("/_feeds/fetch/kv?after=3&wait=1m", bearing(text))
				waited <- answer{status, body}
			}()
			g.await("three wait", func() bool { return g.waiters() == 3 })
			c.end(g)
			rest, err := io.ReadAll(lines)
			if err != nil || !strings.Contains(string(rest), "event: problem") ||
				!strings.Contains(string(rest), "unauthorized") {
				t.Errorf("the stream ended with %q, %v", rest, err)
			}
			if got := <-waited; got.status != 401 {
				t.Errorf("%d %s", got.status, got.body)
			}
			g.exec("INSERT INTO kv VALUES ('acme', 'z', '9', 'later')")
			g.publish()
			g.readUntil(others, `"k":"z"`)
			if strings.Contains(string(rest), "later") {
				t.Errorf("%s", rest)
			}
		})
	}
}

// TestLookupsAreCached: results for tokens, including unknown ones, are kept for a short time, in limited
// memory.
func TestLookupsAreCached(t *testing.T) {
	g := guard(t)
	text := g.token(admin.TokenSpec{Name: "shop"}, "kv")
	unknown := func(i int) string { return fmt.Sprintf("rf_%042dA", i) }
	before := g.questions()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				if status, _, _ := g.ask("/_feeds/kv", bearing(text)); status != 200 {
					t.Error(status)
				}
				if status, _, _ := g.ask("/_feeds/kv", bearing(unknown(0))); status != 401 {
					t.Error(status)
				}
				if status, _, _ := g.ask("/_feeds/kv", bearing("not a token")); status != 401 {
					t.Error(status)
				}
			}
		})
	}
	group.Wait()
	// The first requests may query at the same time, up to a limit.
	if n := g.questions() - before; n > 2*maxAsking {
		t.Errorf("600 requests asked %d times about tokens", n)
	}
	for i := range 2 * maxUnknown {
		if _, err := g.tokens.Of(t.Context(), unknown(i)); !errors.Is(err, rowfeed.Unauthorized) {
			t.Fatal(err)
		}
	}
	if n := len(g.tokens.unknown); n > maxUnknown {
		t.Errorf("%d texts are remembered", n)
	}
}

// TestMalformedTokensAreNotLookedUp: a text without the form of a token is refused without a query.
func TestMalformedTokensAreNotLookedUp(t *testing.T) {
	g := guard(t)
	text := g.token(admin.TokenSpec{Name: "shop"}, "kv")
	before := g.questions()
	for _, garbage := range []string{"", "rf_", text[3:], text[:len(text)-
		1], text + "=", text + "\n", strings.ToUpper(text[:3]) + text[3:], strings.Repeat("A", 1<<20)} {
		if _, err := g.tokens.Of(t.Context(), garbage); !errors.Is(err, rowfeed.Unauthorized) {
			t.Errorf("%.60q: %v", garbage, err)
		}
	}
	if n := g.questions() - before; n != 0 {
		t.Errorf("%d questions", n)
	}
}

// TestCachedTokensAreCheckedAgain: a result is checked again after its time, and a token is not valid beyond its
// expiry.
func TestCachedTokensAreCheckedAgain(t *testing.T) {
	g := guard(t)
	text := g.token(admin.TokenSpec{Name: "short", Expires: time.Minute}, "kv")
	who, err := g.tokens.Of(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	if who.token.mu.Lock(); time.Until(who.token.until) > time.Minute {
		t.Errorf("believed for %s, it holds for a minute", time.Until(who.token.until))
	}
	who.token.until = time.Now()
	who.token.mu.Unlock()
	g.exec("UPDATE rowfeed_tokens SET revoked_at = 1")
	if _, err := g.tokens.Of(t.Context(), text); !errors.Is(err, rowfeed.Unauthorized) {
		t.Error(err)
	}
	if _, err := who.token.of.find(t.Context(), text); !errors.Is(err, rowfeed.Unauthorized) {
		t.Error(err)
	}
	if err := who.token.check(t.Context()); !errors.Is(err, rowfeed.Unauthorized) {
		t.Error(err)
	}
}

// TestUnavailableDatabaseLetsNoClientIn: while the database cannot be queried, no new client is let in, and waiting
// clients are cut off after a short time.
func TestUnavailableDatabaseLetsNoClientIn(t *testing.T) {
	g := guard(t)
	g.tokens.Trust = time.Millisecond
	text := g.token(admin.TokenSpec{Name: "shop"}, "kv")
	away := func(is bool) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.away = is
	}
	stream := g.begin("/_feeds/stream/kv", bearing(text))
	defer stream.Body.Close()
	lines := bufio.NewReader(stream.Body)
	g.readUntil(lines, `"k":"c"`)
	g.await("it waits", func() bool { return g.waiters() == 1 })
	away(true)
	before := g.questions()
	g.await("it is asked for several times", func() bool { return g.questions() > before+3 })
	if g.waiters() != 1 {
		t.Error("a moment without the database has ended a stream")
	}
	if status, body, _ := g.ask("/_feeds/kv", bearing(text)); status != 503 {
		t.Errorf("a new request: %d %s", status, body)
	}
	g.tokens.mu.Lock()
	h := g.tokens.known[sha256.Sum256([]byte(text))]
	g.tokens.mu.Unlock()
	h.mu.Lock()
	h.until = time.Now().Add(-patience)
	h.mu.Unlock()
	rest, err := io.ReadAll(lines)
	if err != nil || !strings.Contains(string(rest), "event: problem") ||
		!strings.Contains(string(rest), "unavailable") {
		t.Errorf("the stream ended with %q, %v", rest, err)
	}
	away(false)
	if status, body, _ := g.ask("/_feeds/kv", bearing(text)); status != 200 {
		t.Errorf("the database is back: %d %s", status, body)
	}
}

// TestTextOfTokenIsNeverKept: neither the database nor the memory has the text of a token or a part of it. Its hash is
// compared, whose beginning a client cannot choose.
func TestTextOfTokenIsNeverKept(t *testing.T) {
	g := guard(t)
	text := g.token(admin.TokenSpec{Name: "shop"}, "kv")
	g.rows("/_feeds/fetch/kv", text)
	sum := sha256.Sum256([]byte(text))
	hashed := 0
	for _, ev := range g.asked {
		for _, arg := range ev.Args {
			value := fmt.Sprint(arg.Value)
			if value == hex.EncodeToString(sum[:]) {
				hashed++
			}
			if strings.Contains(value, text[3:13]) {
				t.Errorf("%s is asked with %q", ev.SQL, value)
			}
		}
		if strings.Contains(ev.SQL, text[3:13]) {
			t.Error(ev.SQL)
		}
	}
	if hashed == 0 || g.tokens.known[sum] == nil {
		t.Errorf("%d statements, %v", len(g.asked), g.tokens.known)
	}
}

// TestConsumerEndsWhenTokenIsRevoked (O1): a consumer whose token is no longer valid, or not for its feed, ends with
// that error. It does not retry.
func TestConsumerEndsWhenTokenIsRevoked(t *testing.T) {
	g := guard(t)
	g.tokens.Trust = time.Millisecond
	text := g.token(admin.TokenSpec{Name: "shop"}, "kv")
	consume := func(feed string, handle func()) error {
		c := &rowfeed.Consumer{Name: "shop", DB: g.db,
			Source: &feedhttp.Client{URL: g.server.URL, Feed: feed, HTTP: g.server.Client(), Token: text},
			Handle: func(context.Context, *sql.Tx, []rowfeed.Entry) error { handle(); return nil }}
		ctx, cancel := context.WithTimeout(g.Context(), time.Minute) // only a test that hangs reaches this
		defer cancel()
		return c.Run(ctx)
	}
	if err := consume("other", func() {}); !errors.Is(err, rowfeed.Forbidden) {
		t.Errorf("another feed: %v", err)
	}
	handed, revoked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(revoked)
		<-handed
		if ended, err := g.db.Admin().RevokeToken(g.Context(), "shop"); err != nil || !ended {
			t.Error(ended, err)
		}
	}()
	once := sync.OnceFunc(func() { close(handed) })
	err := consume("kv", once)
	once()
	<-revoked // the revocation may still be running
	if !errors.Is(err, rowfeed.Unauthorized) {
		t.Errorf("a token that is no longer valid: %v", err)
	}
}
