package suite

import (
	"database/sql"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// Tells returns how much the database shows of the holders of shards.
func (x *Env) Tells() string {
	switch {
	case x.Has.OneWriter:
		return admin.HoldersNone
	case x.Has.ShowsOnlyRunningStatement:
		return admin.HoldersWaitedFor
	}
	return admin.HoldersAll
}

// RestForLockViews waits until the database's views of locks are read again. Some databases do so only if no session
// has read them for 100 ms.
func (x *Env) RestForLockViews() {
	if x.Has.CachedLockViews {
		Rest(x.Ctx, 150*time.Millisecond)
	}
}

// Connection returns the database's name of a transaction's connection.
func (x *Env) Connection(tx *sql.Tx) (id string) {
	x.Helper()
	if err := tx.QueryRowContext(x.Ctx, x.Text("suite.connection")).Scan(&id); err != nil {
		x.Fatal(err)
	}
	return id
}

// BeginAs opens a transaction on a connection of its own, with a name if connections have names.
func (x *Env) BeginAs(name string) *sql.Tx {
	x.Helper()
	return x.BeginOn(x.DB.OpenTapped(x.T, testdb.Hooks{}, x.Text("suite.program_name", name)))
}

// Waiter is a writer that waits for a shard in the background.
type Waiter struct {
	tx   *sql.Tx
	ID   string
	done chan error
}

func (x *Events) Wait(shard int) *Waiter {
	x.Helper()
	w := &Waiter{tx: x.BeginAs("waits"), done: make(chan error, 1)}
	w.ID = x.Connection(w.tx)
	go func() {
		_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(w.tx), rowfeed.LockRequest{Shards: []int{shard}, Wait: time.Minute})
		w.done <- err
	}()
	return w
}

// Got waits until the waiter has the shard, and commits its transaction.
func (x *Events) Got(w *Waiter) {
	x.Helper()
	if err := <-w.done; err != nil {
		x.Fatal(err)
	}
	x.Commit(w.tx)
}

// ShardStatus returns the status of the feed and of a shard.
func (x *Events) ShardStatus(shard int) (*admin.Status, admin.ShardStatus) {
	x.Helper()
	status, err := x.Feed.Admin().Status(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	x.RestForLockViews()
	i := slices.IndexFunc(status.Shards, func(s admin.ShardStatus) bool { return s.Shard == shard })
	if i < 0 {
		return status, admin.ShardStatus{}
	}
	return status, status.Shards[i]
}
