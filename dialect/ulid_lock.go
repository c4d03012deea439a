package dialect

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
)

// ReadShard returns a query for a shard's row in the table of shards, for [ScanShard]. more are further
// columns.
func ReadShard(s *Syntax, b *Builder, f *Feed, shard int, more ...string) string {
	return "SELECT " + strings.Join(append([]string{"time_ms, ulid_high, ulid_low, witness", s.Now}, more...), ", ") +
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

// TakeLocked implements [Locks].TakeShard with LockShard and AdvanceShard, for databases without functions.
func TakeLocked(ctx context.Context, s *Syntax, d Locks, tx Querier, f *Feed, shard int, bounds LockBounds,
	hintMillis int64, word string) (first ULIDState, err error) {
	row, err := d.LockShard(ctx, tx, f, shard, bounds)
	if err != nil {
		return first, err
	}
	if row.ULIDState == (ULIDState{}) {
		// The shard is new. Or the feed was dropped with its shards, and this process does not know that yet.
		b := NewBuilder(s)
		var n int64
		err := QueryRow(ctx, tx, "SELECT count(*) FROM "+Qualified(s, f.Names.Table("feeds"))+" WHERE name = "+
			b.Arg(f.Name)+" AND state = "+b.Arg(StateActive), b.Args(), &n)
		if err == nil && n == 0 {
			err = fmt.Errorf("feed %s: %w", f.Name, ErrNoTable)
		}
		if err != nil {
			return first, err
		}
	}
	greatest, err := GreatestULID(ctx, tx, s, f, shard)
	if err != nil {
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
