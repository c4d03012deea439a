package original

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// load is how many writers append to one shard, how many rows each, and how many readers read. With after, the readers
// begin when all is written, so that they meet at the first reading of the outbox.
type load struct {
	writers, rows, readers int
	after                  bool
}

// small and heavy are the loads of the original's own tests of both modes.
var small, heavy = load{writers: 10, rows: 100, readers: 5}, load{writers: 10, rows: 200, readers: 10}

// TestReadersOfOriginalMissNoRowOfConcurrentWriters: many writers take turns at one shard, while readers without locks
// page through the table. Every reader gets each writer's rows once, in their order.
func TestReadersOfOriginalMissNoRowOfConcurrentWriters(t *testing.T) {
	eachLoad(t, "original.blocking_table", []load{small, heavy}, func(x *suite.Env, l load) {
		f := x.Add(blocking())
		run(x, "original.set_up_blocking")
		race(x, l, "original.append_one", func(cursor string) ([]row, error) {
			return query(x, "original.read_rows", 0, cursor)
		})
		x.WantSound(f)
	})
}

// TestReadersOfOriginalMissNoRowThatOthersMove: many readers move the records of one shard, whose writers go on
// meanwhile or have ended. Every reader gets each writer's rows once, in their order.
func TestReadersOfOriginalMissNoRowThatOthersMove(t *testing.T) {
	loads := []load{small, heavy, {writers: 1, rows: 1000, readers: 20, after: true}}
	eachLoad(t, "original.outbox_table", loads, func(x *suite.Env, l load) {
		f := x.Add(outbox())
		run(x, "original.set_up_outbox")
		race(x, l, "original.append_record", func(cursor string) ([]row, error) {
			return query(x, "original.read_page", cursor, 10)
		})
		x.WantSound(f)
	})
}

// TestConsumerOfOriginalKeepsItsCursor: the consumer that mssql-changefeed documents for its blocking mode processes a
// page, and stores its cursor in the same transaction. While writers append, it processes each row once.
func TestConsumerOfOriginalKeepsItsCursor(t *testing.T) {
	each(t, "original.blocking_table", func(x *suite.Env) {
		f := x.Add(blocking())
		run(x, "original.set_up_blocking")
		run(x, "original.consumer_tables")
		race(x, load{writers: 10, rows: 100, readers: 1}, "original.append_one", func(string) ([]row, error) {
			return query(x, "original.consume_page")
		})
		if n := count(x, "original.count_consumed"); n != 1000 {
			x.Errorf("%d rows were processed, want 1000", n)
		}
		x.WantSound(f)
	})
}

// eachLoad runs f with each load on a database of its own, with a table of the given text of the fixture.
func eachLoad(t *testing.T, table string, loads []load, f func(x *suite.Env, l load)) {
	for _, l := range loads {
		t.Run(fmt.Sprintf("%d writers %d rows %d readers", l.writers, l.rows, l.readers), func(t *testing.T) {
			each(t, table, func(x *suite.Env) { f(x, l) })
		})
	}
}

// race runs the writers and the readers of a load. page reads the rows above a cursor.
func race(x *suite.Env, l load, appended string, page func(cursor string) ([]row, error)) {
	x.Helper()
	var writing, reading sync.WaitGroup
	problems := make(chan error, l.writers+l.readers)
	for w := range l.writers {
		writing.Go(func() {
			for n := range l.rows {
				if err := try(x, appended, w, n); err != nil {
					problems <- fmt.Errorf("writer %d: %w", w, err)
					return
				}
			}
		})
	}
	if l.after {
		writing.Wait()
	}
	for range l.readers {
		reading.Go(func() {
			if err := readAll(l, page); err != nil {
				problems <- err
			}
		})
	}
	writing.Wait()
	reading.Wait()
	close(problems)
	for err := range problems {
		x.Error(err)
	}
}

// readAll pages until it has the rows of all writers.
func readAll(l load, page func(cursor string) ([]row, error)) error {
	next, cursor, got := make([]int, l.writers), "0x00", 0
	for last := time.Now(); got < l.writers*l.rows; {
		rows, err := page(cursor)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if r.no != next[r.of] {
				return fmt.Errorf("after %s row %d of writer %d came, want %d", cursor, r.no, r.of, next[r.of])
			}
			if number(r.ulid) <= cursor {
				return fmt.Errorf("after %s came %s", cursor, number(r.ulid))
			}
			next[r.of]++
			cursor = number(r.ulid)
		}
		got += len(rows)
		if len(rows) > 0 {
			last = time.Now()
		} else if time.Since(last) > time.Minute {
			return fmt.Errorf("no row after %s for a minute: got %d", cursor, got)
		}
	}
	return nil
}
