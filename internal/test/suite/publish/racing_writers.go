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
	// Every writer has two ranges of keys: one of rows that it inserts, updates, moves and deletes, and one of rows
	// that it only inserts. Rows at the ends of the ranges never change, so that locks on gaps between rows never reach
	// the keys of another writer.
	ownRange    = 1_000_000
	ownKeys     = 12
	appendRange = 1_000_000_000
)

func ownBase(writer int) int64    { return int64(writer) * ownRange }
func appendBase(writer int) int64 { return int64(writer) * appendRange }

// raceTable makes the table and the rows that are never deleted.
func raceTable(x *suite.Env) {
	x.Helper()
	x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, w BIGINT, n BIGINT, prev BIGINT, v BIGINT, " +
		"note VARCHAR(60))")
	for id := range hotRows {
		x.Exec(fmt.Sprintf("INSERT INTO kv (id, v, note) VALUES (%d, 0, 'hot')", id+1))
	}
	for w := 1; w <= raceWriters; w++ {
		own, appended := ownBase(w), appendBase(w)
		for _, end := range []int64{own, own + ownRange - 1, appended, appended + appendRange - 1} {
			x.Exec(fmt.Sprintf("INSERT INTO kv (id, v, note) VALUES (%d, 0, 'end')", end))
		}
	}
}

// racers is what the writers share.
type racers struct {
	*suite.Env
	committed atomic.Int64 // the key of an inserted row whose commit was acknowledged
	head      func() int64 // the feed's head, for writers that hold a transaction open
	mortal    bool         // the test kills the database

	transactions, rollbacks, conflicts, unknown, outages atomic.Int64
}

// writer is a session that writes at random. Its model says which of its keys have rows, so that the writer knows how
// many rows each statement must affect.
type writer struct {
	*racers
	name  int
	rnd   *rand.Rand
	pool  *sql.DB
	model map[int64]bool
	next  int64 // number of the next row in the range that it only inserts
}

func (r *racers) writer(name int, seed uint64) *writer {
	r.Helper()
	rnd := rand.New(rand.NewPCG(seed, uint64(name)))
	w := &writer{racers: r, name: name, rnd: rnd, model: map[int64]bool{}, next: 1}
	w.pool = patient(r.Env)
	if r.mortal {
		w.pool = r.DB.OpenTapped(r.T, testdb.Hooks{})
	}
	return w
}

// run writes until ctx ends. It returns the first error that a writer must not get.
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
		class := w.Dialect.Classify(err)
		if !w.mortal || class != dialect.ClassConnection && !errors.Is(err, sql.ErrTxDone) {
			return fmt.Errorf("writer %d: %w (class %v)", w.name, err, class)
		}
		w.outages.Add(1)
		if err := w.recover(ctx); err != nil {
			return err
		}
	}
	return nil
}

// isolation picks an isolation level.
func (w *writer) isolation() sql.IsolationLevel {
	levels := []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}
	return w.Isolation(levels[w.rnd.IntN(len(levels))])
}

// hot changes a row that all writers change. Writers may then conflict with each other, but not in READ COMMITTED,
// since each of them locks one row.
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
	mayConflict := isolation == sql.LevelRepeatableRead || isolation == sql.LevelSerializable
	if err != nil && mayConflict && w.Dialect.Classify(err) == dialect.ClassRetry {
		w.conflicts.Add(1)
		return nil
	}
	w.transactions.Add(1)
	return err
}

// own runs a transaction of one to three statements on the writer's own keys. No other session writes there, so only
// the publisher could make the transaction fail. What else may fail it, excuse says.
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
			statement = fmt.Sprintf("INSERT INTO kv (id, w, n, prev, v, note) VALUES (%d, %d, %d, %s, 0, 'append')",
				appended, w.name, next, suite.OrNull(before))
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
		w.next = next // the number of a row that was rolled back is not used again
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

// write runs a statement as a writer does, and returns how many rows its last part affected.
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

// excuse returns nil for errors that a database with AbortingSnapshots may return. SERIALIZABLE also fails transactions
// that only might conflict, for example because their rows share an index page. REPEATABLE READ fails if the publisher
// has updated the writer's row, as it does with capture "column".
func (w *writer) excuse(err error, isolation sql.IsolationLevel) error {
	shared := w.Capture == feedtype.CaptureColumn && isolation == sql.LevelRepeatableRead
	mayConflict := w.Has.AbortingSnapshots && (isolation == sql.LevelSerializable || shared)
	if mayConflict && w.Dialect.Classify(err) == dialect.ClassRetry {
		w.conflicts.Add(1)
		return nil
	}
	return err
}

// change returns a statement that affects one row, and updates the model.
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

// holdOpen keeps the transaction open until the publishers have published changes of other writers.
func (w *writer) holdOpen(ctx context.Context) {
	if w.Has.OneWriter { // the publishers wait for this writer
		suite.Rest(ctx, 5*time.Millisecond)
		return
	}
	bounded, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	for from := w.head(); w.head() < from+50 && bounded.Err() == nil; {
		suite.Rest(bounded, 5*time.Millisecond)
	}
}

// recover waits for the database, and reads which of the writer's rows there are: the last COMMIT may have taken effect
// or not.
func (w *writer) recover(ctx context.Context) error {
	for ctx.Err() == nil {
		suite.Rest(ctx, 10*time.Millisecond)
		rows, err := w.pool.QueryContext(w.Ctx, w.selectOwn())
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

// selectOwn returns the query for the writer's own rows but those at the ends of their range.
func (w *writer) selectOwn() string {
	first, last := ownBase(w.name), ownBase(w.name)+ownRange-1
	return fmt.Sprintf("SELECT id FROM kv WHERE id > %d AND id < %d ORDER BY id", first, last)
}

// wantModel asserts that the table has exactly the rows of the writer's model: the database lost no acknowledged
// commit.
func (w *writer) wantModel() {
	w.Helper()
	want := slices.Sorted(maps.Keys(w.model))
	var got []int64
	rows, err := w.DB.Admin().Query(w.selectOwn())
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
		w.Errorf("writer %d has rows %v, but committed %v", w.name, got, want)
	}
}
