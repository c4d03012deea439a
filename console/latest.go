package console

import (
	"context"
	"math"
	"time"

	"github.com/rowfeed/rowfeed"
)

const (
	shown    = 20  // entries on the page
	probe    = 50  // entries that a look may bring; more is too many
	looks    = 30  // how often the search looks
	walkPage = 500 // entries read at once where time alone finds no place to start
	walks    = 10

	firstAge = 2 * time.Second
)

// latest answers a page of about the newest entries, oldest first, and the cursor from
// which to go on. A feed cannot be read backwards, and cursors are opaque; what there
// is for it is "at:": the entries published since a time. The search looks for a time
// that brings neither too few entries nor too many: ever longer ago until there are
// enough, then between the last two.
func latest(ctx context.Context, source rowfeed.Source, shards rowfeed.Shards) (rowfeed.Page, error) {
	now := time.Now()
	since := func(age time.Duration, limit int) (rowfeed.Page, error) {
		return source.Fetch(ctx, rowfeed.Request{After: rowfeed.At(now.Add(-age)), Limit: limit, Shards: shards})
	}
	everything := now.Sub(time.Unix(0, 0))
	var best rowfeed.Page
	var fits, tooLong time.Duration // ages; 0: none known
	age := firstAge
	for range looks {
		found, err := since(age, probe)
		if err != nil {
			return best, err
		}
		if found.More {
			tooLong = age
		} else {
			best, fits = found, age
			if len(best.Entries) >= shown || age == everything {
				return newest(best), nil
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
	found, err := since(tooLong, walkPage)
	for range walks {
		if err != nil || !found.More {
			break
		}
		before := found.Entries
		found, err = source.Fetch(ctx, rowfeed.Request{After: found.Cursor, Limit: walkPage, Shards: shards})
		found.Entries = append(before[max(0, len(before)-shown):len(before):len(before)], found.Entries...)
	}
	if err != nil || found.More && len(best.Entries) > 0 {
		return best, err
	}
	return newest(found), nil
}

// newest drops all but the last entries.
func newest(p rowfeed.Page) rowfeed.Page {
	p.Entries = p.Entries[max(0, len(p.Entries)-shown):]
	return p
}
