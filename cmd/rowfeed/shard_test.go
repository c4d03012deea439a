package main

import (
	"context"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
)

// TestFeedIsReadByDataShard (M18, M19, M20, M21): a feed with data shards is made, shown, read and followed by shard.
func TestFeedIsReadByDataShard(t *testing.T) {
	s := withFeed(t)
	s.sql("CREATE TABLE line (orders INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (orders, n))",
		"INSERT INTO line VALUES (9, 1), (-1, 1), (9, 2), (4, 1)")
	s.prints("feed add line --table line --data-shards 8 --shard-column orders",
		"line: follows table line by key (orders, n), capture trigger, 8 data shards by orders, "+
			"4 rows recorded by this call\n")
	s.prints("feed add line --table line --data-shards 8 --shard-column orders",
		"line: is a feed of table line already, nothing changed\n")
	if out := s.fails(cli.ExitFailed,
		"feed add line --table line --data-shards 9"); !strings.Contains(out, "data-shards is 8, not 9") ||
		!strings.Contains(out, `shard-column is "orders", not ""`) {
		t.Errorf("other settings: %s", out)
	}
	s.ok("publish line --once")
	s.prints("fetch line --shard 1",
		`{"position":"3","shard":1,"op":"upsert","key":{"orders":9,"n":1},"row":{"orders":9,"n":1}}
{"position":"4","shard":1,"op":"upsert","key":{"orders":9,"n":2},"row":{"orders":9,"n":2}}
{"cursor":"4.9k3f2c7adq_1-2-8","more":false,"base64":[]}
`)
	s.prints("fetch line --shard 1 --shard-count 2",
		`{"position":"1","shard":7,"op":"upsert","key":{"orders":-1,"n":1},"row":{"orders":-1,"n":1}}
{"position":"2","shard":4,"op":"upsert","key":{"orders":4,"n":1},"row":{"orders":4,"n":1}}
{"cursor":"4.9k3f2c7adq_4-8-8","more":false,"base64":[]}
`)
	if out := s.ok("feed show line"); !strings.Contains(out, "8 data shards by orders") {
		t.Errorf("show: %s", out)
	}
	if out := s.ok("feed list --json"); !strings.Contains(out, `"data_shards": 8`) ||
		!strings.Contains(out, `"data_shards": 1`) {
		t.Errorf("list: %s", out)
	}
	if out := s.ok(
		"feed add other --table line --key orders:bigint,n:bigint --data-shards 16 --print --db postgres:",
	); !strings.Contains(out, "(bucket, feed_sync_id, shard)") {
		t.Errorf("print: %s", out)
	}
	if out := s.ok(
		"feed add other --table line --key orders:bigint,n:bigint --print --db postgres:",
	); strings.Contains(out, "_bucket") {
		t.Errorf("one data shard has an index by bucket: %s", out)
	}

	a, _ := quietApp(t)
	ctx, interrupt := context.WithCancel(t.Context())
	out := newLines(ctx)
	a.Stdout = out
	ended := make(chan error, 1)
	go func() { ended <- execute(ctx, a, "tail line --limit 10 --shard 1 --shard-count 8") }()
	for _, want := range []string{`{"position":"3","shard":1,`, `{"position":"4","shard":1,`, `{"cursor":"4.`} {
		if line := out.next(t); !strings.HasPrefix(line, want) {
			t.Errorf("got %s, want %s…", line, want)
		}
	}
	s.sql("DELETE FROM line WHERE n = 1")
	s.ok("publish --once")
	for line := ""; !strings.HasPrefix(line, `{"position"`); {
		if line = out.next(t); strings.HasPrefix(line, `{"position"`) &&
			!strings.Contains(line, `"shard":1,"op":"delete","key":{"orders":9,"n":1}`) {
			t.Errorf("got %s", line)
		}
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}
