package dialect

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Moving are the operations of whoever moves records of an outbox to their places.
type Moving interface {
	// Bounded runs statements of a transaction ForMove that wait for other transactions' rows for
	// so long at most, on databases where its settings do not say how long.
	Bounded(ctx context.Context, tx Querier, wait time.Duration, fn func() error) error
	// ByShard is for reading an outbox by its index of shard and order. The hint follows its name where a
	// database needs one, which with the statistics of an empty outbox would
	// read all of it. Then the condition, which may be empty, says among which numbers it looks.
	ByShard(among Seqs) (hint, condition string)
	// HasRecords is the cheap question that comes before a moving transaction, in one round
	// trip and without locks: whether a record waits, among some numbers, in one of the shards, or in any where
	// none is named.
	HasRecords(ctx context.Context, q Querier, f *Feed, among Seqs, shards ...int) (bool, error)
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
	Position feedtype.Position
}

// TakeRecords reads the oldest committed records of a shard among some numbers, but some, in the order in which they were
// written, without locks.
func TakeRecords(ctx context.Context, tx Querier, d Dialect, f *Feed, shard int, among Seqs, but []int64, limit int) ([]Record, error) {
	b := NewBuilder(d)
	const columns = "SELECT order_sequence, time_hint FROM "
	var looks []string
	for _, which := range inOrder(b, d.ByShard, shard, among, but, "") {
		looks = append(looks, columns+Qualified(d, f.Records())+which+" LIMIT "+b.Arg(limit))
	}
	query := looks[0]
	if len(looks) > 1 {
		query = columns + "((" + strings.Join(looks, ") UNION ALL (") + ")) o ORDER BY order_sequence LIMIT " + b.Arg(limit)
	}
	return QueryAll(ctx, tx, query, b.Args(), func(rows Rows) (r Record, err error) { return r, rows.Scan(&r.Seq, &r.HintMillis) })
}

// HighestPlace is the highest ULID, in whatever shard, of keys that a shard's records have, from one
// order_sequence to another; zero where none has a place.
func HighestPlace(ctx context.Context, tx Querier, d Dialect, f *Feed, shard int, first, last int64) (feedtype.Position, error) {
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
	err = QueryRow(ctx, q, "SELECT order_sequence FROM "+Qualified(d, f.Records())+inOrder(b, d.ByShard, shard, Seqs{}, nil, " DESC")[0]+" LIMIT 1", b.Args(), &seq)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return seq, err
}

// inOrder are looks for the records of one shard among some numbers, in their order: each follows the outbox's
// name. What is above an order_sequence of the shard is found by both columns together, where the index begins.
// Where no hint names the index the shard is written as a range: the order by shard and
// order_sequence is then one that the primary key does not have, by which a planner that
// thinks the shard's records frequent would walk through those of all others. (With the hint a
// range would have MariaDB read all of it to its end.)
func inOrder(b *Builder, byShard func(Seqs) (string, string), shard int, among Seqs, but []int64, direction string) (looks []string) {
	var and string
	if len(but) > 0 {
		and = " AND order_sequence NOT IN (" + strings.Trim(SeqList(but), "[]") + ")"
	}
	if hint, condition := byShard(among); hint != "" {
		return []string{hint + " WHERE shard = " + b.Arg(shard) + condition + and + " ORDER BY order_sequence" + direction}
	}
	order := " ORDER BY shard" + direction + ", order_sequence" + direction
	if among.All() {
		return []string{" WHERE shard BETWEEN " + b.Arg(shard) + " AND " + b.Arg(shard) + and + order}
	}
	for _, g := range among.Gaps {
		looks = append(looks, " WHERE (shard, order_sequence) >= ("+b.Arg(shard)+", "+b.Arg(g.First)+") AND (shard, order_sequence) <= ("+b.Arg(shard)+", "+b.Arg(g.Last())+")"+and+order)
	}
	return append(looks, " WHERE (shard, order_sequence) > ("+b.Arg(shard)+", "+b.Arg(among.Above)+") AND shard <= "+b.Arg(shard)+and+order)
}

// FirstRecords is a query for those of the shards in which a record waits, among some numbers, in any order, and
// more than once maybe; without shards for some of any shard. It has no parameters.
func FirstRecords(d Dialect, f *Feed, among Seqs, shards ...int) string {
	records := Qualified(d, f.Records())
	if len(shards) == 0 && among.All() {
		hint, _ := d.ByShard(among)
		return "SELECT shard FROM " + records + hint + " ORDER BY shard LIMIT 1"
	}
	if len(shards) == 0 {
		return oldestRecords(d, f, among, 1)
	}
	var looks []string
	for _, shard := range shards {
		for _, which := range inOrder(NewScript(d), d.ByShard, shard, among, nil, "") {
			looks = append(looks, fmt.Sprintf("SELECT shard FROM (SELECT shard FROM %s%s LIMIT 1) s%d", records, which, len(looks)))
		}
	}
	return strings.Join(looks, " UNION ALL ")
}

// oldestRecords is a query for the shards of the first records, up to limit of each look among some numbers, by the primary key.
func oldestRecords(d Dialect, f *Feed, among Seqs, limit int) string {
	var looks []string
	for i, which := range d.Which("order_sequence", among) {
		looks = append(looks, fmt.Sprintf("SELECT shard FROM (SELECT shard FROM %s%s ORDER BY order_sequence LIMIT %d) c%d", Qualified(d, f.Records()), which, limit, i))
	}
	return strings.Join(looks, " UNION ALL ")
}

// fewRecords is how many are read for the shards that they are in.
const fewRecords = 1000

// RecordShards are the first shards in which records wait, among some numbers, ascending; limit 0: all. Few records are read
// themselves. Where there are more, the shards that these are not in are found
// by stepping from one to the next in the index, whatever the number of records, and over none that was moved in the others. (A recursive statement would do it in
// one round trip, and have MySQL and MariaDB read the whole index for each step.)
func RecordShards(ctx context.Context, q Querier, d Dialect, f *Feed, among Seqs, limit int) (all []int, err error) {
	var known []int
	if !among.All() {
		records := 0
		known, err = QueryAll(ctx, q, "SELECT shard, count(*) FROM ("+oldestRecords(d, f, among, fewRecords)+") r GROUP BY shard ORDER BY shard", nil,
			func(rows Rows) (shard int, err error) {
				var n int
				err = rows.Scan(&shard, &n)
				records += n
				return shard, err
			})
		if err != nil {
			return nil, err
		}
		if records < fewRecords {
			if limit > 0 {
				known = known[:min(limit, len(known))]
			}
			return known, nil
		}
	}
	hint, _ := d.ByShard(Seqs{})
	for above := ""; ; above = fmt.Sprintf(" AND shard > %d", all[len(all)-1]) {
		where := above
		if len(known) > 0 {
			where += fmt.Sprintf(" AND shard < %d", known[0])
		}
		var shard int
		err := QueryRow(ctx, q, "SELECT shard FROM "+Qualified(d, f.Records())+hint+strings.Replace(where, " AND", " WHERE", 1)+" ORDER BY shard LIMIT 1", nil, &shard)
		if errors.Is(err, sql.ErrNoRows) {
			if len(known) == 0 {
				return all, nil
			}
			shard, known, err = known[0], known[1:], nil
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
