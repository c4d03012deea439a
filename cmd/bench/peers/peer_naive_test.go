package peers

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"
)

// naivePeer reads rows above the highest id that it has seen. Nothing is cheaper, but it skips every row that is
// committed after a row with a higher id. Its figures are the minimum of all costs.
var naivePeer = contestant{name: "naive", families: []string{
	"postgres", "mysql",
}, loses: true, configurations: []configuration{
	{"default", "pages of 1,000, a poll every 50 ms", naive(1000, 50*time.Millisecond)},
	{"poll-10ms", "a poll every 10 ms", naive(1000, 10*time.Millisecond)},
	{"poll-1ms", "a poll every millisecond", naive(1000, time.Millisecond)},
	{"page-5000", "larger pages", naive(5000, 10*time.Millisecond)},
}}

func naive(page int, poll time.Duration) func() peer {
	return func() peer { return &naivePoller{page: page, poll: poll} }
}

type naivePoller struct {
	page int
	poll time.Duration
	pool *sql.DB
}

func (n *naivePoller) begin(c *cell) {
	c.SQL("CREATE TABLE naive_cursor (id bigint NOT NULL)")
	c.SQL("INSERT INTO naive_cursor VALUES (0)")
	n.pool = c.Pool
}

func (n *naivePoller) record(context.Context, userTx, []string) error { return nil }

func (n *naivePoller) end(context.Context) error { return nil }

// run reads pages, handles them, and stores the cursor.
func (n *naivePoller) run(ctx context.Context, handle handler) error {
	var cursor int64
	if err := n.pool.QueryRowContext(ctx, "SELECT id FROM naive_cursor").Scan(&cursor); err != nil {
		return unlessEnded(ctx, err)
	}
	for ctx.Err() == nil {
		before := cursor
		rows, err := n.next(ctx, &cursor, handle)
		if err == nil && cursor > before {
			_, err = n.pool.ExecContext(ctx, "UPDATE naive_cursor SET id = "+strconv.FormatInt(cursor, 10))
		}
		if err != nil {
			return unlessEnded(ctx, err)
		}
		if rows < n.page {
			pause(ctx, n.poll)
		}
	}
	return nil
}

func (n *naivePoller) next(ctx context.Context, cursor *int64, handle handler) (handled int, err error) {
	rows, err := n.pool.QueryContext(ctx,
		fmt.Sprintf("SELECT id, payload FROM items WHERE id > %d ORDER BY id LIMIT %d", *cursor, n.page))
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(cursor, &text); err != nil {
			return handled, err
		}
		handle(text)
		handled++
	}
	return handled, rows.Err()
}

// unlessEnded returns the error, or nil if the error comes from the end of the run.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
