package main

import (
	"net/http/httptest"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// TestOrdersAreCountedOnce: each order is counted once, also after a restart of the consumer, and after the order was
// changed, republished or deleted.
func TestOrdersAreCountedOnce(t *testing.T) {
	ctx := t.Context()
	shop := testdb.SQLite.New(t)
	feeds, err := rowfeed.Open(ctx, shop.OpenTapped(t, testdb.Hooks{}), sqlite.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := feeds.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	shop.Exec(t, "CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL)")
	orders, err := feeds.AddFeed(ctx, rowfeed.FeedSpec{Name: "orders", Table: "orders"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(feedhttp.NewHandler(feedhttp.Of(feeds), nil))
	defer server.Close()
	db := testdb.SQLite.New(t).OpenTapped(t, testdb.Hooks{})
	for _, step := range []struct {
		write string
		want  int
	}{
		{"INSERT INTO orders VALUES (1, 'lamp')", 1},
		{"INSERT INTO orders VALUES (2, 'lamp'), (3, 'chair')", 2},
		{"UPDATE orders SET item = 'lamp' WHERE id IN (2, 3)", 3},
		{"DELETE FROM orders WHERE id = 1", 2},
		{"UPDATE orders SET item = 'chair' WHERE id = 3", 1},
	} {
		shop.Exec(t, step.write)
		if _, err := orders.Publish(ctx); err != nil {
			t.Fatal(err)
		}
		consumer, err := stock(ctx, db, &feedhttp.Client{URL: server.URL, Feed: "orders"})
		if err != nil {
			t.Fatal(err)
		}
		if err := consumer.RunOnce(ctx); err != nil {
			t.Fatal(err)
		}
		var pieces int
		if err := db.QueryRow("SELECT count(*) FROM taken WHERE item = 'lamp'").Scan(&pieces); err != nil ||
			pieces != step.want {
			t.Errorf("%s: %d lamps ordered, want %d, %v", step.write, pieces, step.want, err)
		}
	}
}
