package feedhttp_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/google/go-cmp/cmp"

	"github.com/rowfeed/rowfeed/internal/test/terms"
)

const batch = "application/cloudevents-batch+json"

// cloudEvents reads a batch with the CloudEvents SDK, which checks each event.
func cloudEvents(t *testing.T, a answer) []event.Event {
	t.Helper()
	if a.status != 200 || a.header.Get("Content-Type") != batch {
		t.Fatalf("%d %v %s", a.status, a.header, a.body)
	}
	all, err := cehttp.NewEventsFromHTTPResponse(&http.Response{Header: a.header,
		Body: io.NopCloser(strings.NewReader(a.body))})
	if err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	for _, e := range all {
		if err := e.Validate(); err != nil {
			t.Errorf("%v: %v", err, e)
		}
	}
	return all
}

// TestCloudEventsBatchIsValid: the CloudEvents SDK accepts a page as a batch of events. The events have all values of
// the rows, and idempotency keys as ids. The header has the cursor.
func TestCloudEventsBatchIsValid(t *testing.T) {
	x := kvFixture(t)
	x.exec(t, `INSERT INTO kv VALUES (9223372036854775807, 'ü', '"', NULL, NULL)`)
	f, err := x.db.Feed(t.Context(), "kv")
	if err != nil {
		t.Fatal(err)
	}
	x.publish(t, f)
	got := ask(t, x.server, "GET", "/_feeds/fetch/kv?after=2", "Accept", batch)
	want := `[{"specversion":"1.0","id":"kv:1:0:3","source":"/_feeds/kv","type":"io.github.rowfeed.delete",` +
		`"subject":"{\"id\":2}","method":"DELETE"},` +
		`{"specversion":"1.0","id":"kv:1:0:4","source":"/_feeds/kv","type":"io.github.rowfeed.upsert",` +
		`"subject":"{\"id\":3}","datacontenttype":"application/json","data":{"id":3,"ns":"n\"s","k":"<i>",` +
		`"v":"line\nbreak","b":"AP8="}},` +
		`{"specversion":"1.0","id":"kv:1:0:5","source":"/_feeds/kv","type":"io.github.rowfeed.upsert",` +
		`"subject":"{\"id\":9223372036854775807}","datacontenttype":"application/json",` +
		`"data":{"id":9223372036854775807,"ns":"ü","k":"\"","v":null,"b":null}}]` + "\n"
	if diff := cmp.Diff(want, terms.Fix(got.body)); diff != "" ||
		terms.Fix(got.header.Get("Rowfeed-Cursor")) != "5.9k3f2c7adq" || got.header.Get("Rowfeed-More") != "false" ||
		got.header.Get("Rowfeed-Columns") == "" {
		t.Errorf("%v (-want +got):\n%s", got.header, diff)
	}
	all := cloudEvents(t, got)
	entries := ask(t, x.server, "GET", "/_feeds/fetch/kv?after=2", "Accept", "application/x-ndjson")
	for i, line := range strings.Split(strings.TrimSpace(entries.body), "\n")[:3] {
		var entry struct {
			Position string
			Op       string
			Key, Row json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if e := all[i]; terms.Fix(e.ID()) != "kv:1:0:"+entry.Position || e.Type() != "io.github.rowfeed."+entry.Op ||
			e.Subject() != string(entry.Key) || string(e.Data()) != string(entry.Row) ||
			(e.Extensions()["method"] == "DELETE") != (entry.Op == "delete") {
			t.Errorf("%s became %v", line, e)
		}
	}
	first := ask(t, x.server, "GET", "/_feeds/fetch/kv?limit=1", "Accept", batch)
	if all := cloudEvents(t, first); len(all) != 1 ||
		terms.Fix(first.header.Get("Rowfeed-Cursor")) != "1@5.9k3f2c7adq" ||
		first.header.Get("Rowfeed-More") != "true" {
		t.Errorf("%d events, %v", len(all), first.header)
	}
	if end := ask(t, x.server, "GET", "/_feeds/fetch/kv?after=now", "Accept", batch); end.body != "[]\n" ||
		terms.Fix(end.header.Get("Rowfeed-Cursor")) != "5.9k3f2c7adq" {
		t.Errorf("at the end: %q %v", end.body, end.header)
	}
}

// TestLargeCloudEventsBatchIsWhole: a large batch is sent while it is made, and has all its events.
func TestLargeCloudEventsBatchIsWhole(t *testing.T) {
	s := serving(t, pageOf(t, 3000, 200), false, nil, make(chan struct{}, 10))
	for _, coding := range []string{"identity", "gzip", "zstd"} {
		got := ask(t, s, "GET", "/_feeds/fetch/kv", "Accept", batch, "Accept-Encoding", coding)
		if coding != "identity" {
			got.body = unzipped(t, got, coding)
		}
		if all := cloudEvents(t, got); len(all) != 3000 || all[2999].ID() != "kv:1:0:3000" ||
			got.header.Get("Rowfeed-Cursor") != "3000" {
			t.Errorf("%s: %d events, %v", coding, len(all), got.header)
		}
	}
}

// TestCloudEventsOfULIDsHaveTimes: an event has a time if its position has one.
func TestCloudEventsOfULIDsHaveTimes(t *testing.T) {
	page := pageOf(t, 1, 100)
	page.Entries[0].Position, page.Entries[0].Shard, page.Entries[0].Generation = "01ARZ3NDEKTSV4RRFFQ69G5FAV", -7,
		1700000000
	got := ask(t, serving(t, page, false, nil, make(chan struct{}, 1)), "GET", "/_feeds/fetch/kv", "Accept", batch)
	if all := cloudEvents(t, got); all[0].ID() != "kv:1700000000:-7:01ARZ3NDEKTSV4RRFFQ69G5FAV" ||
		all[0].Time().Format("2006-01-02T15:04:05.999Z") != "2016-07-30T23:54:10.259Z" {
		t.Errorf("%v", all[0])
	}
}
