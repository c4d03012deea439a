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

// TestReadersOfOriginalMissNoRowOfConcurrentWriters: many writers take turns at one shard, while readers without locks
// page through the table. Every reader gets each writer's rows in their order, and misses none.
func TestReadersOfOriginalMissNoRowOfConcurrentWriters(t *testing.T) {
	each(t, "original.blocking_table", func(x *suite.Env) {
		f := x.Add(blocking())
		run(x, "original.set_up_blocking")
		race(x, load{writers: 10, rows: 100, readers: 5}, "original.append_one", func(cursor string) ([]row, error) {
			return query(x, "original.read_rows", 0, cursor)
		})
		x.WantSound(f)
	})
}

// TestReadersOfOriginalMissNoRowThatOthersMove: many readers move the records of one shard, whose writers go on
// meanwhile or have ended. Every reader gets each writer's rows in their order, and misses none.
func TestReadersOfOriginalMissNoRowThatOthersMove(t *testing.T) {
	for _, l := range []load{{writers: 10, rows: 100, readers: 5}, {writers: 1, rows: 1000, readers: 20, after: true}} {
		t.Run(fmt.Sprintf("%d writers %d readers", l.writers, l.readers), func(t *testing.T) {
			each(t, "original.outbox_table", func(x *suite.Env) {
				f := x.Add(outbox())
				run(x, "original.set_up_outbox")
				race(x, l, "original.append_record", func(cursor string) ([]row, error) {
					return query(x, "original.read_page", cursor, 10)
				})
				x.WantSound(f)
			})
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
