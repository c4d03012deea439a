package rowfeed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// consistentWait bounds the publishing before a consistent page when the request does
// not.
const consistentWait = 5 * time.Second

// catchUp publishes until nothing is left of what was waiting, and visible, when it was
// called. Callers that come together share the work, though never work that had begun
// before they came: what they have just committed might not be in it.
func (f *Feed) catchUp(ctx context.Context, wait time.Duration, shards feedtype.Shards) error {
	if f.db.publishesNothing() {
		cause, next := "a replica cannot publish, so it cannot make sure", "ask the primary, or leave it out"
		if !f.db.cfg.Replica {
			cause, next = "this process is not to publish, so it cannot make sure", "ask one that publishes, or leave it out"
		}
		return &feedtype.Error{Code: feedtype.InvalidRequest, Object: feedtype.FeedObject(f.name), Param: "consistent", Cause: "consistent: " + cause, Next: next}
	}
	var part dialect.PageQuery
	if _, err := f.layoutOf(ctx, &part, shards); err != nil {
		return err
	}
	if wait == 0 {
		wait = consistentWait
	}
	over, end := context.WithTimeout(ctx, wait)
	defer end()
	_, err := f.catchUps.Do(over, part.Shard, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, f.mode().publishVisible(ctx, f, part.Shard)
	})
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return &feedtype.Error{Code: feedtype.NotConsistent, Object: feedtype.FeedObject(f.name), Cause: fmt.Sprintf("not everything that was committed before the request could be published within %s", wait),
			Next: "try again, with a longer wait; `rowfeed status " + f.name + "` tells how much is waiting and who is in the way"}
	}
	return f.db.store.Fail(feedtype.FeedObject(f.name), "publish what was committed before", err)
}
