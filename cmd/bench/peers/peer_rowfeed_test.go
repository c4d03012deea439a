package peers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed"
)

// rowfeedPeer is rowfeed as the README shows it: triggers, a publisher in a goroutine, a consumer that the publisher
// wakes.
var rowfeedPeer = contestant{name: "rowfeed", families: []string{"postgres", "mysql"}, configurations: []configuration{
	{"default", "nothing is set", rowfeedWith(rowfeedSettings{})},
	{"large", "batches and pages of 5,000", rowfeedWith(rowfeedSettings{batch: 5000, limit: 5000})},
	{"poll-10ms", "the publisher looks every 10 ms instead of every 50",
		rowfeedWith(rowfeedSettings{poll: 10 * time.Millisecond})},
	{"wake", "writers are in the publisher's process and wake it", rowfeedWith(rowfeedSettings{wake: true})},
	{"shards-8", "eight shards, among which the writers are divided, handled at the same time",
		rowfeedWith(rowfeedSettings{shards: 8})},
}}

// rowfeedSettings are those that differ from the defaults.
type rowfeedSettings struct {
	batch  int           // Config.BatchSize
	poll   time.Duration // Config.IdlePoll and WatchPoll
	limit  int           // Consumer.Limit
	shards int           // Consumer.ShardCount
	wake   bool          // Feed.Wake is called after each commit
}

func rowfeedWith(s rowfeedSettings) func() peer {
	return func() peer {
		r := &rowfeedRun{rowfeedSettings: s}
		if s.wake {
			return rowfeedWoken{r}
		}
		return r
	}
}

type rowfeedRun struct {
	rowfeedSettings
	db   *rowfeed.DB
	feed *rowfeed.Feed
}

type rowfeedWoken struct{ *rowfeedRun }

func (r rowfeedWoken) committed() { r.feed.Wake() }

func (r *rowfeedRun) begin(c *cell) {
	r.db = c.Rowfeed(c.Pool,
		&rowfeed.Config{BatchSize: r.batch, IdlePoll: r.poll, WatchPoll: r.poll, Observer: &rowfeed.Observer{
			Trouble: func(e rowfeed.TroubleEvent) { c.Errorf("rowfeed: %v", e.Err) },
			Retried: func(e rowfeed.RetryEvent) { c.Logf("rowfeed retried: %+v", e) },
		}})
	spec := rowfeed.FeedSpec{Name: "items", Table: "items"}
	if r.shards > 1 {
		spec.DataShards, spec.ShardColumn = r.shards, "writer"
	}
	r.feed = c.Feed(r.db, spec)
}

// key: rows come in order within a shard, and a writer is to be in one.
func (r *rowfeedRun) key() string {
	if r.shards > 1 {
		return "id, writer"
	}
	return "id"
}

// record has nothing to do: triggers do it.
func (r *rowfeedRun) record(context.Context, userTx, []string) error { return nil }

func (r *rowfeedRun) end(context.Context) error { return nil }

func (r *rowfeedRun) run(ctx context.Context, handle handler) error {
	published := make(chan error, 1)
	go func() { published <- r.feed.RunPublisher(ctx) }()
	c := &rowfeed.Consumer{Name: "bench", Source: r.feed, DB: r.db,
		Options:    rowfeed.ConsumerOptions{Limit: r.limit},
		ShardCount: r.shards,
		Handle: func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
			for _, e := range entries {
				value, ok := e.Row.Get("payload")
				text, is := value.(string)
				if !ok || !is {
					return fmt.Errorf("an entry without a payload: %+v", e)
				}
				handle(text)
			}
			return nil
		}}
	return errors.Join(c.Run(ctx), <-published)
}
