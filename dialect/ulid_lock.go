package dialect

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// What bounds the transactions that take ULIDs, where nobody says otherwise.
const (
	LockWait = 10 * time.Second
	LockIdle = time.Minute
)

// LockBounds bound a transaction that takes ULIDs. The zero value leaves the session's own
// settings alone.
type LockBounds struct {
	// Wait is the longest wait for other transactions, rounded up to what the database can
	// count; the session's other waits are as before. With Tighter a tighter setting of
	// the session's own holds.
	Wait    time.Duration
	Tighter bool
	// Idle is how long the transaction may sit idle from here to its end; a tighter setting
	// of the session's own holds. On databases that cannot bound a single transaction it is
	// nothing, or, with Demanded, an error that wraps errors.ErrUnsupported unless the
	// session is bounded as tightly.
	Idle     time.Duration
	Demanded bool
}

// ReadShard is a query for a shard's row of the table of shards, for [ScanShard], with more
// columns of the database's own.
func ReadShard(s Spelling, b *Builder, f *Feed, shard int, more ...string) string {
	return "SELECT " + strings.Join(append([]string{"time_ms, ulid_high, ulid_low, witness", s.Now()}, more...), ", ") + " FROM " + Qualified(s, f.Names.Table("shards")) +
		" WHERE feed = " + b.Arg(f.Name) + " AND shard = " + b.Arg(shard)
}

// ScanShard runs a query of ReadShard; sql.ErrNoRows where the shard has no row.
func ScanShard(ctx context.Context, q Querier, shard int, query string, args []any, more ...any) (Shard, error) {
	row := Shard{Shard: shard}
	err := QueryRow(ctx, q, query, args, append([]any{&row.TimeMillis, &row.High, &row.Low, &row.Witness, &row.Now}, more...)...)
	return row, err
}

// ReadWitness is a query for a shard's witness.
func ReadWitness(s Spelling, b *Builder, f *Feed, shard int) string {
	return "SELECT witness FROM " + Qualified(s, f.Names.Table("shards")) + " WHERE feed = " + b.Arg(f.Name) + " AND shard = " + b.Arg(shard)
}

// NewShard is an INSERT of a shard's row in the state of one that has given nothing.
func NewShard(s Spelling, b *Builder, f *Feed, shard int) string {
	return "INSERT INTO " + Qualified(s, f.Names.Table("shards")) + " (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES (" +
		b.Arg(f.Name) + ", " + b.Arg(shard) + ", 0, 0, 0, '')"
}

// WriteShard is an UPDATE of a shard's row.
func WriteShard(s Spelling, b *Builder, f *Feed, shard int, next ULIDState, witness string) string {
	return "UPDATE " + Qualified(s, f.Names.Table("shards")) + " SET time_ms = " + b.Arg(next.TimeMillis) + ", ulid_high = " + b.Arg(next.High) +
		", ulid_low = " + b.Arg(next.Low) + ", witness = " + b.Arg(witness) + " WHERE feed = " + b.Arg(f.Name) + " AND shard = " + b.Arg(shard)
}

// TakeLocked is [ULID.TakeShard] by LockShard and AdvanceShard, for databases without
// functions of their own.
func TakeLocked(ctx context.Context, d Dialect, tx Querier, f *Feed, shard int, bounds LockBounds, hintMillis int64, word string) (first ULIDState, err error) {
	row, err := d.LockShard(ctx, tx, f, shard, bounds)
	if err != nil {
		return first, err
	}
	if row.ULIDState == (ULIDState{}) {
		// It is new; or the feed, whose states go with it, was dropped, and this process has not heard of it.
		b := NewBuilder(d)
		var n int64
		err := QueryRow(ctx, tx, "SELECT count(*) FROM "+Qualified(d, f.Names.Table("feeds"))+" WHERE name = "+b.Arg(f.Name)+" AND state = "+b.Arg(StateActive), b.Args(), &n)
		if err == nil && n == 0 {
			err = fmt.Errorf("feed %s: %w", f.Name, ErrNoTable)
		}
		if err != nil {
			return first, err
		}
	}
	var greatest ScanULID
	b := NewBuilder(d)
	if err := QueryRow(ctx, tx, GreatestULID(d, b, f, shard), b.Args(), &greatest); err != nil && !errors.Is(err, sql.ErrNoRows) {
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
	words := strings.Fields(word + " " + row.Witness)
	return first, d.AdvanceShard(ctx, tx, f, row, next, strings.Join(words[:min(len(words), Witnesses)], " "))
}
