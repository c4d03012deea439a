// Cache keeps rows in memory, and forgets rows that were written. Each process follows the feed by itself, from the
// present on: a row that is read later cannot be stale.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
)

func main() {
	c := &cache{source: &feedhttp.Client{
		URL: "http://127.0.0.1:8080", Feed: "kv",
	}, load: func(_ context.Context, id int64) (string, error) {
		return fmt.Sprintf("the value of row %d in your database", id), nil
	}}
	log.Fatal(c.follow(context.Background()))
}

type cache struct {
	source rowfeed.Source
	load   func(ctx context.Context, id int64) (string, error)

	mu        sync.Mutex
	rows      map[int64]string // nil while the feed cannot be read
	forgotten int              // counts how often rows were forgotten
}

// get returns a row from the cache, else from the database. A value is not stored if the row may have been written
// since the value was read.
func (c *cache) get(ctx context.Context, id int64) (string, error) {
	c.mu.Lock()
	value, ok := c.rows[id]
	before := c.forgotten
	c.mu.Unlock()
	if ok {
		return value, nil
	}
	value, err := c.load(ctx, id)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rows != nil && c.forgotten == before {
		c.rows[id] = value
	}
	return value, nil
}

// follow forgets rows that are written, until ctx ends. While the feed cannot be read, and after it has refused the
// cursor, the cache is empty.
func (c *cache) follow(ctx context.Context) error {
	after := rowfeed.Now
	for ctx.Err() == nil {
		wait := 10 * time.Second
		if after == rowfeed.Now {
			wait = 0 // only the cursor is needed, and no entry
		}
		page, err := c.source.Fetch(ctx, rowfeed.Request{After: after, Wait: wait})
		c.mu.Lock()
		switch {
		case err != nil:
			c.rows, after = nil, rowfeed.Now
		case after == rowfeed.Now:
			c.rows = map[int64]string{}
		}
		for _, e := range page.Entries {
			id, _ := e.Key.Get("id")
			delete(c.rows, id.(int64))
		}
		c.forgotten++
		c.mu.Unlock()
		switch {
		case err == nil:
			after = page.Cursor
			continue
		case errors.Is(err, rowfeed.UnknownFeed), errors.Is(err, rowfeed.Unauthorized),
			errors.Is(err, rowfeed.Forbidden):
			return err // waiting does not help
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return ctx.Err()
}
