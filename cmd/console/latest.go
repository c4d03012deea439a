package console

import (
	"context"
	"math"
	"time"

	"github.com/rowfeed/rowfeed"
)

const (
	shown      = 20  // entries on the page
	probeLimit = 50  // entries that a look may bring; more is too many
	maxProbes  = 30  // how often the search looks
	scanLimit  = 500 // entries read at once where time alone finds no place to start, and in a search
	maxScans   = 10

	firstAge = 2 * time.Second
)

// latest answers about the newest entries, oldest first, and the cursor from
// which to go on. A feed cannot be read backwards, and cursors are opaque; what there
// is for it is "at:": the entries published since a time. The search looks for a time
// that brings neither too few entries nor too many: ever longer ago until there are
// enough, then between the last two.
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
	var fits, tooLong time.Duration // ages; 0: none known
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
		// Between two ages of very different size the middle is that of their logarithms.
		age = time.Duration(math.Sqrt(float64(max(fits, time.Millisecond)) * float64(tooLong)))
		if age <= fits || age >= tooLong {
			break
		}
	}
	// Very many entries have one time, as after a bulk load, or they come too fast.
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

// fetched is some entries, and what is behind them.
type fetched struct {
	entries []located
	cursor  rowfeed.Cursor
	more    bool
}

// newest drops all but the last entries.
func (s fetched) newest() []located { return s.entries[max(0, len(s.entries)-shown):] }
