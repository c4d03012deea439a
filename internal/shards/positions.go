package shards

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// blockingPositioner is the Positioner of a feed whose writers take positions themselves: there is nothing to publish.
type Blocking struct{ Feed string }

func (Blocking) Pending() string { return "" }

func (p Blocking) Pass(context.Context, int, bool) (feedtype.PublishEvent, error) {
	return feedtype.PublishEvent{Feed: p.Feed}, nil
}

func (Blocking) Tell(context.Context, error) {}

func (Blocking) CatchUp(context.Context, int) error { return nil }

func (Blocking) Purge(context.Context) (int, error) { return 0, nil }

// outboxPager is the Pager of a feed with an outbox.
type OutboxPager struct {
	*Shards
	Outbox *Outbox
}

// Select chooses one shard, which may have to be refused while rows are placed.
func (p OutboxPager) Select(ctx context.Context, l *catalog.Layout, q *dialect.PageQuery, s feedtype.Shards) error {
	q.Unserved, q.Among = catalog.Unfilled, p.Gaps.ScanShard().In(l.Generation)
	return p.Shards.Select(ctx, l, q, s)
}

// Fill moves records for the reader.
func (p OutboxPager) Fill(ctx context.Context, shard, limit int) (stuck bool, err error) {
	return p.Outbox.Fill(ctx, shard, limit)
}
