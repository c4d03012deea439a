package suite

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// AfterBatch starts a feed add of kv on a pool of its own and holds it after n batches of back-fill. The channel gets
// the result of feed add.
func (x *Env) AfterBatch(n int64) (held *testdb.Held, end chan error) {
	x.Helper()
	var made, batches atomic.Int64
	held = testdb.Hold(func(ev testdb.TapEvent) bool {
		return ev.Kind == testdb.Begin && made.Load() == 1 && batches.Load() == n
	})
	rf, err := rowfeed.Open(
		x.Ctx,
		x.DB.OpenTapped(x.T, testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if ev.Kind == testdb.Exec && strings.HasPrefix(ev.SQL, "INSERT INTO") &&
				strings.Contains(ev.SQL, "changes_kv") {
				batches.Add(1)
			}
			if ev.Kind == testdb.Exec && strings.Contains(ev.SQL, "feeds") && strings.Contains(ev.SQL, "SET state") {
				made.Store(1)
			}
			return held.Before(ctx, ev)
		}}),
		x.Dialect,
		nil,
	)
	if err != nil {
		x.Fatal(err)
	}
	end = make(chan error, 1)
	go func() {
		_, err := rf.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv"}, nil)
		end <- err
	}()
	<-held.Reached
	return held, end
}

// KVOf creates the table kv with so many rows.
func (x *Env) KVOf(rows int) {
	x.Helper()
	x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
	x.Fill(rows)
}

// RunScript runs a printed script on one connection, because the script sets what stays with a connection. A line "GO"
// ends a batch, as it does for the clients of some databases.
func (x *Env) RunScript(steps []dialect.Step) {
	x.Helper()
	pool, _, err := Open(x.Ctx, x.DB.URL, nil)
	if err != nil {
		x.Fatal(err)
	}
	defer pool.Close()
	conn, err := pool.Conn(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	defer conn.Close()
	for _, step := range steps {
		for batch := range strings.SplitSeq(step.SQL, "\nGO\n") {
			if _, err := conn.ExecContext(x.Ctx, batch); err != nil {
				x.Fatalf("%s: %v\n%s", step.Note, err, batch)
			}
		}
	}
}
