package bench

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed"
)

// deliveryTimeout is how long no row may arrive while rows are missing. Then they count as lost.
const deliveryTimeout = time.Minute

// deliveries records when the handler got each row. at is indexed by the rows' ids.
type deliveries struct {
	mu      sync.Mutex
	at      []time.Time
	missing int
	all     chan struct{} // closed when no row is missing
}

func newDeliveries(rows int) *deliveries {
	return &deliveries{at: make([]time.Time, rows), missing: rows, all: make(chan struct{})}
}

func (d *deliveries) handle(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range entries {
		value, _ := e.Key.Get("id")
		id, ok := value.(int64)
		if !ok || id < 0 || id >= int64(len(d.at)) {
			return wrongFigures("the handler got the key %v, which the bench did not write", value)
		}
		if !d.at[id].IsZero() {
			continue // delivered again, after a rollback: the first delivery counts
		}
		d.at[id] = now
		if d.missing--; d.missing == 0 {
			close(d.all)
		}
	}
	return nil
}

func (d *deliveries) missingNow() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.missing
}
