package metrics_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/metrics"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
)

// A program that publishes, and serves its metrics.
func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "rowfeed-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	pool, err := sql.Open("sqlite",
		"file:"+filepath.Join(folder, "app.db")+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()

	m := metrics.New(nil)
	db, err := rowfeed.Open(ctx, pool, sqlite.New(), &rowfeed.Config{Observer: m.Observer()})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.Migrate(ctx); err != nil {
		log.Fatal(err)
	}
	if _, err := pool.Exec("CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT)"); err != nil {
		log.Fatal(err)
	}
	kv, err := db.AddFeed(ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	m.Watch(ctx, db)
	server := httptest.NewServer(m.Handler()) // in a program: http.Handle("/metrics", m.Handler())
	defer server.Close()

	if _, err := pool.Exec("INSERT INTO kv VALUES (1, 'a'), (2, 'b')"); err != nil {
		log.Fatal(err)
	}
	if _, err := kv.Publish(ctx); err != nil {
		log.Fatal(err)
	}
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "rowfeed_head_position") || strings.HasPrefix(line, "rowfeed_publish_keys_total") {
			fmt.Print(line)
		}
	}
	// Output:
	// rowfeed_head_position{feed="kv"} 2
	// rowfeed_publish_keys_total{feed="kv"} 2
}
