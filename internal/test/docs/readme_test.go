package docs_test

import (
	"context"
	"database/sql"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect/postgres"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestReadmeGoCodeWorks: the README's Go code works.
func TestReadmeGoCodeWorks(t *testing.T) {
	testdb.Postgres15.Require(t)
	database := testdb.Postgres15.New(t)
	database.Exec(t, "CREATE TABLE kv (id bigint PRIMARY KEY, v text); INSERT INTO kv VALUES (1, 'jim'); "+
		"CREATE TABLE seen (id bigint, op text)")
	url, cursor := database.URL, rowfeed.Cursor("")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	failed := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	db, err := sql.Open("pgx", url)
	failed(err)
	defer db.Close()
	feeds, err := rowfeed.Open(ctx, db, postgres.New(), nil)
	failed(err)
	_, err = feeds.Migrate(ctx)
	failed(err)
	feed, err := feeds.AddFeed(ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv"}, nil)
	failed(err)
	go feed.RunPublisher(ctx)
	_, err = feed.Publish(ctx)
	failed(err)
	page, err := feed.Fetch(ctx, rowfeed.Request{After: cursor})
	failed(err)
	if len(page.Entries) != 1 {
		t.Errorf("%d entries", len(page.Entries))
	}

	type row struct {
		ID int64
		V  *string
	}
	c := &rowfeed.Consumer{Name: "mirror", Source: feed, DB: feeds, OnFailure: rowfeed.SetAside,
		Handle: rowfeed.Each(func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry, r row) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO seen VALUES ($1, $2)", r.ID, e.Op)
			return err
		})}
	failed(c.RunOnce(ctx))
	var seen int
	failed(database.Admin().QueryRow("SELECT count(*) FROM seen WHERE id = 1 AND op = 'upsert'").Scan(&seen))
	if seen != 1 {
		t.Errorf("seen %d times", seen)
	}
	stop()
	err = c.Run(ctx)
	failed(err)
}
