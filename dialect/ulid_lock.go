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
	// NoWait is for transactions of rowfeed's own, in READ COMMITTED: a shard that another
	// transaction has is not waited for, but for Wait where that one makes its row. A database
	// that has one lock for everything has had it since the transaction began.
	NoWait bool
	// Idle is how long the transaction may sit idle from here to its end; a tighter setting
	// of the session's own holds. On databases that cannot bound a single transaction it is
	// nothing, or, with Demanded, an error that wraps errors.ErrUnsupported unless the
	// session is bounded as tightly.
	Idle     time.Duration
	Demanded bool
}

// ULID are the operations on the states of shards with ULIDs, in a transaction that may be
// the application's own, of any isolation level.
type ULID interface {
	// LockShard locks the row of a shard in the table of shards until the transaction ends,
	// and makes it where there is none. The error is [ErrNoTransaction] where every
	// statement is committed by itself; then nothing is locked. It is [ErrLockWait], or of
	// class [ClassLockTimeout], when the wait has run out. A bound on waiting may stay until
	// the transaction ends.
	LockShard(ctx context.Context, tx Querier, f *Feed, shard int, bounds LockBounds) (Shard, error)
	// Usable answers nil in a transaction that can go on, and changes nothing.
	Usable(ctx context.Context, tx Querier) error
	// TakeShard locks a shard as LockShard does, takes ULIDsPerLock of it and adds a word to
	// its witness, which [Witness] answers. What it takes is above the greatest ULID of the shard's
	// rows, too, as far as the transaction sees them. Where the database has functions of its own it is
	// done by one, so that a writer needs no right on the table of shards. A hint of 0 is the
	// database's clock. Errors: [ErrNoTransaction], [ErrHintAhead], [ErrNoULIDsLeft], and one of class
	// [ClassUndefined] where the feed is no more, or is not ready, or LockShard's. None of them takes anything.
	// Readers see a position with the application's commit, so that this has to be on the disk by
	// then: where a setting can be raised for the transaction it is, and forgetful names another
	// under which a crash could take the commit back.
	TakeShard(ctx context.Context, tx Querier, f *Feed, shard int, bounds LockBounds, hintMillis int64, word string) (first ULIDState, forgetful, err error)
	// Witness are the last words that TakeShard has added, as the transaction sees them; empty
	// where the shard has no row. The error is [ErrNoTransaction] where the database can tell.
	Witness(ctx context.Context, tx Querier, f *Feed, shard int) (string, error)
	// AdvanceShard writes the state and witness of a shard that LockShard has locked.
	AdvanceShard(ctx context.Context, tx Querier, f *Feed, locked Shard, next ULIDState, witness string) error
	// ULIDUp are the statements that make what writers without this library take ULIDs with,
	// in place of what is there; none on databases without functions of their own. ULIDDown
	// removes it, and ULIDProblems says what of it is missing, and what is other than ULIDUp
	// makes it.
	ULIDUp(f *Feed) []Step
	ULIDDown(f *Feed) []Step
	ULIDProblems(ctx context.Context, q Querier, f *Feed) (missing, other []string, err error)
	// OwnULID is the column of ULIDs in a table of the feed's own.
	OwnULID() Column
	// PlaceBehind gives rows places behind the head, and answers how many.
	PlaceBehind(ctx context.Context, tx Querier, f *Feed, p Behind) (int64, error)
	// MakeULID is an expression for a ULID, as OwnULID's column has it, of two bigints: its first eight bytes
	// and its last. Millis is one for the time that a column tells, in milliseconds
	// of Unix time; NULL where the value tells none, and empty where the column never does.
	MakeULID(high, low string) string
	Millis(c Column, ref string) string
	// ULIDsAbove is the function [ULIDsAbove] in SQL: expressions for the state of a shard that has
	// ULIDs up to an expression, which is of the column of positions.
	ULIDsAbove(f *Feed, ulid string) (timeMillis, high, low string)
	// ULIDProblem says why a column cannot hold ULIDs, with the next step; empty when it can.
	ULIDProblem(c *Column) string
	// ShardProblem says why an integer column cannot hold the shards of rows, and the next step;
	// with triggered that of rows whose trigger reads it. Both are empty when it can.
	ShardProblem(c *Column, triggered bool) (problem, next string)
	// NoShard is a condition on values of a shard column, ref, that are none; empty where its
	// type allows no other.
	NoShard(ref string) string
	// NoULID is a condition on rows (of a table with this alias; it may be empty) that hold no
	// ULID, or no integer as their shard; empty where the types of the columns allow no other.
	NoULID(u *ULIDColumns, alias string) string
}

// Shard is a row of the table of shards, as locked.
type Shard struct {
	ULIDState
	Shard   int
	Witness string // what AdvanceShard wrote last
	Now     int64  // the database's clock, in microseconds since the Unix epoch
	// Transaction tells this transaction from others, on databases that do.
	Transaction string
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
