package rowfeed

import (
	"context"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// VerifyParts says why parts of the feed cannot be read, or only slowly, while changes are
// captured and published, and the whole feed is read, as ever; empty when nothing is wrong.
func (f *Feed) VerifyParts(ctx context.Context) (problem string, err error) {
	problem, err = f.db.verifyParts(ctx, f.db.store.On(), f.catalog.Record.Load())
	return problem, f.db.store.Fail(feedtype.FeedObject(f.name), "verify its index by bucket", err)
}

// withoutIndex is the error that a problem of VerifyParts is, for whom it is in the way.
func (f *Feed) withoutIndex(problem string) error {
	return &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.name), Cause: problem, Next: "run `rowfeed feed upgrade " + f.name + "`, which makes it again"}
}

// verifyParts leaves an index alone that is there in vain.
func (db *DB) verifyParts(ctx context.Context, q dialect.Querier, r *catalog.Record) (problem string, err error) {
	feed := r.Feed(db.store.Names)
	if r.State != catalog.StateActive || !feed.ByBucket() {
		return "", nil
	}
	steps, err := db.store.Dialect.BucketIndex(ctx, q, feed)
	if err != nil || len(steps) == 0 {
		return "", err
	}
	return fmt.Sprintf("table %s has no index by bucket: parts of the feed cannot be read, or only slowly", feed.Positions()), nil
}
