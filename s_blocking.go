package rowfeed

import (
	"context"

	"github.com/rowfeed/rowfeed/feedtype"
)

func (blocking) firstWaiting(*Feed) string { return "" }

func (blocking) pass(_ context.Context, f *Feed, _ int, _ bool) (feedtype.PublishEvent, error) {
	return feedtype.PublishEvent{Feed: f.name}, nil
}

func (blocking) publishVisible(context.Context, *Feed, int) error { return nil }

func (blocking) purge(context.Context, *Feed) (int, error) { return 0, nil }

// asBefore: pages look by themselves; without a shard there is nothing to look at.
func (blocking) asBefore(context.Context, *Feed) error { return nil }
