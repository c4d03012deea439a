package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/cmd/server"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// BenchmarkAuthentication compares the throughput of a server with tokens and without. Eight clients request pages of
// 10 entries over loopback. Each round measures both servers in turns, in one process and on one database. The result
// is the ratio of the medians of the rounds.
//
//	go test ./cmd/server -run '^$' -bench Authentication -benchtime 9x
func BenchmarkAuthentication(b *testing.B) {
	const clients, requests = 8, 250 // per client and round
	database := testdb.SQLite.New(b)
	pool := database.OpenTapped(b, testdb.Hooks{})
	db, err := rowfeed.Open(b.Context(), pool, sqlite.New(), nil)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := db.Migrate(b.Context()); err != nil {
		b.Fatal(err)
	}
	database.Exec(b, "CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT)")
	database.Exec(b,
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) INSERT INTO kv SELECT i, "+
			"'value ' || i FROM n")
	feed, err := db.AddFeed(b.Context(), rowfeed.FeedSpec{Name: "kv", Table: "kv"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := feed.Publish(b.Context()); err != nil {
		b.Fatal(err)
	}
	token, _, err := db.Admin().AddToken(b.Context(),
		admin.TokenSpec{Name: "bench", Grants: []admin.TokenGrant{{Right: admin.RightRead, Feed: "kv"}}})
	if err != nil {
		b.Fatal(err)
	}
	unbounded := server.Limits{Rate: -1}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	off := serves(b, server.Config{DB: db, Limits: unbounded})
	on := serves(b, server.Config{DB: db, Limits: unbounded, Access: access.Identify(access.NewTokens(db))})
	round := func(url, token string) float64 {
		began := time.Now()
		var group sync.WaitGroup
		for c := range clients {
			group.Go(func() {
				for i := range requests {
					if err := page(b.Context(), client,
						fmt.Sprintf("%s/_feeds/fetch/kv?limit=10&after=%d", url, (c*requests+i)%900),
						token); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
		return clients * requests / time.Since(began).Seconds()
	}
	round(off, "")
	round(on, token)
	var without, with []float64
	for b.Loop() {
		without, with = append(without, round(off, "")), append(with, round(on, token))
	}
	slices.Sort(without)
	slices.Sort(with)
	middle := len(with) / 2
	b.ReportMetric(without[middle], "off-req/s")
	b.ReportMetric(with[middle], "on-req/s")
	b.ReportMetric(with[middle]/without[middle], "on/off")
	b.ReportMetric(0, "ns/op")
}

func page(ctx context.Context, client *http.Client, url, token string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s %.200s %w", url, response.Status, body, err)
	}
	return nil
}

// serves runs a server until the benchmark ends.
func serves(b *testing.B, cfg server.Config) (url string) {
	b.Helper()
	ctx, stop := context.WithCancel(context.Background())
	address, ended := make(chan string, 1), make(chan error, 1)
	cfg.Listen, cfg.Ready = "127.0.0.1:0", func(at string) { address <- at }
	go func() { ended <- server.Run(ctx, cfg) }()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	select {
	case at := <-address:
		return "http://" + at
	case err := <-ended:
		ended <- nil
		b.Fatal(err)
		return ""
	}
}
