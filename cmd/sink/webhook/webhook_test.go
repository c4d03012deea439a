package webhook

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/cmd/sink/sinktest"
	"github.com/rowfeed/rowfeed/feedtype"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

var secret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("a secret of thirty-two bytes ...")[:32])

// endpoint is a receiver that verifies the requests that it gets.
type endpoint struct {
	t      *testing.T
	verify *webhooks.Webhook

	mu       sync.Mutex
	log      []sinktest.Delivery
	requests []int // number of entries per request
	ids      []string
	refuse   map[int64]bool
	down     bool
	// answer, if set, handles the requests.
	answer func(w http.ResponseWriter, r *http.Request)
}

const maxBody = 4 << 20

func newEndpoint(t *testing.T) (*endpoint, *httptest.Server) {
	verify, err := webhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	e := &endpoint{t: t, verify: verify, refuse: map[int64]bool{}}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return e, server
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, r.Body) // read the rest, so that the answer arrives
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.answer != nil {
		e.answer(w, r)
		return
	}
	if err := e.verify.Verify(body, r.Header); err != nil && len(body) <= maxBody {
		e.t.Errorf("the signature does not hold: %v", err)
	}
	var message struct {
		Type string
		Data struct {
			Feed              string
			Generation, Epoch int64
			Entries           []struct {
				Position string
				Op       feedtype.Op
				Key      struct{ ID int64 }
				Row      struct{ V string }
			}
			Base64 []string
		}
	}
	switch {
	case e.down:
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case len(body) > maxBody:
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	if err := json.Unmarshal(body, &message); err != nil || message.Type != "rowfeed.entries" ||
		message.Data.Epoch != 7 || message.Data.Base64 == nil {
		e.t.Errorf("body %.200s: %v", body, err)
	}
	e.requests = append(e.requests, len(message.Data.Entries))
	e.ids = append(e.ids, r.Header.Get("webhook-id"))
	for _, entry := range message.Data.Entries {
		if e.refuse[entry.Key.ID] {
			http.Error(w, fmt.Sprintf("key %d is\nno good", entry.Key.ID), http.StatusUnprocessableEntity)
			return
		}
	}
	for _, entry := range message.Data.Entries {
		e.log = append(e.log,
			sinktest.Delivery{ID: fmt.Sprintf("%s:%d:0:%s", message.Data.Feed, message.Data.Generation, entry.Position),
				Key: entry.Key.ID, V: entry.Row.V, Op: entry.Op})
	}
	w.WriteHeader(http.StatusNoContent)
}

func open(t *testing.T, cfg Config) *Sink {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestWebhookSinkPassesSinkSuite (S2) runs the suite of all sinks.
func TestWebhookSinkPassesSinkSuite(t *testing.T) {
	for _, inFlight := range []int{1, 4} {
		sinktest.Run(t, func(t *testing.T) sinktest.Receiver {
			e, server := newEndpoint(t)
			with := func(change func()) { e.mu.Lock(); defer e.mu.Unlock(); change() }
			return sinktest.Receiver{
				Sink: open(t, Config{URL: server.URL, Secrets: []string{secret}, AllowPrivate: true, MaxEntries: 7,
					MaxInFlight: inFlight, Timeout: 5 * time.Minute}),
				Received: func() []sinktest.Delivery { e.mu.Lock(); defer e.mu.Unlock(); return e.log },
				Down: func() {
					with(func() { e.down = true })
				}, Up: func() { with(func() { e.down = false }) }, After: 2 * time.Minute,
				Refuse: func(id int64) { with(func() { e.refuse[id] = true }) },
				Large:  3 << 20, TooLarge: 6 << 20,
			}
		})
	}
}

// TestStatusOfWebhookDecidesAboutEntries (S2): which answers accept, which refuse the entries, and which are retried,
// and when.
func TestStatusOfWebhookDecidesAboutEntries(t *testing.T) {
	e, server := newEndpoint(t)
	s := open(t, Config{URL: server.URL, AllowPrivate: true})
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.now = func() time.Time { return now }
	for _, c := range []struct {
		status int
		after  string
		want   sink.State
		rest   time.Duration
	}{
		{200, "", sink.Accepted, 0}, {202, "", sink.Accepted, 0}, {204, "9", sink.Accepted, 0},
		{400, "", sink.Rejected, 0}, {409, "", sink.Rejected,
			0}, {413, "", sink.Rejected, 0}, {415, "", sink.Rejected, 0}, {422, "7", sink.Rejected, 0},
		{301, "", sink.Undecided, 0}, {307, "", sink.Undecided, 0},
		{401, "", sink.Undecided,
			0}, {403, "", sink.Undecided, 0}, {404, "", sink.Undecided, 0}, {405, "", sink.Undecided, 0},
		{408, "", sink.Undecided, 0}, {410, "", sink.Undecided, 0}, {425, "", sink.Undecided, 0},
		{
			429, "7", sink.Undecided, 7 * time.Second,
		}, {429, "", sink.Undecided, 0}, {429, "-3", sink.Undecided, 0}, {429, "soon", sink.Undecided, 0},
		{500, "", sink.Undecided, 0}, {502, "", sink.Undecided, 0}, {503, " 120 ", sink.Undecided, 2 * time.Minute},
		{503, now.Add(time.Minute).Format(http.TimeFormat), sink.Undecided, time.Minute},
		{503, now.Add(-time.Minute).Format(http.TimeFormat), sink.Undecided, 0},
		{503, "99999999999999", sink.Undecided, time.Hour},
	} {
		e.answer = func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				return // with 200: the client has followed a redirect
			}
			w.Header().Set("Retry-After", c.after)
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(c.status)
		}
		r := s.Deliver(t.Context(), []sink.Entry{sinktest.Upsert(t, 1, 1, "a")})[0]
		if r.State != c.want || r.After != c.rest {
			t.Errorf("%d, Retry-After %q: %s after %s (%v), want %s after %s",
				c.status, c.after, r.State, r.After, r.Err, c.want, c.rest)
		}
	}
}

// TestRequestsAreLimitedAndSigned (S2): requests are limited in size, are sent in the order of positions, have the same
// id when they are sent again, and have a signature per secret.
func TestRequestsAreLimitedAndSigned(t *testing.T) {
	e, server := newEndpoint(t)
	other := "whsec_" + base64.StdEncoding.EncodeToString([]byte("the next one"))
	s := open(t, Config{URL: strings.Replace(server.URL, "http://", "http://me:hunter2@", 1) + "/hunter3",
		Secrets: []string{other, secret}, AllowPrivate: true, MaxEntries: 4, MaxBytes: 1000})
	var batch []sink.Entry
	for id := range int64(10) {
		v := "x"
		if id == 9 {
			v = strings.Repeat("x", 2000) // larger than MaxBytes, so in a request of its own
		}
		batch = append(batch, sinktest.Upsert(t, id+1, id, v))
	}
	s.Deliver(t.Context(), batch)
	if fmt.Sprint(e.requests) != "[4 4 1 1]" {
		t.Errorf("requests of %v entries", e.requests)
	}
	for i, d := range e.log {
		if d.Key != int64(i) {
			t.Fatalf("not in order: %v", e.log)
		}
	}
	first := e.ids
	e.ids = nil
	s.Deliver(t.Context(), batch)
	if fmt.Sprint(first) != fmt.Sprint(e.ids) || first[0] == first[1] {
		t.Errorf("requests are named %v and then %v", first, e.ids)
	}
	e.answer = func(_ http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if signatures := strings.Fields(r.Header.Get("webhook-signature")); user != "me" || password != "hunter2" ||
			len(signatures) != 2 {
			t.Errorf("user %q, %d signatures", user, len(signatures))
		}
	}
	s.Deliver(t.Context(), batch[:1])
	server.Close()
	if r := s.Deliver(t.Context(), batch[:1])[0]; r.Err == nil || strings.Contains(r.Err.Error(), "hunter") {
		t.Errorf("a password is shown, or no error: %v", r.Err)
	}
}

// TestRequestedPauseAppliesToRestOfBatch: if the endpoint asks for a pause in the middle of a batch, nothing more is
// sent, and all remaining entries have that pause.
func TestRequestedPauseAppliesToRestOfBatch(t *testing.T) {
	e, server := newEndpoint(t)
	s := open(t, Config{URL: server.URL, AllowPrivate: true, MaxEntries: 2})
	requests := 0
	e.answer = func(w http.ResponseWriter, _ *http.Request) {
		if requests++; requests == 2 {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}
	var batch []sink.Entry
	for id := range int64(9) {
		batch = append(batch, sinktest.Upsert(t, id+1, id, "x"))
	}
	for i, r := range s.Deliver(t.Context(), batch) {
		if i < 2 && r.State != sink.Accepted || i >= 2 && (r.State != sink.Undecided || r.After != time.Minute) {
			t.Errorf("entry %d: %+v", i, r)
		}
	}
	if requests != 2 {
		t.Errorf("%d requests", requests)
	}
}

// TestUnansweredRequestIsGivenUp (S2): a request that gets no answer is given up, and Close does not wait for it.
func TestUnansweredRequestIsGivenUp(t *testing.T) {
	release, reached := make(chan struct{}), make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/patient" {
			reached <- struct{}{}
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(release)
	s := open(t, Config{URL: server.URL, AllowPrivate: true, Timeout: 50 * time.Millisecond})
	batch := []sink.Entry{sinktest.Upsert(t, 1, 1, "a")}
	if r := s.Deliver(t.Context(), batch)[0]; r.State != sink.Undecided || !errors.Is(r.Err, context.DeadlineExceeded) {
		t.Errorf("result: %+v", r)
	}
	s = open(t, Config{URL: server.URL + "/patient", AllowPrivate: true, Timeout: time.Hour})
	ended := make(chan sink.Result)
	go func() { ended <- s.Deliver(t.Context(), batch)[0] }()
	<-reached
	s.Close()
	if r := <-ended; r.State != sink.Undecided || !errors.Is(r.Err, errClosed) {
		t.Errorf("result: %+v", r)
	}
}

// TestPrivateAddressesAreRefused (S2): the address is checked when it is dialled, after each resolution of the name.
func TestPrivateAddressesAreRefused(t *testing.T) {
	e, server := newEndpoint(t)
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		s := open(t, Config{URL: "http://" + host + ":" + port, Secrets: []string{secret}})
		r := s.Deliver(t.Context(), []sink.Entry{sinktest.Upsert(t, 1, 1, "a")})[0]
		if r.State != sink.Undecided || !errors.Is(r.Err, ErrPrivate) {
			t.Errorf("%s: %+v", host, r)
		}
	}
	if len(e.requests) > 0 {
		t.Error("a request went through")
	}
	for address, public := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "172.32.0.1": true, "100.128.0.1": true, "10.1.2.3": false,
		"172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false, "0.1.2.3": false,
		"224.0.0.1": false, "255.255.255.255": false, "240.0.0.1": false, "198.18.0.1": false, "192.0.0.192": false,
		"fe80::1": false, "fe80::1%eth0": false, "fd00::1": false, "ff02::1": false, "::": false, "::1": false,
		"::7f00:1": false, "::ffff:10.0.0.1": false, "64:ff9b::a00:1": false, "2002:a00:1::": false,
		"2001:0:1::1": false, "fec0::1": false,
	} {
		if got := isPublic(netip.MustParseAddr(address)); got != public {
			t.Errorf("%s is public: %v", address, got)
		}
	}
}

// TestInvalidSettingsAreRefused: invalid settings are refused, and errors contain no secret.
func TestInvalidSettingsAreRefused(t *testing.T) {
	for _, cfg := range []Config{
		{},
		{URL: "ftp://hunter2.example/x"},
		{URL: "https://"},
		{URL: "http://hunter2@%zz/"},
		{URL: "https://example.com/#hunter2"},
		{URL: "https://example.com", Secrets: []string{"whsec_not/base64!hunter2"}},
		{URL: "https://example.com", Secrets: []string{""}},
		{URL: "https://example.com", Timeout: -1},
	} {
		_, err := New(cfg)
		if !errors.Is(err, feedtype.InvalidRequest) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
