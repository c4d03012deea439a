package suite

import (
	"database/sql"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// Tells is how much the engine tells of who has shards.
func (x *Env) Tells() string {
	switch {
	case x.Family() == "sqlite":
		return admin.HoldersNone
	case x.Engine == testdb.MariaDB:
		return admin.HoldersWaitedFor
	}
	return admin.HoldersAll
}

// Connection is what the database calls a transaction's connection.
func (x *Env) Connection(tx *sql.Tx) (id string) {
	x.Helper()
	if err := tx.QueryRowContext(x.Ctx, x.Text("suite.connection")).Scan(&id); err != nil {
		x.Fatal(err)
	}
	return id
}

// BeginAs opens a transaction on a connection of its own that has a name, where connections
// have names.
func (x *Env) BeginAs(name string) *sql.Tx {
	x.Helper()
	return x.BeginOn(x.DB.OpenTapped(x.T, testdb.Hooks{}, x.By(map[string]string{"sqlite": "_txlock=deferred", "postgres": "application_name=" + name, "mysql": "connectionAttributes=program_name:" + name})))
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

// Got ends a waiter that must have got the shard by now, or soon.
func (x *Events) Got(w *Waiter) {
	x.Helper()
	if err := <-w.done; err != nil {
		x.Fatal(err)
	}
	x.Commit(w.tx)
}

// ShardStatus is what status says of a shard.
func (x *Events) ShardStatus(shard int) (*admin.Status, admin.ShardStatus) {
	x.Helper()
	status, err := x.Feed.Admin().Status(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	if x.Family() == "mysql" {
		Rest(x.Ctx, 150*time.Millisecond) // what InnoDB tells is read anew only when nobody has asked for 100 ms
	}
	i := slices.IndexFunc(status.Shards, func(s admin.ShardStatus) bool { return s.Shard == shard })
	if i < 0 {
		return status, admin.ShardStatus{}
	}
	return status, status.Shards[i]
}
