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

// Append inserts a row of events, and appends its record.
func (x *Events) Append(tx *sql.Tx, id, shard int, hint time.Time) error {
	_, err := tx.ExecContext(x.Ctx, fmt.Sprintf("INSERT INTO events VALUES (%d, 'd')", id))
	if err == nil {
		record := rowfeed.OutboxRecord{Shard: shard, Hint: hint, Key: rowfeed.Key{int64(id)}}
		err = x.Feed.AppendOutbox(x.Ctx, rowfeed.InTx(tx), record)
	}
	return err
}

// Appended is Append in a transaction of its own.
func (x *Events) Appended(id, shard int, hint time.Time) {
	x.Helper()
	tx := x.Begin(sql.LevelReadCommitted)
	if err := x.Append(tx, id, shard, hint); err != nil {
		x.Fatal(err)
	}
	x.Commit(tx)
}

// BackfillSpec returns a feed of the table kv that back-fill can fill.
func BackfillSpec() rowfeed.FeedSpec {
	return rowfeed.FeedSpec{
		Name: "kv", Table: "kv", Mode: rowfeed.ModeOutbox, Capture: feedtype.CaptureTrigger,
		ShardColumn: "shard", TimeColumn: "made",
	}
}

// OldRows makes the table kv with rows 1 to n. Rows whose number is divisible by 3 are in shard 3, the others in shard
// 0. The lower the number, the more recent the row.
func (x *Env) OldRows(n int) {
	x.Helper()
	time := x.Text("suite.time_type")
	x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL, made " + time + ")")
	x.ImportRows(1, n)
}

// ImportRows inserts rows of kv. A trigger, if there is one, records them.
func (x *Env) ImportRows(first, last int) {
	x.Helper()
	for ; first <= last; first += 500 {
		var rows []string
		for id := first; id <= min(last, first+499); id++ {
			made := x.Text("suite.in_utc", MadeAt(id).Format("2006-01-02 15:04:05.000"))
			rows = append(rows, fmt.Sprintf("(%d, %d, '%s')", id, ShardOfRow(id), made))
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

// KVEvents returns the feed kv for the methods of Events.
func (x *Env) KVEvents() *Events {
	x.Helper()
	f, err := x.RF.Feed(x.Ctx, "kv")
	if err != nil {
		x.Fatal(err)
	}
	return &Events{x, f}
}

// Backfilled runs back-fill, and asserts how many rows it places and that no row is left.
func (x *Events) Backfilled(want int) {
	x.Helper()
	var told int64
	placed, err := x.Feed.Admin().BackFill(x.Ctx, func(rows int64) { told = rows })
	if err != nil {
		x.Fatal(err)
	}
	left := x.Scalar("SELECT count(*) FROM kv WHERE NOT EXISTS (SELECT 1 FROM rowfeed_feed_kv f WHERE f.id = kv.id)")
	if placed != int64(want) || told != placed || left != 0 {
		x.Fatalf("back-fill placed %d rows, reported %d, and left %d; want %d", placed, told, left, want)
	}
}

// EachHeld runs f on the engines that lock shards one by one, with moved records in shards 0 and 1. After hold, a
// transaction holds shard 0 and those below it until letGo.
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

// Troubles collects the errors that an observer gets.
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

// Like counts the errors that contain the words.
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

// Served serves the feeds of a database over HTTP.
func (x *Env) Served(rf *rowfeed.DB) *httptest.Server {
	s := httptest.NewServer(feedhttp.NewHandler(feedhttp.Of(rf), nil))
	x.Cleanup(s.Close)
	return s
}

// WantProblem asserts how a request is refused: its status, the last part of the problem's type, its Retry-After
// header, and words of the next step.
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
	if resp.StatusCode != status || p.Status != status || p.Type != "urn:rowfeed:problem:"+string(code) ||
		resp.Header.Get("Content-Type") != "application/problem+json" {
		x.Errorf("%s: %s %+v", url, resp.Status, p)
	}
	if got := resp.Header.Get("Retry-After"); got != retry || p.Detail == "" ||
		!strings.Contains(p.Next, next) || strings.Contains(p.Detail, "log has") {
		x.Errorf("%s: Retry-After %q, %+v; want %q, %q", url, got, p, retry, next)
	}
}

// Other opens the feed in another process, with hooks.
func (x *Events) Other(h testdb.Hooks, cfg *rowfeed.Config) *rowfeed.Feed {
	x.Helper()
	f, err := x.TappedDB(h, cfg).Feed(x.Ctx, "events")
	if err != nil {
		x.Fatal(err)
	}
	return f
}

// All returns all entries of a shard as one page.
func (x *Events) All(shard int) (all rowfeed.Page) {
	x.Helper()
	for all.More = true; all.More; {
		page := x.Page(x.Feed, shard, all.Cursor, 0)
		all.Entries, all.Cursor, all.More = append(all.Entries, page.Entries...), page.Cursor, page.More
	}
	return all
}

// PlacesRecords matches the statement that turns records into entries.
func PlacesRecords(ev testdb.TapEvent) bool {
	return strings.Contains(ev.SQL, "INSERT ") && strings.Contains(ev.SQL, "feed_events")
}

// PlacesOldRows matches the statement with which back-fill gives places to rows.
func PlacesOldRows(ev testdb.TapEvent) bool { return strings.Contains(ev.SQL, "first_run") }

func OutboxTriggerSpec() rowfeed.FeedSpec {
	return rowfeed.FeedSpec{
		Name: "events", Table: "events", Mode: rowfeed.ModeOutbox, Capture: feedtype.CaptureTrigger,
		ShardColumn: "shard",
	}
}

// IDs returns the ids of a shard's rows, from the beginning and in order.
func (x *Events) IDs(shard int) (ids []int) {
	x.Helper()
	for after, more := rowfeed.Cursor(""), true; more; {
		page := x.Page(x.Feed, shard, after, 100)
		for _, e := range page.Entries {
			id, _ := e.Key.Get("id")
			ids = append(ids, int(id.(int64)))
		}
		after, more = page.Cursor, page.More || len(page.Entries) > 0 // a page at the head moves records
	}
	return ids
}

func (x *Events) WantShard(shard int, want ...int) {
	x.Helper()
	if got := x.IDs(shard); !slices.Equal(got, want) {
		x.Errorf("shard %d has rows %v, want %v", shard, got, want)
	}
}

// Purged asserts how many entries a purge deletes.
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
