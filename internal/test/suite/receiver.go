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

// Receiver has the handler of consumers in tests. The handler inserts a row into the table applied for every entry, in
// the consumer's transaction. An entry that is handled twice has two rows.
type Receiver struct {
	*Env
	Mu     sync.Mutex
	Handed []string // "3 upsert 7" for every entry, in every attempt
	// Fail is called for every entry after its row was inserted, unless it is nil. Its error is the handler's.
	Fail func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry) error
}

// CreateApplied creates the table applied.
const CreateApplied = "CREATE TABLE applied" +
	" (n INTEGER, generation BIGINT, position BIGINT, op VARCHAR(10), id BIGINT, v BIGINT)"

// Receiver creates the table applied and its Receiver.
func (x *Env) Receiver() *Receiver {
	x.Helper()
	x.Exec(CreateApplied)
	return &Receiver{Env: x}
}

// Handle is the handler. It also runs in child processes, where there is no Env.
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

// Consumer returns a consumer of the source that calls r.Handle and stores its cursor in rf.
func (r *Receiver) Consumer(source rowfeed.Source, rf *rowfeed.DB) *rowfeed.Consumer {
	return &rowfeed.Consumer{Name: "test", Source: source, DB: rf, Handle: r.Handle,
		Options: rowfeed.ConsumerOptions{
			Wait:  50 * time.Millisecond,
			Retry: rowfeed.Retry{MaxAttempts: 2, Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond},
		}}
}

// Once consumes up to the head.
func (r *Receiver) Once(c *rowfeed.Consumer) {
	r.Helper()
	if err := c.RunOnce(r.Ctx); err != nil {
		r.Fatal(err)
	}
}

// Applied returns the committed rows of the table applied, in the order of their positions.
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

// Upserts returns the lines of Applied for upserts of the rows from..to, each at the position of its id.
func Upserts(from, to int) (lines []string) {
	for id := from; id <= to; id++ {
		lines = append(lines, fmt.Sprintf("%d upsert %d", id, id))
	}
	return lines
}

// TappedDB opens rowfeed on a pool of its own, whose statements call the hooks.
func (x *Env) TappedDB(h testdb.Hooks, cfg *rowfeed.Config) *rowfeed.DB {
	x.Helper()
	rf, err := rowfeed.Open(x.Ctx, x.DB.OpenTapped(x.T, h), x.Dialect, cfg)
	if err != nil {
		x.Fatal(err)
	}
	return rf
}

// FillFrom inserts the rows from..to into kv, one by one.
func (x *Env) FillFrom(from, to int) {
	x.Helper()
	for id := from; id <= to; id++ {
		x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id))
	}
}

// TestGroup is the group of the consumer "test" of the feed kv.
var TestGroup = admin.ConsumerGroup("test", "kv")

// TestConsumer is the consumer "test" of the feed kv.
var TestConsumer = rowfeed.ConsumerID{Consumer: "test", Feed: "kv"}

// Letters selects the dead letters of a consumer: all, or that of one key.
func Letters(id rowfeed.ConsumerID, key string) rowfeed.LetterQuery {
	return rowfeed.LetterQuery{ConsumerID: id, Key: key}
}

// ShardsOf returns a Consumer with count shards.
func (r *Receiver) ShardsOf(source rowfeed.Source, rf *rowfeed.DB, count int) *rowfeed.Consumer {
	c := r.Consumer(source, rf)
	c.ShardCount = count
	return c
}

// Positions returns the positions of a consumer's cursors, by shard, and the number of its shards.
func (x *Env) Positions(consumer string) (positions []int64, count int) {
	x.Helper()
	all, err := x.RF.Admin().Consumers(x.Ctx, rowfeed.ConsumerID{Consumer: consumer})
	if err != nil {
		x.Fatal(err)
	}
	for _, c := range all {
		text, _, _ := strings.Cut(string(Place(c.Cursor)), "@")
		n := int64(0)
		if text != "" {
			if n, err = strconv.ParseInt(text, 10, 64); err != nil {
				x.Fatal(err)
			}
		}
		positions, count = append(positions, n), c.ShardCount
	}
	if len(positions) != count {
		x.Fatalf("consumer %s has %d cursors for %d shards", consumer, len(positions), count)
	}
	return positions, count
}

// StoredCursor returns the cursor of the consumer "test".
func (x *Env) StoredCursor() string {
	x.Helper()
	var value rowfeed.Cursor
	query := "SELECT value FROM rowfeed_cursors WHERE consumer = 'test'"
	if err := x.DB.Admin().QueryRowContext(x.Ctx, query).Scan(&value); err != nil {
		x.Fatal(err)
	}
	return string(Place(value))
}

var ErrOff = errors.New("switched off")
