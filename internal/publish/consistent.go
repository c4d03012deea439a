package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// consistentWait bounds the publishing before a consistent page if the request sets no bound.
const consistentWait = 5 * time.Second

// MayCatchUp refuses consistent requests in a process that does not publish.
func (f *Publisher) MayCatchUp() error {
	if f.Store.Publishes() {
		return nil
	}
	cause, next := "a replica cannot publish what is pending", "ask the primary, or leave the parameter out"
	if !f.Store.Replica {
		cause, next = "this process does not publish", "ask a process that publishes, or leave the parameter out"
	}
	return &feedtype.Error{
		Code:   feedtype.InvalidRequest,
		Object: feedtype.FeedObject(f.Name),
		Param:  "consistent",
		Cause:  "consistent: " + cause,
		Next:   next,
	}
}

// CatchUp publishes until no change is left that was pending, and visible, when CatchUp was called. Concurrent callers
// share the work. A caller never joins work that began before its call: that work may miss what the caller has just
// committed.
func (f *Publisher) CatchUp(ctx context.Context, shard int, wait time.Duration) error {
	p, err := f.positioner(ctx)
	if err != nil {
		return err
	}
	if wait == 0 {
		wait = consistentWait
	}
	bounded, end := context.WithTimeout(ctx, wait)
	defer end()
	_, err = f.catchUps.Do(bounded, shard, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, p.CatchUp(ctx, shard)
	})
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return &feedtype.Error{
			Code:   feedtype.NotConsistent,
			Object: feedtype.FeedObject(f.Name),
			Cause: fmt.Sprintf("not everything that was committed before the request could be published within %s",
				wait),
			Next: "try again, with a longer wait; `rowfeed status " + f.Name +
				"` shows how much is pending, and which transactions are in the way",
		}
	}
	return f.Fail("publish what was committed before the request", err)
}
