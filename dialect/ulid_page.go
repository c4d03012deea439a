package dialect

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Arg adds a position as a parameter, of the type of the position column.
func (u *ULIDColumns) Arg(s *Syntax, b *Builder, p feedtype.Position) string {
	return s.Param(u.Position, b.Arg(rawULID(p, u.Position)))
}

// Param is a position as a parameter, of the type of the position column.
func (u *ULIDColumns) Param(s *Syntax, p feedtype.Position) Built {
	return func(b *Builder) string { return u.Arg(s, b, p) }
}

// GreatestULID reads the greatest ULID of a shard. It is not valid if the shard has no row.
func GreatestULID(ctx context.Context, q Querier, s *Syntax, f *Feed, shard int) (ScanULID, error) {
	return oneULID(ctx, q, s, s.Statement(f, "greatest_ulid"), Args{"shard": shard})
}

// PassedULID reads the greatest ULID of a shard up to a position. It is not valid if the shard has no such row.
func PassedULID(ctx context.Context, q Querier, s *Syntax, f *Feed, shard int, at feedtype.Position) (ScanULID, error) {
	return oneULID(ctx, q, s, reads.For(s, f, "passed_ulid"),
		Args{"shard": Built(func(b *Builder) string { return s.Param(f.ULIDs.Shard, b.Arg(shard)) }),
			"at": f.ULIDs.Param(s, at)})
}

func oneULID(ctx context.Context, q Querier, s *Syntax, st Statement, args Args) (found ScanULID, err error) {
	if err = One(ctx, q, s, st, args, &found); errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return found, err
}

// LastShard reads the greatest shard that has rows, and its greatest ULID. If below is not nil, the shard is below it.
// The error is sql.ErrNoRows if there is no such shard.
func LastShard(ctx context.Context, q Querier, s *Syntax, f *Feed, below *int) (shard int, last feedtype.Position,
	err error) {
	name, args := "last_shard", Args(nil)
	if below != nil {
		name, args = "last_shard_below", Args{"below": *below}
	}
	var found ScanULID
	err = One(ctx, q, s, reads.For(s, f, name), args, &shard, &found)
	return shard, found.Position, err
}

// GreatestULIDs reads the greatest ULIDs of shards, of which there must be at least one. Shards without rows are left
// out.
func GreatestULIDs(ctx context.Context, q Querier, s *Syntax, f *Feed,
	shards []int) (map[int]feedtype.Position, error) {
	parts := make([]Built, len(shards))
	for i, shard := range shards {
		parts[i] = reads.For(s, f, "greatest_of_shard").With(Args{"shard": SQL(strconv.Itoa(shard)),
			"number": SQL(strconv.Itoa(i)), "greatest": s.Statement(f, "greatest_ulid").With(Args{"shard": shard})})
	}
	b := NewBuilder(s)
	query := Joined(" UNION ALL ", parts)(b)
	greatest := make(map[int]feedtype.Position)
	_, err := QueryAll(ctx, q, query, b.Args(), func(rows Rows) (struct{}, error) {
		var shard int
		var last ScanULID
		err := rows.Scan(&shard, &last)
		greatest[shard] = last.Position
		return struct{}{}, err
	})
	return greatest, err
}

// ScanLive scans two columns: whether back-fill is placing rows of the feed, and where the live part of the shard
// begins, in Unix time in milliseconds. The second is 0 if neither a record nor back-fill has begun it.
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

// Waiting returns the arguments :waiting and :unserved of a query for the state of an outbox shard. One of the
// expressions in waiting is 1 if a record of the shard waits; otherwise all are NULL. filling is a list of the feed's
// states in which back-fill is placing rows.
func (q PageQuery) Waiting(s *Syntax, f *Feed) (waiting Built, filling SQL) {
	var waits []Built
	for _, scan := range s.Scan(s, f, "of_shard", q.Among, Args{"shard": q.Shard, "but": SQL("")}) {
		waits = append(waits, reads.For(s, f, "record_waits").With(Args{"scan": scan}))
	}
	return Joined(", ", waits), q.unserved(s)
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
