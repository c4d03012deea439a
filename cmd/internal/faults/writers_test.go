package faults

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

const (
	createTable = "CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, v BIGINT NOT NULL, pad VARCHAR(100) NOT NULL)"
	keys        = 1000
	writerCount = 4
	// writePause is the pause of a writer between two transactions.
	writePause = 20 * time.Millisecond
	// writeTimeout bounds a transaction on a server that was killed in the middle.
	writeTimeout = 10 * time.Second
)

// writers insert, update, delete and insert again. Each writer has its own keys, so that a key's writes have an order.
// The version of a write is above all earlier ones.
type writers struct {
	db      *sql.DB
	running sync.WaitGroup
	end     context.CancelFunc

	mu        sync.Mutex
	history   History
	committed int
	failed    int
	unknown   int
}

// startWriters opens a pool of its own, without proxies.
func startWriters(ctx context.Context, url string, seed uint64) (*writers, error) {
	db, err := testdb.OpenURL(url, testdb.Hooks{})
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(ctx)
	w := &writers{db: db, end: end, history: History{}}
	for i := range int64(writerCount) {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		w.running.Go(func() { w.write(ctx, rng, i) })
	}
	return w, nil
}

// stop waits until the last transaction has ended.
func (w *writers) stop() History {
	w.end()
	w.running.Wait()
	_ = w.db.Close()
	return w.history
}

// write changes the keys whose remainder is own.
func (w *writers) write(ctx context.Context, rng *rand.Rand, own int64) {
	versions := map[int64]int64{}
	for ctx.Err() == nil {
		chosen := map[int64]bool{}
		for range 1 + rng.IntN(3) {
			chosen[rng.Int64N(keys/writerCount)*writerCount+own] = true
		}
		made := map[int64]Write{}
		for _, key := range sorted(chosen) {
			versions[key]++
			made[key] = Write{Version: versions[key], Delete: rng.IntN(5) == 0}
		}
		w.note(made, w.transaction(context.WithoutCancel(ctx), made, rng.IntN(10) == 0))
		pause(ctx, writePause)
	}
}

// outcome is the outcome of a transaction.
type outcome int

const (
	rolledBack outcome = iota
	committed
	unknown // for example after the server was killed during COMMIT
)

// transaction makes writes, and removes those that changed nothing from the map.
func (w *writers) transaction(ctx context.Context, made map[int64]Write, rollback bool) outcome {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return rolledBack
	}
	defer tx.Rollback() // does nothing after Commit
	exec := func(format string, args ...any) int64 {
		var n int64
		if err == nil {
			var result sql.Result
			if result, err = tx.ExecContext(ctx, fmt.Sprintf(format, args...)); err == nil {
				n, err = result.RowsAffected()
			}
		}
		return n
	}
	there := map[int64]bool{}
	for key := range made {
		there[key] = true
	}
	for _, key := range sorted(there) {
		write := made[key]
		if write.Delete {
			if exec("DELETE FROM kv WHERE id = %d", key) == 0 {
				delete(made, key)
			}
		} else if exec("UPDATE kv SET v = %d WHERE id = %d", write.Version, key) == 0 {
			exec("INSERT INTO kv VALUES (%d, %d, '%0100d')", key, write.Version, key)
		}
	}
	if err != nil || rollback {
		return rolledBack
	}
	if tx.Commit() != nil {
		return unknown
	}
	return committed
}

func (w *writers) note(made map[int64]Write, o outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch o {
	case rolledBack:
		w.failed++
		return
	case unknown:
		w.unknown++
	default:
		w.committed++
	}
	for key, write := range made {
		w.history[key] = append(slices.Clip(w.history[key]), write)
	}
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
