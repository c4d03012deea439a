package rowfeed

import (
	"errors"

	"github.com/rowfeed/rowfeed/feedtype"
)

// byShard: parts of one sequence are no feeds by themselves.
func (sequenced) byShard(f *Feed) error {
	return &feedtype.Error{Code: feedtype.InvalidRequest, Object: feedtype.FeedObject(f.name), Cause: "its shards are parts of one feed", Err: errors.ErrUnsupported, Next: "read all of it, or parts"}
}

func (blocking) byShard(*Feed) error { return nil }
