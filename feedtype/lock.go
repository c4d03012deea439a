package feedtype

import "time"

// LockRequest names the shards that Feed.Lock locks, and its limits.
type LockRequest struct {
	// Shards are the shards that the transaction is going to insert rows into; any numbers are allowed. Lock all of
	// them in one request: transactions that lock shards one by one, in different orders, deadlock. Default: shard 0.
	Shards []int
	// Hint is the time of the ULIDs. A hint that is earlier than the shard's last ULID is replaced by the time of
	// that ULID, because time does not go back within a shard. A hint of more than a minute ahead of the database's
	// clock is refused. Default: the database's clock.
	Hint time.Time
	// Wait is the maximum time that the server waits for other transactions, for all shards together. When it has
	// passed, the error has the code Locked. It names the transaction that holds the shard, and says whether the
	// caller's transaction can continue. Default: Config.LockWait, else 10 s, or the session's own setting if that is
	// shorter. NoBound leaves the limit to the session's setting.
	//
	// Databases that count in seconds round it to whole seconds. On SQLite it is at least 100 ms. PostgreSQL limits
	// the wait in the queue and the wait for the shard separately.
	Wait time.Duration
	// Idle is the maximum time that the transaction may be idle between two statements, from this call to its end,
	// while others wait for it. After that time the server ends the transaction and its connection. Default:
	// Config.LockIdle, else one minute on servers that support it. NoBound leaves the limit to the session's
	// settings. A shorter limit of the session always holds.
	//
	// Only PostgreSQL can set this limit. Other databases refuse a request with an Idle (errors.ErrUnsupported),
	// unless the session's own limit is as short.
	Idle time.Duration
}

// NoBound as LockRequest.Wait or LockRequest.Idle sets no limit: the session's own settings apply.
const NoBound time.Duration = -1

// OutboxRecord is a record of an inserted row, for Feed.AppendOutbox.
type OutboxRecord struct {
	Shard int // any number
	// Hint is the time of the entry's ULID. It is raised to the time of the shard's last ULID, and lowered to the
	// time at which the record is moved. Default: the time at which the record is moved.
	Hint time.Time
	Key  Key
}
