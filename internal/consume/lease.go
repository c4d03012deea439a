package consume

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/lease"
	"github.com/rowfeed/rowfeed/internal/store"
)

// ConsumerLeases is the prefix of the names of the leases of consumers.
const ConsumerLeases = "consumer:"

// ConsumerGroup returns the name of the group whose jobs are the shards of a consumer. JobLease names the lease of
// each shard after it. A name that is too long ends with a digest.
func ConsumerGroup(consumer, feed string) string {
	name := ConsumerLeases + feed + ":" + consumer
	if len(name) <= lease.MaxGroupName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	digest := "~" + hex.EncodeToString(sum[:8])
	return name[:lease.MaxGroupName-len(digest)] + digest
}

// droppedLease returns the name of a lease that is never held. It keeps the highest epoch that a dropped consumer had.
// Receivers remember epochs, so the epochs of a consumer must grow even after it was dropped.
func droppedLease(consumer, feed string) string { return ConsumerGroup(consumer, feed) + "/dropped" }

// ConsumerEpoch returns the highest epoch under which the cursors of a consumer were claimed, dropped cursors
// included, or 0. Use it for Lease.Above when Consumer.Epoch is set: receivers that refuse lower epochs then accept
// the next delivery.
func (db *Consumers) ConsumerEpoch(ctx context.Context, consumer, feed string) (int64, error) {
	if err := db.Store.RequireSchema(ctx, db.Store.On()); err != nil {
		return 0, err
	}
	object := consumerObject(consumer, feed)
	rows, err := db.CursorsOf(ctx, db.Store.On(), consumer, feed)
	if err != nil {
		return 0, db.Store.Fail(object, "read its cursors", err)
	}
	// Read the cursors before the kept epoch: drop keeps the epoch before it deletes the cursors.
	kept, err := lease.Read(ctx, db.Store, db.Store.On(), droppedLease(consumer, feed))
	if err != nil {
		return 0, db.Store.Fail(object, "read its epoch", err)
	}
	highest := kept.Epoch
	for _, row := range rows {
		highest = max(highest, row.Epoch)
	}
	return highest, nil
}

// RaiseEpochs raises the epochs of cursors that are about to be set back. The new epoch is above all epochs of the
// consumer, so that the work under the current leases ends. rebalance.restart does the same.
func (db *Consumers) RaiseEpochs(ctx context.Context, tx dialect.Querier, id feedtype.ConsumerID) error {
	whole := feedtype.ConsumerID{Consumer: id.Consumer, Feed: id.Feed}
	// Lock first, so that no instance claims a cursor under a higher epoch in between.
	if _, err := db.exec(ctx, tx, "lock_parts", dialect.Args{"which": Which(whole)}); err != nil {
		return err
	}
	type highest struct {
		feed  string
		epoch int64
	}
	all, err := store.All(ctx, db.Store, tx, statements, "highest_epochs_of_parts", dialect.Args{"which": Which(whole)},
		func(rows dialect.Rows) (h highest, err error) { return h, rows.Scan(&h.feed, &h.epoch) })
	if err != nil {
		return err
	}
	for _, h := range all {
		id.Feed = h.feed
		args := dialect.Args{"epoch": h.epoch + 1, "which": Which(id)}
		if _, err := db.exec(ctx, tx, "raise_epochs", args); err != nil {
			return err
		}
	}
	return nil
}

// Drop deletes consumers: cursors, dead letters and processed ids. It returns the number of cursors.
func (db *Consumers) Drop(ctx context.Context, tx dialect.Querier, id feedtype.ConsumerID) (int64, error) {
	for _, name := range []string{"drop_consumers", "drop_letters", "drop_processed"} {
		if _, err := db.exec(ctx, tx, name, dialect.Args{"which": Which(id)}); err != nil {
			return 0, err
		}
	}
	if err := db.keepEpochs(ctx, tx, id); err != nil {
		return 0, err
	}
	return db.exec(ctx, tx, "drop_cursors", dialect.Args{"which": Which(id)})
}

// keepEpochs stores the highest epochs of cursors that are about to be deleted.
func (db *Consumers) keepEpochs(ctx context.Context, tx dialect.Querier, id feedtype.ConsumerID) error {
	type highest struct {
		consumer, feed string
		epoch          int64
	}
	// Lock first, so that no instance claims a cursor under a higher epoch in between.
	if _, err := db.exec(ctx, tx, "lock_cursors", dialect.Args{"which": Which(id)}); err != nil {
		return err
	}
	all, err := store.All(ctx, db.Store, tx, statements, "highest_epochs", dialect.Args{"which": Which(id)},
		func(rows dialect.Rows) (h highest, err error) { return h, rows.Scan(&h.consumer, &h.feed, &h.epoch) })
	if err != nil {
		return err
	}
	for _, h := range all {
		for _, name := range []string{"insert_dropped_lease", "raise_dropped_lease"} {
			args := dialect.Args{"name": droppedLease(h.consumer, h.feed), "epoch": h.epoch}
			if _, err := db.exec(ctx, tx, name, args); err != nil {
				return err
			}
		}
	}
	return nil
}

// ShardLeases returns the held leases of the shards of consumers, by name. Those of relays with one shard are the
// relays' own. It sends no statement if there is no consumer.
func (db *Consumers) ShardLeases(ctx context.Context, rows []*CursorRow) (map[string]*feedtype.LeaseStatus, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	beyond := func(prefix string) string { return strings.TrimSuffix(prefix, ":") + ";" } // ';' follows ':' in ASCII
	all, err := lease.Which(ctx, db.Store, db.part("leases_of_shards", dialect.Args{
		"consumers": ConsumerLeases, "beyond_consumers": beyond(ConsumerLeases),
		"relays": feedtype.RelayLeases, "beyond_relays": beyond(feedtype.RelayLeases)}))
	if err != nil {
		return nil, db.Store.Fail("leases", "list those of consumers", err)
	}
	held := map[string]*feedtype.LeaseStatus{}
	for _, s := range all {
		if lease.Held(s) {
			held[s.Name] = s
		}
	}
	return held, nil
}
