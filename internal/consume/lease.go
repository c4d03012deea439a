package consume

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/lease"
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
	// Shards of ULID feeds keep their keys, so their workers may continue.
	parts := " AND shard_count > 1 AND NOT EXISTS (SELECT 1 FROM " + db.table("consumers") + " k WHERE k.consumer = " +
		db.table("cursors") + ".consumer AND k.feed = " + db.table("cursors") + ".feed)"
	// Lock first, so that no instance claims a cursor under a higher epoch in between.
	b := db.builder()
	if _, err := tx.Exec(ctx, "UPDATE "+db.table("cursors")+" SET version = version + 1 WHERE "+WhereID(b, whole)+parts,
		b.Args()...); err != nil {
		return err
	}
	type highest struct {
		feed  string
		epoch int64
	}
	b = db.builder()
	all, err := dialect.QueryAll(ctx, tx, "SELECT feed, MAX(epoch) FROM "+db.table("cursors")+" WHERE "+
		WhereID(b, whole)+parts+" GROUP BY feed ORDER BY feed", b.Args(),
		func(rows dialect.Rows) (h highest, err error) { return h, rows.Scan(&h.feed, &h.epoch) })
	if err != nil {
		return err
	}
	for _, h := range all {
		id.Feed = h.feed
		b := db.builder()
		if _, err := tx.Exec(ctx, "UPDATE "+db.table("cursors")+" SET epoch = "+b.Arg(h.epoch+1)+" WHERE "+
			WhereID(b, id), b.Args()...); err != nil {
			return err
		}
	}
	return nil
}

// KeepEpochs stores the highest epochs of cursors that are about to be deleted.
func (db *Consumers) KeepEpochs(ctx context.Context, tx dialect.Querier, id feedtype.ConsumerID) error {
	type highest struct {
		consumer, feed string
		epoch          int64
	}
	// Lock first, so that no instance claims a cursor under a higher epoch in between.
	b := db.builder()
	if _, err := tx.Exec(ctx, "UPDATE "+db.table("cursors")+" SET version = version + 1 WHERE "+WhereID(b, id),
		b.Args()...); err != nil {
		return err
	}
	b = db.builder()
	all, err := dialect.QueryAll(ctx, tx, "SELECT consumer, feed, MAX(epoch) FROM "+db.table("cursors")+" WHERE "+
		WhereID(b, id)+" GROUP BY consumer, feed HAVING MAX(epoch) > 0 ORDER BY feed", b.Args(),
		func(rows dialect.Rows) (h highest, err error) { return h, rows.Scan(&h.consumer, &h.feed, &h.epoch) })
	if err != nil {
		return err
	}
	for _, h := range all {
		name, now := droppedLease(h.consumer, h.feed), db.now()
		b := db.builder()
		values := []string{b.Arg(name), "''", b.Arg(h.epoch), "NULL", now, "0"}
		if _, err := tx.Exec(ctx, db.Store.Dialect.InsertNew(db.table("leases"),
			[]string{"name", "owner", "epoch", "expires_at", "acquired_at", "renewals"},
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

// ShardLeases returns the held leases of the shards of consumers, by name. Those of relays with one shard are the
// relays' own. It sends no statement if there is no consumer.
func (db *Consumers) ShardLeases(ctx context.Context, rows []*CursorRow) (map[string]*feedtype.LeaseStatus, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	b := db.builder()
	named := func(prefix string) string {
		// ';' follows ':' in ASCII
		return "name >= " + b.Arg(prefix) + " AND name < " + b.Arg(strings.TrimSuffix(prefix, ":")+";")
	}
	all, err := dialect.QueryAll(ctx, db.Store.On(), lease.Columns(db.Store)+" WHERE "+named(ConsumerLeases)+" OR "+
		named(feedtype.RelayLeases), b.Args(), lease.Scan)
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
