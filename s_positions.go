package rowfeed

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// blockingPositioner is the Positioner of a feed whose writers take positions themselves: there is nothing to publish.
type blockingPositioner struct{ Feed string }

func (blockingPositioner) Pending() string { return "" }

func (p blockingPositioner) Pass(context.Context, int, bool) (feedtype.PublishEvent, error) {
	return feedtype.PublishEvent{Feed: p.Feed}, nil
}

func (blockingPositioner) Tell(context.Context, error) {}

func (blockingPositioner) CatchUp(context.Context, int) error { return nil }

func (blockingPositioner) Purge(context.Context) (int, error) { return 0, nil }

// outboxPager is the Pager of a feed with an outbox.
type outboxPager struct {
	*ulidShards
	Outbox *outboxQueue
}

// Select chooses one shard, which may have to be refused while rows are placed.
func (p outboxPager) Select(ctx context.Context, l *catalog.Layout, q *dialect.PageQuery, s feedtype.Shards) error {
	q.Unserved, q.Among = catalog.Unfilled, p.Gaps.ScanShard().In(l.Generation)
	return p.ulidShards.Select(ctx, l, q, s)
}

// Fill moves records for the reader.
func (p outboxPager) Fill(ctx context.Context, shard, limit int) (stuck bool, err error) {
	return p.Outbox.Fill(ctx, shard, limit)
}
