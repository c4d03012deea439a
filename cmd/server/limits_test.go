package server

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowfeed/rowfeed/cmd/access"
)

// asker sends requests through a limiter, with an address and the name of a token.
type asker struct {
	handler http.Handler
	asked   int // number of authentications
}

// newAsker returns an asker whose authentication accepts every name except "nobody".
func newAsker(l Limits) *asker {
	a := &asker{}
	limiter := newLimiter(l.withDefaults())
	a.handler = limiter.first(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.asked++
		who := access.Everyone()
		if name := r.Header.Get("Who"); name == "nobody" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		} else if name != "" {
			who.Name = name
		}
		limiter.second(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w,
			r.WithContext(access.With(r.Context(), who)))
	}))
	return a
}

func (a *asker) ask(address, who string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/_feeds", nil)
	r.RemoteAddr = address
	if who != "" {
		r.Header.Set("Who", who)
	}
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	return w
}

// TestRateOfAClientIsLimited (O2): a client that sends too many requests is told when to continue. Other clients are
// not affected.
func TestRateOfAClientIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(Limits{Rate: 0.1, Burst: 2})
		want := func(status int, address, who string) {
			t.Helper()
			w := a.ask(address, who)
			if w.Code != status {
				t.Fatalf("%s %q: %d, want %d", address, who, w.Code, status)
			}
			if status == 429 && (w.Header().Get("Retry-After") != "10" ||
				!strings.Contains(w.Body.String(), `"type":"urn:rowfeed:problem:too-many-requests"`) ||
				w.Header().Get("Content-Type") != "application/problem+json") {
				t.Errorf("%v %s", w.Header(), w.Body)
			}
		}
		for _, c := range []struct{ address, next, other, who, otherWho string }{
			{"192.0.2.1:1000", "192.0.2.1:1001", "192.0.2.2:1000", "", ""},
			{"[2001:db8::1]:1000", "[2001:db8::ffff:1]:7", "[2001:db8:0:1::1]:1000", "", ""},
			{"[::ffff:192.0.2.77]:1000", "192.0.2.77:1", "192.0.2.78:1", "", ""},
			{"192.0.2.9:1000", "127.0.0.1:1000", "192.0.2.9:1000", "reader", "other"},
		} {
			want(200, c.address, c.who)
			want(200, c.next, c.who)
			want(429, c.address, c.who)
			want(429, c.next, c.who)
			want(200, c.other, c.otherWho)
		}
		<-time.After(10 * time.Second)
		want(200, "192.0.2.1:1000", "")
		want(429, "192.0.2.1:1000", "")
		for range 10 { // a proxy on this machine forwards requests of many clients
			want(200, "127.0.0.1:1000", "")
			want(200, "[::1]:1000", "")
		}
		for _, l := range []Limits{{Rate: -1}, {Rate: 0.1, Burst: -1}} {
			unbounded := newAsker(l)
			for range 100 {
				if w := unbounded.ask("192.0.2.1:1", ""); w.Code != 200 {
					t.Fatal(l, w.Code)
				}
			}
		}
	})
}

// TestFailedAuthenticationsAreLimited: invalid tokens count for the address, and the number of authentications is
// limited. Authenticated clients are not affected.
func TestFailedAuthenticationsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(Limits{Rate: 0.1, Burst: 3})
		for i := range 6 {
			want := 401
			if i >= 3 {
				want = 429
			}
			if w := a.ask("192.0.2.1:1", "nobody"); w.Code != want {
				t.Errorf("guess %d: %d", i, w.Code)
			}
		}
		if a.asked != 3 {
			t.Errorf("authentication was asked %d times", a.asked)
		}
		for _, who := range []string{"a", "b", "c", "d", "e"} { // behind a proxy; none of them has failed
			if w := a.ask("192.0.2.2:1", who); w.Code != 200 {
				t.Error(who, w.Code)
			}
		}
	})
}

// TestClientsAreForgotten: any number of addresses needs a limited amount of memory.
func TestClientsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClients(Limits{Rate: 0.1, Burst: 1})
		for i := range maxClients + 500 {
			c.count(fmt.Sprint(i))
		}
		if len(c.known) != maxClients || c.recent.Len() != maxClients {
			t.Errorf("%d and %d are remembered", len(c.known), c.recent.Len())
		}
		if c.count(fmt.Sprint(maxClients+499)) == 0 {
			t.Error("the latest was forgotten")
		}
		if c.count("0") != 0 {
			t.Error("the oldest was not")
		}
	})
}

func TestLimitsHaveDefaults(t *testing.T) {
	l := Limits{}.withDefaults()
	if l.Rate != 1000 || l.Burst != 20_000 || l.ConnectionsPerAddress != 16_384 || l.WaitingPerClient != 16_384 {
		t.Errorf("%+v", l)
	}
	l = Limits{Rate: 0.01, Connections: -1, Waiting: 1}.withDefaults()
	if l.Burst != 1 || l.ConnectionsPerAddress != -1 || l.WaitingPerClient != 1 {
		t.Errorf("%+v", l)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e10} {
		if (Limits{Rate: bad}).check() == nil {
			t.Errorf("a rate of %g", bad)
		}
	}
}

// TestOversizedRequestsAreRefused: a request that is too large is refused before authentication.
func TestOversizedRequestsAreRefused(t *testing.T) {
	a := newAsker(Limits{BodyBytes: 10})
	for _, c := range []struct {
		method, path string
		body         string
		length       int64
		want         int
	}{
		{"GET", "/" + strings.Repeat("x", maxURI), "", 0, 414},
		{"GET", "/", "x", 1, 413},
		{"HEAD", "/", "x", -1, 413},
		{"POST", "/", strings.Repeat("x", 11), 11, 413},
		{"POST", "/", strings.Repeat("x", 10), 10, 200},
		{"POST", "/", strings.Repeat("x", 11), -1, 200}, // the limit is met while the body is read
	} {
		before := a.asked
		r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		r.ContentLength = c.length
		w := httptest.NewRecorder()
		a.handler.ServeHTTP(w, r)
		if w.Code != c.want || (a.asked > before) != (c.want == 200) {
			t.Errorf("%s %.10s with %d bytes: %d", c.method, c.path, c.length, w.Code)
		}
	}
}
