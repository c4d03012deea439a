package feedtype

import "time"

// LockRequest says what Feed.Lock is to take.
type LockRequest struct {
	// Shards are those that the transaction is going to insert rows into, any numbers. Take
	// all of them at once: transactions that take shards one by one, in different orders,
	// deadlock. Default: shard 0.
	Shards []int
	// Hint is the time that the ULIDs are to have. An earlier one than the shard's ULIDs
	// have come to is not followed: time does not go back within a shard. One more than a
	// minute ahead of the database's clock is refused. Default: the database's clock.
	Hint time.Time
	// Wait is the longest wait for transactions that have the shards, on the server, for all
	// of them together; whole seconds where the database counts in seconds, on SQLite a tenth of
	// one at least. PostgreSQL bounds the wait in the queue and that for the shard each. When it has
	// run out the error has the code Locked, and says who has the shard and whether the transaction
	// can go on. Default: Config.LockWait, else 10 s, or less where the session's own setting is less. NoBound
	// leaves it to that setting.
	Wait time.Duration
	// Idle is how long the transaction may sit idle between its statements from here to its
	// end, while others wait for it: then the server ends it, and its connection. That is
	// PostgreSQL's; elsewhere nothing is set, and a session that is not bounded so tightly itself is refused
	// (errors.ErrUnsupported). Default: Config.LockIdle, else one minute where the server can. NoBound
	// leaves it to the session's settings. A tighter one of the session's own always holds.
	Idle time.Duration
}

// NoBound as LockRequest.Wait or Idle leaves the bound to the session's own settings.
const NoBound time.Duration = -1

// OutboxRecord says that a row was inserted.
type OutboxRecord struct {
	Shard int // any number
	// Hint is the time that the entry's ULID is to have, where the shard has not come to a
	// later one; it is no later than the time at which the record is moved. Default: that time.
	Hint time.Time
	Key  Key
}
