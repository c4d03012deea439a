package gap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

const (
	// fullScanEvery is how often a scan reads the whole table: its sequence may have been reset, and numbers may have
	// been inserted by hand. A full scan takes at most one part in fullScanShare of the time.
	fullScanEvery, fullScanShare = 10 * time.Second, 20
	// maxGaps bounds the gaps that the tracker remembers exactly.
	maxGaps = 1000
)

// Tracker holds the sequence numbers with which changes may still be committed, as far as one process knows.
type Tracker struct {
	feed *catalog.Feed

	mu         sync.Mutex
	generation int64
	possible   dialect.Seqs // the numbers that may still be committed
	open       openWriters
	fullScanAt time.Time // when the next full scan is due
	queries    int64     // the number of writer queries so far
}

// Scan is one scan for changes, or for records of an outbox. The zero Scan reads the whole table, and the tracker
// learns nothing from it.
type Scan struct {
	generation int64
	Among      dialect.Seqs // the numbers that the scan reads; see In
	possible   dialect.Seqs // what the tracker knew when the scan began
	Settled    int64        // openWriters.closable when the scan began
	began      time.Time
	oneShard   bool // the scan reads one shard of an outbox
}

// OfShard returns the same scan for one shard of an outbox. It closes no gap.
func (s Scan) OfShard() Scan {
	s.oneShard = true
	return s
}

// Everywhere returns the same scan, of the whole table.
func (s Scan) Everywhere() Scan {
	s.Among = dialect.Seqs{}
	return s
}

// Settles returns true if the scan closes the gaps up to Settled. Such a scan must run in a transaction that rowfeed
// opened: outside, a session may be in READ UNCOMMITTED, and see deletes that another publisher can still roll back. A
// proxy may also send the statement to a replica.
func (s Scan) Settles() bool { return s.Settled > 0 }

// In returns the numbers that the scan reads in a feed of this generation. A feed that was made anew numbers its
// changes anew, so all of them are read.
func (s Scan) In(generation int64) dialect.Seqs {
	if s.generation != generation {
		return dialect.Seqs{}
	}
	return s.Among
}

// New returns the tracker of a feed. The tracker knows nothing yet, so its first scan reads the whole table.
func New(feed *catalog.Feed) *Tracker { return &Tracker{feed: feed} }

// Scan begins a scan for changes. If there are gaps, Scan may first ask the database for the open writers. A failure of
// that query is ignored: it closes no gap, and must not stop publishing.
func (t *Tracker) Scan(ctx context.Context) Scan {
	if !t.numbersOnlyGrow() {
		return Scan{}
	}
	generation := t.feed.Generation()
	if ctx.Err() != nil {
		return t.newScan(generation)
	}
	if q, due := t.nextQuery(generation); due {
		var open []dialect.Writer
		var complete bool
		err := t.feed.Read(ctx, "list the transactions that write to the source", func(tx dialect.Querier) (err error) {
			open, complete, err = t.feed.Store.Dialect.Gaps.Writers(ctx, tx, t.feed.DialectFeed())
			return err
		})
		if err == nil && complete {
			t.setWriters(q, open)
		}
	}
	return t.newScan(generation)
}

// numbersOnlyGrow returns true if a number that was deleted never comes again. After a crash of a database with unsafe
// durability, it can come again.
func (t *Tracker) numbersOnlyGrow() bool {
	return t.feed.Store.Dialect.Gaps != nil && !t.feed.Store.UnsafeDurability
}

func (t *Tracker) newScan(generation int64) Scan {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.generation != generation {
		t.forget(generation)
	}
	s := Scan{generation: generation, Among: coarsen(t.possible), possible: t.possible, Settled: t.open.closable,
		began: time.Now()}
	if !t.possible.All() && !s.began.Before(t.fullScanAt) {
		s.Among = dialect.Seqs{}
	}
	return s
}

// ScanShard begins the scan of a reader that moves the records of one shard of an outbox.
func (t *Tracker) ScanShard() Scan {
	if !t.numbersOnlyGrow() {
		return Scan{}
	}
	return t.newShardScan(t.feed.Generation())
}

// newShardScan leaves numbers out only while full scans of this process keep to their times. Otherwise no scan would
// find a number below a sequence that was reset.
func (t *Tracker) newShardScan(generation int64) Scan {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Scan{generation: generation, oneShard: true, began: time.Now()}
	if t.generation == generation {
		if s.possible = t.possible; s.began.Before(t.fullScanAt.Add(fullScanEvery)) {
			s.Among = coarsen(t.possible)
		}
	}
	return s
}

// Since returns the numbers with which new changes may have been committed, in a feed of this generation.
func (t *Tracker) Since(generation int64) dialect.Seqs {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.generation != generation {
		return dialect.Seqs{}
	}
	return coarsen(t.possible)
}

// Rest returns the time until the next full scan is due.
func (t *Tracker) Rest() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.possible.All() {
		return fullScanEvery
	}
	return time.Until(t.fullScanAt)
}

// Expect is told the seq of a change that exists, or 0. If no ordinary scan would read that seq, the next scan is a
// full scan.
func (t *Tracker) Expect(seq int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if seq != 0 && !t.possible.Has(seq) {
		t.fullScanAt = time.Time{}
	}
}

// Scanned ends a scan. If its transaction failed, err is its error. If it committed, seqs are the changes that it
// deleted, and generation is the feed's generation that it read. all is true if the scan found no other changes.
func (t *Tracker) Scanned(s Scan, generation int64, seqs []int64, all bool, err error) {
	if s.generation == 0 {
		return
	}
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return // This says nothing about the database. What was deleted, if it was, stays in possible.
	case err != nil:
		t.Reset()
		return
	case generation != s.generation:
		return // The feed was made anew meanwhile, and numbers its changes anew.
	}
	if late := t.committed(s, seqs, all); late != 0 {
		table, _ := t.feed.DialectFeed().Waiting()
		t.feed.Trouble(&feedtype.Error{Code: feedtype.DatabaseChanged, Object: feedtype.FeedObject(t.feed.Name),
			Cause: fmt.Sprintf("number %d of table %s appeared after higher numbers were published, when no open "+
				"transaction could still commit it. Its row is published now, behind changes that were written later, "+
				"about %s late (more if a scan of the table takes long)", late, table, fullScanEvery),
			Next: "let the database number the rows of " + table.String() +
				": do not reset its sequence, and do not insert numbers by hand"})
	}
}

// committed records that a scan's transaction was committed. It returns the first number that could not have been
// committed any more, 0 if there is none; then everything that the tracker knew is forgotten.
func (t *Tracker) committed(s Scan, seqs []int64, all bool) (late int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.generation != s.generation {
		return 0
	}
	// Another scan may have forgotten everything since this one began, so both sets are looked at.
	i := slices.IndexFunc(seqs, func(seq int64) bool { return !s.possible.Has(seq) && !t.possible.Has(seq) })
	if i >= 0 {
		t.forget(s.generation)
		return seqs[i]
	}
	t.possible = remove(t.possible, seqs)
	settled := s.Settled
	reached := all || len(seqs) > 0 && seqs[len(seqs)-1] >= settled
	if !s.oneShard && settled > 0 && settled == t.open.closable && reached {
		t.possible = removeUpTo(t.possible, settled)
		t.open = openWriters{next: t.open.next}
	}
	if len(t.possible.Gaps) > maxGaps {
		t.possible = coarsen(t.possible)
	}
	if s.Among.All() && !s.oneShard {
		t.fullScanAt = time.Now().Add(max(fullScanEvery, fullScanShare*time.Since(s.began)))
	}
	return 0
}

// Reset makes the next scan a full scan.
func (t *Tracker) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(t.generation)
}

// forget makes every number possible again; t.mu is held.
func (t *Tracker) forget(generation int64) {
	t.generation, t.possible, t.open = generation, dialect.Seqs{}, openWriters{}
}
