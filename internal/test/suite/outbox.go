package suite

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// EachOutbox runs f on every engine, with a feed of the table events in mode outbox.
func EachOutbox(t *testing.T, f func(x *Events)) {
	t.Helper()
	Each(t, func(x *Env) {
		x.Exec("CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, data VARCHAR(100))")
		f(&Events{x, x.Add(rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox})})
	})
}

// Append inserts a row and its record.
func (x *Events) Append(tx *sql.Tx, id, shard int, hint time.Time) error {
	_, err := tx.ExecContext(x.Ctx, fmt.Sprintf("INSERT INTO events VALUES (%d, 'd')", id))
	if err == nil {
		err = x.Feed.AppendOutbox(x.Ctx, rowfeed.InTx(tx), rowfeed.OutboxRecord{Shard: shard, Hint: hint, Key: rowfeed.Key{int64(id)}})
	}
	return err
}

func (x *Events) Appended(id, shard int, hint time.Time) {
	x.Helper()
	tx := x.Begin(sql.LevelReadCommitted)
	if err := x.Append(tx, id, shard, hint); err != nil {
		x.Fatal(err)
	}
	x.Commit(tx)
}

func BackfillSpec() rowfeed.FeedSpec {
	return rowfeed.FeedSpec{Name: "kv", Table: "kv", Mode: rowfeed.ModeOutbox, Capture: feedtype.CaptureTrigger, ShardColumn: "shard", TimeColumn: "made"}
}

// OldRows makes the table kv with rows 1 to n, in shard 3 where the number can be divided by 3 and else in 0; the more recent, the
// lower the number.
func (x *Env) OldRows(n int) {
	x.Helper()
	x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL, made " + x.By(map[string]string{"sqlite": "TEXT", "postgres": "timestamptz", "mysql": "DATETIME(3)"}) + ")")
	x.ImportRows(1, n)
}

// ImportRows inserts rows without records: before there is a trigger, or past it.
func (x *Env) ImportRows(first, last int) {
	x.Helper()
	for ; first <= last; first += 500 {
		var rows []string
		for id := first; id <= min(last, first+499); id++ {
			rows = append(rows, fmt.Sprintf("(%d, %d, '%s')", id, ShardOfRow(id), MadeAt(id).Format("2006-01-02 15:04:05.000")+x.By(map[string]string{"sqlite": "", "postgres": "+00", "mysql": ""})))
		}
		x.Exec("INSERT INTO kv VALUES " + strings.Join(rows, ", "))
	}
}

func ShardOfRow(id int) int {
	if id%3 == 0 {
		return 3
	}
	return 0
}

func MadeAt(id int) time.Time {
	return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Duration(id) * time.Minute)
}

// KVEvents is the feed kv as the helpers of events know feeds.
func (x *Env) KVEvents() *Events {
	x.Helper()
	f, err := x.RF.Feed(x.Ctx, "kv")
	if err != nil {
		x.Fatal(err)
	}
	return &Events{x, f}
}

// Backfilled runs it, and asserts how many rows were placed.
func (x *Events) Backfilled(want int) {
	x.Helper()
	var told int64
	placed, err := x.Feed.Admin().BackFill(x.Ctx, func(rows int64) { told = rows })
	if err != nil {
		x.Fatal(err)
	}
	var left int64 = x.Scalar("SELECT count(*) FROM kv WHERE NOT EXISTS (SELECT 1 FROM rowfeed_feed_kv f WHERE f.id = kv.id)")
	if placed != int64(want) || told != placed || left != 0 {
		x.Fatalf("%d rows placed, %d told, want %d; %d are left", placed, told, want, left)
	}
}

// EachHeld runs f on the engines that lock shards one by one, with records that have been moved
// in shards 0 and 1. hold has another transaction
// take shard 0, and those below it.
func EachHeld(t *testing.T, f func(x *Events, hold func() (letGo func()))) {
	t.Helper()
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	EachOutbox(t, func(x *Events) {
		x.Appended(1, 0, time.Time{})
		x.Appended(2, 1, time.Time{})
		x.Publish(x.Feed)
		f(x, func() func() {
			tx := x.Begin(sql.LevelReadCommitted)
			x.In(tx, "SELECT * FROM rowfeed_shards WHERE shard <= 0 FOR UPDATE")
			return func() { x.Commit(tx) }
		})
	})
}

// Troubles collects what an observer is told.
type Troubles struct {
	Mu   sync.Mutex
	Told []string
}

func (t *Troubles) Observer() *rowfeed.Observer {
	return &rowfeed.Observer{Trouble: func(e rowfeed.TroubleEvent) {
		t.Mu.Lock()
		defer t.Mu.Unlock()
		t.Told = append(t.Told, e.Err.Error())
	}}
}

// Like counts those with these words.
func (t *Troubles) Like(words string) (n int) {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	for _, text := range t.Told {
		if strings.Contains(text, words) {
			n++
		}
	}
	return n
}

// Served is the database over HTTP.
func (x *Env) Served(rf *rowfeed.DB) *httptest.Server {
	s := httptest.NewServer(feedhttp.NewHandler(feedhttp.Of(rf), nil))
	x.Cleanup(s.Close)
	return s
}

// WantProblem asserts how a request is refused: the status, the last part of the problem's type, whether there is a
// Retry-After, and words of the next step.
func (x *Env) WantProblem(url string, status int, code rowfeed.Code, retry, next string) {
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

// Other opens the feed once more, as another process would, with hooks.
func (x *Events) Other(h testdb.Hooks, cfg *rowfeed.Config) *rowfeed.Feed {
	x.Helper()
	f, err := x.TappedDB(h, cfg).Feed(x.Ctx, "events")
	if err != nil {
		x.Fatal(err)
	}
	return f
}

// All is everything that a shard has, as one page.
func (x *Events) All(shard int) (all rowfeed.Page) {
	x.Helper()
	for all.More = true; all.More; {
		page := x.Page(x.Feed, shard, all.Cursor, 0)
		all.Entries, all.Cursor, all.More = append(all.Entries, page.Entries...), page.Cursor, page.More
	}
	return all
}

// PlacesRecords matches the statement that gives records their places, takesRecords the one that reads them.
func PlacesRecords(ev testdb.TapEvent) bool {
	return (strings.HasPrefix(ev.SQL, "INSERT") || strings.HasPrefix(ev.SQL, "WITH own")) && strings.Contains(ev.SQL, "feed_events")
}

func OutboxTriggerSpec() rowfeed.FeedSpec {
	return rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox, Capture: feedtype.CaptureTrigger, ShardColumn: "shard"}
}

// IDs are the rows of a shard from the beginning, in order.
func (x *Events) IDs(shard int) (ids []int) {
	x.Helper()
	for after, more := rowfeed.Cursor(""), true; more; {
		page := x.Page(x.Feed, shard, after, 100)
		for _, e := range page.Entries {
			id, _ := e.Key.Get("id")
			ids = append(ids, int(id.(int64)))
		}
		after, more = page.Cursor, page.More || len(page.Entries) > 0 // at the end records are moved
	}
	return ids
}

func (x *Events) WantShard(shard int, want ...int) {
	x.Helper()
	if got := x.IDs(shard); !slices.Equal(got, want) {
		x.Errorf("shard %d has rows %v, want %v", shard, got, want)
	}
}

// Purged asserts how many entries a purge forgets.
func (x *Events) Purged(want int) {
	x.Helper()
	if n, err := x.Feed.Admin().Purge(x.Ctx); err != nil || n != want {
		x.Fatalf("%d entries purged, %v; want %d", n, err, want)
	}
}

// Retain changes how long entries are kept.
func (x *Events) Retain(to rowfeed.Retention) {
	x.Helper()
	if err := x.Feed.Admin().SetRetention(x.Ctx, to); err != nil {
		x.Fatal(err)
	}
}
