package dialect

import (
	"cmp"
	"slices"
)

// Holding is a shard that a transaction has, or that some wait for.
type Holding struct {
	Shard int
	// Holder is nil where it is not known who has the shard, or nobody has it by now.
	Holder   *Session
	doubtful bool      // several seemed to be it
	Waiting  []Session // those who want it, who has waited longest first
}

// Session is a connection with an open transaction.
type Session struct {
	// ID is how the database names the connection; empty for a transaction that has none
	// (a prepared one).
	ID string
	// Transaction tells the transaction from all others of the database.
	Transaction             string
	User, Host, Application string
	// Age is how long the transaction has been open, StateAge how long the session has been
	// in its State, in microseconds; -1 where the database, or the login's rights, do not tell.
	Age, StateAge int64
	State         string // in the database's words
	Statement     string // the current or last one, as far as it is told
}

// Told is how much a database tells of who has shards.
type Told string

const (
	// ToldAll: of every shard that a transaction has.
	ToldAll Told = "all"
	// ToldWaitedFor: of shards that somebody waits for.
	ToldWaitedFor Told = "waited-for"
	// ToldNothing: of none.
	ToldNothing Told = "none"
)

// AddSession adds a session to the shard that it has or waits for. Sessions come shard by shard
// or not; shards end up in ascending order. Of two that seem to have one shard, as the locks
// change while they are read, neither is its holder.
func AddSession(all []Holding, shard int, waits bool, s Session) []Holding {
	i, found := slices.BinarySearchFunc(all, shard, func(h Holding, shard int) int { return cmp.Compare(h.Shard, shard) })
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
