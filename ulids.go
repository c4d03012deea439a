package rowfeed

import (
	"context"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/ulidfeed"
)

// ULIDsPerLock is the number of ULIDs that one Lock reserves for each shard.
const ULIDsPerLock = dialect.ULIDsPerLock

// Lock locks shards of a feed with ModeBlocking for the caller's transaction, and reserves ULIDs for the rows that
// the transaction is going to insert. Until it ends, other transactions wait for the same shards, so that rows are
// committed in the order of their ULIDs. Call Lock as late as possible, and end the transaction soon.
//
// A second call in the same transaction returns further ULIDs, above those of the first. Do not call Lock between a
// SAVEPOINT and a ROLLBACK TO it, which takes the ULIDs back: see ULIDs.Verify.
//
// Under REPEATABLE READ and SERIALIZABLE, PostgreSQL fails a transaction whose snapshot is older than another lock of
// the shard, even if it did not wait. The error has the code Locked. MariaDB with innodb_snapshot_isolation does the
// same.
func (f *Feed) Lock(ctx context.Context, tx Tx, req LockRequest) (*ULIDs, error) {
	taken, err := f.locks.Lock(ctx, orNoTx(tx), req)
	if err != nil {
		return nil, err
	}
	return &ULIDs{taken: taken}, nil
}

// ULIDs are the ULIDs that Feed.Lock has reserved for a transaction: ULIDsPerLock for each shard. They are valid in
// that transaction only.
type ULIDs struct{ taken *ulidfeed.ULIDs }

// At returns the i-th ULID of a shard, with i from 0 to ULIDsPerLock-1. They grow with i, and all have the same time.
func (u *ULIDs) At(shard int, i int64) (ulid.ULID, error) {
	b, err := u.taken.At(shard, i)
	return ulid.ULID(b), err
}

// HighLow returns the two halves of the first ULID of a shard, for SQL that computes the others. high has the first
// eight bytes, low the last eight. SQL adds an i below ULIDsPerLock to low. Both halves are big-endian and in two's
// complement.
func (u *ULIDs) HighLow(shard int) (high, low int64, err error) { return u.taken.HighLow(shard) }

// Time returns the time of a shard's ULIDs, in whole milliseconds.
func (u *ULIDs) Time(shard int) (time.Time, error) { return u.taken.Time(shard) }

// Verify returns an error if the ULIDs were taken back, because the transaction has ended or a savepoint from before
// the Lock was rolled back. Do not commit rows with such ULIDs: other transactions get the same ULIDs, or readers
// have already read past them. A transaction with savepoints calls Verify last, before COMMIT. Verify knows the last
// eight Locks of a shard, and returns an error with the code Conflict for an earlier Lock. It learns from the Tx that
// the transaction has ended.
func (u *ULIDs) Verify(ctx context.Context) error { return u.taken.Verify(ctx) }
