package gap

import (
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

// minQueryPause and maxQueryPause bound the pauses between queries for open writers. (MariaDB renews its list of
// transactions only if it was not read for 100 ms.)
const minQueryPause, maxQueryPause = 200 * time.Millisecond, 10 * time.Second

// openWriters are the transactions that may still commit a number in a gap.
type openWriters struct {
	upTo     int64            // the list is about the numbers up to this one
	writers  []dialect.Writer // open since upTo was drawn, and not yet ended
	closable int64            // upTo, once all writers have ended: a later scan finds every number that was committed
	next     time.Time        // when the next query is due
	pause    time.Duration
}

// writerQuery is one query for open writers. A number up to upTo was drawn by a transaction in the result, is visible,
// or will never be committed.
type writerQuery struct{ generation, upTo, number int64 }

// nextQuery returns a query for open writers, if one is due.
func (t *Tracker) nextQuery(generation int64) (q writerQuery, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &t.open
	if t.generation != generation || len(coarsen(t.possible).Gaps) == 0 || w.closable > 0 || time.Now().Before(w.next) {
		return writerQuery{}, false
	}
	w.pause = max(w.pause, minQueryPause)
	w.next, w.pause = time.Now().Add(w.pause), min(w.pause*2, maxQueryPause) // also if this query fails
	t.queries++
	return writerQuery{generation: generation, upTo: t.possible.Above, number: t.queries}, true
}

// setWriters processes the result of a query. It ignores a result if a later query has begun: a writer that began
// between the two queries is missing in it, but has not ended.
func (t *Tracker) setWriters(q writerQuery, open []dialect.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &t.open
	if t.generation != q.generation || t.queries != q.number || w.closable > 0 {
		return
	}
	if w.upTo == 0 {
		w.upTo, w.writers = q.upTo, open
	} else {
		w.writers = stillOpen(w.writers, open)
	}
	if len(w.writers) == 0 {
		w.closable, w.pause = w.upTo, 0
	}
}

// stillOpen returns the writers in before that have not ended, given the writers that are open now. If a writer had no
// transaction name, its session's present transaction counts as the writer. An orphan may be any writer in before.
func stillOpen(before, now []dialect.Writer) (open []dialect.Writer) {
	for _, w := range before {
		switch i := slices.IndexFunc(now, func(n dialect.Writer) bool { return n.Session == w.Session }); {
		case w.Transaction != "":
			if slices.ContainsFunc(now, func(n dialect.Writer) bool { return n.Transaction == w.Transaction }) {
				open = append(open, w)
			}
		case i >= 0:
			open = append(open, now[i])
		}
	}
	for _, n := range now {
		if n.Orphan && !slices.Contains(open, n) {
			open = append(open, n)
		}
	}
	return open
}
