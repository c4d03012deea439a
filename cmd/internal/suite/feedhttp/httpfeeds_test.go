package feedhttp_test

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/terms"
)

// followHTTPFeeds reads a feed as clients of http-feeds do: it stores only the last event's id.
func followHTTPFeeds(t *testing.T, x fixture, last string, query string) (all []event.Event) {
	t.Helper()
	for range 1000 {
		events := cloudEvents(t, ask(t, x.server, "GET",
			"/_feeds/http-feeds/kv?lastEventId="+url.QueryEscape(last)+query))
		if len(events) == 0 {
			return all
		}
		all = append(all, events...)
		last = events[len(events)-1].ID()
	}
	t.Fatal("it has no end")
	return nil
}

// ids are the ids of events, steady.
func ids(events []event.Event) (all []string) {
	for _, e := range events {
		all = append(all, terms.Fix(e.ID()))
	}
	return all
}

// TestHTTPFeedsReadsAllRowsOnce: a client of http-feeds gets all rows once from the beginning, with pages of any
// size. It gets deletes only of rows that it may have seen. It can continue after any event.
func TestHTTPFeedsReadsAllRowsOnce(t *testing.T) {
	x := kvFixture(t) // with a tombstone at 3
	const want = "[kv:1:0:1@4.9k3f2c7adq kv:1:0:4@.9k3f2c7adq]"
	for _, limit := range []int{1, 2, 100} {
		for _, begin := range []string{"", "null"} {
			if got := fmt.Sprint(ids(followHTTPFeeds(t, x, begin, fmt.Sprintf("&limit=%d", limit)))); got != want {
				t.Errorf("from %q, %d at a time: %s", begin, limit, got)
			}
		}
	}
	if got := cloudEvents(t, ask(t, x.server, "GET", "/_feeds/http-feeds/kv")); len(got) != 2 ||
		string(got[0].Data()) != `{"id":1,"ns":"","k":"fred","v":"jim","b":null}` {
		t.Errorf("%v", got)
	}
	got := followHTTPFeeds(t, x, "kv:1:0:2", "")
	if fmt.Sprint(ids(got)) != "[kv:1:0:3@~4.9k3f2c7adq kv:1:0:4@.9k3f2c7adq]" ||
		got[0].Extensions()["method"] != "DELETE" || got[0].Data() != nil {
		t.Errorf("behind an event: %v", got)
	}
	// Deletes that the client does not need have been purged: it can continue.
	x.exec(t, `UPDATE rowfeed_feeds SET tombstones_below = 3`)
	if got := fmt.Sprint(ids(followHTTPFeeds(t, x, "kv:1:0:1@4", ""))); got != "[kv:1:0:4@.9k3f2c7adq]" {
		t.Errorf("behind the first of a beginning: %s", got)
	}
	checkProblem(t, ask(t, x.server, "GET", "/_feeds/http-feeds/kv?lastEventId=kv:1:0:1"),
		problemOf("tombstones-expired", 410))
}

// TestHTTPFeedsLastIDIsThePagesCursor: the last event of a page may be below the page's cursor, which is then in its
// id.
func TestHTTPFeedsLastIDIsThePagesCursor(t *testing.T) {
	x := kvFixture(t)
	x.exec(t, `DELETE FROM kv WHERE id = 3`)
	f, err := x.db.Feed(t.Context(), "kv")
	if err != nil {
		t.Fatal(err)
	}
	x.publish(t, f)
	if got := fmt.Sprint(ids(followHTTPFeeds(t, x, "", ""))); got != "[kv:1:0:1@5.9k3f2c7adq]" {
		t.Errorf("%s", got)
	}
}

// TestHTTPFeedsRefusesLostHistory: a client of http-feeds that has read what the database has lost is refused, also if
// the positions were given again, and if the client has not reached them yet. A client that has read only what is left
// goes on.
func TestHTTPFeedsRefusesLostHistory(t *testing.T) {
	x := kvFixture(t)
	f, err := x.db.Feed(t.Context(), "kv")
	if err != nil {
		t.Fatal(err)
	}
	before := followHTTPFeeds(t, x, "", "")
	backup := filepath.Join(t.TempDir(), "backup.db")
	x.exec(t, `VACUUM INTO '`+backup+`'`)
	x.exec(t, `UPDATE kv SET v = 'lost' WHERE id = 1`)
	x.publish(t, f)
	lagging := cloudEvents(t, ask(t, x.server, "GET", "/_feeds/http-feeds/kv?limit=1&lastEventId=kv:1:0:3"))
	after := followHTTPFeeds(t, x, lagging[0].ID(), "")
	if got := fmt.Sprint(ids(lagging), ids(after)); got != "[kv:1:0:4@~5.9k3f2c7adq] [kv:1:0:5@.9k3f2c7adq]" {
		t.Fatal(got)
	}

	// In the backup another row gets position 5.
	pool, dialect, err := open.Open(t.Context(), "sqlite:"+backup, open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	db, err := rowfeed.Open(t.Context(), pool, dialect, nil)
	if err != nil {
		t.Fatal(err)
	}
	x = fixture{sql: pool, db: db, server: serve(t, feedhttp.NewHandler(feedhttp.Of(db), &noHeartbeat))}
	if f, err = x.db.Feed(t.Context(), "kv"); err != nil {
		t.Fatal(err)
	}
	x.exec(t, `UPDATE kv SET v = 'again' WHERE id = 3`)
	x.publish(t, f)
	for _, id := range []string{lagging[0].ID(), after[0].ID()} {
		checkProblem(t, ask(t, x.server, "GET", "/_feeds/http-feeds/kv?lastEventId="+id),
			problemOf("history-lost", 409))
	}
	if got := fmt.Sprint(ids(followHTTPFeeds(t, x, before[1].ID(), ""))); got != "[kv:1:0:5@.9k3f2c7adq]" {
		t.Errorf("behind what is left: %s", got)
	}
}

func TestHTTPFeedsTimeoutIsInMilliseconds(t *testing.T) {
	x := newPollFixture(t, nil, nil)
	got := later(t, x.server, "/_feeds/http-feeds/kv?lastEventId=kv:1:0:1&timeout=60000")
	x.await(t, 2)
	x.exec(t, `INSERT INTO kv VALUES (2, 'b')`)
	x.publish(t, x.feed)
	if all := cloudEvents(t, <-got); len(all) != 1 || ids(all)[0] != "kv:1:0:2@.9k3f2c7adq" {
		t.Errorf("%v", all)
	}
	if all := cloudEvents(t, ask(t, x.server, "GET",
		"/_feeds/http-feeds/kv?lastEventId=kv:1:0:2&timeout=1")); len(all) != 0 {
		t.Errorf("%v", all)
	}
}

// TestHTTPFeedsSkipsEmptyPages: an empty array means the end of the feed. A page without visible entries that is not
// the last one is skipped.
func TestHTTPFeedsSkipsEmptyPages(t *testing.T) {
	last := pageOf(t, 1, 100)
	last.Entries[0].Position, last.Cursor = "9", "9"
	pages := map[rowfeed.Cursor]rowfeed.Page{"": {Cursor: "7@9", More: true}, "7@9": {Cursor: "8@9", More: true},
		"8@9": last}
	s := serve(t, handlerOf(stubSource{fetch: pagesOf(pages)}))
	if all := cloudEvents(t, ask(t, s, "GET", "/_feeds/http-feeds/kv")); len(all) != 1 || all[0].ID() != "kv:1:0:9" {
		t.Errorf("%v", all)
	}
	stuck := map[rowfeed.Cursor]rowfeed.Page{"": {Cursor: "", More: true}}
	if all := cloudEvents(t, ask(t, serve(t, handlerOf(stubSource{fetch: pagesOf(stuck)})), "GET",
		"/_feeds/http-feeds/kv")); len(all) != 0 {
		t.Errorf("%v", all)
	}
}

// TestHTTPFeedsRefusesIDsOfAnotherShard: ULIDs of different shards cannot be compared. With the id of another shard's
// event, entries would be missed.
func TestHTTPFeedsRefusesIDsOfAnotherShard(t *testing.T) {
	page := pageOf(t, 1, 100)
	page.Entries[0].Position, page.Cursor = "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	s := serve(t, handlerOf(stubSource{fetch: func(context.Context, rowfeed.Request) (rowfeed.Page,
		error) {
		return page, nil
	}}))
	const path = "/_feeds/http-feeds/kv?lastEventId=kv:1:-7:01ARZ3NDEKTSV4RRFFQ69G5FAS"
	for _, shard := range []string{"&shard=7", "&shard=0", "&shard=0&shard_count=2"} {
		checkProblem(t, ask(t, s, "GET", path+shard), invalidParameter("lastEventId", "lastEventId"))
	}
	for _, own := range []string{"", "&shard=-7"} {
		if all := cloudEvents(t, ask(t, s, "GET", path+own)); len(all) != 1 {
			t.Errorf("%q: %v", own, all)
		}
	}
}

// TestHTTPFeedsProblemsNameSentParameters: a problem names the parameter as the
// http-feeds client has sent it, not as rowfeed's own protocol calls it.
func TestHTTPFeedsProblemsNameSentParameters(t *testing.T) {
	x := kvFixture(t)
	for query, want := range map[string]string{
		"lastEventId=17": "lastEventId", "lastEventId=other:1:0:1": "lastEventId", "lastEventId=kv:1:0": "lastEventId",
		"lastEventId=kv:1:0:x": "lastEventId", "lastEventId=kv::0:1": "lastEventId",
		"lastEventId=kv:1:x:1": "lastEventId", "lastEventId=kv:1::1": "lastEventId",
		"lastEventId=kv:1:0:now": "lastEventId", "lastEventId=kv:at:0:1": "lastEventId", "timeout=5s": "timeout",
		"timeout=-1": "timeout", "timeout=60001": "timeout", "timeout=": "timeout", "timeout=1.5": "timeout",
		"after=1": "after", "wait=1s": "wait", "limit=0": "limit", "shard=9": "shard",
		"lastEventId=&lastEventId=": "lastEventId",
	} {
		got := ask(t, x.server, "GET", "/_feeds/http-feeds/kv?"+query)
		checkProblem(t, got, invalidParameter(want, want))
	}
	checkProblem(t, ask(t, x.server, "GET", "/_feeds/http-feeds/kv?lastEventId=kv:1:0:9"),
		problemOf("cursor-ahead", 409))
	checkProblem(t, ask(t, x.server, "GET", "/_feeds/http-feeds/kv?lastEventId=kv:8:0:1"),
		problemOf("generation-changed", 409))
	checkProblem(t, ask(t, x.server, "GET", "/_feeds/http-feeds/none"), problemOf("unknown-feed", 404))
	checkProblem(t, ask(t, x.server, "GET", "/_feeds/http-feeds/kv", "Accept", "application/json"),
		problemOf("not-acceptable", 406))
}
