package publish

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

const (
	raceWriters = 8
	hotRows     = 3
	// Every writer has keys of its own: a range of rows that come, change, move and
	// go, and one of rows that it only inserts. Rows at the ends of the ranges never
	// change: locks on gaps between rows (InnoDB) then never reach a neighbour's keys.
	ownRange    = 1_000_000
	ownKeys     = 12
	appendRange = 1_000_000_000
)

func ownBase(writer int) int64    { return int64(writer) * ownRange }
func appendBase(writer int) int64 { return int64(writer) * appendRange }

// raceTable makes the table and the rows that stay.
func raceTable(x *suite.Env) {
	x.Helper()
	x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, w BIGINT, n BIGINT, prev BIGINT, v BIGINT, note VARCHAR(60))")
	for id := range hotRows {
		x.Exec(fmt.Sprintf("INSERT INTO kv (id, v, note) VALUES (%d, 0, 'hot')", id+1))
	}
	for w := 1; w <= raceWriters; w++ {
		for _, end := range []int64{ownBase(w), ownBase(w) + ownRange - 1, appendBase(w), appendBase(w) + appendRange - 1} {
			x.Exec(fmt.Sprintf("INSERT INTO kv (id, v, note) VALUES (%d, 0, 'end')", end))
		}
	}
}

// racers are what the writers share.
type racers struct {
	*suite.Env
	committed atomic.Int64 // the key of an inserted row whose commit was acknowledged
	head      func() int64 // how far the publishers are; for holding transactions open
	mortal    bool         // the database may die at any moment

	transactions, rollbacks, conflicts, unknown, outages atomic.Int64
}

// writer is one session with random work. Its model says which of its own keys have
// rows, so that it knows how many rows each statement must affect.
type writer struct {
	*racers
	name  int
	rnd   *rand.Rand
	pool  *sql.DB
	model map[int64]bool
	next  int64 // number of the next row that is only inserted
}

func (r *racers) writer(name int, seed uint64) *writer {
	r.Helper()
	w := &writer{racers: r, name: name, rnd: rand.New(rand.NewPCG(seed, uint64(name))), model: map[int64]bool{}, next: 1}
	w.pool = patient(r.Env)
	if r.mortal {
		w.pool = r.DB.OpenTapped(r.T, testdb.Hooks{})
	}
	return w
}

// run writes until ctx ends. It answers the first error that a writer must not get.
func (w *writer) run(ctx context.Context) error {
	for ctx.Err() == nil {
		suite.Rest(ctx, time.Duration(w.rnd.Int64N(int64(4*time.Millisecond))))
		var err error
		if w.rnd.IntN(6) == 0 {
			err = w.hot()
		} else {
			err = w.own(ctx)
		}
		if err == nil {
			continue
		}
		if !w.mortal || w.Dialect.Classify(err) != dialect.ClassConnection && !errors.Is(err, sql.ErrTxDone) {
			return fmt.Errorf("writer %d: %w (class %v)", w.name, err, w.Dialect.Classify(err))
		}
		w.outages.Add(1)
		if err := w.recover(ctx); err != nil {
			return err
		}
	}
	return nil
}

// isolation picks a level; on SQLite there is one.
func (w *writer) isolation() sql.IsolationLevel {
	if w.Family() == "sqlite" {
		return sql.LevelDefault
	}
	levels := []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}
	return levels[w.rnd.IntN(len(levels))]
}

// hot changes rows that all writers fight for. They may get in each other's way, in
// the levels that say so; nobody may in READ COMMITTED, where each takes one row.
func (w *writer) hot() error {
	isolation := w.isolation()
	tx, err := w.pool.BeginTx(w.Ctx, &sql.TxOptions{Isolation: isolation})
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	_, err = w.write(tx, fmt.Sprintf("UPDATE kv SET v = v + 1 WHERE id = %d", 1+w.rnd.IntN(hotRows)))
	if err == nil && w.rnd.IntN(5) == 0 {
		w.rollbacks.Add(1)
		return tx.Rollback()
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil && isolation != sql.LevelReadCommitted && w.Family() != "sqlite" && w.Dialect.Classify(err) == dialect.ClassRetry {
		w.conflicts.Add(1)
		return nil
	}
	w.transactions.Add(1)
	return err
}

// own is a transaction of one to three statements on the writer's own keys. No other
// session writes there, so nothing but the publisher could make it fail. What
// PostgreSQL calls SERIALIZABLE fails on suspicion, also of sessions that only share
// an index page; that alone is let pass.
func (w *writer) own(ctx context.Context) error {
	before := w.committed.Load()
	isolation := w.isolation()
	tx, err := w.pool.BeginTx(w.Ctx, &sql.TxOptions{Isolation: isolation})
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	model, next, appended := maps.Clone(w.model), w.next, int64(0)
	hold := w.rnd.IntN(60) == 0
	for range 1 + w.rnd.IntN(3) {
		var statement string
		if w.rnd.IntN(4) == 0 {
			appended = appendBase(w.name) + next
			statement = fmt.Sprintf("INSERT INTO kv (id, w, n, prev, v, note) VALUES (%d, %d, %d, %s, 0, 'append')", appended, w.name, next, suite.OrNull(before))
			next++
		} else {
			statement = w.change(model)
		}
		n, err := w.write(tx, statement)
		if err == nil && n != 1 {
			return fmt.Errorf("%d rows affected by %s in %v", n, statement, isolation)
		}
		if err != nil {
			return w.excuse(fmt.Errorf("%s in %v: %w", statement, isolation, err), isolation)
		}
		if hold {
			w.holdOpen(ctx)
		}
	}
	if w.rnd.IntN(5) == 0 {
		w.rollbacks.Add(1)
		w.next = next // a number that was rolled back is not used again
		return tx.Rollback()
	}
	w.next = next
	if err := tx.Commit(); err != nil {
		if w.Dialect.Classify(err) == dialect.ClassConnection {
			w.unknown.Add(1)
		}
		return w.excuse(fmt.Errorf("COMMIT in %v: %w", isolation, err), isolation)
	}
	w.transactions.Add(1)
	w.model = model
	if appended != 0 {
		w.committed.Store(appended)
	}
	return nil
}

// write runs a statement as a writer does, and answers how many rows its last part
// affected.
func (w *writer) write(tx *sql.Tx, statement string) (n int64, err error) {
	for _, part := range w.SQL(statement) {
		result, err := tx.ExecContext(w.Ctx, part)
		if err != nil {
			return 0, err
		}
		if n, err = result.RowsAffected(); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// excuse lets pass what PostgreSQL's levels fail for: SERIALIZABLE on suspicion, and,
// where publishing updates the very row, REPEATABLE READ, too.
func (w *writer) excuse(err error, isolation sql.IsolationLevel) error {
	shared := w.Capture == feedtype.CaptureColumn && isolation == sql.LevelRepeatableRead
	if w.Family() == "postgres" && (isolation == sql.LevelSerializable || shared) && w.Dialect.Classify(err) == dialect.ClassRetry {
		w.conflicts.Add(1)
		return nil
	}
	return err
}

// change makes a statement that affects one row, and says in the model what it does.
func (w *writer) change(model map[int64]bool) string {
	var free, taken []int64
	for i := range int64(ownKeys) {
		if id := ownBase(w.name) + 1 + i; model[id] {
			taken = append(taken, id)
		} else {
			free = append(free, id)
		}
	}
	pick := func(ids []int64) int64 { return ids[w.rnd.IntN(len(ids))] }
	v := w.rnd.IntN(1000)
	if kind := w.rnd.IntN(10); len(free) > 0 && (kind < 3 || len(taken) == 0) {
		id := pick(free)
		model[id] = true
		return fmt.Sprintf("INSERT INTO kv (id, v, note) VALUES (%d, %d, 'inserted')", id, v)
	} else if kind < 5 {
		id := pick(taken)
		delete(model, id)
		return fmt.Sprintf("DELETE FROM kv WHERE id = %d", id)
	} else if kind < 7 && len(free) > 0 {
		from, to := pick(taken), pick(free)
		delete(model, from)
		model[to] = true
		return fmt.Sprintf("UPDATE kv SET id = %d, v = v + 1 WHERE id = %d", to, from)
	}
	return fmt.Sprintf("UPDATE kv SET v = v + %d, note = 'updated by %d' WHERE id = %d", 1+v, v, pick(taken))
}

// holdOpen keeps the transaction open until the publishers have gone on without it.
func (w *writer) holdOpen(ctx context.Context) {
	if w.Family() == "sqlite" { // nobody can go on without the one writer
		suite.Rest(ctx, 5*time.Millisecond)
		return
	}
	bounded, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	for from := w.head(); w.head() < from+50 && bounded.Err() == nil; {
		suite.Rest(bounded, 5*time.Millisecond)
	}
}

// recover waits for the database and looks which of the writer's rows are there: the
// last COMMIT may have taken effect or not.
func (w *writer) recover(ctx context.Context) error {
	for ctx.Err() == nil {
		suite.Rest(ctx, 10*time.Millisecond)
		rows, err := w.pool.QueryContext(w.Ctx, fmt.Sprintf("SELECT id FROM kv WHERE id > %d AND id < %d", ownBase(w.name), ownBase(w.name)+ownRange-1))
		if err != nil {
			continue
		}
		w.model = map[int64]bool{}
		for rows.Next() {
			var id int64
			if err = rows.Scan(&id); err != nil {
				break
			}
			w.model[id] = true
		}
		if err = errors.Join(err, rows.Err()); err == nil {
			return nil
		}
	}
	return nil
}

// wantModel asserts that the writers' models are what the table has: the database
// forgot nothing that was acknowledged.
func (w *writer) wantModel() {
	w.Helper()
	want := slices.Sorted(maps.Keys(w.model))
	var got []int64
	rows, err := w.DB.Admin().Query(fmt.Sprintf("SELECT id FROM kv WHERE id > %d AND id < %d ORDER BY id", ownBase(w.name), ownBase(w.name)+ownRange-1))
	if err != nil {
		w.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			w.Fatal(err)
		}
		got = append(got, id)
	}
	if !slices.Equal(got, want) {
		w.Errorf("writer %d has rows %v, its transactions made %v", w.name, got, want)
	}
}
