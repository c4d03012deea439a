package feedhttp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Fuzz tests of what the handler parses of requests, and the client of answers.

func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"", "after=1&limit=5", "limit=10001", "limit=%31", "shard=0&shard_count=4", "shard=-5",
		"wait=30s&consistent=true", "wait=1e9h", "after=1&after=2",
		"a;b", "%", "after=%00", "after='%20OR%201=1--", "limit=1%3bDROP%20TABLE%20kv", "shard=9223372036854775808",
		"AFTER=1",
		strings.Repeat("x", maxQuery+1),
	} {
		f.Add(seed, "")
		f.Add("lastEventId="+seed, seed)
	}
	f.Fuzz(func(t *testing.T, query, lastID string) {
		refused := func(err error) bool {
			if err != nil {
				if p := ProblemOf(err, "kv"); p.Status < 400 || p.Status >= 500 {
					t.Errorf("%q: %+v", query, p)
				}
			}
			return err != nil
		}
		for _, r := range NewHandler(nil, nil).routes {
			values, err := parseQuery(query, r.parameters...)
			if refused(err) {
				continue
			}
			if req, err := parseRequest(values); !refused(err) &&
				(req.Limit < 1 || req.Limit > feedtype.MaxLimit || req.Wait < 0 || req.Wait > MaxWait) {
				t.Errorf("%q: %+v", query, req)
			}
			_, err = streamRequest(values, http.Header{"Last-Event-Id": {lastID}})
			refused(err)
			if req, err := httpFeedsRequest(values, "kv"); !refused(err) &&
				(req.Limit < 1 || req.Limit > feedtype.MaxLimit || req.Wait < 0 || req.Wait > MaxWait) {
				t.Errorf("%q: %+v", query, req)
			}
		}
	})
}

func FuzzAccept(f *testing.F) {
	for _, seed := range []string{
		"", "*/*", "application/json", "application/x-ndjson;q=0.5, application/json;q=0.4", "application/*;q=NaN", ";",
		",,,", "a/b;q=\"1", "gzip;q=1, identity;q=2",
		"text/event-stream", "APPLICATION/JSON; charset=\"", "x-gzip", strings.Repeat("a/b,", 1000),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		offers := []string{jsonMediaType, ndjsonMediaType}
		if offer, ok := negotiate([]string{header}, offers...); ok && offer != offers[0] && offer != offers[1] {
			t.Errorf("%q: %q was not offered", header, offer)
		}
		_ = wantedCoding([]string{header})
	})
}

// answering is a server that returns the same answer to every request.
type answering func() *http.Response

func (a answering) RoundTrip(*http.Request) (*http.Response, error) { return a(), nil }

// FuzzClient: for every answer of a server, a client returns a page or an error with a code.
func FuzzClient(f *testing.F) {
	info := `{"name":"kv","generation":1,"head":"2","key":[{"name":"id","type":"bigint","kind":"integer"}],` +
		`"columns":[{"name":"id","type":"bigint","kind":"integer"},{"name":"v","type":"text","kind":"text"}],` +
		`"base64":[],"data_shards":1}`
	page := `{"feed":"kv","entries":[{"position":"1","shard":0,"op":"upsert","key":{"id":1},` +
		`"row":{"id":1,"v":"x"}}],"cursor":"1","more":false,"base64":[]}`
	f.Add(200, jsonMediaType, "", "", []byte(page), []byte(info))
	f.Add(200, jsonMediaType, "", "", []byte(`{"entries":[null,1,"x"],"cursor":"x","more":true}`),
		[]byte(`{"name":"kv","columns":[]}`))
	f.Add(200, "application/json; charset=\"", "0", "tag", []byte(`{"entries":[{}],"cursor":"9:9","more":false}`),
		[]byte(`{"name":"kv","columns":[{"name":"","kind":"nonsense"}],"key":null}`))
	f.Add(503, problemMediaType, "99999999999999999999", "",
		[]byte(`{"type":"urn:rowfeed:problem:locked","detail":"busy"}`), []byte(info))
	f.Add(429, problemMediaType, "Fri, 31 Dec 9999 23:59:59 GMT", "", []byte(`{"type":"urn:rowfeed:problem:"}`),
		[]byte(`null`))
	f.Add(502, "text/html", "-1", "", []byte(`<p>`), []byte(`[]`))
	f.Fuzz(func(t *testing.T, status int, mediaType, retryAfter, tag string, page, info []byte) {
		if status < 200 || status > 599 {
			return // not a valid status
		}
		n := 0
		c := &Client{URL: "http://127.0.0.1", Feed: "kv", MaxBytes: 1 << 16,
			HTTP: &http.Client{Transport: answering(func() *http.Response {
				body := page
				if n++; n%2 == 0 {
					body = info
				}
				return &http.Response{StatusCode: status,
					Header: http.Header{"Content-Type": {mediaType}, "Retry-After": {retryAfter}, columnsHeader: {tag}},
					Body:   io.NopCloser(bytes.NewReader(body))}
			})}}
		p, err := c.Fetch(t.Context(), feedtype.Request{Limit: 1})
		var known *feedtype.Error
		if err != nil && !errors.As(err, &known) {
			t.Errorf("an error without a code: %v", err)
		}
		if err == nil {
			_ = p.Cursor.Generation()
			for _, e := range p.Entries {
				_ = e.AppendJSON(nil)
			}
		}
		if _, err := c.Info(t.Context()); err != nil && !errors.As(err, &known) {
			t.Errorf("an error without a code: %v", err)
		}
	})
}

// FuzzEvents: no text in a row ends its event, or begins another one.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{"", "x", "a\n\nid: 99\ndata: {}\n\n", "\r\r", "\u2028", "\xff\n", "\x00"} {
		f.Add(seed, []byte(`{"a":1}`))
	}
	f.Add("", []byte("{\n\r\n\"a\":\r1}\n"))
	info := &feedtype.Info{Key: []feedtype.Column{{Name: "id", Kind: "text"}},
		Columns: []feedtype.Column{{Name: "id", Kind: "text"}, {Name: "doc", Kind: "json"}}}
	f.Fuzz(func(t *testing.T, text string, doc []byte) {
		quoted, err := marshal(text)
		if err != nil {
			return
		}
		wire := append(append(append(append([]byte(`{"position":"7","shard":0,"op":"upsert","key":{"id":`), quoted...),
			`},"row":{"id":`...), quoted...), `,"doc":`...)
		e, ok, err := feedtype.ParseEntry(append(append(wire, doc...), "}}"...), 1, info)
		if err != nil || !ok {
			return // not a valid document
		}
		data, err := appendEvents(nil, feedtype.Page{Entries: []feedtype.Entry{e}, Cursor: "7"}, "")
		if err != nil {
			t.Fatal(err)
		}
		var ids, blanks int
		for lines := bufio.NewScanner(bytes.NewReader(bytes.ReplaceAll(data, []byte("\r"),
			[]byte("\n")))); lines.Scan(); {
			line := lines.Text()
			switch {
			case strings.HasPrefix(line, "id: "):
				if ids++; line != "id: 7" {
					t.Errorf("%q", line)
				}
			case line == "":
				blanks++
			case !strings.HasPrefix(line, "data: "):
				t.Errorf("a line of its own: %q", line)
			}
		}
		if ids != 1 || blanks != 1 || !bytes.HasSuffix(data, []byte("\n\n")) {
			t.Errorf("%d ids and %d ends: %q", ids, blanks, data)
		}
	})
}
