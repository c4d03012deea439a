package main

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// TestOrderArrivesInTheFeed: an order from the application's own page arrives in the feed.
func TestOrderArrivesInTheFeed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	db := testdb.SQLite.New(t).OpenTapped(t, testdb.Hooks{})
	go func() { ended <- serve(ctx, db, listener) }()
	address := "http://" + listener.Addr().String()
	answer, err := http.PostForm(address+"/orders", url.Values{"item": {"lamp"}})
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", answer, err)
	}
	answer.Body.Close()
	client := &feedhttp.Client{URL: address, Feed: "orders"}
	for {
		page, err := client.Fetch(t.Context(), rowfeed.Request{Wait: feedhttp.MaxWait})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Entries) == 1 && strings.Contains(string(page.AppendLines(nil)), `"item":"lamp"`) {
			break
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", listener.Addr().String()); err == nil {
		t.Error("it serves on without publishing")
	}
}
