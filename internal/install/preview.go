package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

var errPreview = errors.New("only a preview")

// PreviewAdd says what Create would do, or refuses what it would refuse. It registers the feed in a transaction that it
// rolls back: this part of Create has no DDL.
func (db *Database) PreviewAdd(ctx context.Context, spec feedtype.FeedSpec) (*feedtype.AddPlan, error) {
	spec, err := checkSpec(spec)
	if err != nil {
		return nil, err
	}
	source, err := catalog.ParseTable(spec.Table)
	if err != nil {
		return nil, err
	}
	if err := db.RequireSchema(ctx, db.On()); err != nil {
		return nil, err
	}
	plan := &feedtype.AddPlan{}
	err = db.InTx(ctx, dialect.ForRecord, "preview feed add "+spec.Name, func(tx dialect.Querier) (err error) {
		c := &creation{db: db, q: tx, spec: spec}
		*plan, err = c.preview(ctx, source)
		return cmp.Or(err, errPreview)
	})
	if errors.Is(err, errPreview) {
		return plan, nil
	}
	return nil, db.Fail(feedtype.FeedObject(spec.Name), "preview the adding of", err)
}

func (c *creation) preview(ctx context.Context, source feedtype.TableName) (plan feedtype.AddPlan, err error) {
	if err := c.describe(ctx, source); err != nil {
		return plan, err
	}
	if c.known != nil && c.known.State != catalog.StateDropped {
		if plan.Exists, err = c.resume(ctx); err != nil || plan.Exists {
			return plan, err
		}
	} else if err := c.register(ctx); err != nil {
		return plan, err
	}
	plan.Added, plan.Head, plan.Generation = c.record.Added, c.first, c.record.Generation
	for _, former := range c.cursors {
		plan.Consumers = append(plan.Consumers, fmt.Sprintf("%s at position %d", former.consumer, former.position))
	}
	plan.Others = c.others
	if before := c.record.Dropped; before != nil {
		plan.Continues, plan.From, plan.Restart = before.Continues(), before.Below, before.Why
	}
	return plan, nil
}
