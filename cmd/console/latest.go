package console

import (
	"context"
	"math"
	"time"

	"github.com/rowfeed/rowfeed"
)

const (
	shown      = 20  // entries on the page
	probeLimit = 50  // maximum number of entries of a probe
	maxProbes  = 30  // maximum number of probes
	scanLimit  = 500 // entries of a page if no time gives few enough entries, and in a search
	maxScans   = 10

	firstAge = 2 * time.Second
)

// latest returns about the newest entries, the oldest first, and the cursor behind them. A feed cannot be read
// backwards, and cursors are opaque. But a cursor "at:" reads the entries published since a time. latest tries longer
// and longer ages until there are enough entries, and then searches between the last two ages for one without too many.
func latest(ctx context.Context, source rowfeed.Source, shards rowfeed.Shards) ([]located, rowfeed.Cursor, error) {
	now := time.Now()
	fetch := func(after rowfeed.Cursor, limit int) (fetched, error) {
		page, err := source.Fetch(ctx, rowfeed.Request{After: after, Limit: limit, Shards: shards})
		if err != nil {
			return fetched{}, err
		}
		entries, err := locate(page, after)
		return fetched{entries, page.Cursor, page.More}, err
	}
	since := func(age time.Duration, limit int) (fetched, error) { return fetch(rowfeed.At(now.Add(-age)), limit) }
	everything := now.Sub(time.Unix(0, 0))
	var best fetched
	var fits, tooLong time.Duration // ages; 0 if none is known
	age := firstAge
	for range maxProbes {
		found, err := since(age, probeLimit)
		if err != nil {
			return best.newest(), best.cursor, err
		}
		if found.more {
			tooLong = age
		} else {
			best, fits = found, age
			if len(best.entries) >= shown || age == everything {
				return best.newest(), best.cursor, nil
			}
		}
		if tooLong == 0 {
			age = min(age*8, everything)
			continue
		}
		if tooLong-fits < 10*time.Millisecond {
			break
		}
		// The geometric mean, because the two ages may differ by orders of magnitude.
		age = time.Duration(math.Sqrt(float64(max(fits, time.Millisecond)) * float64(tooLong)))
		if age <= fits || age >= tooLong {
			break
		}
	}
	// Very many entries have the same time, as after a bulk load, or they arrive too fast.
	found, err := since(tooLong, scanLimit)
	for range maxScans {
		if err != nil || !found.more {
			break
		}
		before := found.newest()
		found, err = fetch(found.cursor, scanLimit)
		found.entries = append(before[:len(before):len(before)], found.entries...)
	}
	if err != nil || found.more && len(best.entries) > 0 {
		return best.newest(), best.cursor, err
	}
	return found.newest(), found.cursor, nil
}

// fetched has entries, and the cursor behind them.
type fetched struct {
	entries []located
	cursor  rowfeed.Cursor
	more    bool
}

// newest returns the last entries, as many as the page shows.
func (s fetched) newest() []located { return s.entries[max(0, len(s.entries)-shown):] }
