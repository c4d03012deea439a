package rowfeed

import (
	"context"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/shards"
)

// ULIDsPerLock is how many ULIDs of each shard one Lock takes.
const ULIDsPerLock = dialect.ULIDsPerLock

// Lock takes ULIDs for rows that the caller's transaction is going to insert, of a feed
// with ModeBlocking. From here to the end of that transaction no other one gets the same
// shards: it waits, so that rows are committed in the order of their ULIDs. Call it as late
// as the rows allow, and end the transaction soon.
//
// A second call in the same transaction takes more, above those of the first. Do not call
// it between a SAVEPOINT and a ROLLBACK TO it: that takes the ULIDs back, see ULIDs.Verify.
// PostgreSQL fails transactions of REPEATABLE READ or SERIALIZABLE whose snapshot is older than
// another's lock of the shard, whether they had to wait or not: code Locked. So does MariaDB with
// innodb_snapshot_isolation.
func (f *Feed) Lock(ctx context.Context, tx Tx, req LockRequest) (*ULIDs, error) {
	taken, err := f.locks.Lock(ctx, tx, req)
	if err != nil {
		return nil, err
	}
	return &ULIDs{taken: taken}, nil
}

// ULIDs are those that a transaction has taken with Feed.Lock, good for that transaction
// alone: ULIDsPerLock of each shard.
type ULIDs struct{ taken *shards.ULIDs }

// At is the i-th ULID of a shard, i from 0 to dialect.ULIDsPerLock-1. They grow with i, and all of
// them have the same time.
func (u *ULIDs) At(shard int, i int64) (ulid.ULID, error) {
	b, err := u.taken.At(shard, i)
	return ulid.ULID(b), err
}

// HighLow are the two halves of the first ULID of a shard, for SQL that computes the others:
// the first eight bytes, and the last eight, to which i is added, both in two's complement
// and big-endian. Add less than dialect.ULIDsPerLock.
func (u *ULIDs) HighLow(shard int) (high, low int64, err error) { return u.taken.HighLow(shard) }

// Time is that of a shard's ULIDs, in whole milliseconds.
func (u *ULIDs) Time(shard int) (time.Time, error) { return u.taken.Time(shard) }

// Verify answers an error where the ULIDs were taken back: the transaction has ended, or a
// savepoint from before the Lock was rolled back. Rows with them must not be committed then:
// others get the same ULIDs, or readers have passed them. Who uses savepoints
// calls it last of all before COMMIT. It knows the last eight Locks of a shard, and answers an
// error (Conflict) of one from before them, too. That a transaction has ended it learns from the Tx, see there.
func (u *ULIDs) Verify(ctx context.Context) error { return u.taken.Verify(ctx) }
