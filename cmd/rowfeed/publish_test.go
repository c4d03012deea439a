package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
)

// TestPublishUntilSignal publishes what is written, and feeds that are added
// meanwhile, and ends without an error.
func TestPublishUntilSignal(t *testing.T) {
	s := withFeed(t)
	a, errs := quietApp(t)
	events := make(chan rowfeed.PublishEvent, 100)
	a.published = func(e rowfeed.PublishEvent) { events <- e }
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&publishOptions{discover: time.Millisecond}).run(ctx, a) }()
	await := func(feed string) {
		t.Helper()
		select {
		case e := <-events:
			if e.Feed != feed {
				t.Errorf("published %+v, want one of %s", e, feed)
			}
		case err := <-ended:
			t.Fatalf("ended: %v", err)
		}
	}
	s.sql("INSERT INTO kv VALUES (4, 'a', 'd', '')")
	await("kv")
	s.sql("CREATE TABLE more (id INTEGER PRIMARY KEY)", "INSERT INTO more VALUES (1)")
	s.ok("feed add more --table more")
	await("more")
	s.ok("feed drop more")
	s.sql("INSERT INTO kv VALUES (5, 'a', 'e', '')")
	await("kv")
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	if log := errs.String(); !strings.Contains(log, "feed=more") {
		t.Errorf("the log does not tell of the new feed: %s", log)
	}
}

// TestPublishNamedFeedDropped ends: going on makes no sense.
func TestPublishNamedFeedDropped(t *testing.T) {
	s := withFeed(t)
	a, _ := quietApp(t)
	events := make(chan rowfeed.PublishEvent, 100)
	a.published = func(e rowfeed.PublishEvent) { events <- e }
	ended := make(chan error, 1)
	go func() { ended <- (&publishOptions{names: []string{"kv"}, discover: time.Hour}).run(t.Context(), a) }()
	s.sql("INSERT INTO kv VALUES (4, 'a', 'd', '')")
	<-events
	s.ok("feed drop kv")
	if err := <-ended; !errors.Is(err, rowfeed.UnknownFeed) {
		t.Errorf("ended with %v", err)
	}
}
