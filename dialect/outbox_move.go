package dialect

import (
	"context"
	"database/sql"
	_ "embed" // for read.sql
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed read.sql
var readFile string

var reads = NewStatements(readFile)

// TakeRecords reads the oldest committed records of a shard whose seqs are in among and not in but. They are in
// the order in which they were written. TakeRecords locks nothing.
func TakeRecords(ctx context.Context, tx Querier, s *Syntax, f *Feed, shard int, among Seqs, but []int64,
	limit int) ([]Record, error) {
	args := Args{"shard": shard, "but": SQL("")}
	if len(but) > 0 {
		args["but"] = reads.For(s, f, "but").With(Args{"seqs": SQL(strings.Trim(SeqList(but), "[]"))})
	}
	scans := s.Scan(s, f, "of_shard", among, args)
	records := reads.For(s, f, "records").With(Args{"scan": scans[0], "limit": limit})
	if len(scans) > 1 {
		records = reads.For(s, f, "records_of_scans").With(Args{"limit": limit,
			"scans": Joined(" UNION ALL ", numberedScans(s, f, "records_of_scan", scans, Args{"limit": limit}))})
	}
	b := NewBuilder(s)
	query := records(b)
	return QueryAll(ctx, tx, query, b.Args(), func(rows Rows) (r Record, err error) {
		return r, rows.Scan(&r.Seq, &r.HintMillis)
	})
}

// HighestPlace returns the highest ULID of the keys of a shard's records, from seq first to seq last. The ULID may be
// in any shard. It is zero if none of these keys has a place (see [Moving]).
func HighestPlace(ctx context.Context, tx Querier, s *Syntax, f *Feed, shard int, first,
	last int64) (feedtype.Position, error) {
	highest, err := oneULID(ctx, tx, s, reads.For(s, f, "highest_place"),
		Args{"shard": shard, "first": first, "last": last})
	return highest.Position, err
}

// PlacedElsewhere counts the records of a shard, from seq first to seq last, whose keys have a place in another shard
// (see [Moving]).
func PlacedElsewhere(ctx context.Context, tx Querier, s *Syntax, f *Feed, shard int, first,
	last int64) (n int64, err error) {
	return n, One(ctx, tx, s, reads.For(s, f, "placed_elsewhere"),
		Args{"shard": shard, "first": first, "last": last}, &n)
}

// NewestRecord returns the highest order_sequence of a shard's committed records, or 0 if there are none.
func NewestRecord(ctx context.Context, q Querier, s *Syntax, f *Feed, shard int) (seq int64, err error) {
	err = One(ctx, q, s, s.Statement(f, "newest_of_shard"), Args{"shard": shard}, &seq)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return seq, err
}

// HasRecords implements [Moving].HasRecords by the query of FirstRecords.
func HasRecords(ctx context.Context, q Querier, s *Syntax, f *Feed, among Seqs, shards []int) (bool, error) {
	return hasRow(ctx, q, FirstRecords(s, f, among, shards...))
}

// FirstRecords returns a query, without parameters, for shards in which a record waits whose seq is in among. If
// shards are named, the query searches only these. Otherwise it finds only some of the shards that have records. The
// order is undefined, and a shard may occur more than once.
func FirstRecords(s *Syntax, f *Feed, among Seqs, shards ...int) string {
	if len(shards) == 0 && among.All() {
		return s.Statement(f, "first_shard").String()
	}
	if len(shards) == 0 {
		return oldestShards(s, f, among, 1)(NewScript(s))
	}
	var scans []Built
	for _, shard := range shards {
		scans = append(scans, s.Scan(s, f, "of_shard", among, Args{"shard": shard, "but": SQL("")})...)
	}
	return Joined(" UNION ALL ", numberedScans(s, f, "first_of_shard", scans, nil))(NewScript(s))
}

// oldestShards is a query for the shards of the oldest records: for each scan up to limit records.
func oldestShards(s *Syntax, f *Feed, among Seqs, limit int) Built {
	return Joined(" UNION ALL ",
		numberedScans(s, f, "oldest_shards", s.Scan(s, f, "records", among, nil), Args{"limit": limit}))
}

// fewRecords is the number of records up to which RecordShards reads the records themselves.
const fewRecords = 1000

// RecordShards returns the shards of the waiting records whose seqs are in among, in ascending order. It returns the
// lowest limit shards; limit 0 means all shards.
//
// If there are fewer than fewRecords such records, RecordShards reads all of them. Otherwise it steps through the
// index, from one shard to the next. That takes one query for each shard, however many records the shard has. A
// recursive statement would take one round trip, but MySQL and MariaDB read the whole index for each of its steps.
func RecordShards(ctx context.Context, q Querier, s *Syntax, f *Feed, among Seqs, limit int) (all []int, err error) {
	var known []int
	if !among.All() {
		records := 0
		query := reads.For(s, f, "records_of_shards").With(Args{"oldest": oldestShards(s, f, among, fewRecords)})
		known, err = QueryAll(ctx, q, query(NewScript(s)), nil, func(rows Rows) (shard int, err error) {
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
	for next := s.Statement(f, "first_shard").With(nil); ; {
		var shard int
		err := QueryRow(ctx, q, next(NewScript(s)), nil, &shard)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, err
		}
		if len(known) > 0 && (err != nil || shard >= known[0]) { // its records may have been moved meanwhile
			shard, known, err = known[0], known[1:], nil
		}
		if err != nil {
			return all, nil
		}
		if all = append(all, shard); len(all) == limit {
			return all, nil
		}
		next = s.Statement(f, "next_shard").With(Args{"above": shard})
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

// UnreadyShards returns a query for the shards that have rows to be placed, but that no run of back-fill has
// prepared. The shards are in ascending order.
func UnreadyShards(s *Syntax, b *Builder, f *Feed, rows func(*Builder) []string) string {
	return "SELECT x.shard FROM (SELECT DISTINCT " + f.ShardOf(s, "t") + " AS shard" + Unplaced(s, b, f, "", rows(b)) +
		") x" +
		" LEFT JOIN " + Qualified(s, f.Names.Table("shards")) + " s ON s.feed = " + b.Arg(f.Name) +
		" AND s.shard = x.shard" +
		" WHERE COALESCE(s.filled_by, 0) = 0 ORDER BY x.shard"
}
