package consume

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/lease"
)

// ConsumerLeases begins the names of the leases of consumers' shards.
const ConsumerLeases = "consumer:"

// ConsumerGroup is the name of the group whose jobs are a consumer's shards: with it
// JobLease names the lease of each. Of a name that is too long for that a digest is left.
func ConsumerGroup(consumer, feed string) string {
	name := ConsumerLeases + feed + ":" + consumer
	if len(name) <= lease.MaxGroupName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	digest := "~" + hex.EncodeToString(sum[:8])
	return name[:lease.MaxGroupName-len(digest)] + digest
}

// droppedLease is the name of a lease that nobody ever holds: its epoch is the highest that
// a consumer had when it was dropped. Receivers remember epochs, and know nothing of drops
// or of the numbers of shards by which leases are named.
func droppedLease(consumer, feed string) string { return ConsumerGroup(consumer, feed) + "/dropped" }

// ConsumerEpoch is the highest epoch under which a consumer's cursors were ever claimed,
// also those that were dropped; 0 if there was none. It is for Lease.Above of whoever sets
// Consumer.Epoch: receivers that refuse lower epochs then take what is delivered next.
func (db *Consumers) ConsumerEpoch(ctx context.Context, consumer, feed string) (int64, error) {
	if err := db.Store.RequireSchema(ctx, db.Store.On()); err != nil {
		return 0, err
	}
	object := consumerObject(consumer, feed)
	rows, err := db.CursorsOf(ctx, db.Store.On(), consumer, feed)
	if err != nil {
		return 0, db.Store.Fail(object, "read its cursors", err)
	}
	// In this order: who does not find the cursors any more finds what drop has kept of them.
	kept, err := lease.Look(ctx, db.Store, db.Store.On(), droppedLease(consumer, feed))
	if err != nil {
		return 0, db.Store.Fail(object, "read its epoch", err)
	}
	highest := kept.Epoch
	for _, row := range rows {
		highest = max(highest, row.Epoch)
	}
	return highest, nil
}

// RaiseEpochs sets the epochs of cursors that are about to be set back above all that their
// consumers' have, so that the terms at work are over: see restart of a division, which does
// the same. A consumer's only shard has the epochs of whoever works on it, and of keys that
// no other shard had.
func (db *Consumers) RaiseEpochs(ctx context.Context, tx dialect.Querier, id feedtype.ConsumerID) error {
	whole := feedtype.ConsumerID{Consumer: id.Consumer, Feed: id.Feed}
	// A shard that is a feed by itself is not divided: whoever works on it goes on with it.
	parts := " AND shard_count > 1 AND NOT EXISTS (SELECT 1 FROM " + db.table("consumers") + " k WHERE k.consumer = " + db.table("cursors") + ".consumer AND k.feed = " + db.table("cursors") + ".feed)"
	// Locked first, so that nobody claims one of them, under a higher epoch, in between.
	b := db.builder()
	if _, err := tx.Exec(ctx, "UPDATE "+db.table("cursors")+" SET version = version + 1 WHERE "+WhereID(b, whole)+parts, b.Args()...); err != nil {
		return err
	}
	type highest struct {
		feed  string
		epoch int64
	}
	b = db.builder()
	all, err := dialect.QueryAll(ctx, tx, "SELECT feed, MAX(epoch) FROM "+db.table("cursors")+" WHERE "+WhereID(b, whole)+
		parts+" GROUP BY feed ORDER BY feed", b.Args(),
		func(rows dialect.Rows) (h highest, err error) { return h, rows.Scan(&h.feed, &h.epoch) })
	if err != nil {
		return err
	}
	for _, h := range all {
		id.Feed = h.feed
		b := db.builder()
		if _, err := tx.Exec(ctx, "UPDATE "+db.table("cursors")+" SET epoch = "+b.Arg(h.epoch+1)+" WHERE "+WhereID(b, id), b.Args()...); err != nil {
			return err
		}
	}
	return nil
}

// KeepEpochs notes the highest epochs of cursors that are about to be deleted.
func (db *Consumers) KeepEpochs(ctx context.Context, tx dialect.Querier, id feedtype.ConsumerID) error {
	type highest struct {
		consumer, feed string
		epoch          int64
	}
	// Locked first, so that nobody claims one of them, under a higher epoch, in between.
	b := db.builder()
	if _, err := tx.Exec(ctx, "UPDATE "+db.table("cursors")+" SET version = version + 1 WHERE "+WhereID(b, id), b.Args()...); err != nil {
		return err
	}
	b = db.builder()
	all, err := dialect.QueryAll(ctx, tx, "SELECT consumer, feed, MAX(epoch) FROM "+db.table("cursors")+" WHERE "+WhereID(b, id)+
		" GROUP BY consumer, feed HAVING MAX(epoch) > 0 ORDER BY feed", b.Args(),
		func(rows dialect.Rows) (h highest, err error) { return h, rows.Scan(&h.consumer, &h.feed, &h.epoch) })
	if err != nil {
		return err
	}
	for _, h := range all {
		name, now := droppedLease(h.consumer, h.feed), db.now()
		b := db.builder()
		values := []string{b.Arg(name), "''", b.Arg(h.epoch), "NULL", now, "0"}
		if _, err := tx.Exec(ctx, db.Store.Dialect.InsertNew(db.table("leases"), []string{"name", "owner", "epoch", "expires_at", "acquired_at", "renewals"},
			values, []string{"name"}), b.Args()...); err != nil {
			return err
		}
		b = db.builder()
		if _, err := tx.Exec(ctx, "UPDATE "+db.table("leases")+" SET epoch = "+b.Arg(h.epoch)+", acquired_at = "+now+
			" WHERE name = "+b.Arg(name)+" AND epoch < "+b.Arg(h.epoch), b.Args()...); err != nil {
			return err
		}
	}
	return nil
}

// ShardLeases are the leases of cursors' shards that somebody holds, by name. It asks
// nobody where no consumer has more than one shard.
func (db *Consumers) ShardLeases(ctx context.Context, rows []*CursorRow) (map[string]*feedtype.LeaseStatus, error) {
	if !slices.ContainsFunc(rows, func(r *CursorRow) bool { return r.ShardCount > 1 }) {
		return nil, nil
	}
	b := db.builder()
	all, err := dialect.QueryAll(ctx, db.Store.On(), lease.Columns(db.Store)+" WHERE name >= "+b.Arg(ConsumerLeases)+
		" AND name < "+b.Arg(strings.TrimSuffix(ConsumerLeases, ":")+";"), b.Args(), lease.Scan) // ';' is the one behind ':'
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
