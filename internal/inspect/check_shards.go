package inspect

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

// A key in the wrong data shard is in nobody's part: readers of the one that should have it
// have gone by. Publishers give a key its shard once and keep it, so it stays there until
// somebody looks. What can put it there is a column `shard` of the user's own table, which
// others may write, and a publisher of another make.

const (
	// checkBatch is the number of keys that are looked at together.
	checkBatch = 1000
	// namedPlaces are as many as one statement names.
	namedPlaces = 100
)

// places are keys of a feed that follow one another, as a look found them.
type places struct {
	r     *catalog.Record
	rows  bool  // of the source; else of the table of positions
	after []any // the key behind which they begin; nil: the first
	keys  []dialect.PlaceKey
	wrong []dialect.Sharded // those that have another shard, or bucket, than theirs
}

// look reads the places again, or for the first time. errRecordChanged means that the feed
// is being divided anew, or has been: the division that was looked for is no more.
func (p *places) look(ctx context.Context, tx dialect.Querier, db *store.Store) (err error) {
	if p.keys, err = dialect.WalkKeys(ctx, tx, db.Dialect, p.r.Feed(db.Names), p.rows, p.after, checkBatch); err != nil {
		return err
	}
	if len(p.keys) > 0 && p.after != nil && dialect.KeyIdentity(p.keys[0].Key) == dialect.KeyIdentity(p.after) {
		return fmt.Errorf("the walk along the key does not get beyond %v", p.after)
	}
	// The record is read behind the keys: what it is then it was when they were read.
	b := dialect.NewBuilder(db.Dialect)
	var n int64
	err = dialect.QueryRow(ctx, tx, "SELECT count(*) FROM "+db.Table("feeds")+" WHERE name = "+b.Arg(p.r.Name)+" AND generation = "+b.Arg(p.r.Generation)+
		" AND data_shards = "+b.Arg(int64(p.r.DataShards))+" AND state IN ("+b.Arg(catalog.StateFilling)+", "+b.Arg(catalog.StateActive)+")", b.Args(), &n)
	if err == nil && n != 1 {
		err = install.ErrRecordChanged
	}
	if err == nil {
		p.wrong, err = install.Misplaced(p.r, p.keys, p.rows)
	}
	return err
}

// lookAtShards walks along the keys, without locks, and hands those places to found where a
// key has not its shard. When the feed has become another meanwhile, by a bump or an
// upgrade, it is looked at again from its first key on; begin is called before each walk.
// While its keys are being given their shards nothing can be said of them: an error with
// the code Sharding.
func (f *Checker) lookAtShards(ctx context.Context, begin func(), found func(*places) error) error {
	for {
		r := f.Record.Load()
		switch {
		case r.DataShards <= 1:
			return nil
		case r.State == catalog.StateCreating:
			return &feedtype.Error{Code: feedtype.Sharding, Object: feedtype.FeedObject(f.Name), Cause: "it is being made, and the shards of its keys were not looked at",
				Next: "wait for `rowfeed feed add " + f.Name + "`, or run it again with its options where it broke off"}
		case r.State == catalog.StateSharding:
			return &feedtype.Error{Code: feedtype.Sharding, Object: feedtype.FeedObject(f.Name), Cause: fmt.Sprintf("its keys are being given their shards among %d, and were not looked at", r.DataShards),
				Next: catalog.FinishSharding(f.Name, r.DataShards)}
		}
		begin()
		if err := f.walkShards(ctx, r, found); !errors.Is(err, install.ErrRecordChanged) {
			return err
		}
		if err := f.Reload(ctx); err != nil {
			return err
		}
	}
}

// walkShards is one walk of lookAtShards; errRecordChanged ends it.
func (f *Checker) walkShards(ctx context.Context, r *catalog.Record, found func(*places) error) error {
	walks := []bool{false}
	if r.Capture == feedtype.CaptureColumn {
		walks = append(walks, true)
	}
	for _, rows := range walks {
		for after := []any(nil); ; {
			p := &places{r: r, rows: rows, after: after}
			err := f.Store.InTx(ctx, dialect.ForRead, "look at the shards of "+f.Name, func(tx dialect.Querier) error { return p.look(ctx, tx, f.Store) })
			if err == nil && len(p.wrong) > 0 {
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

// errEnough ends a walk that has found as much as anybody wants to read.
var errEnough = errors.New("enough is known")

// checkShards finds the keys that are in other data shards than theirs. A key's shard is a
// question about this key alone, so that one look at each is enough.
func (f *Checker) checkShards(ctx context.Context) (findings []admin.Finding, err error) {
	err = f.lookAtShards(ctx, func() { findings = nil }, func(p *places) error {
		columns := make([]feedtype.Column, len(p.r.Key))
		for i, c := range p.r.Key {
			columns[i] = c.ForReaders()
		}
		for _, w := range p.wrong {
			k := p.keys[slices.IndexFunc(p.keys, func(k dialect.PlaceKey) bool { return k.Position != nil && *k.Position == w.Position })]
			key, err := feedtype.NewRow(columns, k.Key)
			if err != nil {
				return err
			}
			findings = append(findings, admin.Finding{Rule: admin.RuleShard, Key: &key, Problem: misplacedAs(k, w.Shard)})
			if len(findings) == maxFindings {
				return errEnough
			}
		}
		return nil
	})
	var untold *feedtype.Error
	switch {
	case errors.Is(err, errEnough):
		err = nil
	case errors.As(err, &untold) && untold.Code == feedtype.Sharding:
		return []admin.Finding{{Rule: admin.RuleShard, Problem: untold.Cause + ": " + untold.Next}}, nil
	}
	return findings, f.Explain(ctx, "check its shards", err)
}

// misplacedAs says how a key stands that belongs into a shard.
func misplacedAs(k dialect.PlaceKey, shard int) string {
	switch {
	case k.Shard == nil:
		return fmt.Sprintf("it has no data shard, and belongs into %d", shard)
	case *k.Shard != int64(shard):
		return fmt.Sprintf("it is in data shard %d, and belongs into %d", *k.Shard, shard)
	}
	return fmt.Sprintf("it is in data shard %d, but in bucket %d of another", shard, *k.Bucket)
}
