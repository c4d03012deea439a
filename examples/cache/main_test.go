package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// told sends after the feed has been read once more, and its entries were processed.
type told struct {
	rowfeed.Source
	after chan rowfeed.Cursor
	gone  *atomic.Bool
}

func (s told) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	gone := s.gone.Load() // before this read is reported
	select {
	case s.after <- req.After:
	case <-ctx.Done():
	}
	if gone {
		return rowfeed.Page{}, rowfeed.UnknownFeed
	}
	if req.Wait > 0 {
		req.Wait = time.Hour // only a row ends the wait, on machines of any speed
	}
	return s.Source.Fetch(ctx, req)
}

// TestCacheForgetsWrittenRows: a row comes from the database once, and again after it was written.
func TestCacheForgetsWrittenRows(t *testing.T) {
	ctx := t.Context()
	d := testdb.SQLite.New(t)
	db := d.OpenTapped(t, testdb.Hooks{})
	feeds, err := rowfeed.Open(ctx, db, sqlite.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := feeds.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	d.Exec(t, "CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT)")
	d.Exec(t, "INSERT INTO kv VALUES (1, 'a'), (2, 'b')")
	feed, err := feeds.AddFeed(ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	publish := func() {
		if _, err := feed.Publish(ctx); err != nil {
			t.Fatal(err)
		}
	}
	publish()
	loads, meanwhile := 0, func() {}
	source := told{feed, make(chan rowfeed.Cursor), new(atomic.Bool)}
	c := &cache{source: source, load: func(ctx context.Context, id int64) (v string, err error) {
		loads++
		err = db.QueryRowContext(ctx, "SELECT v FROM kv WHERE id = ?", id).Scan(&v)
		meanwhile()
		return v, err
	}}
	ended := make(chan error, 1)
	go func() { ended <- c.follow(ctx) }()
	get := func(id int64, want string, wantLoads int) {
		t.Helper()
		if got, err := c.get(ctx, id); err != nil || got != want || loads != wantLoads {
			t.Errorf("row %d is %q after %d loads, %v; want %q after %d", id, got, loads, err, want, wantLoads)
		}
	}
	get(1, "a", 1) // not stored: the feed has not been read
	<-source.after // the first cursor
	<-source.after // the first page after it
	get(1, "a", 2)
	get(2, "b", 3)
	get(1, "a", 3)
	d.Exec(t, "UPDATE kv SET v = 'c' WHERE id = 1")
	publish()
	<-source.after
	get(1, "c", 4)
	get(1, "c", 4)
	get(2, "b", 4)
	// A row is written between reading it from the database and storing it.
	write := func(v string) {
		d.Exec(t, "UPDATE kv SET v = '"+v+"' WHERE id = 1")
		publish()
		<-source.after
	}
	write("d")
	meanwhile = func() { write("e") }
	get(1, "d", 5)
	meanwhile = func() {}
	get(1, "e", 6)
	// If the feed is gone, nothing is stored.
	source.gone.Store(true)
	write("f")
	if err := <-ended; !errors.Is(err, rowfeed.UnknownFeed) {
		t.Error(err)
	}
	get(1, "f", 7)
	get(1, "f", 8)
}
