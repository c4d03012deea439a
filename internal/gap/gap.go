package gap

import (
	"cmp"
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

// While somebody has an old snapshot, changes that were published and deleted stay in their
// table, and every look for the next one walks over all of them. So a publisher remembers which
// seqs may still come and looks for those alone. DESIGN.md gives the rule by which one is
// given up that was never seen.

const (
	// maxGaps bounds the ranges that one statement looks at, and mostGaps those that are remembered.
	maxGaps, mostGaps = 8, 1000
	// leastStretch is how many published seqs in a row are worth a range of their own.
	leastStretch = 256
	// firstAsk and lastAsk bound the pauses between looks at who is at work. (MariaDB makes its list
	// anew only where nobody has asked for 100 ms.)
	firstAsk, lastAsk = 200 * time.Millisecond, 10 * time.Second
	// wholeEvery is how often the whole table is looked at all the same, for seqs that were set
	// back or drawn by hand; and wholeShare keeps that to a part of the time.
	wholeEvery, wholeShare = 10 * time.Second, 20
)

// Tracker are the seqs that changes may still come with, as far as one process knows.
type Tracker struct {
	feed *catalog.Feed

	mu         sync.Mutex
	generation int64
	left       dialect.Seqs
	open       openWriters
	whole      time.Time // when the whole table is to be looked at
	asks       int64     // questions who is at work; see asked
}

// Scan is one look for changes.
type Scan struct {
	generation int64
	Among      dialect.Seqs // where it looks; see in
	left       dialect.Seqs // what may come, as known when it began
	Settled    int64        // see openWriters.settled
	began      time.Time
	part       bool // it looks into one shard of an outbox, and tells nothing of the others
}

// ofPart is the look into one shard that belongs to a look everywhere.
func (l Scan) OfShard() Scan {
	l.part = true
	return l
}

// Everywhere is the same scan of the whole table.
func (l Scan) Everywhere() Scan {
	l.Among = dialect.Seqs{}
	return l
}

// Settles says that what it finds is all that comes up to some number. That is to be seen in a transaction of
// ours: the question before one is asked in whatever isolation sessions have, in which what another publisher has
// deleted may be gone before his commit, and a proxy may send it to a replica.
func (l Scan) Settles() bool { return l.Settled > 0 }

// in is where it looks in the feed of a generation: in a feed made anew everywhere.
func (l Scan) In(generation int64) dialect.Seqs {
	if l.generation != generation {
		return dialect.Seqs{}
	}
	return l.Among
}

// New makes the tracker of a feed, which knows nothing yet.
func New(feed *catalog.Feed) *Tracker { return &Tracker{feed: feed} }

// begin is the next look for changes of a feed.
func (u *Tracker) begin(generation int64) Scan {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.generation != generation {
		u.forget(generation)
	}
	l := Scan{generation: generation, Among: coarse(u.left), left: u.left, Settled: u.open.settled, began: time.Now()}
	if !u.left.All() && !l.began.Before(u.whole) {
		l.Among = dialect.Seqs{}
	}
	return l
}

// since is where to look for whether there is anything new, in the feed of a generation.
func (u *Tracker) Since(generation int64) dialect.Seqs {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.generation != generation {
		return dialect.Seqs{}
	}
	return coarse(u.left)
}

// glance is a look of somebody who reads one shard of an outbox, and moves its records. He leaves numbers out only where
// somebody of his process looks at the whole table in time.
func (u *Tracker) beginShard(generation int64) Scan {
	u.mu.Lock()
	defer u.mu.Unlock()
	l := Scan{generation: generation, part: true, began: time.Now()}
	if u.generation == generation {
		if l.left = u.left; l.began.Before(u.whole.Add(wholeEvery)) {
			l.Among = coarse(u.left)
		}
	}
	return l
}

// rest is the time until the whole table is to be looked at.
func (u *Tracker) Rest() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.left.All() {
		return wholeEvery
	}
	return time.Until(u.whole)
}

// took is for a look whose changes are published, and that transaction committed. all says that
// there were no more. The answer is the first that should not have come, 0 if none.
func (u *Tracker) took(l Scan, seqs []int64, all bool) (surprise int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.generation != l.generation {
		return 0
	}
	// Somebody may have forgotten everything since it began, and told why.
	if i := slices.IndexFunc(seqs, func(seq int64) bool { return !l.left.Has(seq) && !u.left.Has(seq) }); i >= 0 {
		u.forget(l.generation)
		return seqs[i]
	}
	u.left = without(u.left, seqs)
	if settled := l.Settled; !l.part && settled > 0 && settled == u.open.settled && (all || len(seqs) > 0 && seqs[len(seqs)-1] >= settled) {
		u.left = onlyAbove(u.left, settled)
		u.open = openWriters{next: u.open.next}
	}
	if len(u.left.Gaps) > mostGaps {
		u.left = coarse(u.left)
	}
	if l.Among.All() && !l.part {
		u.whole = time.Now().Add(max(wholeEvery, wholeShare*time.Since(l.began)))
	}
	return 0
}

// expect makes the next look one at the whole table where a change is there that should not be.
func (u *Tracker) Expect(seq int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if seq != 0 && !u.left.Has(seq) {
		u.whole = time.Time{}
	}
}

// reset makes the next look one at the whole table.
func (u *Tracker) reset() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.forget(u.generation)
}

func (u *Tracker) forget(generation int64) {
	u.generation, u.left, u.open = generation, dialect.Seqs{}, openWriters{}
}

// leaving is the wait for those to end who may have drawn seqs that nobody has seen.
type openWriters struct {
	upTo    int64            // it is about seqs up to this one
	writers []dialect.Writer // who were at work when upTo had been drawn, and are still
	settled int64            // upTo, when all have ended: what a look finds from now on is all that comes
	next    time.Time        // when to ask again
	pause   time.Duration
}

// due tells whether it is time to ask who is at work in the feed of a generation, and up to which
// seq the answer holds: what was drawn before that was drawn by one of them, or is visible, or never comes.
func (u *Tracker) due(generation int64) (q ask, due bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	w := &u.open
	if u.generation != generation || len(coarse(u.left).Gaps) == 0 || w.settled > 0 || time.Now().Before(w.next) {
		return ask{}, false
	}
	w.pause = max(w.pause, firstAsk)
	w.next, w.pause = time.Now().Add(w.pause), min(w.pause*2, lastAsk) // also where nobody answers
	u.asks++
	return ask{generation: generation, upTo: u.left.Above, number: u.asks}, true
}

// ask is a question who is at work.
type ask struct{ generation, upTo, number int64 }

// asked is told who is at work. An answer that was overtaken by another question is left: who began
// in between is not in it, and has not ended.
func (u *Tracker) asked(q ask, open []dialect.Writer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	w := &u.open
	if u.generation != q.generation || u.asks != q.number || w.settled > 0 {
		return
	}
	if w.upTo == 0 {
		w.upTo, w.writers = q.upTo, open
	} else {
		w.writers = stillOpen(w.writers, open)
	}
	if len(w.writers) == 0 {
		w.settled, w.pause = w.upTo, 0
	}
}

// stillOpen are those of before that have not ended, by who is at work now. One without a name
// that has got one is waited for under that. An orphan may be any of before.
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

// without takes numbers, ascending, out of s.
func without(s dialect.Seqs, seqs []int64) dialect.Seqs {
	if len(seqs) == 0 {
		return s
	}
	gaps, above := slices.Clone(s.Gaps), s.Above
	if last := seqs[len(seqs)-1]; last > above {
		gaps, above = append(gaps, dialect.Run{First: above + 1, N: last - above}), last
	}
	out := dialect.Seqs{Above: above}
	keep := func(first, last int64) {
		if first <= last {
			out.Gaps = append(out.Gaps, dialect.Run{First: first, N: last - first + 1})
		}
	}
	runs := dialect.Runs(seqs)
	for _, g := range gaps {
		first := g.First
		for len(runs) > 0 && runs[0].First <= g.Last() {
			keep(first, min(runs[0].First-1, g.Last()))
			first = max(first, runs[0].Last()+1)
			if runs[0].Last() > g.Last() {
				break // it goes on in the next gap
			}
			runs = runs[1:]
		}
		keep(first, g.Last())
	}
	return out
}

// onlyAbove takes the numbers up to one out of s.
func onlyAbove(s dialect.Seqs, settled int64) dialect.Seqs {
	out := dialect.Seqs{Above: max(s.Above, settled)}
	for _, g := range s.Gaps {
		if first := max(g.First, settled+1); first <= g.Last() {
			out.Gaps = append(out.Gaps, dialect.Run{First: first, N: g.Last() - first + 1})
		}
	}
	return out
}

// rough is s and some numbers more, so that it has few gaps: the shortest of the stretches of
// published numbers between them are looked at again.
func coarse(s dialect.Seqs) dialect.Seqs {
	type stretch struct {
		behind int // the gap that it is behind
		n      int64
	}
	var stretches []stretch
	for i, g := range s.Gaps {
		next := s.Above + 1
		if i+1 < len(s.Gaps) {
			next = s.Gaps[i+1].First
		}
		stretches = append(stretches, stretch{i, next - g.Last() - 1})
	}
	slices.SortFunc(stretches, func(a, b stretch) int { return cmp.Compare(b.n, a.n) })
	kept := make([]bool, len(s.Gaps))
	for i, t := range stretches {
		kept[t.behind] = i < maxGaps && t.n >= leastStretch
	}
	out := dialect.Seqs{Above: s.Above}
	joined := false // the gap to come belongs to the last one
	for i, g := range s.Gaps {
		if joined {
			last := &out.Gaps[len(out.Gaps)-1]
			last.N = g.Last() - last.First + 1
		} else {
			out.Gaps = append(out.Gaps, g)
		}
		joined = !kept[i]
	}
	if joined {
		last := len(out.Gaps) - 1
		out.Above, out.Gaps = out.Gaps[last].First-1, out.Gaps[:last]
	}
	return out
}

// look begins a look for changes. Before, it asks who is at work, where there are gaps that
// have not been filled: then and now, and never at the cost of publishing.
func (u *Tracker) Scan(ctx context.Context) Scan {
	if !u.seqsGrow() {
		return Scan{}
	}
	generation := u.feed.Generation()
	if ctx.Err() != nil {
		return u.begin(generation)
	}
	if q, due := u.due(generation); due {
		var open []dialect.Writer
		var told bool
		err := u.feed.Read(ctx, "look who writes to the source", func(tx dialect.Querier) (err error) {
			open, told, err = u.feed.Store.Dialect.Writers(ctx, tx, u.feed.DialectFeed())
			return err
		})
		if err == nil && told {
			u.asked(q, open)
		}
	}
	return u.begin(generation)
}

func (u *Tracker) seqsGrow() bool {
	return u.feed.Store.Dialect.SeqsGrow() && !u.feed.Store.UnsafeDurability // a crash takes seqs back, too
}

// glance is [Tracker.glance] for the feed as last read.
func (u *Tracker) ScanShard() Scan {
	if !u.seqsGrow() {
		return Scan{}
	}
	return u.beginShard(u.feed.Generation())
}

// looked is told what came of a look: seqs that were published, in the feed of a generation, or an error.
func (u *Tracker) Scanned(l Scan, generation int64, seqs []int64, all bool, err error) {
	if l.generation == 0 { // see look
		return
	}
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return // it says nothing of the database; what was taken, if it was, is a gap
	case err != nil:
		u.reset()
		return
	case generation != l.generation:
		return // it was made anew meanwhile, and so were its seqs
	}
	if surprise := u.took(l, seqs, all); surprise != 0 {
		table, _ := u.feed.DialectFeed().Waiting()
		u.feed.Trouble(&feedtype.Error{Code: feedtype.DatabaseChanged, Object: feedtype.FeedObject(u.feed.Name),
			Cause: fmt.Sprintf("%d is a number that came after higher ones were published and nobody was known who could still write it; what has it is published now, some %s late, or more where looks take long, and behind what was written after it", surprise, wholeEvery),
			Next:  "leave the numbers of " + table.String() + " to the database: do not set them back, and do not draw them by hand"})
	}
}
