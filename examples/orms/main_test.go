package main

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// TestORMWritesAreInTheFeed: the feed has what GORM and ent write, with the ids that they got. A row that was changed
// and republished in one transaction arrives once. A transaction that was rolled back has no entry.
func TestORMWritesAreInTheFeed(t *testing.T) {
	testdb.Postgres15.Require(t)
	for name, run := range map[string]func(context.Context, *sql.DB, *rowfeed.Feed) error{
		"GORM": withGORM, "ent": withEnt,
	} {
		t.Run(name, func(t *testing.T) {
			database := testdb.Postgres15.New(t)
			db, err := sql.Open("pgx", database.URL)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			feed, err := products(t.Context(), db)
			if err == nil {
				err = run(t.Context(), db, feed)
			}
			if err == nil {
				_, err = feed.Publish(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			page, err := feed.Fetch(t.Context(), rowfeed.Request{})
			if err != nil || len(page.Entries) != 1 {
				t.Fatalf("%+v, %v", page, err)
			}
			price, _ := page.Entries[0].Row.Get("price")
			if got, want := fmt.Sprint(price), map[string]string{"GORM": "50", "ent": "80"}[name]; got != want {
				t.Errorf("price %s, want %s", got, want)
			}
		})
	}
}
