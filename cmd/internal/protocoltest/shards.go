package protocoltest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
)

// shardsTried bounds how many shards are read.
const shardsTried = 8

// unknownShard is the data shard of an entry whose data shard is not known.
const unknownShard = -1

// parts reads a feed part by part, and returns an error if a part has an entry of another part's data shards.
func (f *feed) parts(ctx context.Context, count int, upto string) (all []entry, err error) {
	for i := range count {
		some, _, _, err := f.readTo(ctx, f.with("shard", strconv.Itoa(i), "shard_count", strconv.Itoa(count)), 500,
			upto)
		if err != nil {
			return nil, err
		}
		low, high := int64(i*f.info.DataShards/count), int64((i+1)*f.info.DataShards/count)
		for _, e := range some {
			// All entries of an undivided feed are of data shard 0.
			if f.info.DataShards > 1 && *e.Shard != unknownShard && (*e.Shard < low || *e.Shard >= high) {
				return nil, fmt.Errorf("part %d of %d has position %s of data shard %d, and is of %d to %d",
					i, count, e.Position, *e.Shard, low, high-1)
			}
		}
		all = append(all, some...)
	}
	if slices.ContainsFunc(all, func(e entry) bool { return *e.Shard == unknownShard }) {
		return nil, untried("the feed has entries without a data shard")
	}
	return all, nil
}

func shardChecks() []check {
	return []check{
		{"4.1", "The parts of a feed (`shard` from 0 to `shard_count`-1) MUST together have each entry of the feed " +
			"that has a data shard once; part i of c has the data shards from floor(i*D/c) to below " +
			"floor((i+1)*D/c), where D counts as 1024 if it is 1.",
			func(ctx context.Context, f *feed) error {
				if f.info.ShardIDs != nil {
					return untried("the feed's shards are feeds by themselves")
				}
				for _, count := range []int{2, 3} {
					err := f.compared(ctx, func(upto string) ([]entry, error) { return f.parts(ctx, count, upto) })
					if err != nil {
						return fmt.Errorf("%d parts: %w", count, err)
					}
				}
				return nil
			}},
		{"4.2", "`shard` without `shard_count` MUST return the entries of that data shard, and no others.",
			func(ctx context.Context, f *feed) error {
				all, _, _, err := f.beginning(ctx, 1)
				if err != nil {
					return err
				}
				shards := slices.Clone(f.info.ShardIDs)
				for _, e := range all {
					if len(shards) < shardsTried && !slices.Contains(shards, *e.Shard) {
						shards = append(shards, *e.Shard)
					}
				}
				for _, shard := range shards[:min(len(shards), shardsTried)] {
					page, err := f.fetch(ctx, f.with("shard", strconv.FormatInt(shard, 10), "limit", "500"))
					if err != nil {
						return err
					}
					for _, e := range page.Entries {
						if e.Shard == nil || *e.Shard != shard {
							return fmt.Errorf("shard %d has position %s of another", shard, e.Position)
						}
					}
				}
				if f.info.ShardIDs != nil {
					return nil
				}
				one := *all[0].Shard
				of := func(all []entry) []entry {
					return slices.DeleteFunc(slices.Clone(all), func(e entry) bool { return *e.Shard != one })
				}
				upto := all[len(all)-1].Position
				between, _, _, err := f.readTo(ctx, f.with("shard", strconv.FormatInt(one, 10)), 500, upto)
				if err != nil {
					return err
				}
				after, _, _, err := f.readTo(ctx, nil, 500, upto)
				if err != nil {
					return err
				}
				return same(of(all), between, of(after))
			}},
		{"4.3", "A shard that the feed or shard_count does not have MUST be refused with 400 and the parameter " +
			"shard, and a shard_count above D with the parameter shard_count.",
			func(ctx context.Context, f *feed) error {
				if f.info.ShardIDs != nil {
					return untried("the feed's shards are feeds by themselves, of any number")
				}
				ofParts := f.badParameter("shard", "2")
				ofParts.query.Set("shard_count", "2")
				most := f.info.DataShards
				if most == 1 {
					most = 1024
				}
				tooMany := f.badParameter("shard_count", strconv.Itoa(most+1))
				tooMany.query.Set("shard", "0")
				return f.problems(ctx, f.badParameter("shard", strconv.Itoa(f.info.DataShards)),
					f.badParameter("shard", "-1"), ofParts, tooMany)
			}},
		{"4.4", "A cursor that a page of a part has returned MUST be refused with 409 and the code other-part by a " +
			"request for keys of other parts.",
			func(ctx context.Context, f *feed) error {
				if f.info.ShardIDs != nil {
					return untried("the feed's shards are feeds by themselves")
				}
				page, err := f.fetch(ctx, f.with("shard", "0", "shard_count", "2", "after", "now"))
				if err != nil {
					return err
				}
				if *page.Cursor == "" {
					return untried("the feed has no entries")
				}
				other := expected{path: f.fetchPath(), status: 409, code: "other-part",
					query: f.with("shard", "1", "shard_count", "2", "after", *page.Cursor)}
				whole := other
				whole.query = f.with("after", *page.Cursor)
				return f.problems(ctx, other, whole)
			}},
	}
}
