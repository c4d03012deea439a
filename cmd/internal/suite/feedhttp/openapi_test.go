package feedhttp_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
)

// described compares requests and answers with the OpenAPI description that the handler serves.
type described struct {
	doc    *openapi3.T
	router routers.Router
	mu     sync.Mutex      // guards all fields, because the description is compiled while it is used
	seen   map[string]bool // path, status and media type
}

func newDescribed(t *testing.T) *described {
	t.Helper()
	w := httptest.NewRecorder()
	feedhttp.NewHandler(stubCatalog{}, nil).ServeHTTP(w, httptest.NewRequest("GET", "/_feeds/openapi.json", nil))
	doc, err := openapi3.NewLoader().LoadFromData(w.Body.Bytes())
	if err == nil {
		err = doc.Validate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return &described{doc: doc, router: router, seen: map[string]bool{}}
}

// recorded records an answer while it is sent.
type recorded struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (k *recorded) Unwrap() http.ResponseWriter { return k.ResponseWriter }
func (k *recorded) WriteHeader(status int)      { k.status = status; k.ResponseWriter.WriteHeader(status) }
func (k *recorded) Write(p []byte) (int, error) { k.body.Write(p); return k.ResponseWriter.Write(p) }

// check serves with h. It fails the test if an answer is not as described, or if a request that is not as described
// gets a successful answer.
func (d *described) check(t *testing.T, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k := &recorded{ResponseWriter: w}
		defer func() {
			if !strings.HasPrefix(r.URL.Path, "/_feeds/") && r.URL.Path != "/_feeds" || r.URL.Path == "/_feeds/" ||
				r.Method == http.MethodHead {
				return
			}
			d.mu.Lock() // answers are checked after they were sent, concurrently with the next request
			defer d.mu.Unlock()
			asGet := r.Clone(r.Context())
			asGet.Method = http.MethodGet // only GET is described
			route, path, err := d.router.FindRoute(asGet)
			if err != nil {
				if k.status != http.StatusNotFound {
					t.Errorf("%s: %d, and not described: %v", r.URL, k.status, err)
				}
				return
			}
			request := &openapi3filter.RequestValidationInput{Request: asGet, PathParams: path, Route: route,
				Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}}
			if k.status < 300 || k.status == http.StatusNotModified {
				if err := openapi3filter.ValidateRequest(r.Context(), request); err != nil {
					t.Errorf("%s was granted: %v", r.URL, err)
				}
			}
			d.answer(t, request, k)
		}()
		h.ServeHTTP(k, r)
	})
}

func (d *described) answer(t *testing.T, request *openapi3filter.RequestValidationInput, k *recorded) {
	mediaType := k.Header().Get("Content-Type")
	d.seen[strings.TrimSpace(request.Route.Path+" "+http.StatusText(k.status)+" "+mediaType)] = true
	body := k.body.Bytes()
	if k.Header().Get("Content-Encoding") != "" {
		body = []byte(`"compressed"`)
	}
	options := &openapi3filter.Options{IncludeResponseStatus: true,
		ExcludeResponseBody: !strings.HasSuffix(mediaType, "json") || mediaType == "application/x-ndjson" ||
			k.Header().Get("Content-Encoding") != ""}
	response := &openapi3filter.ResponseValidationInput{RequestValidationInput: request, Status: k.status,
		Header: k.Header(), Options: options}
	response.SetBodyBytes(body)
	if err := openapi3filter.ValidateResponse(request.Request.Context(), response); err != nil {
		t.Errorf("%s: %d %s: %v", request.Request.URL, k.status, body, err)
	}
	if k.status == http.StatusOK && mediaType == "application/x-ndjson" && k.Header().Get("Content-Encoding") == "" {
		lines := strings.Split(strings.TrimSpace(string(body)), "\n")
		for i, line := range lines {
			schema := "Entry"
			if i == len(lines)-1 {
				schema = "PageEnd"
			}
			var value any
			err := json.Unmarshal([]byte(line), &value)
			if err == nil {
				err = d.doc.Components.Schemas[schema].Value.VisitJSON(value)
			}
			if err != nil {
				t.Errorf("%s: %s: %v", request.Request.URL, line, err)
			}
		}
	}
	for name := range k.Header() {
		if strings.HasPrefix(name, "Rowfeed-") &&
			request.Route.Operation.Responses.Status(k.status).Value.Headers[name] == nil && k.status == http.StatusOK {
			t.Errorf("%s: the header %s is not described", request.Request.URL, name)
		}
	}
}

// TestAnswersMatchOpenAPI (O5): requests and answers of every path, format and status are as described.
func TestAnswersMatchOpenAPI(t *testing.T) {
	d := newDescribed(t)
	x := kvFixture(t)
	x.exec(t, `CREATE TABLE ev (s BIGINT NOT NULL, id INTEGER NOT NULL, v TEXT, PRIMARY KEY (s, id))`)
	if _, err := x.db.AddFeed(t.Context(),
		rowfeed.FeedSpec{Name: "ev", Table: "ev", Mode: rowfeed.ModeOutbox, ShardColumn: "s"}, nil); err != nil {
		t.Fatal(err)
	}
	s := serve(t, d.check(t, feedhttp.NewHandler(feedhttp.Of(x.db), &feedhttp.Config{NoPublish: true})))
	for _, c := range badRequests {
		header := []string{}
		if c.accept != "" {
			header = []string{"Accept", c.accept}
		}
		ask(t, s, c.method, c.path, header...)
	}
	for _, path := range []string{"/_feeds", "/_feeds/kv", "/_feeds/ev", "/_feeds/openapi.json", "/_feeds/fetch/kv",
		"/_feeds/shards/ev", "/_feeds/http-feeds/kv",
		"/_feeds/http-feeds/kv?lastEventId=kv:1:0:2&timeout=1&limit=1&shard=0",
		"/_feeds/fetch/kv?after=at:2020-01-01T00:00:00Z&limit=1&shard=0&shard_count=1&wait=1ms&consistent=false",
		"/_feeds/fetch/kv?after=now", "/_feeds/shards/ev?since=x&wait=1ms"} {
		got := ask(t, s, "GET", path)
		if again := ask(t, s, "GET", path, "If-None-Match", got.header.Get("ETag")); got.status != 200 ||
			again.status != 304 {
			t.Errorf("%s: %d, then %d: %s", path, got.status, again.status, got.body)
		}
	}
	for _, accept := range []string{"application/x-ndjson", batch} {
		ask(t, s, "GET", "/_feeds/fetch/kv?after=2", "Accept", accept)
	}
	stream := listen(t, s, "/_feeds/stream/kv?after=2&shard=0&shard_count=1", "Last-Event-ID", "1")
	stream.want(t, retry)
	stream.end()
	x.exec(t, `DROP TABLE ev`)
	if got := ask(t, s, "GET", "/_feeds"); !strings.Contains(got.body, `"problem"`) {
		t.Errorf("the list hides a feed that is broken: %s", got.body)
	}
	for code, status := range map[rowfeed.Code]int{rowfeed.Unauthorized: 401, rowfeed.Forbidden: 403,
		feedhttp.TooManyRequests: 429, rowfeed.TombstonesExpired: 410, rowfeed.Failed: 500, rowfeed.Unavailable: 503} {
		failed := serve(t, d.check(t, handlerOf(failing(&rowfeed.Error{Code: code, Cause: "it failed"}))))
		for _, path := range []string{"/_feeds/kv", "/_feeds/fetch/kv", "/_feeds/stream/kv", "/_feeds/http-feeds/kv"} {
			if status == http.StatusGone && path == "/_feeds/kv" {
				continue // this path has no cursor
			}
			if got := ask(t, failed, "GET", path); got.status != status {
				t.Errorf("%s: %d", path, got.status)
			}
		}
		failed.Close()
	}
	s.Close() // Close waits until the last answer has been checked
	for _, path := range []string{"/_feeds", "/_feeds/{feed}", "/_feeds/fetch/{feed}", "/_feeds/shards/{feed}",
		"/_feeds/http-feeds/{feed}", "/_feeds/openapi.json"} {
		for _, status := range []string{"OK", "Not Modified", "Bad Request", "Not Acceptable", "Method Not Allowed"} {
			found := false
			for seen := range d.seen {
				found = found || strings.HasPrefix(seen, path+" "+status)
			}
			if !found {
				t.Errorf("%s was never answered with %s", path, status)
			}
		}
	}
}
