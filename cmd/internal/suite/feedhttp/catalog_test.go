package feedhttp_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/terms"
)

// tenant is a catalog for one user: under every name it has the same feed, reduced to the user's rows.
type tenant struct {
	*rowfeed.Feed
	owns func(id int64) bool
}

func (tenant) Names(context.Context) ([]string, error) { return nil, nil }

func (c tenant) Source(context.Context, string) (rowfeed.Source, error) { return c, nil }

func (c tenant) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	page, err := c.Feed.Fetch(ctx, req)
	page.Entries = slices.DeleteFunc(page.Entries,
		func(e rowfeed.Entry) bool { return !c.owns(e.Key.Value(0).(int64)) })
	return page, err
}

// TestSharedPageRespectsViews (M69): what is encoded once for all requests that waited for a page is not sent to
// clients that see other rows of it, or that read it under another name.
func TestSharedPageRespectsViews(t *testing.T) {
	x := newPollFixture(t, nil, nil)
	entry := func(id int) string {
		return fmt.Sprintf(`{"position":"%d","shard":0,"op":"upsert","key":{"id":%d},"row":{"id":%d,"v":"b"}}`, id, id,
			id)
	}
	type asked struct {
		want   string
		result chan answer
	}
	var all []asked
	for _, c := range []struct {
		owns func(int64) bool
		want string
	}{
		{func(int64) bool { return true }, entry(2) + "," + entry(3)},
		{func(id int64) bool { return id%2 == 1 }, entry(3)},
		{func(id int64) bool { return id%2 == 0 }, entry(2)},
	} {
		h := feedhttp.NewHandler(tenant{x.feed, c.owns}, nil)
		s := httptest.NewServer(h)
		defer s.Close()
		defer h.Close()
		for range 5 {
			for _, name := range []string{"kv", "orders"} {
				want := fmt.Sprintf(`{"feed":"%s","entries":[%s],"cursor":"3.9k3f2c7adq","more":false,"base64":[]}`,
					name, c.want)
				a := asked{want + "\n", make(chan answer, 1)}
				go func() { a.result <- ask(t, s, "GET", "/_feeds/fetch/"+name+"?after=1&wait=1m") }()
				all = append(all, a)
			}
		}
	}
	x.await(t, 2)
	x.exec(t, `INSERT INTO kv VALUES (2, 'b'), (3, 'b')`)
	x.publish(t, x.feed)
	for _, a := range all {
		if got := <-a.result; terms.Fix(got.body) != a.want {
			t.Errorf("answered %swant     %s", got.body, a.want)
		}
	}
}
