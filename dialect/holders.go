package dialect

import (
	"cmp"
	"context"
	"slices"
)

// Inspection shows operators which changes wait to be published, and which transactions they wait for.
type Inspection interface {
	// Backlog counts the changes or records that wait, up to limit, and returns the age of the oldest one in
	// microseconds. With a shard, the age is of the oldest record in that shard of an outbox. The count is always
	// of all shards.
	Backlog(ctx context.Context, q Querier, f *Feed, limit int, shard ...int) (count, ageMicros int64, err error)
	// Blockers returns the open transactions that may hold back changes of the feed: those that wrote to the feed,
	// those that lock its table against reading, and those that such a session waits for. For a feed with ULIDs,
	// Blockers returns the transactions that may have locked a shard and that Holders does not know. unseen says
	// which transactions the database, or this login, cannot see. It is nil if none can be missing.
	Blockers(ctx context.Context, q Querier, f *Feed) (found []Blocker, unseen *Unseen, err error)
}

// Sessions is for databases with sessions that another session can see and end.
type Sessions interface {
	// Holders returns the shards of a feed with ULIDs that transactions have locked or wait for, in ascending
	// order. NamedHolders says for which locks the database shows the session that holds it. If the login may
	// not see locks, no shards are returned. The error is then of class [ClassPermission] and names the
	// missing right.
	Holders(ctx context.Context, q Querier, f *Feed) ([]Holding, NamedHolders, error)
	// EndHolder ends the session of the holder that Holders has returned. It returns false if the holder's
	// transaction has ended by itself. The error wraps errors.ErrUnsupported on databases without sessions. It
	// is of class [ClassPermission], and names the missing right, if the login may not end the session.
	EndHolder(ctx context.Context, q Querier, f *Feed, h Holding) (bool, error)
}

// Blocker is an open transaction that may hold back changes.
type Blocker struct {
	Session   string // the database's name of the connection
	User      string
	Host      string
	AgeMicros int64  // the age of the transaction; -1 if unknown
	Statement string // the current or the last statement; "" if unknown
	Scope     string // what the transaction has done: for example "wrote to the feed", "wrote to some table"
}

// Unseen says which transactions that hold back changes a status cannot show.
type Unseen struct {
	Cause string // what cannot be seen, and why
	Next  string // what to run or to do about it
}

// Holding is a shard that a transaction has locked, or that transactions wait for.
type Holding struct {
	Shard int
	// Holder is nil if it is unknown which session has the lock, or if the lock is free by now.
	Holder   *Session
	doubtful bool      // more than one session seemed to have the lock
	Waiting  []Session // the sessions that wait, the longest wait first
}

// Session is a connection with an open transaction.
type Session struct {
	// ID is the database's name of the connection. It is empty for a prepared transaction, which has no
	// connection.
	ID string
	// Transaction identifies the transaction in the database.
	Transaction             string
	User, Host, Application string
	// Age is how long the transaction has been open. StateAge is how long the session has been in its State.
	// Both are in microseconds, or -1 if the database does not tell this login.
	Age, StateAge int64
	State         string // as the database calls it
	Statement     string // the current or the last statement; empty if it is unknown
}

// NamedHolders says for which locks of shards a database shows the session that holds the lock.
type NamedHolders string

const (
	// HoldersAll means every lock.
	HoldersAll NamedHolders = "all"
	// HoldersWaitedFor means only locks that another transaction waits for.
	HoldersWaitedFor NamedHolders = "waited-for"
	// HoldersNone means none.
	HoldersNone NamedHolders = "none"
)

// AddSession adds a session that has locked a shard, or waits for it. It keeps the shards in ascending order,
// whatever the order of the calls. The locks can change while they are read: if two sessions seem to have the
// same lock, Holder stays nil.
func AddSession(all []Holding, shard int, waits bool, s Session) []Holding {
	i, found := slices.BinarySearchFunc(all, shard, func(h Holding, shard int) int {
		return cmp.Compare(h.Shard, shard)
	})
	if !found {
		all = slices.Insert(all, i, Holding{Shard: shard})
	}
	switch h := &all[i]; {
	case waits:
		h.Waiting = append(h.Waiting, s)
	case h.Holder == nil && !h.doubtful:
		h.Holder = &s
	case h.doubtful || *h.Holder != s:
		h.Holder, h.doubtful = nil, true
	}
	return all
}
