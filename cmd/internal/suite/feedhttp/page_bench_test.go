package feedhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/feedtype"
)

// pageOf returns a page of n rows of about the given size.
func pageOf(t testing.TB, n, bytes int) rowfeed.Page {
	t.Helper()
	key := []rowfeed.Column{{Name: "id", Type: "bigint", Kind: feedtype.Integer}}
	info := &rowfeed.Info{Key: key,
		Columns: append(key[:1:1], rowfeed.Column{Name: "customer", Type: "text", Kind: feedtype.Text},
			rowfeed.Column{Name: "payload", Type: "text", Kind: feedtype.Text},
			rowfeed.Column{Name: "paid", Type: "boolean", Kind: feedtype.Boolean})}
	page := rowfeed.Page{Cursor: rowfeed.Cursor(fmt.Sprint(n)), Key: info.Key, Columns: info.Columns}
	words := strings.Repeat("an order of thirty-one bytes; ", bytes/30+1)
	for i := range n {
		text := fmt.Sprintf(`{"position":"%d","shard":0,"op":"upsert","key":{"id":%d},"row":{"id":%d,`+
			`"customer":"customer %d","payload":"%s","paid":true}}`,
			i+1, i+1, i+1, i*7919%n, words[i%30:i%30+bytes-40])
		e, ok, err := feedtype.ParseEntry([]byte(text), 1, info)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		page.Entries = append(page.Entries, e)
	}
	return page
}

// discard is a client that reads everything.
type discard struct {
	header http.Header
	n      int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(p []byte) (int, error) { d.n += len(p); return len(p), nil }
func (d *discard) Flush()                      {}

func BenchmarkFetch(b *testing.B) {
	for _, n := range []int{1, 1000, 10_000} {
		page := pageOf(b, n, 200)
		h := feedhttp.NewHandler(stubCatalog{stubSource{fetch: func(context.Context, rowfeed.Request) (rowfeed.Page,
			error) {
			return page, nil
		}}}, nil)
		for _, how := range []string{"json", "x-ndjson", "json gzip", "json zstd"} {
			format, zip, _ := strings.Cut(how, " ")
			b.Run(fmt.Sprintf("%s/rows=%d", how, n), func(b *testing.B) {
				b.ReportAllocs()
				r := httptest.NewRequest("GET", "/_feeds/fetch/kv", nil)
				r.Header.Set("Accept", "application/"+format)
				r.Header.Set("Accept-Encoding", zip)
				sent := 0
				for b.Loop() {
					d := &discard{header: http.Header{}}
					h.ServeHTTP(d, r)
					sent = d.n
				}
				b.ReportMetric(float64(sent), "bytes")
			})
		}
	}
}
