package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// consistentWait bounds the publishing before a consistent page when the request does
// not.
const consistentWait = 5 * time.Second

// MayCatchUp refuses consistent requests to a process that publishes nothing.
func (f *Publisher) MayCatchUp() error {
	if f.Store.Publishes() {
		return nil
	}
	cause, next := "a replica cannot publish, so it cannot make sure", "ask the primary, or leave it out"
	if !f.Store.Replica {
		cause, next = "this process is not to publish, so it cannot make sure", "ask one that publishes, or leave it out"
	}
	return &feedtype.Error{Code: feedtype.InvalidRequest, Object: feedtype.FeedObject(f.Name), Param: "consistent", Cause: "consistent: " + cause, Next: next}
}

// CatchUp publishes until nothing is left of what was waiting, and visible, when it was
// called. Callers that come together share the work, though never work that had begun
// before they came: what they have just committed might not be in it.
func (f *Publisher) CatchUp(ctx context.Context, shard int, wait time.Duration) error {
	p, err := f.positioner(ctx)
	if err != nil {
		return err
	}
	if wait == 0 {
		wait = consistentWait
	}
	over, end := context.WithTimeout(ctx, wait)
	defer end()
	_, err = f.catchUps.Do(over, shard, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, p.CatchUp(ctx, shard)
	})
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return &feedtype.Error{Code: feedtype.NotConsistent, Object: feedtype.FeedObject(f.Name), Cause: fmt.Sprintf("not everything that was committed before the request could be published within %s", wait),
			Next: "try again, with a longer wait; `rowfeed status " + f.Name + "` tells how much is waiting and who is in the way"}
	}
	return f.Fail("publish what was committed before", err)
}
