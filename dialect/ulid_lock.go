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

// These are the default bounds of transactions that take ULIDs.
const (
	LockWait = 10 * time.Second
	LockIdle = time.Minute
)

// LockBounds bound a transaction that takes ULIDs. The zero value leaves the session's own settings as they
// are.
type LockBounds struct {
	// Wait is the maximum wait for another transaction's lock, rounded up to the database's unit. It does not
	// change other waits of the session. With Tighter, the session's own setting holds if it is tighter.
	Wait    time.Duration
	Tighter bool
	// NoWait is for transactions of rowfeed itself, in READ COMMITTED. They do not wait for a shard that
	// another transaction has locked; they wait, up to Wait, only for a transaction that inserts the shard's
	// row. A database with a single write lock has it since the transaction began.
	NoWait bool
	// Idle is how long the transaction may be idle until its end. A tighter setting of the session holds. A
	// database that cannot bound a single transaction ignores Idle. With Demanded it returns an error instead,
	// which wraps errors.ErrUnsupported, unless the session's own bound is tight enough.
	Idle     time.Duration
	Demanded bool
}

// ULID are the operations on shards with ULIDs. The transaction may be the application's own, in any isolation
// level.
type ULID interface {
	// LockShard locks a shard's row in the table of shards until the transaction ends. It inserts the row if
	// there is none. The error is [ErrNoTransaction] if every statement commits by itself; then nothing is
	// locked. It is [ErrLockWait], or of class [ClassLockTimeout], if the wait was too long. The bound on waits
	// may stay set until the transaction ends.
	LockShard(ctx context.Context, tx Querier, f *Feed, shard int, bounds LockBounds) (Shard, error)
	// Usable returns nil in a transaction that can go on. It changes nothing.
	Usable(ctx context.Context, tx Querier) error
	// TakeShard locks a shard as LockShard does, takes ULIDsPerLock of its ULIDs, and adds the nonce word to
	// the shard's row, where Witness finds it. The ULIDs are above the shard's state and above the greatest
	// ULID of its rows, as far as the transaction sees them. On databases with functions, one function does all
	// of this, so a writer needs no right on the table of shards. hintMillis is Unix time in milliseconds; 0
	// means the database's clock.
	//
	// The errors are those of LockShard, [ErrHintAhead], [ErrNoULIDsLeft], and one of class [ClassUndefined] if
	// the feed does not exist or is not ready. If there is an error, no ULID was taken.
	//
	// Readers see a position as soon as the application commits, so the commit must be on the disk by then. If
	// a setting can be raised for the transaction, TakeShard raises it. forgetful names a setting that cannot,
	// and under which a crash could undo the commit.
	TakeShard(ctx context.Context, tx Querier, f *Feed, shard int, bounds LockBounds, hintMillis int64,
		word string) (first ULIDState, forgetful, err error)
	// Witness returns the nonces that the last TakeShards have added to the shard's row, as the transaction
	// sees it: the newest first, separated by spaces. It is empty if the shard has no row. The error is
	// [ErrNoTransaction] if the database can tell.
	Witness(ctx context.Context, tx Querier, f *Feed, shard int) (string, error)
	// AdvanceShard writes the state and the nonces of a shard that LockShard has locked.
	AdvanceShard(ctx context.Context, tx Querier, f *Feed, locked Shard, next ULIDState, witness string) error
	// ULIDUp returns the statements that make or replace the routines with which writers without this library
	// take ULIDs. There are none on databases without routines. ULIDDown removes them. ULIDProblems says which
	// of them are missing, and which differ from those of ULIDUp.
	ULIDUp(f *Feed) []Step
	ULIDDown(f *Feed) []Step
	ULIDProblems(ctx context.Context, q Querier, f *Feed) (missing, other []string, err error)
	// OwnULID returns the column for ULIDs in a table of the feed's own.
	OwnULID() Column
	// PlaceBehind gives rows places behind the head, and returns how many.
	PlaceBehind(ctx context.Context, tx Querier, f *Feed, p Behind) (int64, error)
	// MakeULID returns an expression for a ULID, of the type of OwnULID. high and low are expressions of type
	// bigint for its first and last eight bytes. Millis returns an expression for the time in a column, in
	// milliseconds of Unix time. It is NULL for a value that is not a time. Millis is empty for a type without
	// times.
	MakeULID(high, low string) string
	Millis(c Column, ref string) string
	// ULIDsAbove is the function [ULIDsAbove] in SQL: expressions for the state of a shard whose greatest ULID
	// is ulid, an expression of the type of the position column.
	ULIDsAbove(f *Feed, ulid string) (timeMillis, high, low string)
	// ULIDProblem says why a column cannot hold ULIDs, and what to do. It is empty if the column can.
	ULIDProblem(c *Column) string
	// ShardProblem says why an integer column cannot hold the shards of rows, and what to do. With triggered, a
	// trigger reads the column. Both are empty if the column can.
	ShardProblem(c *Column, triggered bool) (problem, next string)
	// NoShard returns a condition that a value of a shard column, ref, is not a shard. It is empty if the
	// column's type has no such values.
	NoShard(ref string) string
	// NoULID returns a condition that a row has no ULID in its position column, or no integer in its shard column.
	// alias is that of the table, or empty. The condition is empty if the types of the columns have no such
	// values.
	NoULID(u *ULIDColumns, alias string) string
}

// Shard is a row of the table of shards, as LockShard has read it.
type Shard struct {
	ULIDState
	Shard   int
	Witness string // the nonces, newest first, as AdvanceShard or TakeShard wrote them
	Now     int64  // the time of the database's clock, in microseconds since the Unix epoch
	// Transaction identifies this transaction, on databases that can.
	Transaction string
}

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
	err := QueryRow(ctx, q, query, args, append([]any{&row.TimeMillis, &row.High, &row.Low, &row.Witness, &row.Now},
		more...)...)
	return row, err
}

// ReadWitness returns a query for the nonces in a shard's row.
func ReadWitness(s Spelling, b *Builder, f *Feed, shard int) string {
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
func WriteShard(s Spelling, b *Builder, f *Feed, shard int, next ULIDState, witness string) string {
	return "UPDATE " + Qualified(s, f.Names.Table("shards")) + " SET time_ms = " + b.Arg(next.TimeMillis) +
		", ulid_high = " + b.Arg(next.High) +
		", ulid_low = " + b.Arg(next.Low) + ", witness = " + b.Arg(witness) + " WHERE feed = " + b.Arg(f.Name) +
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
	words := strings.Fields(word + " " + row.Witness)
	return first, d.AdvanceShard(ctx, tx, f, row, next, strings.Join(words[:min(len(words), Witnesses)], " "))
}
