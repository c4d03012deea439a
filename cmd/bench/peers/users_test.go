package peers

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// users write with the drivers that peers need: pgx's own pool on PostgreSQL, database/sql on other databases. Each
// statement is one round trip if the peer allows that.
type users struct {
	postgres *pgxpool.Pool
	mysql    *sql.DB
}

// userTx is a user's transaction: pgxTx or sqlTx.
type userTx interface {
	insert(ctx context.Context, writer int, payloads []string) error
	do(ctx context.Context, statement string) error
	commit(ctx context.Context) error
	rollback()
}

type (
	pgxTx struct{ pgx.Tx }
	sqlTx struct{ *sql.Tx }
)

func (c *cell) newUsers(prepared bool) *users {
	c.Helper()
	if c.Family == "mysql" {
		pool, _ := c.Open(fmt.Sprintf("?interpolateParams=%t", !prepared))
		pool.SetMaxIdleConns(2 * writerCount)
		return &users{mysql: pool}
	}
	return &users{postgres: c.pgxPool()}
}

// pgxPool has enough connections for users and consumers.
func (c *cell) pgxPool() *pgxpool.Pool {
	c.Helper()
	config, err := pgxpool.ParseConfig(c.URL)
	c.Must(err)
	config.MaxConns = 4 * writerCount
	pool, err := pgxpool.NewWithConfig(c.Context(), config)
	c.Must(err)
	c.Cleanup(pool.Close)
	return pool
}

func (u *users) begin(ctx context.Context) (userTx, error) {
	if u.postgres != nil {
		tx, err := u.postgres.Begin(ctx)
		return pgxTx{tx}, err
	}
	tx, err := u.mysql.BeginTx(ctx, nil)
	return sqlTx{tx}, err
}

func (t pgxTx) insert(ctx context.Context, writer int, payloads []string) error {
	var err error
	if len(payloads) == 1 {
		_, err = t.Exec(ctx, "INSERT INTO items (writer, payload) VALUES ($1, $2)", writer, payloads[0])
	} else {
		_, err = t.Exec(ctx, "INSERT INTO items (writer, payload) SELECT $1::int, "+
			"p FROM unnest($2::text[]) WITH ORDINALITY u(p, n) ORDER BY n", writer, payloads)
	}
	return err
}

func (t sqlTx) insert(ctx context.Context, writer int, payloads []string) error {
	var args []any
	for _, p := range payloads {
		args = append(args, writer, p)
	}
	_, err := t.ExecContext(ctx,
		"INSERT INTO items (writer, payload) VALUES (?, ?)"+strings.Repeat(", (?, ?)", len(payloads)-1), args...)
	return err
}

func (t pgxTx) do(ctx context.Context, statement string) error {
	_, err := t.Exec(ctx, statement)
	return err
}

func (t sqlTx) do(ctx context.Context, statement string) error {
	_, err := t.ExecContext(ctx, statement)
	return err
}

func (t pgxTx) commit(ctx context.Context) error { return t.Commit(ctx) }
func (t pgxTx) rollback()                        { _ = t.Rollback(context.Background()) }
func (t sqlTx) commit(context.Context) error     { return t.Commit() }
func (t sqlTx) rollback()                        { _ = t.Rollback() }

// opened is a user's transaction that has written.
type opened struct {
	*cell
	tx       userTx
	payloads []string
}

// open writes n rows in a transaction and leaves it open.
func (c *cell) open(ctx context.Context, writer, n int) (*opened, error) {
	o := &opened{cell: c, payloads: c.ledger.payloads(writer, n)}
	var err error
	if o.tx, err = c.users.begin(ctx); err != nil {
		return nil, err
	}
	if !c.alone {
		err = o.tx.insert(ctx, writer, o.payloads)
	}
	if err == nil {
		err = c.peer.record(ctx, o.tx, o.payloads)
	}
	if err != nil {
		o.tx.rollback()
		return nil, err
	}
	return o, nil
}

func (o *opened) commit(ctx context.Context) error {
	if err := o.tx.commit(ctx); err != nil {
		return err
	}
	o.ledger.commit(o.payloads, time.Now())
	if w, ok := o.peer.(waker); ok {
		w.committed()
	}
	return nil
}

// write runs a user's transaction of n rows that stays open for so long after its last statement.
func (c *cell) write(ctx context.Context, writer, n int, pause time.Duration) error {
	o, err := c.open(ctx, writer, n)
	if err != nil {
		return err
	}
	if pause > 0 {
		time.Sleep(pause)
	}
	return o.commit(ctx)
}

// fill commits a backlog, 100 rows at a time, of all writers in turns.
func (c *cell) fill(n int) {
	c.Helper()
	const at = 100
	for i := 0; i < n; i += at {
		c.Must(c.write(c.Context(), i/at%writerCount, min(at, n-i), 0))
	}
	c.settled()
}

// settled gives the planner the statistics that it would have after a minute.
func (c *cell) settled() {
	c.Helper()
	if c.Family == "postgres" {
		c.SQL("ANALYZE")
		return
	}
	rows, err := c.Admin().QueryContext(c.Context(),
		"SELECT table_name FROM information_schema.tables WHERE table_schema = database()")
	c.Must(err)
	defer rows.Close()
	var tables []string
	for rows.Next() {
		var name string
		c.Must(rows.Scan(&name))
		tables = append(tables, "`"+name+"`")
	}
	c.Must(rows.Err())
	c.SQL("ANALYZE TABLE " + strings.Join(tables, ", "))
}

// pace lets writers commit a row each, at a common rate, until the time is over. It returns the rate that they reached.
func (c *cell) pace(writers int, perSecond float64, over time.Duration) (reached float64) {
	c.Helper()
	started := time.Now()
	commits := int(perSecond * over.Seconds())
	var all sync.WaitGroup
	for writer := range writers {
		all.Go(func() {
			for i := writer; i < commits; i += writers {
				time.Sleep(time.Until(started.Add(time.Duration(float64(i) / perSecond * float64(time.Second)))))
				before := time.Now()
				if err := c.write(c.Context(), writer, 1, 0); err != nil {
					c.Errorf("%s: %v", c.key(), err)
					return
				}
				c.ledger.wrote(time.Since(before))
			}
		})
	}
	all.Wait()
	return float64(commits) / time.Since(started).Seconds()
}

// rush lets the writers commit a row each as fast as they can, until the time is over.
func (c *cell) rush(over time.Duration) (perSecond float64) {
	c.Helper()
	started := time.Now()
	var all sync.WaitGroup
	var commits [writerCount]int
	for writer := range writerCount {
		all.Go(func() {
			for time.Since(started) < over {
				if err := c.write(c.Context(), writer, 1, 0); err != nil {
					c.Errorf("%s: %v", c.key(), err)
					return
				}
				commits[writer]++
			}
		})
	}
	all.Wait()
	total := 0
	for _, n := range commits {
		total += n
	}
	return float64(total) / time.Since(started).Seconds()
}

func ms(v float64) string { return fmt.Sprintf("%.1f", v) }
