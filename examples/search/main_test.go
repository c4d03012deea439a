package main

import (
	"slices"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// TestIndexFollowsTheTable: new articles are found, changed ones by their new words, and deleted ones no longer.
func TestIndexFollowsTheTable(t *testing.T) {
	ctx := t.Context()
	d := testdb.SQLite.New(t)
	feeds, err := rowfeed.Open(ctx, d.OpenTapped(t, testdb.Hooks{}), sqlite.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := feeds.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	d.Exec(t, "CREATE TABLE articles (id INTEGER PRIMARY KEY, title TEXT NOT NULL, body TEXT NOT NULL)")
	articles, err := feeds.AddFeed(ctx, rowfeed.FeedSpec{Name: "articles", Table: "articles"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	db := testdb.SQLite.New(t).OpenTapped(t, testdb.Hooks{})
	for _, step := range []struct {
		write string
		lamps []int64
	}{
		{"INSERT INTO articles VALUES (1, 'Lamps', 'A lamp gives light'), (2, 'Chairs', 'One sits on a chair, " +
			"by a lamp, if there is one')", []int64{1, 2}},
		{"UPDATE articles SET body = 'One sits on a chair' WHERE id = 2", []int64{1}},
		{"INSERT INTO articles VALUES (3, 'Light', 'lamps'), (4, 'Nothing', '')", []int64{1, 3}},
		{"DELETE FROM articles WHERE id = 1", []int64{3}},
	} {
		d.Exec(t, step.write)
		if _, err := articles.Publish(ctx); err != nil {
			t.Fatal(err)
		}
		indexer, err := index(ctx, db, articles)
		if err != nil {
			t.Fatal(err)
		}
		if err := indexer.RunOnce(ctx); err != nil {
			t.Fatal(err)
		}
		found, err := search(ctx, db, "lamp")
		if slices.Sort(found); err != nil || !slices.Equal(found, step.lamps) {
			t.Errorf("%s: found %v, want %v, %v", step.write, found, step.lamps, err)
		}
	}
}
