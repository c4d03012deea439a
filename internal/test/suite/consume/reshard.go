package consume

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// late is a source that keeps the page with a key until it is released.
type late struct {
	rowfeed.Source
	id       int64
	caught   chan struct{}
	handOver chan struct{}
	once     sync.Once
}

func (l *late) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	page, err := l.Source.Fetch(ctx, req)
	for _, e := range page.Entries {
		if id, _ := e.Key.Get("id"); id == l.id {
			l.once.Do(func() {
				close(l.caught)
				<-l.handOver
			})
		}
	}
	return page, err
}

// TestOldPageIsNotStoredAfterReshard (H2, H24): a consumer of two shards continues while an upgrade moves a key to its
// other shard. The consumer waits while keys get their shards. An instance that still has an older page cannot store
// that page over what another instance has applied since.
func TestOldPageIsNotStoredAfterReshard(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddShards(8)
		id := int64(1) // in the second half of 8, and in the first of 3
		for suite.ShardOfID(id, 8) < 4 || suite.ShardOfID(id, 3) != 0 {
			id++
		}
		x.InsertKV(1, 60)
		x.Publish(f)
		x.Exec("CREATE TABLE copies (id BIGINT NOT NULL PRIMARY KEY, v BIGINT)")
		instance := func(source rowfeed.Source) *rowfeed.Consumer {
			return &rowfeed.Consumer{Name: "test", Source: source, DB: x.RF, ShardCount: 2,
				Options: rowfeed.ConsumerOptions{
					Limit: 7, OnRefused: func(context.Context, *sql.Tx, error) error { return nil },
				},
				Handle: func(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
					for _, e := range entries {
						id, _ := e.Key.Get("id")
						v, _ := e.Row.Get("v")
						for _, s := range []string{
							fmt.Sprintf("DELETE FROM copies WHERE id = %d", id),
							fmt.Sprintf("INSERT INTO copies VALUES (%d, %d)", id, v),
						} {
							if _, err := tx.ExecContext(ctx, s); err != nil {
								return err
							}
						}
					}
					return nil
				},
			}
		}
		other := instance(f)
		if err := other.RunOnce(x.Ctx); err != nil {
			x.Fatal(err)
		}
		x.Exec(fmt.Sprintf("UPDATE kv SET v = 2 WHERE id = %d", id))
		x.Publish(f)
		slow := &late{Source: f, id: id, caught: make(chan struct{}), handOver: make(chan struct{})}
		ended := make(chan error, 1)
		go func() { ended <- instance(slow).RunOnce(x.Ctx) }()
		<-slow.caught

		held, end := x.HeldReshard(3, testdb.Begin, "")
		x.WantCode(other.RunOnce(x.Ctx), rowfeed.Sharding)
		held.Release()
		if err := <-end; err != nil {
			x.Fatal(err)
		}
		x.Exec(fmt.Sprintf("UPDATE kv SET v = 3 WHERE id = %d", id))
		x.Publish(f)
		if err := other.RunOnce(x.Ctx); err != nil {
			x.Fatal(err)
		}
		close(slow.handOver)
		if err := <-ended; err != nil {
			x.Error(err)
		}
		if n := x.Scalar("SELECT count(*) FROM kv JOIN copies c ON c.id = kv.id AND c.v = kv.v"); n != 59 {
			x.Errorf("%d of 59 rows are equal in the copy; key %d has %d, want 3", n, id,
				x.Scalar(fmt.Sprintf("SELECT v FROM copies WHERE id = %d", id)))
		}
	})
}
