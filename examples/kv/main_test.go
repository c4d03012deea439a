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

// TestCopyEqualsTheTable: the copy equals the table, also after the feed has begun again.
func TestCopyEqualsTheTable(t *testing.T) {
	ctx := t.Context()
	from, to := testdb.SQLite.New(t), testdb.SQLite.New(t)
	feeds, err := rowfeed.Open(ctx, from.OpenTapped(t, testdb.Hooks{}), sqlite.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := feeds.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	from.Exec(t, "CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT)")
	feed, err := feeds.AddFeed(ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(feedhttp.NewHandler(feedhttp.Of(feeds), nil))
	defer server.Close()
	db := to.OpenTapped(t, testdb.Hooks{})
	for _, step := range []struct {
		write, want string
		bump        bool
	}{
		{"INSERT INTO kv VALUES (1, 'a'), (2, 'b'), (3, NULL)", "1a 2b 3-", false},
		{"UPDATE kv SET v = 'c' WHERE id = 1", "1c 2b 3-", false},
		{"DELETE FROM kv WHERE id = 2", "1c 3-", false},
		{"DELETE FROM kv WHERE id = 3", "1c", true}, // the new generation does not know this row
	} {
		from.Exec(t, step.write)
		if step.bump {
			if _, err := feed.Admin().Bump(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := feed.Publish(ctx); err != nil {
			t.Fatal(err)
		}
		c, err := replica(ctx, db, &feedhttp.Client{URL: server.URL, Feed: "kv"})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.RunOnce(ctx); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := db.QueryRow(
			"SELECT coalesce(group_concat(id || coalesce(v, '-'), ' '), '') FROM (SELECT * FROM kv ORDER BY id)",
		).Scan(&got); err != nil ||
			got != step.want {
			t.Errorf("%s: the copy is %q, want %q, %v", step.write, got, step.want, err)
		}
	}
}
