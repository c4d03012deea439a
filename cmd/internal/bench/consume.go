package bench

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed"
)

// ConsumeFigures say how fast a new consumer catches up with a feed: it fetches entries, calls a
// handler that only counts them, and stores its cursor, each batch in a transaction.
type ConsumeFigures struct {
	Entries int     `json:"entries"` // of the feed
	Speed   float64 `json:"entries_per_second"`
}

// consume runs a consumer from the beginning of a feed to its head, with rowfeed's own settings.
func (r *run) consume(ctx context.Context) error {
	f, err := r.published(ctx, Consume)
	if err != nil {
		return err
	}
	var speeds []float64
	for rep := range r.Repetitions {
		r.doing(fmt.Sprintf("consume: reading, %d of %d", rep+1, r.Repetitions), r.bulk(1))
		handled := 0
		c := &rowfeed.Consumer{Name: fmt.Sprint("bench", rep), Source: f, DB: r.db,
			Handle: func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
				handled += len(entries)
				return nil
			}}
		began := time.Now()
		if err := c.RunOnce(ctx); err != nil {
			return err
		}
		speeds = append(speeds, perSecond(handled, time.Since(began)))
		// A batch that was rolled back and delivered again is counted twice, and no row is missing then.
		if handled < r.Config.Rows {
			return lost("%d rows were written to %s, and %d entries read from its feed",
				r.Config.Rows, r.name(rowsTable), handled)
		}
	}
	r.report.Consume = &ConsumeFigures{Entries: r.Config.Rows, Speed: rounded(Median(speeds), 0)}
	return r.db.DropFeed(ctx, f.Name())
}
