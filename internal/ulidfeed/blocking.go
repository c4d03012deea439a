package ulidfeed

import (
	"context"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Blocking is the publish.Positioner of a feed whose writers allocate positions: no change waits for a publisher.
type Blocking struct{ Feed string }

func (Blocking) Pending() string { return "" }

func (Blocking) Waiting(context.Context) (string, error) { return "", nil }

func (p Blocking) Pass(context.Context, int, bool) (feedtype.PublishEvent, error) {
	return feedtype.PublishEvent{Feed: p.Feed}, nil
}

func (Blocking) Tell(context.Context, error) {}

func (Blocking) CatchUp(context.Context, int) error { return nil }

func (Blocking) Purge(context.Context) (int, error) { return 0, nil }
