package dialect

import (
	"cmp"
	"slices"
)

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

// Told says of which shard locks a database tells the holder.
type Told string

const (
	// ToldAll means every lock.
	ToldAll Told = "all"
	// ToldWaitedFor means only locks that another transaction waits for.
	ToldWaitedFor Told = "waited-for"
	// ToldNothing means none.
	ToldNothing Told = "none"
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
