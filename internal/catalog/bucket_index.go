package catalog

import (
	"context"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// VerifyParts returns why parts of the feed cannot be read, or only slowly. It is "" if nothing is wrong. Capture,
// publishing and pages of the whole feed do not need what it verifies.
func (f *Feed) VerifyParts(ctx context.Context) (problem string, err error) {
	problem, err = f.VerifyPartsOn(ctx, f.Store.On(), f.Record.Load())
	return problem, f.Fail("verify its index by bucket", err)
}

// MissingIndex is the error of a page of a part, with a problem that VerifyParts found.
func (f *Feed) MissingIndex(problem string) error {
	return &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.Name), Cause: problem,
		Next: "run `rowfeed feed upgrade " + f.Name + "`, which makes it again"}
}

// VerifyPartsOn is VerifyParts for a record, on a connection. It accepts an index that the feed does not need.
func (f *Feed) VerifyPartsOn(ctx context.Context, q dialect.Querier, r *FeedRecord) (problem string, err error) {
	feed := r.Feed(f.Store.Names)
	if r.State != StateActive || !feed.ByBucket() {
		return "", nil
	}
	steps, err := f.Store.Dialect.BucketIndex(ctx, q, feed)
	if err != nil || len(steps) == 0 {
		return "", err
	}
	return fmt.Sprintf("table %s has no index by bucket: parts of the feed cannot be read, or only slowly",
		feed.Positions()), nil
}
