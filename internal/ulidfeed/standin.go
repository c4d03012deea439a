package ulidfeed

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Waiting returns the first shard with records, its highest ULID and how far all shards are, or "" if no record waits.
func (f *Outbox) Waiting(ctx context.Context) (string, error) {
	r := f.Record.Load()
	feed, among := r.Feed(f.Store.Names), f.Gaps.Since(r.Generation)
	waiting, err := f.Store.Dialect.HasRecords(ctx, f.Store.On(), feed, among)
	if err != nil || !waiting {
		return "", err
	}
	shards, err := recordShards(ctx, f.Feed, among, 1)
	if err != nil || len(shards) == 0 {
		return "", err
	}
	b := dialect.NewBuilder(f.Store.Dialect.Syntax)
	query := dialect.ReadShard(f.Store.Dialect.Syntax, b, feed, shards[0])
	state, err := dialect.ScanShard(ctx, f.Store.On(), shards[0], query, b.Args())
	if errors.Is(err, store.ErrNoRows) { // the shard has no position yet
		err = nil
	}
	if err != nil {
		return "", err
	}
	// Another transaction may hold that shard, while the holder of the lease moves the records of others.
	var others string
	err = f.Store.One(ctx, f.Store.On(), statements, "sum_of_times", dialect.Args{"feed": f.Name}, &others)
	return fmt.Sprintf("%d %s %s", shards[0], state.Given(), others), err
}
