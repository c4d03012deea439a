package bench

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
)

// strictLanes are what runs while SERIALIZABLE writers write. The session of "look-ups" selects each key that a writer
// has deleted; nothing of rowfeed's is there. The publisher asks for the same keys.
var strictLanes = []struct {
	name                   string
	feed, publisher, looks bool
}{
	{name: "no rowfeed"},
	{name: "no rowfeed, look-ups of deleted keys", looks: true},
	{name: "feed, no publisher", feed: true},
	{name: "feed, publisher running", feed: true, publisher: true},
}

// strictRows are the numbers of rows that no writer deletes. Their keys are spread evenly up to strictKeys.
var strictRows = []int{1, 10_000, 200_000}

const strictKeys = 1_000_000_000_000_000

// TestStrictWriters measures which share of SERIALIZABLE transactions PostgreSQL fails with 40001. Each transaction of
// 8 writers inserts a row with a random key and deletes the row that the writer inserted before. PostgreSQL locks what
// a transaction has read of an index by pages. So the table also says how many pages the index of the primary key has.
func TestStrictWriters(t *testing.T) {
	out := table{Title: fmt.Sprintf("%d SERIALIZABLE writers that insert and delete", writerCount),
		Head: []string{"database", "rows", "meanwhile", "commits/s", "failed with 40001, %", "pages of the index"}}
	each(t, func(b *bed) {
		if b.Family != "postgres" {
			return // other databases lock what a SERIALIZABLE transaction reads, and let it wait
		}
		// PostgreSQL would lock the whole table for a statement that scans it, as it does with few rows.
		pool, _ := b.Open("&enable_seqscan=off&enable_bitmapscan=off")
		pool.SetMaxOpenConns(writerCount + 1)
		pool.SetMaxIdleConns(writerCount + 1)
		db := b.Rowfeed(b.Pool, nil)
		for _, rows := range strictRows {
			results := figures[string]{}
			for rep := range *reps {
				for i, l := range strictLanes {
					s := &strict{bed: b, pool: pool, table: fmt.Sprintf("strict_%d_%d_%d", rows, i, rep),
						deleted: make(chan int64, 1024)}
					s.fill(s.table, scaled(rows))
					b.SQL(fmt.Sprintf("UPDATE %s SET id = id * %d", s.table, strictKeys/scaled(rows)))
					b.SQL("VACUUM FULL " + s.table)
					var feed *rowfeed.Feed
					if l.feed {
						feed = b.Feed(db, rowfeed.FeedSpec{Name: s.table, Table: s.table})
						_, err := feed.Publish(b.Context())
						b.Must(err)
					}
					if !l.publisher {
						feed = nil
					}
					s.run(feed, l.looks)
					commits, failed := float64(s.commits.Load()), float64(s.failed.Load())
					results.Add(l.name+"commits", commits/window.Seconds())
					results.Add(l.name+"failed", 100*failed/max(commits+failed, 1))
					results.Add(l.name+"pages", float64(b.Number("SELECT pg_relation_size('"+s.table+
						"_pkey') / current_setting('block_size')::int")))
					b.SQL("DROP TABLE " + s.table + " CASCADE")
				}
			}
			for _, l := range strictLanes {
				out.Row(b.Engine.Name, count(float64(scaled(rows))), l.name, count(results[l.name+"commits"].Median()),
					fmt.Sprintf("%.1f", results[l.name+"failed"].Median()), count(results[l.name+"pages"].Median()))
			}
		}
	})
	out.Print()
}

// strict is one run of SERIALIZABLE writers.
type strict struct {
	*bed
	pool            *sql.DB
	table           string
	deleted         chan int64 // keys that writers deleted
	commits, failed atomic.Int64
}

// run lets the writers write for one window.
func (s *strict) run(feed *rowfeed.Feed, looks bool) {
	ctx, cancel := context.WithTimeout(s.Context(), *window)
	defer cancel()
	var running sync.WaitGroup
	if feed != nil {
		running.Go(func() {
			if err := feed.RunPublisher(ctx); err != nil {
				s.Errorf("RunPublisher: %v", err)
			}
		})
	}
	if looks {
		running.Go(func() { s.look(ctx) })
	}
	for range writerCount {
		running.Go(func() {
			last := int64(0)
			for ctx.Err() == nil {
				id := 1 + rand.Int64N(strictKeys)
				switch err := s.write(id, last); {
				case err == nil:
					select {
					case s.deleted <- last:
					default: // the session of look-ups is behind, or there is none
					}
					last = id
					s.commits.Add(1)
				case s.Dialect.Classify(err) == dialect.ClassRetry:
					s.failed.Add(1)
				default:
					s.Errorf("a writer failed: %v", err)
					return
				}
			}
		})
	}
	running.Wait()
}

func (s *strict) write(id, last int64) error {
	tx, err := s.pool.BeginTx(s.Context(), &sql.TxOptions{Isolation: sql.LevelSerializable})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(s.Context(), "INSERT INTO "+s.table+" VALUES ($1, 'x')", id); err != nil {
		return err
	}
	if _, err := tx.ExecContext(s.Context(), "DELETE FROM "+s.table+" WHERE id = $1", last); err != nil {
		return err
	}
	return tx.Commit()
}

// look selects deleted keys in READ COMMITTED, all that were deleted meanwhile in one statement, as a publisher does.
// PostgreSQL does not count such a transaction in a conflict.
func (s *strict) look(ctx context.Context) {
	for {
		var ids []int64
		select {
		case <-ctx.Done():
			return
		case id := <-s.deleted:
			ids = append(ids, id)
		}
		for len(s.deleted) > 0 {
			ids = append(ids, <-s.deleted)
		}
		var found int64
		if err := s.pool.QueryRowContext(s.Context(), "SELECT count(*) FROM unnest($1::bigint[]) k CROSS JOIN LATERAL "+
			"(SELECT id FROM "+s.table+" WHERE id = k OFFSET 0) t", ids).Scan(&found); err != nil {
			s.Errorf("a look-up failed: %v", err)
			return
		}
	}
}
