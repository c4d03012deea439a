package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	relays "github.com/rowfeed/rowfeed/cmd/relay"
	"github.com/rowfeed/rowfeed/cmd/server"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// served is the database over HTTP.
func (x *env) served(rf *rowfeed.DB) *httptest.Server {
	s := httptest.NewServer(feedhttp.NewHandler(feedhttp.Of(rf), nil))
	x.Cleanup(s.Close)
	return s
}

// wantProblem asserts how a request is refused: the status, the last part of the problem's type, whether there is a
// Retry-After, and words of the next step.
func (x *env) wantProblem(url string, status int, code rowfeed.Code, retry, next string) {
	x.Helper()
	resp, err := http.Get(url)
	if err != nil {
		x.Fatal(err)
	}
	defer resp.Body.Close()
	var p struct {
		Type   string
		Status int
		Detail string
		Next   string
	}
	if err := json.NewDecoder(resp.Body).Decode(&p); err != nil {
		x.Fatal(err)
	}
	if resp.StatusCode != status || p.Status != status || p.Type != "urn:rowfeed:problem:"+string(code) || resp.Header.Get("Content-Type") != "application/problem+json" {
		x.Errorf("%s: %s %+v", url, resp.Status, p)
	}
	if got := resp.Header.Get("Retry-After"); got != retry || p.Detail == "" || !strings.Contains(p.Next, next) || strings.Contains(p.Detail, "log has") {
		x.Errorf("%s: Retry-After %q, %+v; want %q, %q", url, got, p, retry, next)
	}
}

// TestFillingOverHTTP (M62): while rows are placed who would miss some is told 503 "filling" and when to come
// again; consumers and relays come again by themselves, and have all rows in the end.
func TestFillingOverHTTP(t *testing.T) {
	testdb.Only(t, testdb.SQLite) // no database makes a difference
	each(t, func(x *env) {
		x.oldRows(4)
		broken := x.tappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "row_number()") {
				return testdb.ErrInjected
			}
			return nil
		}}, nil)
		if _, err := broken.AddFeed(x.ctx, backfillSpec(), nil); !errors.Is(err, testdb.ErrInjected) {
			x.Fatal(err)
		}
		y := x.kvEvents()
		x.exec("INSERT INTO kv VALUES (10, 0, NULL)", "INSERT INTO kv VALUES (12, 3, NULL)")
		x.publish(y.feed)
		s := x.served(x.rf)
		x.wantProblem(s.URL+"/_feeds/fetch/kv?shard=0", http.StatusServiceUnavailable, rowfeed.Filling, "5", "rowfeed feed backfill kv")
		var told, toldRelay troubles
		client := &feedhttp.Client{URL: s.URL, Feed: "kv"}
		r := y.taker(nil)
		c := r.consumer(client, x.tappedDB(testdb.Hooks{}, &rowfeed.Config{Observer: told.observer()}))
		c.Name = "consumer"
		stop := r.run(c)
		to := newShelf(t)
		x.relaying(client, x.tappedDB(testdb.Hooks{}, &rowfeed.Config{Observer: toldRelay.observer()}), to, 1)
		x.eventually("both are refused, and go on", func() bool {
			return told.like("are being placed behind the head") > 1 && toldRelay.like("are being placed behind the head") > 1
		})
		y.backfilled(4)
		r.awaitApplied("all rows", "0: 4 2 1 10", "3: 3 12")
		x.eventually("all rows are delivered", func() bool { return to.size() == 6 })
		_ = stop()
	})
}

// TestExpiredOverHTTP (M59): a cursor below the oldest entry that is kept is refused with 410 "entries-expired", which
// says what to do. A consumer and a relay stop there.
func TestExpiredOverHTTP(t *testing.T) {
	testdb.Only(t, testdb.SQLite) // no database makes a difference
	eachOutbox(t, func(x *events) {
		s := x.served(x.rf)
		client := &feedhttp.Client{URL: s.URL, Feed: "events"}
		r := x.taker(nil)
		c := r.consumer(client, x.rf)
		to := newShelf(t)
		relay := &relays.Relay{Name: "relay", Source: client, DB: x.rf, Sink: to}
		r.appendedAll(0, 1, 2)
		r.once(c)
		if err := relay.RunOnce(x.ctx); err != nil {
			t.Fatal(err)
		}
		old := x.page(client, 0, "", 1).Cursor
		r.appendedAll(0, 3, 6)
		x.publish(x.feed)
		x.retain(rowfeed.Retention{Count: 1})
		x.purged(5)
		x.wantProblem(s.URL+"/_feeds/fetch/events?shard=0&after="+string(old), http.StatusGone, rowfeed.EntriesExpired, "", `after=""`)
		err := c.RunOnce(x.ctx)
		if x.wantCode(err, rowfeed.EntriesExpired); !strings.Contains(err.Error(), "rowfeed consumer reset test --feed events") {
			t.Error(err)
		}
		x.wantCode(relay.RunOnce(x.ctx), rowfeed.EntriesExpired)
		if r.wantApplied("0: 1 2"); to.size() != 2 {
			t.Errorf("%d delivered", to.size())
		}
		relay.Restart = true
		if err := relay.RunOnce(x.ctx); err != nil || to.size() != 3 {
			t.Errorf("%d delivered, %v", to.size(), err)
		}
	})
}

// appendedAll appends rows with these ids to a shard.
func (r *taker) appendedAll(shard, first, last int) {
	r.Helper()
	for id := first; id <= last; id++ {
		r.appended(id, shard, r.now())
	}
}

// TestReadyElsewhere (H15): a server in a database of another identity is not ready, be it to publish
// or not, and says why; where that was decided it is.
func TestReadyElsewhere(t *testing.T) {
	for mode, each := range map[string]func(*testing.T, func(*events)){rowfeed.ModeBlocking: eachULID, rowfeed.ModeOutbox: eachOutbox} {
		t.Run(mode, func(t *testing.T) {
			each(t, func(x *events) {
				if x.family() == "sqlite" {
					return // nothing tells its databases apart
				}
				for _, publish := range []bool{false, true} {
					ctx, stop := context.WithCancel(x.ctx)
					address, ended := make(chan string, 1), make(chan error, 1)
					rf := x.tappedDB(testdb.Hooks{}, nil)
					go func() {
						ended <- server.Run(ctx, server.Config{DB: rf, Publish: publish, Listen: "127.0.0.1:0", VerifyEvery: 1, Ready: func(a string) { address <- a }})
					}()
					url := "http://" + <-address + "/readyz"
					ready := func(want int, words string) func() bool {
						return func() bool {
							resp, err := http.Get(url)
							if err != nil {
								x.Fatal(err)
							}
							defer resp.Body.Close()
							var body struct{ Reasons []string }
							if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
								x.Fatal(err)
							}
							return resp.StatusCode == want && strings.Contains(strings.Join(body.Reasons, "; "), words)
						}
					}
					x.eventually("it is ready", ready(http.StatusOK, ""))
					x.exec("UPDATE rowfeed_feeds SET database_identity = 'another'")
					x.eventually("it is not ready elsewhere", ready(http.StatusServiceUnavailable, "rowfeed feed bump events"))
					if _, err := x.feed.Admin().AdoptDatabase(x.ctx); err != nil {
						x.Fatal(err)
					}
					x.eventually("it is ready again", ready(http.StatusOK, ""))
					stop()
					if err := <-ended; err != nil {
						x.Error(err)
					}
					http.DefaultClient.CloseIdleConnections()
				}
			})
		})
	}
}
