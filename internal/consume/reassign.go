package consume

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// storedLetter is a dead letter whose shard is to be computed.
type storedLetter struct {
	shard      int
	digest     string
	key        string // JSON
	generation int64
	position   string
	dataShard  *int // of its entry; nil if an older rowfeed has stored the letter
}

// letters reads the dead letters of the consumer.
func (d *rebalance) letters(ctx context.Context, q dialect.Querier) ([]storedLetter, error) {
	return store.All(ctx, d.db.Store, q, statements, "letters_by_key", d.args(),
		func(rows dialect.Rows) (l storedLetter, err error) {
			return l, rows.Scan(&l.shard, &l.digest, &l.key, &l.generation, &l.position, &l.dataShard)
		})
}

// owner returns the shard to which the key of a dead letter belongs. The number of data shards may have changed since
// the letter was stored, so the data shard is computed from the key.
func (d *rebalance) owner(l storedLetter) int {
	if d.count == 1 {
		return 0
	}
	shard, err := d.dataShardOf(l)
	if err != nil || shard < 0 || shard >= d.dataShards() { // the key columns have changed: it can only be dropped
		return min(l.shard, d.count-1)
	}
	return partOf(shard, d.count, d.dataShards())
}

// reassign gives every dead letter to the shard of its key, and returns the number of dead letters of each shard.
func (d *rebalance) reassign(ctx context.Context, tx dialect.Querier, cursors []*CursorRow) ([]int64, error) {
	aside := make([]int64, d.count)
	if !slices.ContainsFunc(cursors, func(r *CursorRow) bool { return r.Aside > 0 }) {
		return aside, nil
	}
	letters, err := d.letters(ctx, tx)
	if err != nil {
		return nil, err
	}
	for i, l := range letters {
		home, change, args := d.owner(l), "", rowArgs(d.c.Name, d.info.Name, l.shard)
		args["digest"] = l.digest
		switch {
		case i+1 < len(letters) && letters[i+1].digest == l.digest:
			change = "drop_letter"
		case home != l.shard:
			change, args["to"] = "move_letter", home
			fallthrough
		default:
			aside[home]++
		}
		if change == "" {
			continue
		}
		if _, err := d.db.exec(ctx, tx, change, args); err != nil {
			return nil, err
		}
	}
	return aside, nil
}

// dataShardOf computes the data shard of the key of a dead letter. If the key does not determine it, the letter has it.
func (d *rebalance) dataShardOf(l storedLetter) (int, error) {
	if column := d.info.ShardColumn; column != "" && l.dataShard != nil &&
		!slices.ContainsFunc(d.info.Key, func(c feedtype.Column) bool { return c.Name == column }) {
		return *l.dataShard, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(l.key), &members); err != nil {
		return 0, err
	}
	row, ok, err := feedtype.ParseRow(members, d.info.Key)
	if err == nil && !ok {
		err = errors.New("it lacks the feed's key columns")
	}
	if err != nil {
		return 0, err
	}
	return feedtype.ShardBy(d.info.ShardColumn, row, d.dataShards()), nil
}
