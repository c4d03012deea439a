package dialect

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

// TakeRecords reads the oldest committed records of a shard, among some numbers and without the seqs in but.
// They are in the order in which they were written. It locks nothing.
func TakeRecords(ctx context.Context, tx Querier, d Dialect, f *Feed, shard int, among Seqs, but []int64,
	limit int) ([]Record, error) {
	b := NewBuilder(d)
	const columns = "SELECT order_sequence, time_hint FROM "
	var looks []string
	for _, which := range inOrder(b, d.ByShard, shard, among, but, "") {
		looks = append(looks, columns+Qualified(d, f.Records())+which+" LIMIT "+b.Arg(limit))
	}
	query := looks[0]
	if len(looks) > 1 {
		query = columns + "((" + strings.Join(looks, ") UNION ALL (") + ")) o ORDER BY order_sequence LIMIT " +
			b.Arg(limit)
	}
	return QueryAll(ctx, tx, query, b.Args(), func(rows Rows) (r Record, err error) {
		return r, rows.Scan(&r.Seq, &r.HintMillis)
	})
}

// HighestPlace returns the highest ULID, in any shard, of the keys that a shard's records from first to last
// have. It is zero if none of these keys has a place.
func HighestPlace(ctx context.Context, tx Querier, d Dialect, f *Feed, shard int, first,
	last int64) (feedtype.Position, error) {
	b := NewBuilder(d)
	query := "SELECT " + d.Value(f.ULIDs.Position, Ref(d, "g", "ulid")) + " FROM " + Qualified(d, f.Records()) +
		" o JOIN " + Qualified(d, f.Placed()) + " g ON " + StoredJoin(d, f, "g", "o") +
		" WHERE o.shard = " + b.Arg(shard) + " AND o.order_sequence BETWEEN " + b.Arg(first) + " AND " + b.Arg(last) +
		" ORDER BY g.ulid DESC LIMIT 1"
	var highest ScanULID
	err := QueryRow(ctx, tx, query, b.Args(), &highest)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return highest.Position, err
}

// PlacedElsewhere counts the records of a shard, from first to last, whose keys have places in other shards.
func PlacedElsewhere(ctx context.Context, tx Querier, d Dialect, f *Feed, shard int, first,
	last int64) (n int64, err error) {
	b := NewBuilder(d)
	query := "SELECT count(*) FROM " + Qualified(d, f.Records()) + " o JOIN " + Qualified(d, f.Placed()) + " g ON " +
		StoredJoin(d, f, "g", "o") +
		" WHERE o.shard = " + b.Arg(shard) + " AND o.order_sequence BETWEEN " + b.Arg(first) + " AND " + b.Arg(last) +
		" AND g.shard <> o.shard"
	err = QueryRow(ctx, tx, query, b.Args(), &n)
	return n, err
}

// NewestRecord returns the highest order_sequence of a shard's committed records, or 0 if there are none.
func NewestRecord(ctx context.Context, q Querier, d Dialect, f *Feed, shard int) (seq int64, err error) {
	b := NewBuilder(d)
	err = QueryRow(ctx, q, "SELECT order_sequence FROM "+Qualified(d, f.Records())+
		inOrder(b, d.ByShard, shard, Seqs{}, nil, " DESC")[0]+" LIMIT 1", b.Args(), &seq)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return seq, err
}

// inOrder returns the ends of queries for the records of one shard, among some numbers and without the seqs in
// but, in order. Each of them follows the name of the outbox.
//
// Without a hint, the conditions compare shard and order_sequence together, because the index begins with both.
// The shard is written as a range: the ORDER BY shard, order_sequence is then one that only this index has.
// Otherwise a planner that takes the shard's records for frequent would scan the primary key, through the
// records of all other shards. With a hint, a range would make MariaDB read the shard to its end.
func inOrder(b *Builder, byShard func(Seqs) (string, string), shard int, among Seqs, but []int64,
	direction string) (looks []string) {
	var and string
	if len(but) > 0 {
		and = " AND order_sequence NOT IN (" + strings.Trim(SeqList(but), "[]") + ")"
	}
	if hint, condition := byShard(among); hint != "" {
		return []string{hint + " WHERE shard = " + b.Arg(shard) + condition + and + " ORDER BY order_sequence" +
			direction}
	}
	order := " ORDER BY shard" + direction + ", order_sequence" + direction
	if among.All() {
		return []string{" WHERE shard BETWEEN " + b.Arg(shard) + " AND " + b.Arg(shard) + and + order}
	}
	for _, g := range among.Gaps {
		looks = append(looks, " WHERE (shard, order_sequence) >= ("+b.Arg(shard)+", "+b.Arg(g.First)+
			") AND (shard, order_sequence) <= ("+b.Arg(shard)+", "+b.Arg(g.Last())+")"+and+order)
	}
	return append(looks, " WHERE (shard, order_sequence) > ("+b.Arg(shard)+", "+b.Arg(among.Above)+") AND shard <= "+
		b.Arg(shard)+and+order)
}

// FirstRecords returns a query, without parameters, for the shards in which a record waits, among some numbers.
// They are in any order, and a shard can be answered more than once. With shards, only these are looked at.
// Without, the query answers only some of the shards with records.
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
			looks = append(looks, fmt.Sprintf("SELECT shard FROM (SELECT shard FROM %s%s LIMIT 1) s%d", records,
				which, len(looks)))
		}
	}
	return strings.Join(looks, " UNION ALL ")
}

// oldestRecords returns a query for the shards of the oldest records: for each range of [Publish].Which up to
// limit records, by the primary key.
func oldestRecords(d Dialect, f *Feed, among Seqs, limit int) string {
	var looks []string
	for i, which := range d.ScanRanges("order_sequence", among) {
		looks = append(looks,
			fmt.Sprintf("SELECT shard FROM (SELECT shard FROM %s%s ORDER BY order_sequence LIMIT %d) c%d",
				Qualified(d, f.Records()), which, limit, i))
	}
	return strings.Join(looks, " UNION ALL ")
}

// fewRecords is the number of records up to which RecordShards reads the records themselves.
const fewRecords = 1000

// RecordShards returns the lowest shards in which records wait, among some numbers, in ascending order. limit 0
// means all of them.
//
// If there are fewer than fewRecords records, RecordShards reads all of them. Otherwise it finds the other
// shards by stepping through the index, from one shard to the next. That takes one query for each shard,
// however many records it has. A recursive statement would take one round trip, but MySQL and MariaDB read the
// whole index for each of its steps.
func RecordShards(ctx context.Context, q Querier, d Dialect, f *Feed, among Seqs, limit int) (all []int, err error) {
	var known []int
	if !among.All() {
		records := 0
		known, err = QueryAll(ctx, q, "SELECT shard, count(*) FROM ("+oldestRecords(d, f, among, fewRecords)+
			") r GROUP BY shard ORDER BY shard", nil,
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
		err := QueryRow(ctx, q, "SELECT shard FROM "+Qualified(d, f.Records())+hint+
			strings.Replace(where, " AND", " WHERE", 1)+" ORDER BY shard LIMIT 1", nil, &shard)
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

// PlaceList returns places as a JSON list of [seq, "ULID in hexadecimal"].
func PlaceList(moved []Moved) string {
	list := make([]string, len(moved))
	for i, m := range moved {
		ulid := m.Position.Bytes()
		list[i] = fmt.Sprintf(`[%d,"%s"]`, m.Seq, hex.EncodeToString(ulid[:]))
	}
	return "[" + strings.Join(list, ",") + "]"
}
