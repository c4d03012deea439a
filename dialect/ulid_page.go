package dialect

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

// ulidPageSQL is [PageSQL] for a page of one shard of a feed with ULIDs. It reads along the unique index of
// shard and ULID. The page ends at the greatest ULID in the statement's snapshot or, if p.Head is set, at the
// older head that it gives.
func ulidPageSQL(s Spelling, f *Feed, q PageQuery, p PageParts) (string, []any) {
	b := NewBuilder(s)
	position, shard := f.ULIDs.Position, f.ULIDs.Shard
	held, rows, present := "t", "", "1"
	if f.Outbox {
		held, rows = "g", " LEFT JOIN "+Qualified(s, f.Source)+" t ON "+SourceJoin(s, f, "t", "g")
		present = "CASE WHEN " + Ref(s, "t", f.Key[0].Name) + " IS NULL THEN 0 ELSE 1 END"
	}
	from := Qualified(s, f.ULIDTable()) + " " + held + p.Hint + rows
	ref := Ref(s, held, position.Name)
	// The rows are ordered by the bare column: s.Value may be text, whose collation has another order.
	values := []string{ref + " AS ordered", s.Value(position, ref) + " AS place", present + " AS present"}
	names := []string{"p.place", "p.present"}
	for i, c := range append(f.Key[:len(f.Key):len(f.Key)], f.Columns...) {
		name, value := "v"+strconv.Itoa(i), s.Value(c, Ref(s, "t", c.Name))
		// the row may be deleted, or spell its key in another way by now: see [Column].Exact
		if f.Outbox && i < len(f.Key) {
			value = s.Value(c, Ref(s, "g", c.Stored))
		}
		values = append(values, value+" AS "+name)
		names = append(names, "p."+name)
	}
	head := p.Head
	if head == nil {
		head = func(b *Builder) string { return "(" + GreatestULID(s, b, f, q.Shard) + ")" }
	}
	t := "SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0), " +
		"COALESCE(h.below_low, 0), " + head(b) + ", " + RecordWaits(s, b, f, q, p.ByShard) + ", " + LiveFrom(s, f, q) +
		", " + p.soundSignature(f, q) + ", " + strings.Join(names, ", ") +
		"\nFROM " + Qualified(s, f.Names.Table("feeds")) + " f" +
		// A feed that was dropped has a record, but no sequence.
		"\nJOIN " + Qualified(s, f.Names.Table("sequences")) + " s ON s.name = f.name" +
		"\nLEFT JOIN " + Qualified(s, f.Names.Table("shards")) + " h ON h.feed = f.name AND h.shard = " +
		b.Arg(q.Shard) +
		"\nLEFT JOIN (SELECT " + strings.Join(values, ", ") +
		"\n  FROM " + from +
		"\n  WHERE " + Ref(s, held, shard.Name) + " = " + f.ULIDs.ShardArg(s, b, q.Shard) + " AND " + ref + " > " +
		f.ULIDs.Arg(s, b, q.After)
	if p.Head != nil {
		t += " AND " + ref + " <= " + head(b)
	}
	t += "\n  ORDER BY " + ref + " LIMIT " + b.Arg(q.Limit) + ") p ON 1 = 1" +
		"\nWHERE f.name = " + b.Arg(f.Name) +
		"\nORDER BY p.ordered LIMIT " + b.Arg(q.Limit)
	return t, b.Args()
}

// soundSignature returns an expression for the signature of a page. It is empty if the page must not be shown.
// Without the unique index two rows could have the same position. If the database has another identity than the
// feed's, commits may have been lost, and writers may have given their ULIDs again: later ULIDs hide that.
func (p PageParts) soundSignature(f *Feed, q PageQuery) string {
	unsound := ""
	if p.Identity != "" && !q.AnyDatabase {
		unsound += " WHEN f.database_identity <> " + p.Identity + " THEN ''"
	}
	if p.Indexed != "" && !f.Outbox {
		unsound += " WHEN NOT " + p.Indexed + " THEN ''"
	}
	if unsound == "" {
		return p.Signature
	}
	return "CASE" + unsound + " ELSE " + p.Signature + " END"
}

// Arg adds a position as a parameter, of the type of the position column.
func (u *ULIDColumns) Arg(s Spelling, b *Builder, p feedtype.Position) string {
	return s.Param(u.Position, b.Arg(rawULID(p, u.Position)))
}

// ShardArg adds a shard as a parameter. The shard may be any integer, whatever the type of the shard column.
func (u *ULIDColumns) ShardArg(s Spelling, b *Builder, shard int) string {
	return s.Param(u.Shard, b.Arg(shard))
}

// LastShard returns a query for the greatest shard that has rows, and for its greatest ULID, in the raw form
// that [ScanULID] reads. If below is not nil, the shard is below it. The query reads the last entry of a range
// of the unique index.
func LastShard(s Spelling, b *Builder, f *Feed, below *int) string {
	shard, position := Ref(s, "g", f.ULIDs.Shard.Name), Ref(s, "g", f.ULIDs.Position.Name)
	query := "SELECT " + shard + ", " + s.Value(f.ULIDs.Position, position) + " FROM " +
		Qualified(s, f.ULIDTable()) + " g"
	if below != nil {
		query += " WHERE " + shard + " < " + b.Arg(*below)
	}
	return query + " ORDER BY " + shard + " DESC, " + position + " DESC LIMIT 1"
}

// GreatestULID returns a query for the greatest ULID of a shard, in the raw form that [ScanULID] reads. It
// answers NULL or no row if the shard has none.
func GreatestULID(s Spelling, b *Builder, f *Feed, shard int) string {
	ref := Ref(s, "g", f.ULIDs.Position.Name)
	return "SELECT " + s.Value(f.ULIDs.Position, ref) + " FROM " + Qualified(s, f.ULIDTable()) + " g WHERE " +
		Ref(s, "g", f.ULIDs.Shard.Name) + " = " + f.ULIDs.ShardArg(s, b, shard) + " ORDER BY " + ref + " DESC LIMIT 1"
}

// PassedULID returns the same query for the greatest ULID up to a position.
func PassedULID(s Spelling, b *Builder, f *Feed, shard int, at feedtype.Position) string {
	ref := Ref(s, "g", f.ULIDs.Position.Name)
	return "SELECT " + s.Value(f.ULIDs.Position, ref) + " FROM " + Qualified(s, f.ULIDTable()) + " g WHERE " +
		Ref(s, "g", f.ULIDs.Shard.Name) + " = " + f.ULIDs.ShardArg(s, b, shard) +
		" AND " + ref + " <= " + f.ULIDs.Arg(s, b, at) + " ORDER BY " + ref + " DESC LIMIT 1"
}

// GreatestULIDs returns a query for shards and their greatest ULIDs, in the raw form that [ScanULID] reads. It
// answers only shards that have rows. There must be at least one shard.
func GreatestULIDs(s Spelling, b *Builder, f *Feed, shards []int) string {
	parts := make([]string, len(shards))
	for i, shard := range shards {
		parts[i] = "SELECT " + strconv.Itoa(shard) + " AS shard, g" + strconv.Itoa(i) + ".* FROM (" +
			GreatestULID(s, b, f, shard) + ") g" + strconv.Itoa(i)
	}
	return strings.Join(parts, " UNION ALL ")
}

// LiveFrom returns two columns for [ScanLive]: whether back-fill is placing rows of the feed, and where the
// live part of the shard begins. The second is 0 if neither a record nor back-fill has begun it. The query has
// the feed's record as f and the shard's row, or NULLs, as h.
func LiveFrom(s Spelling, f *Feed, q PageQuery) string {
	if !f.Outbox || len(q.Unserved) == 0 {
		return "0, 0"
	}
	states := make([]string, len(q.Unserved))
	for i, state := range q.Unserved {
		states[i] = s.Literal(state)
	}
	return "CASE WHEN f.state IN (" + strings.Join(states, ", ") + ") THEN 1 ELSE 0 END, COALESCE(h.live_from, 0)"
}

// ScanLive scans the columns of LiveFrom.
type ScanLive struct{ filling, millis int64 }

// Dest returns the destinations for Scan.
func (l *ScanLive) Dest() []any { return []any{&l.filling, &l.millis} }

// Set copies the result into a page. A page that was already found to be filling stays so.
func (l *ScanLive) Set(page *PageRows) {
	if page.Filling && l.filling == 0 {
		return
	}
	page.Filling, page.LiveFrom = l.filling == 1, feedtype.Position{High: uint64(l.millis) << 16}
}

// RecordWaits returns an expression that is 1 if a record of the shard waits in the feed's outbox, else 0. It
// is read together with the page's head. So no record can be missed between the two: it waits until its move is
// committed, and then its place is not above the head.
func RecordWaits(s Spelling, b *Builder, f *Feed, q PageQuery, byShard func(Seqs) (hint, condition string)) string {
	if !f.Outbox {
		return "0"
	}
	looks := ""
	for _, which := range inOrder(b, byShard, q.Shard, q.Among, nil, "") {
		looks += "(SELECT 1 FROM " + Qualified(s, f.Records()) + which + " LIMIT 1), "
	}
	return "COALESCE(" + looks + "0)"
}

// ScanULID scans a column of positions, in its raw form.
type ScanULID struct {
	Position feedtype.Position
	Valid    bool // the column was not NULL
}

// Scan implements [database/sql.Scanner].
func (u *ScanULID) Scan(v any) (err error) {
	if u.Valid = v != nil; !u.Valid {
		u.Position = feedtype.Position{}
		return nil
	}
	u.Position, err = positionOf(v)
	return err
}

// ulided scans positions that are ULIDs.
type ulided struct {
	shard               int
	outbox              bool
	belowHigh, belowLow int64
	state               ULIDState
	greatest, position  ScanULID
	waiting             int
	present             scanNumber
	live                ScanLive
}

func (u *ulided) head() []any {
	return append([]any{&u.state.High, &u.state.Low, &u.belowHigh, &u.belowLow, &u.greatest, &u.waiting},
		u.live.Dest()...)
}

func (u *ulided) row() []any { return []any{&u.position, &u.present} }

func (u *ulided) place(page *PageRows) (PageRow, bool, error) {
	page.Shard, page.Head, page.Given, page.Waiting = u.shard, u.greatest.Position, u.state.Given(), u.waiting != 0
	u.live.Set(page)
	if u.outbox {
		page.EntriesBelow = feedtype.LowestULID.Max(
			feedtype.Position{High: uint64(u.belowHigh), Low: uint64(u.belowLow)})
	}
	return PageRow{Position: u.position.Position, Shard: u.shard, Present: u.present.n == 1}, u.position.Valid, nil
}

// rawULID returns a ULID as a parameter in the raw form of the column's kind: bytes, or the text of a UUID.
func rawULID(p feedtype.Position, c Column) any {
	b := p.Bytes()
	if c.Kind == feedtype.Binary || c.Kind == feedtype.Dynamic {
		return b[:]
	}
	x := hex.EncodeToString(b[:])
	return x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:]
}

// positionOf reads a ULID in a column's raw form.
func positionOf(raw any) (feedtype.Position, error) {
	text, ok := raw.(string)
	if b, is := raw.([]byte); is {
		text, ok = string(b), true
	}
	if ok && len(text) == 36 {
		if b, err := hex.DecodeString(strings.ReplaceAll(text, "-", "")); err == nil {
			text = string(b)
		}
	}
	if !ok || len(text) != 16 {
		return feedtype.Position{}, fmt.Errorf("%T of %d bytes: %w", raw, len(text), feedtype.ErrNoULID)
	}
	return feedtype.ULIDPosition([16]byte([]byte(text))), nil
}
