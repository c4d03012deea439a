package dialect

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// ReadShard returns a query for a shard's row in the table of shards, for [ScanShard]. more are further
// columns.
func ReadShard(s Spelling, b *Builder, f *Feed, shard int, more ...string) string {
	return "SELECT " + strings.Join(append([]string{"time_ms, ulid_high, ulid_low, witness", s.Now()}, more...), ", ") +
		" FROM " + Qualified(s, f.Names.Table("shards")) +
		" WHERE feed = " + b.Arg(f.Name) + " AND shard = " + b.Arg(shard)
}

// ScanShard runs a query of ReadShard. The error is sql.ErrNoRows if the shard has no row.
func ScanShard(ctx context.Context, q Querier, shard int, query string, args []any, more ...any) (Shard, error) {
	row := Shard{Shard: shard}
	err := QueryRow(ctx, q, query, args, append(row.Dest(), more...)...)
	return row, err
}

// Dest returns the destinations of the columns time_ms, ulid_high, ulid_low, witness, and the clock.
func (s *Shard) Dest() []any { return []any{&s.TimeMillis, &s.High, &s.Low, &s.Nonces, &s.Now} }

// ReadNonces returns a query for the nonces in a shard's row.
func ReadNonces(s Spelling, b *Builder, f *Feed, shard int) string {
	return "SELECT witness FROM " + Qualified(s, f.Names.Table("shards")) + " WHERE feed = " + b.Arg(f.Name) +
		" AND shard = " + b.Arg(shard)
}

// NewShard returns an INSERT of a shard's row, in the state of a shard that has given nothing.
func NewShard(s Spelling, b *Builder, f *Feed, shard int) string {
	return "INSERT INTO " + Qualified(s, f.Names.Table("shards")) +
		" (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES (" +
		b.Arg(f.Name) + ", " + b.Arg(shard) + ", 0, 0, 0, '')"
}

// WriteShard returns an UPDATE of a shard's row.
func WriteShard(s Spelling, b *Builder, f *Feed, shard int, next ULIDState, nonces string) string {
	return "UPDATE " + Qualified(s, f.Names.Table("shards")) + " SET time_ms = " + b.Arg(next.TimeMillis) +
		", ulid_high = " + b.Arg(next.High) +
		", ulid_low = " + b.Arg(next.Low) + ", witness = " + b.Arg(nonces) + " WHERE feed = " + b.Arg(f.Name) +
		" AND shard = " + b.Arg(shard)
}

// TakeLocked implements [ULID].TakeShard with LockShard and AdvanceShard, for databases without functions.
func TakeLocked(ctx context.Context, d Dialect, tx Querier, f *Feed, shard int, bounds LockBounds, hintMillis int64,
	word string) (first ULIDState, err error) {
	row, err := d.LockShard(ctx, tx, f, shard, bounds)
	if err != nil {
		return first, err
	}
	if row.ULIDState == (ULIDState{}) {
		// The shard is new. Or the feed was dropped with its shards, and this process does not know that yet.
		b := NewBuilder(d)
		var n int64
		err := QueryRow(ctx, tx, "SELECT count(*) FROM "+Qualified(d, f.Names.Table("feeds"))+" WHERE name = "+
			b.Arg(f.Name)+" AND state = "+b.Arg(StateActive), b.Args(), &n)
		if err == nil && n == 0 {
			err = fmt.Errorf("feed %s: %w", f.Name, ErrNoTable)
		}
		if err != nil {
			return first, err
		}
	}
	var greatest ScanULID
	b := NewBuilder(d)
	if err := QueryRow(ctx, tx, GreatestULID(d, b, f, shard), b.Args(), &greatest); err != nil &&
		!errors.Is(err, sql.ErrNoRows) {
		return first, err
	}
	now := row.Now / 1000
	if hintMillis == 0 {
		hintMillis = now
	}
	if hintMillis > now+MaxHintAhead.Milliseconds() {
		return first, ErrHintAhead
	}
	var random ULIDRandom
	rand.Read(random[:])
	first, next, err := row.Past(greatest.Position).Take(hintMillis, random, ULIDsPerLock)
	if err != nil {
		return first, err
	}
	words := strings.Fields(word + " " + row.Nonces)
	return first, d.AdvanceShard(ctx, tx, f, row, next, strings.Join(words[:min(len(words), MaxNonces)], " "))
}
