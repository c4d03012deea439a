package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/install"
	"github.com/rowfeed/rowfeed/internal/store"
)

// A key in the wrong data shard is missed: the readers of its right part do not see it. Publishers give a key its shard
// once and keep it. A wrong shard can come from a column `shard` of the user's own table, which other programs may
// write, or from a publisher that is not rowfeed's.

const (
	// checkBatch is the number of keys that one transaction reads.
	checkBatch = 1000
	// positionsPerStatement is the number of positions that one statement names.
	positionsPerStatement = 100
)

// keyBatch has consecutive keys of a feed, as read by one transaction.
type keyBatch struct {
	r     *catalog.FeedRecord
	rows  bool  // rows of the source, else of the table of positions
	after []any // the key before the first; nil at the beginning
	keys  []dialect.PlaceKey
	wrong []dialect.Sharded // the keys in a wrong shard or bucket
	// moved are the keys whose rows hold another data shard than the one that they keep, or none of the feed's.
	moved []dialect.PlaceKey
}

// read reads the keys, or reads them again. The error is install.ErrRecordChanged if the number of data shards is being
// changed, or was changed since the walk began.
func (p *keyBatch) read(ctx context.Context, tx dialect.Querier, db *store.Store) (err error) {
	p.keys, err = dialect.WalkKeys(ctx, tx, db.Dialect.Syntax, p.r.Feed(db.Names), p.rows, p.after, checkBatch)
	if err != nil {
		return err
	}
	if len(p.keys) > 0 && p.after != nil && dialect.KeyIdentity(p.keys[0].Key) == dialect.KeyIdentity(p.after) {
		return fmt.Errorf("reading the rows in key order does not advance beyond key %v", p.after)
	}
	// The record is read after the keys. If it is unchanged then, it was the same when the keys were read.
	var n int64
	err = db.One(ctx, tx, statements, "record_is_unchanged", dialect.Args{"feed": p.r.Name,
		"generation": p.r.Generation, "data_shards": int64(p.r.DataShards), "filling": catalog.StateFilling,
		"active": catalog.StateActive}, &n)
	if err == nil && n != 1 {
		err = install.ErrRecordChanged
	}
	if err == nil {
		p.wrong, err = install.Misplaced(p.r, p.keys, p.rows)
	}
	p.moved = nil
	if p.r.Capture == feedtype.CaptureColumn && !p.rows {
		return err // entries of such rows are replaced by the rows, with the shards that they hold
	}
	kept := !p.r.Feed(db.Names).RowShards()
	for _, k := range p.keys {
		if k.Own != nil && k.Position != nil && (*k.Own < 0 || kept && *k.Shard >= 0 && *k.Own != *k.Shard) {
			p.moved = append(p.moved, k)
		}
	}
	return err
}

// walkShards reads all keys without locks, and calls found for batches that have keys in a wrong shard. It calls begin
// before each walk, and starts again if the feed was changed by a bump or an upgrade. While keys are being assigned to
// shards the error has the code Sharding.
func (f *Checker) walkShards(ctx context.Context, begin func(), found func(*keyBatch) error) error {
	for {
		r := f.Record.Load()
		switch {
		case r.DataShards <= 1:
			return nil
		case r.State == catalog.StateCreating:
			return &feedtype.Error{
				Code:   feedtype.Sharding,
				Object: feedtype.FeedObject(f.Name),
				Cause:  "the feed is still being added, and the shards of its keys were not checked",
				Next: "wait for `rowfeed feed add " + f.Name + "`, or run it again with the same options if it " +
					"was interrupted",
			}
		case r.State == catalog.StateSharding:
			return &feedtype.Error{
				Code:   feedtype.Sharding,
				Object: feedtype.FeedObject(f.Name),
				Cause: fmt.Sprintf("its keys are being assigned to %d data shards, and were not checked",
					r.DataShards),
				Next: catalog.FinishSharding(f.Name, r.DataShards),
			}
		}
		begin()
		if err := f.walkOnce(ctx, r, found); !errors.Is(err, install.ErrRecordChanged) {
			return err
		}
		if err := f.Reload(ctx); err != nil {
			return err
		}
	}
}

// walkOnce is one walk of walkShards. The error is install.ErrRecordChanged if the feed has changed.
func (f *Checker) walkOnce(ctx context.Context, r *catalog.FeedRecord, found func(*keyBatch) error) error {
	walks := []bool{false}
	if r.Capture == feedtype.CaptureColumn {
		walks = append(walks, true)
	}
	for _, rows := range walks {
		for after := []any(nil); ; {
			p := &keyBatch{r: r, rows: rows, after: after}
			err := f.Store.InTx(ctx, dialect.ForRead, "check the shards of "+f.Name,
				func(tx dialect.Querier) error { return p.read(ctx, tx, f.Store) })
			if err == nil && len(p.wrong)+len(p.moved) > 0 {
				err = found(p)
			}
			if err != nil {
				return err
			}
			if len(p.keys) < checkBatch {
				break
			}
			after = p.keys[len(p.keys)-1].Key
		}
	}
	return nil
}

// errEnough ends a walk that has found maxFindings keys.
var errEnough = errors.New("the maximum number of findings is reached")

// checkShards finds the keys in a wrong data shard. The right shard depends on the key alone, so one read of each key
// is enough.
func (f *Checker) checkShards(ctx context.Context) (findings []admin.Finding, err error) {
	err = f.walkShards(ctx, func() { findings = nil }, func(p *keyBatch) error {
		columns := make([]feedtype.Column, len(p.r.Key))
		for i, c := range p.r.Key {
			columns[i] = c.ForReaders()
		}
		tell := func(rule string, k dialect.PlaceKey, problem string) error {
			key, err := feedtype.NewRow(columns, k.Key)
			if err != nil {
				return err
			}
			findings = append(findings, admin.Finding{Rule: rule, Key: &key, Problem: problem})
			if len(findings) == maxFindings {
				return errEnough
			}
			return nil
		}
		for _, k := range p.moved {
			if err := tell(admin.RuleOwnShard, k, movedText(p.r, k)); err != nil {
				return err
			}
		}
		for _, w := range p.wrong {
			k := p.keys[slices.IndexFunc(p.keys, func(k dialect.PlaceKey) bool {
				return k.Position != nil && *k.Position == w.Position
			})]
			if err := tell(admin.RuleShard, k, misplacedText(k, w.Shard)); err != nil {
				return err
			}
		}
		return nil
	})
	var refused *feedtype.Error
	switch {
	case errors.Is(err, errEnough):
		err = nil
	case errors.As(err, &refused) && refused.Code == feedtype.Sharding:
		return []admin.Finding{{Rule: admin.RuleShard, Problem: refused.Cause + ": " + refused.Next}}, nil
	}
	return findings, f.Explain(ctx, "check its shards", err)
}

// movedText says what the row of a key holds.
func movedText(r *catalog.FeedRecord, k dialect.PlaceKey) string {
	holds := fmt.Sprintf("its column %s holds data shard %d", r.OwnShard(), *k.Own)
	if *k.Own < 0 {
		holds = fmt.Sprintf("its column %s holds none of the data shards 0 to %d", r.OwnShard(), r.DataShards-1)
	}
	if k.Shard == nil || *k.Shard < 0 {
		return holds + ": no reader of a part gets the row"
	}
	return fmt.Sprintf("%s, but the key stays in data shard %d, which it had first, and readers of that shard get the "+
		"row: set the column to %d, or leave it", holds, *k.Shard, *k.Shard)
}

// misplacedText says where a key is that belongs to a shard.
func misplacedText(k dialect.PlaceKey, shard int) string {
	switch {
	case k.Shard == nil:
		return fmt.Sprintf("it has no data shard, but belongs to shard %d", shard)
	case *k.Shard != int64(shard):
		return fmt.Sprintf("it is in data shard %d, but belongs to shard %d", *k.Shard, shard)
	}
	return fmt.Sprintf("it is in data shard %d, but in bucket %d, which belongs to another shard", shard, *k.Bucket)
}
