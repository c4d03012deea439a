package suite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// Receiver is what a consumer's handler does in these tests: a row in the table
// applied for every entry, in the consumer's transaction. Whatever is done twice
// stands there twice.
type Receiver struct {
	*Env
	Mu     sync.Mutex
	Handed []string // "3 upsert 7" for every entry, in every attempt
	// fail, when set, decides about an entry after its effect.
	Fail func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry) error
}

const CreateApplied = "CREATE TABLE applied" +
	" (n INTEGER, generation BIGINT, position BIGINT, op VARCHAR(10), id BIGINT, v BIGINT)"

func (x *Env) Receiver() *Receiver {
	x.Helper()
	x.Exec(CreateApplied)
	return &Receiver{Env: x}
}

// Handle is the handler. It runs in child processes too, without an env.
func (r *Receiver) Handle(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
	for i, e := range entries {
		id, _ := e.Key.Get("id")
		v, ok := e.Row.Get("v")
		if !ok || v == nil {
			v = -1
		}
		r.Mu.Lock()
		r.Handed = append(r.Handed, fmt.Sprintf("%s %s %v", e.Position, e.Op, id))
		r.Mu.Unlock()
		_, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO applied VALUES (%d, %d, %s, '%s', %v, %v)",
			i, e.Generation, e.Position, e.Op, id, v))
		if err == nil && r.Fail != nil {
			err = r.Fail(ctx, tx, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Consumer reads the feed into the receiver, with its cursor in rf.
func (r *Receiver) Consumer(source rowfeed.Source, rf *rowfeed.DB) *rowfeed.Consumer {
	return &rowfeed.Consumer{Name: "test", Source: source, DB: rf, Handle: r.Handle,
		Options: rowfeed.ConsumerOptions{
			Wait:  50 * time.Millisecond,
			Retry: rowfeed.Retry{MaxAttempts: 2, Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond},
		}}
}

// Once consumes to the head.
func (r *Receiver) Once(c *rowfeed.Consumer) {
	r.Helper()
	if err := c.RunOnce(r.Ctx); err != nil {
		r.Fatal(err)
	}
}

// Applied are the effects that were committed, in the order of their positions.
func (r *Receiver) Applied() (lines []string) {
	r.Helper()
	rows, err := r.DB.Admin().QueryContext(r.Ctx, "SELECT position, op, id FROM applied ORDER BY generation, position")
	if err != nil {
		r.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var position, id int64
		var op string
		if err := rows.Scan(&position, &op, &id); err != nil {
			r.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%d %s %d", position, op, id))
	}
	if err := rows.Err(); err != nil {
		r.Fatal(err)
	}
	return lines
}

// Upserts are the effects of rows from to to, at positions from to to.
func Upserts(from, to int) (lines []string) {
	for id := from; id <= to; id++ {
		lines = append(lines, fmt.Sprintf("%d upsert %d", id, id))
	}
	return lines
}

// TappedDB is rowfeed on a pool of its own whose statements the test sees.
func (x *Env) TappedDB(h testdb.Hooks, cfg *rowfeed.Config) *rowfeed.DB {
	x.Helper()
	rf, err := rowfeed.Open(x.Ctx, x.DB.OpenTapped(x.T, h), x.Dialect, cfg)
	if err != nil {
		x.Fatal(err)
	}
	return rf
}

// FillFrom inserts the rows from to to into kv.
func (x *Env) FillFrom(from, to int) {
	x.Helper()
	for id := from; id <= to; id++ {
		x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id))
	}
}

var TestGroup = admin.ConsumerGroup("test", "kv")

var TestConsumer = rowfeed.ConsumerID{Consumer: "test", Feed: "kv"}

// ShardsOf makes a consumer of a number of shards.
func (r *Receiver) ShardsOf(source rowfeed.Source, rf *rowfeed.DB, count int) *rowfeed.Consumer {
	c := r.Consumer(source, rf)
	c.ShardCount = count
	return c
}

// Positions are the cursors' positions, by shard, and their count.
func (x *Env) Positions(consumer string) (positions []int64, count int) {
	x.Helper()
	all, err := x.RF.Admin().Consumers(x.Ctx, rowfeed.ConsumerID{Consumer: consumer})
	if err != nil {
		x.Fatal(err)
	}
	for _, c := range all {
		text, _, _ := strings.Cut(string(c.Cursor), "@")
		n := int64(0)
		if text != "" {
			if n, err = strconv.ParseInt(text, 10, 64); err != nil {
				x.Fatal(err)
			}
		}
		positions, count = append(positions, n), c.ShardCount
	}
	if len(positions) != count {
		x.Fatalf("%d cursors of %d shards", len(positions), count)
	}
	return positions, count
}

func (x *Env) StoredCursor() (value string) {
	x.Helper()
	query := "SELECT value FROM rowfeed_cursors WHERE consumer = 'test'"
	if err := x.DB.Admin().QueryRowContext(x.Ctx, query).Scan(&value); err != nil {
		x.Fatal(err)
	}
	return value
}

var ErrOff = errors.New("switched off")
