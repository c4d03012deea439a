package dialect

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Moving are the operations of whoever moves records of an outbox to their places.
type Moving interface {
	// Bounded runs statements of a transaction ForMove that wait for other transactions' rows for
	// so long at most, on databases where its settings do not say how long.
	Bounded(ctx context.Context, tx Querier, wait time.Duration, fn func() error) error
	// ByShard follows the name of an outbox where it is read by its index of shard and order:
	// the hint that a database needs, which with the statistics of an empty outbox would
	// read all of it.
	ByShard() string
	// HasRecords is the cheap question that comes before a moving transaction, in one round
	// trip and without locks: whether a record waits in one of the shards, or in any where
	// none is named.
	HasRecords(ctx context.Context, q Querier, f *Feed, shards ...int) (bool, error)
	// PlaceRecords gives records of a shard their ULIDs, ascending as their seqs are. A key
	// that stands in the feed already, in whatever shard, moves its place; of several records
	// of one key the last gives it its place. A key's places only rise: where some stand above
	// theirs in other shards kept is not 0, or DeleteRecords leaves their records, and the transaction
	// is then to be rolled back. A ULID that another key has is an error, of this statement or by
	// the number that DeleteRecords answers. That deletes exactly those records (seqs ascending),
	// locks no other record, and answers how many there were.
	PlaceRecords(ctx context.Context, tx Querier, f *Feed, shard int, moved []Moved) (kept int64, err error)
	DeleteRecords(ctx context.Context, tx Querier, f *Feed, seqs []int64) (int64, error)
	// DeletePlaces begins a DELETE of places, alias g, up to its WHERE. It finds them by shard and
	// ULID, and touches those of no other shard.
	DeletePlaces(f *Feed) string
}

// Record is a record of a feed's outbox.
type Record struct {
	Seq        int64
	HintMillis *int64 // Unix time, where the writer has given one
}

// Moved is a record with the ULID that it gets.
type Moved struct {
	Seq      int64
	Position Position
}

// TakeRecords reads the oldest committed records of a shard, but some, in the order in which they were
// written, without locks.
func TakeRecords(ctx context.Context, tx Querier, d Dialect, f *Feed, shard int, but []int64, limit int) ([]Record, error) {
	b := NewBuilder(d)
	query := "SELECT order_sequence, time_hint FROM " + Qualified(d, f.Records()) + inOrder(b, d.ByShard(), shard, but, "") + " LIMIT " + b.Arg(limit)
	return QueryAll(ctx, tx, query, b.Args(), func(rows Rows) (r Record, err error) { return r, rows.Scan(&r.Seq, &r.HintMillis) })
}

// HighestPlace is the highest ULID, in whatever shard, of keys that a shard's records have, from one
// order_sequence to another; zero where none has a place.
func HighestPlace(ctx context.Context, tx Querier, d Dialect, f *Feed, shard int, first, last int64) (Position, error) {
	b := NewBuilder(d)
	query := "SELECT " + d.Value(f.ULIDs.Position, Ref(d, "g", "ulid")) + " FROM " + Qualified(d, f.Records()) + " o JOIN " + Qualified(d, f.Placed()) + " g ON " + StoredJoin(d, f, "g", "o") +
		" WHERE o.shard = " + b.Arg(shard) + " AND o.order_sequence BETWEEN " + b.Arg(first) + " AND " + b.Arg(last) + " ORDER BY g.ulid DESC LIMIT 1"
	var highest ScanULID
	err := QueryRow(ctx, tx, query, b.Args(), &highest)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return highest.Position, err
}

// PlacedElsewhere is the number of a shard's records, from one order_sequence to another, whose keys have
// places in other shards.
func PlacedElsewhere(ctx context.Context, tx Querier, d Dialect, f *Feed, shard int, first, last int64) (n int64, err error) {
	b := NewBuilder(d)
	query := "SELECT count(*) FROM " + Qualified(d, f.Records()) + " o JOIN " + Qualified(d, f.Placed()) + " g ON " + StoredJoin(d, f, "g", "o") +
		" WHERE o.shard = " + b.Arg(shard) + " AND o.order_sequence BETWEEN " + b.Arg(first) + " AND " + b.Arg(last) + " AND g.shard <> o.shard"
	err = QueryRow(ctx, tx, query, b.Args(), &n)
	return n, err
}

// NewestRecord is the highest order_sequence of a shard's committed records; 0 where none waits.
func NewestRecord(ctx context.Context, q Querier, d Dialect, f *Feed, shard int) (seq int64, err error) {
	b := NewBuilder(d)
	err = QueryRow(ctx, q, "SELECT order_sequence FROM "+Qualified(d, f.Records())+inOrder(b, d.ByShard(), shard, nil, " DESC")+" LIMIT 1", b.Args(), &seq)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return seq, err
}

// inOrder follows the outbox's name in a query for the records of one shard, in their order.
// Where no hint names the index the shard is written as a range: the order by shard and
// order_sequence is then one that the primary key does not have, by which a planner that
// thinks the shard's records frequent would walk through those of all others. (With the hint a
// range would have MariaDB read all of it to its end.)
func inOrder(b *Builder, hint string, shard int, but []int64, direction string) string {
	var where, order string
	if hint != "" {
		where, order = hint+" WHERE shard = "+b.Arg(shard), " ORDER BY order_sequence"+direction
	} else {
		where, order = " WHERE shard BETWEEN "+b.Arg(shard)+" AND "+b.Arg(shard), " ORDER BY shard"+direction+", order_sequence"+direction
	}
	if len(but) > 0 {
		where += " AND order_sequence NOT IN (" + strings.Trim(SeqList(but), "[]") + ")"
	}
	return where + order
}

// FirstRecords is a query for those of the shards in which a record waits, in any order;
// without shards for one of any shard. It has no parameters.
func FirstRecords(d Dialect, f *Feed, shards ...int) string {
	records := Qualified(d, f.Records())
	if len(shards) == 0 {
		return "SELECT shard FROM " + records + d.ByShard() + " ORDER BY shard LIMIT 1"
	}
	parts := make([]string, len(shards))
	for i, shard := range shards {
		parts[i] = fmt.Sprintf("SELECT shard FROM (SELECT shard FROM %s%s LIMIT 1) s%d", records, inOrder(NewScript(d), d.ByShard(), shard, nil, ""), i)
	}
	return strings.Join(parts, " UNION ALL ")
}

// RecordShards are the first shards in which records wait, ascending; limit 0: all. They are found
// by stepping from one to the next in the index, whatever the number of records. (A recursive statement would do it in
// one round trip, and have MySQL and MariaDB read the whole index for each step.)
func RecordShards(ctx context.Context, q Querier, d Dialect, f *Feed, limit int) (all []int, err error) {
	for above := ""; ; above = fmt.Sprintf(" WHERE shard > %d", all[len(all)-1]) {
		var shard int
		err := QueryRow(ctx, q, "SELECT shard FROM "+Qualified(d, f.Records())+d.ByShard()+above+" ORDER BY shard LIMIT 1", nil, &shard)
		if errors.Is(err, sql.ErrNoRows) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if all = append(all, shard); len(all) == limit {
			return all, nil
		}
	}
}

// PlaceList writes places as JSON: pairs of a seq and a ULID, in hex.
func PlaceList(moved []Moved) string {
	list := make([]string, len(moved))
	for i, m := range moved {
		ulid := m.Position.Bytes()
		list[i] = fmt.Sprintf(`[%d,"%s"]`, m.Seq, hex.EncodeToString(ulid[:]))
	}
	return "[" + strings.Join(list, ",") + "]"
}
