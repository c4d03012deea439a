package rowfeed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rowfeed/rowfeed/dialect"
)

// A key in the wrong data shard is in nobody's part: readers of the one that should have it
// have gone by. Publishers give a key its shard once and keep it, so it stays there until
// somebody looks. What can put it there is a column `shard` of the user's own table, which
// others may write, and a publisher of another make. Where keys can be equal though they
// are spelled differently nothing is looked at: the first spelling gave the shard, and
// nobody knows it any more.

const (
	// checkBatch is the number of keys that are looked at together.
	checkBatch = 1000
	// fewPlaces are as many as one statement names, or one transaction takes from writers.
	fewPlaces = 100
)

// places are keys of a feed that follow one another, as a look found them.
type places struct {
	r     *record
	rows  bool  // of the source; else of the table of positions
	after []any // the key behind which they begin; nil: the first
	keys  []dialect.PlaceKey
	wrong []dialect.Sharded // those that have another shard, or bucket, than theirs
}

// look reads the places again, or for the first time. errRecordChanged means that the feed
// is being divided anew, or has been: the division that was looked for is no more.
func (p *places) look(ctx context.Context, tx dialect.Querier, db *DB) (err error) {
	if p.keys, err = dialect.WalkKeys(ctx, tx, db.d, p.r.feed(db.names), p.rows, p.after, checkBatch); err != nil {
		return err
	}
	// The record is read behind the keys: what it is then it was when they were read.
	b := dialect.NewBuilder(db.d)
	var n int64
	err = dialect.QueryRow(ctx, tx, "SELECT count(*) FROM "+db.table("feeds")+" WHERE name = "+b.Arg(p.r.Name)+" AND generation = "+b.Arg(p.r.Generation)+
		" AND data_shards = "+b.Arg(int64(p.r.DataShards))+" AND state IN ("+b.Arg(stateFilling)+", "+b.Arg(stateActive)+")", b.Args(), &n)
	if err == nil && n != 1 {
		err = errRecordChanged
	}
	if err == nil {
		p.wrong, err = p.r.misplaced(p.keys, p.rows)
	}
	return err
}

// lookAtShards walks along the keys, without locks, and hands those places to found where a
// key has not its shard. A feed that is divided anew meanwhile is left alone.
func (f *Feed) lookAtShards(ctx context.Context, found func(*places) error) error {
	r := f.record.Load()
	if r.DataShards <= 1 || r.inexact() >= 0 {
		return nil
	}
	walks := []bool{false}
	if r.Capture == dialect.CaptureColumn {
		walks = append(walks, true)
	}
	for _, rows := range walks {
		for after := []any(nil); ; {
			p := &places{r: r, rows: rows, after: after}
			err := f.db.inTx(ctx, dialect.ForRead, "look at the shards of "+f.name, func(tx dialect.Querier) error { return p.look(ctx, tx, f.db) })
			if err == nil && len(p.wrong) > 0 {
				err = found(p)
			}
			if errors.Is(err, errRecordChanged) {
				return nil
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
func (f *Feed) checkShards(ctx context.Context) (findings []Finding, err error) {
	err = f.lookAtShards(ctx, func(p *places) error {
		columns := make([]Column, len(p.r.Key))
		for i, c := range p.r.Key {
			columns[i] = Column{c.Name, c.Type, c.Kind}
		}
		for _, w := range p.wrong {
			k := p.keys[slices.IndexFunc(p.keys, func(k dialect.PlaceKey) bool { return k.Position != nil && *k.Position == w.Position })]
			key, err := newRow(columns, k.Key)
			if err != nil {
				return err
			}
			findings = append(findings, Finding{Rule: ruleShard, Key: &key, Problem: misplacedAs(k, w.Shard)})
			if len(findings) == maxFindings {
				return errEnough
			}
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return findings, f.settle(ctx, "check its shards", err)
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

// repairShards gives keys their data shards and has them published anew, so that the
// readers of their parts are told of them, wherever their cursors are. It answers how many.
func (f *Feed) repairShards(ctx context.Context) (total int64, err error) {
	in := func(give func(dialect.Querier) (int64, error)) error {
		var n int64
		err := f.db.inTx(ctx, dialect.ForPublish, "give keys of "+f.name+" their shards", func(tx dialect.Querier) (err error) {
			n, err = give(tx)
			return err
		})
		if err == nil {
			total += n
		}
		return err
	}
	err = f.lookAtShards(ctx, func(p *places) error {
		if !p.rows {
			return in(func(tx dialect.Querier) (int64, error) { return f.giveShardsAgain(ctx, tx, p) })
		}
		for part := range slices.Chunk(p.wrong, fewPlaces) {
			if err := in(func(tx dialect.Querier) (int64, error) { return f.waitAgain(ctx, tx, p.r.feed(f.db.names), part) }); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, errNoRows) { // dropped meanwhile
		err = firstError(f.reload(ctx), err)
	}
	return total, f.settle(ctx, "give keys their shards", err)
}

// waitAgain lets rows wait for a position, with which a publisher gives them their shard.
// One that has had another position meanwhile has got it already. They are taken one by
// one: a list may be read as a scan, which would wait for rows that others hold.
func (f *Feed) waitAgain(ctx context.Context, tx dialect.Querier, feed *dialect.Feed, wrong []dialect.Sharded) (total int64, err error) {
	for _, w := range wrong {
		b := dialect.NewBuilder(f.db.d)
		n, err := f.db.d.ResetRows(ctx, tx, feed, "t.feed_sync_id = "+b.Arg(w.Position), b.Args())
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// giveShardsAgain writes shards in the table of positions, and records the keys. The
// sequence's lock keeps positions, and the division of the feed, as they are.
func (f *Feed) giveShardsAgain(ctx context.Context, tx dialect.Querier, p *places) (total int64, err error) {
	d, feed := f.db.d, p.r.feed(f.db.names)
	if _, err := d.LockSequence(ctx, tx, feed); err != nil {
		return 0, err
	}
	if err := p.look(ctx, tx, f.db); err != nil || len(p.wrong) == 0 {
		return 0, err
	}
	if n, err := d.SetShards(ctx, tx, feed, false, p.wrong); err != nil || n != int64(len(p.wrong)) {
		return 0, firstError(err, fmt.Errorf("%d of %d positions could be given their shards: somebody else writes %s", n, len(p.wrong), feed.Positions()))
	}
	// A key that is hidden is to be told as a delete, and stays hidden.
	for hidden, kind := range []dialect.ChangeKind{dialect.Changed, dialect.Unpublished} {
		for part := range slices.Chunk(p.wrong, fewPlaces) {
			b := dialect.NewBuilder(d)
			positions := ""
			for i, w := range part {
				if i > 0 {
					positions += ", "
				}
				positions += b.Arg(w.Position)
			}
			n, err := tx.Exec(ctx, recordFrom(d, feed, dialect.StoredRefs(d, feed, "p"), kind, " FROM "+dialect.Qualified(d, feed.Positions())+
				" p WHERE p.feed_sync_id IN ("+positions+") AND p.hidden = "+b.Arg(hidden)), b.Args()...)
			if err != nil {
				return 0, err
			}
			total += n
		}
	}
	return total, nil
}
