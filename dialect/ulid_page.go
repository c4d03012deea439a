package dialect

import (
	"encoding/hex"
	"fmt"
	"github.com/rowfeed/rowfeed/feedtype"
	"strconv"
	"strings"
) // ulidPageSQL is [PageSQL] for a page of one shard of a feed whose rows hold ULIDs. The
// unique index of shard and ULID answers it; what it shows is bounded by the greatest ULID
// that is present, p.Head where that has to be an older one than the statement's own.
func ulidPageSQL(s Spelling, f *Feed, q PageQuery, p PageParts) (string, []any) {
	b := NewBuilder(s)
	position, shard := f.ULIDs.Position, f.ULIDs.Shard
	held, rows, present := "t", "", "1"
	if f.Outbox {
		held, rows = "g", " LEFT JOIN "+Qualified(s, f.Source)+" t ON "+SourceJoin(s, f, "t", "g")
		present = "CASE WHEN " + Ref(s, "t", f.Key[0].Name) + " IS NULL THEN 0 ELSE 1 END"
	}
	from := Qualified(s, f.Held()) + " " + held + p.Hint + rows
	ref := Ref(s, held, position.Name)
	// By the bare column: its value may be a text, which a collation orders in other ways.
	values := []string{ref + " AS ordered", s.Value(position, ref) + " AS place", present + " AS present"}
	names := []string{"p.place", "p.present"}
	for i, c := range append(f.Key[:len(f.Key):len(f.Key)], f.Columns...) {
		name, value := "v"+strconv.Itoa(i), s.Value(c, Ref(s, "t", c.Name))
		if f.Outbox && i < len(f.Key) { // the row may be gone, or spell its key otherwise by now: see [Column.Exact]
			value = s.Value(c, Ref(s, "g", c.Stored))
		}
		values = append(values, value+" AS "+name)
		names = append(names, "p."+name)
	}
	head := p.Head
	if head == nil {
		head = func(b *Builder) string { return "(" + GreatestULID(s, b, f, q.Shard) + ")" }
	}
	t := "SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0), COALESCE(h.below_low, 0), " + head(b) + ", " + RecordWaits(s, b, f, q, p.ByShard) + ", " + LiveFrom(s, f, q) + ", " + p.soundSignature(f, q) + ", " + strings.Join(names, ", ") +
		"\nFROM " + Qualified(s, f.Names.Table("feeds")) + " f" +
		// A feed that was dropped has its record, but no sequence.
		"\nJOIN " + Qualified(s, f.Names.Table("sequences")) + " s ON s.name = f.name" +
		"\nLEFT JOIN " + Qualified(s, f.Names.Table("shards")) + " h ON h.feed = f.name AND h.shard = " + b.Arg(q.Shard) +
		"\nLEFT JOIN (SELECT " + strings.Join(values, ", ") +
		"\n  FROM " + from +
		"\n  WHERE " + Ref(s, held, shard.Name) + " = " + f.ULIDs.ShardArg(s, b, q.Shard) + " AND " + ref + " > " + f.ULIDs.Arg(s, b, q.After)
	if p.Head != nil {
		t += " AND " + ref + " <= " + head(b)
	}
	t += "\n  ORDER BY " + ref + " LIMIT " + b.Arg(q.Limit) + ") p ON 1 = 1" +
		"\nWHERE f.name = " + b.Arg(f.Name) +
		"\nORDER BY p.ordered LIMIT " + b.Arg(q.Limit)
	return t, b.Args()
}

// soundSignature is the signature of a page that may be shown. Without its index two rows may
// share a place. In a database of another identity than the feed's writers may have taken
// what was lost once more, and what they go on with hides that it was.
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

// Arg is a parameter of a statement: a position, as the column of positions has it.
func (u *ULIDColumns) Arg(s Spelling, b *Builder, p feedtype.Position) string {
	return s.Param(u.Position, b.Arg(rawULID(p, u.Position)))
}

// ShardArg is a parameter of a statement: a shard. It is one of any size, whatever the
// column's type.
func (u *ULIDColumns) ShardArg(s Spelling, b *Builder, shard int) string {
	return s.Param(u.Shard, b.Arg(shard))
}

// LastShard is a query for the greatest shard that rows have, below another one where that is
// given, and for its greatest ULID, in the raw form that [ScanULID] reads: the last entry of
// a range of the unique index.
func LastShard(s Spelling, b *Builder, f *Feed, below *int) string {
	shard, position := Ref(s, "g", f.ULIDs.Shard.Name), Ref(s, "g", f.ULIDs.Position.Name)
	query := "SELECT " + shard + ", " + s.Value(f.ULIDs.Position, position) + " FROM " + Qualified(s, f.Held()) + " g"
	if below != nil {
		query += " WHERE " + shard + " < " + b.Arg(*below)
	}
	return query + " ORDER BY " + shard + " DESC, " + position + " DESC LIMIT 1"
}

// GreatestULID is a query for the greatest ULID of a shard, in the raw form that
// [ScanULID] reads; NULL or no row where the shard has none.
func GreatestULID(s Spelling, b *Builder, f *Feed, shard int) string {
	ref := Ref(s, "g", f.ULIDs.Position.Name)
	return "SELECT " + s.Value(f.ULIDs.Position, ref) + " FROM " + Qualified(s, f.Held()) + " g WHERE " +
		Ref(s, "g", f.ULIDs.Shard.Name) + " = " + f.ULIDs.ShardArg(s, b, shard) + " ORDER BY " + ref + " DESC LIMIT 1"
}

// PassedULID is the same for the greatest one up to a position.
func PassedULID(s Spelling, b *Builder, f *Feed, shard int, at feedtype.Position) string {
	ref := Ref(s, "g", f.ULIDs.Position.Name)
	return "SELECT " + s.Value(f.ULIDs.Position, ref) + " FROM " + Qualified(s, f.Held()) + " g WHERE " + Ref(s, "g", f.ULIDs.Shard.Name) + " = " + f.ULIDs.ShardArg(s, b, shard) +
		" AND " + ref + " <= " + f.ULIDs.Arg(s, b, at) + " ORDER BY " + ref + " DESC LIMIT 1"
}

// GreatestULIDs is a query for shards and their greatest ULIDs, in the raw form that [ScanULID]
// reads, of those that have rows.
func GreatestULIDs(s Spelling, b *Builder, f *Feed, shards []int) string {
	parts := make([]string, len(shards))
	for i, shard := range shards {
		parts[i] = "SELECT " + strconv.Itoa(shard) + " AS shard, g" + strconv.Itoa(i) + ".* FROM (" + GreatestULID(s, b, f, shard) + ") g" + strconv.Itoa(i)
	}
	return strings.Join(parts, " UNION ALL ")
}

// LiveFrom are two columns for [ScanLive], of a row of feeds (f) and one of shards (h) that may be NULL: whether
// the feed is being filled, and where the shard's live part begins; 0 where neither a record nor back-fill has begun it.
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

// ScanLive is where the columns of LiveFrom go.
type ScanLive struct{ filling, millis int64 }

// Dest is for Scan.
func (l *ScanLive) Dest() []any { return []any{&l.filling, &l.millis} }

// Set tells the page.
func (l *ScanLive) Set(page *PageRows) {
	if page.Filling && l.filling == 0 {
		return
	}
	page.Filling, page.LiveFrom = l.filling == 1, feedtype.Position{High: uint64(l.millis) << 16}
}

// RecordWaits is an expression: 1 where a record of the shard waits in the feed's outbox, else
// 0. Read together with a page's head it lets no record slip through between the two: until
// its move is committed it waits, and after that its place is at or below the head.
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

// ScanULID is where a column of positions goes, in the raw form of its kind.
type ScanULID struct {
	Position feedtype.Position
	Valid    bool // it is not NULL
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

// ulided are positions that rows hold.
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
	return append([]any{&u.state.High, &u.state.Low, &u.belowHigh, &u.belowLow, &u.greatest, &u.waiting}, u.live.Dest()...)
}

func (u *ulided) row() []any { return []any{&u.position, &u.present} }

func (u *ulided) place(page *PageRows) (PageRow, bool, error) {
	page.Shard, page.Head, page.Given, page.Waiting = u.shard, u.greatest.Position, u.state.Given(), u.waiting != 0
	u.live.Set(page)
	if u.outbox {
		page.EntriesBelow = feedtype.LowestULID.Max(feedtype.Position{High: uint64(u.belowHigh), Low: uint64(u.belowLow)})
	}
	return PageRow{Position: u.position.Position, Shard: u.shard, Present: u.present.n == 1}, u.position.Valid, nil
}

// rawULID is a ULID as a parameter for a column, in the raw form of the column's kind: bytes, or
// a UUID's text.
func rawULID(p feedtype.Position, c Column) any {
	b := p.Bytes()
	if c.Kind == feedtype.Binary || c.Kind == feedtype.Dynamic {
		return b[:]
	}
	x := hex.EncodeToString(b[:])
	return x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:]
}

// positionOf reads a ULID from a column's raw form.
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
