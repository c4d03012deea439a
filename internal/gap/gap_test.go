package gap

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/store"
)

// TestSeqsBehaveAsASet: after any operations the numbers are those of a
// plain set; coarsen may only add some.
func TestSeqsBehaveAsASet(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		const top = 2500
		var s dialect.Seqs
		gone := map[int64]bool{} // removed; coarsen may add it again
		exact := true
		for range 12 {
			var seqs []int64
			seq, density := int64(1)+random.Int64N(top), 1+random.Int64N(4)
			for ; seq < top && len(seqs) < 600; seq += 1 + random.Int64N(density) {
				if s.Has(seq) {
					seqs = append(seqs, seq)
				}
			}
			switch random.IntN(6) {
			case 0:
				settled := random.Int64N(top)
				s = removeUpTo(s, settled)
				for seq := int64(1); seq <= settled; seq++ {
					gone[seq] = true
				}
			case 1:
				before := s
				s, exact = coarsen(s), false
				if len(s.Gaps) > maxScanGaps {
					t.Fatalf("seed %d: %d gaps", seed, len(s.Gaps))
				}
				for seq := int64(1); seq <= top; seq++ {
					if before.Has(seq) && !s.Has(seq) {
						t.Fatalf("seed %d: %d is missing from %v, which was %v", seed, seq, s, before)
					}
				}
			default:
				s = remove(s, seqs)
				for _, seq := range seqs {
					gone[seq] = true
				}
			}
			for seq := int64(1); seq <= top+1; seq++ {
				if s.Has(seq) == gone[seq] && (exact || !gone[seq]) {
					t.Fatalf("seed %d: %d gone %v, in %v: %v", seed, seq, gone[seq], s, s.Has(seq))
				}
			}
			for i, g := range s.Gaps {
				if g.N < 1 || g.Last() > s.Above || i > 0 && s.Gaps[i-1].Last()+1 >= g.First {
					t.Fatalf("seed %d: gaps %v", seed, s)
				}
			}
		}
	}
}

// TestCoarsenKeepsLongRunsApart: coarsen keeps gaps apart that are far from each other, up to the
// number that one statement reads, and joins gaps that are near each other.
func TestCoarsenKeepsLongRunsApart(t *testing.T) {
	gap := func(first, n int64) dialect.Run { return dialect.Run{First: first, N: n} }
	for _, c := range []struct{ s, want dialect.Seqs }{
		{dialect.Seqs{Above: 10_000}, dialect.Seqs{Above: 10_000}},
		{dialect.Seqs{Gaps: []dialect.Run{gap(5, 1)}, Above: 10_000},
			dialect.Seqs{Gaps: []dialect.Run{gap(5, 1)}, Above: 10_000}},
		{dialect.Seqs{Gaps: []dialect.Run{gap(5, 1), gap(9, 2)}, Above: 10_000},
			dialect.Seqs{Gaps: []dialect.Run{gap(5, 6)}, Above: 10_000}},
		{dialect.Seqs{Gaps: []dialect.Run{gap(5, 1), gap(9_990, 1)}, Above: 10_000},
			dialect.Seqs{Gaps: []dialect.Run{gap(5, 1)}, Above: 9_989}},
		{dialect.Seqs{Gaps: []dialect.Run{gap(9_990, 1)}, Above: 10_000}, dialect.Seqs{Above: 9_989}},
	} {
		if got := coarsen(c.s); got.Above != c.want.Above || !slices.Equal(got.Gaps, c.want.Gaps) {
			t.Errorf("coarsen(%v) is %v, want %v", c.s, got, c.want)
		}
	}
	var many dialect.Seqs
	for i := range int64(40) {
		many.Gaps = append(many.Gaps, gap(1+i*1000, 1))
	}
	many.Above = 100_000
	got := coarsen(many)
	if len(got.Gaps) > maxScanGaps || got.Above != many.Above {
		t.Errorf("%d gaps above %d of 40", len(got.Gaps), got.Above)
	}
}

// TestWriterStaysOpenUntilItsTransactionEnds: a writer is waited for until its transaction has ended. A transaction
// that had no name when it was listed may be the one that its session has now. An orphan may be any listed transaction.
func TestWriterStaysOpenUntilItsTransactionEnds(t *testing.T) {
	w := func(session, transaction string) dialect.Writer {
		return dialect.Writer{Session: session, Transaction: transaction}
	}
	orphan := dialect.Writer{Session: "0", Transaction: "9", Orphan: true}
	for _, c := range []struct {
		what              string
		before, now, open []dialect.Writer
	}{
		{"still open",
			[]dialect.Writer{w("a", "1")}, []dialect.Writer{w("a", "1"), w("b", "2")}, []dialect.Writer{w("a", "1")}},
		{"it has ended", []dialect.Writer{w("a", "1")}, []dialect.Writer{w("b", "2")}, nil},
		{"its session has begun another transaction",
			[]dialect.Writer{w("a", "1")}, []dialect.Writer{w("a", "2")}, nil},
		{"another session has the transaction",
			[]dialect.Writer{w("a", "1")}, []dialect.Writer{w("b", "1")}, []dialect.Writer{w("a", "1")}},
		{"still without a name",
			[]dialect.Writer{w("a", "")}, []dialect.Writer{w("a", "")}, []dialect.Writer{w("a", "")}},
		{"it has got its name",
			[]dialect.Writer{w("a", "")}, []dialect.Writer{w("a", "1")}, []dialect.Writer{w("a", "1")}},
		{"its session has no transaction", []dialect.Writer{w("a", "")}, []dialect.Writer{w("b", "1")}, nil},
		{"an orphan", []dialect.Writer{w("a", "1")}, []dialect.Writer{orphan}, []dialect.Writer{orphan}},
		{"an orphan of before", []dialect.Writer{orphan}, []dialect.Writer{orphan}, []dialect.Writer{orphan}},
		{"no writer before", nil, []dialect.Writer{w("a", "1")}, nil},
	} {
		if got := stillOpen(c.before, c.now); !slices.Equal(got, c.open) {
			t.Errorf("%s: waits for %v, want %v", c.what, got, c.open)
		}
	}
}

// TestRecreatedFeedHasItsOwnWriters: the numbers of a dropped feed say nothing about a feed of the
// same name that was added later.
func TestRecreatedFeedHasItsOwnWriters(t *testing.T) {
	var tr Tracker
	const over, anew = 1, 2
	var seqs []int64
	for seq := int64(2); seq <= 1000; seq++ {
		seqs = append(seqs, seq)
	}
	tr.committed(tr.newScan(over), seqs, true)
	tr.committed(tr.newScan(over), []int64{1002}, true)
	tr.committed(tr.newScan(over), []int64{2000}, true)
	if len(tr.possible.Gaps) == 0 {
		t.Fatalf("no gaps in %v", tr.possible)
	}
	q, due := tr.nextQuery(anew)
	tr.committed(tr.newScan(anew), []int64{1}, true)
	if due {
		tr.setWriters(q, nil)
	}
	tr.committed(tr.newScan(anew), nil, true)
	if !tr.possible.Has(2) {
		t.Errorf("a number that was not drawn yet is closed: %v", tr.possible)
	}
	if _, due := tr.nextQuery(over); due {
		t.Error("a writer query is due for a feed that is gone")
	}
}

// TestScanOfADroppedFeedIsIgnored: a scan that began before a feed was dropped and
// added again reports no late number, and closes no gap.
func TestScanOfADroppedFeedIsIgnored(t *testing.T) {
	var troubles []error
	feed := &catalog.Feed{Name: "kv", Store: &store.Store{Observer: &feedtype.Observer{
		Trouble: func(e feedtype.TroubleEvent) { troubles = append(troubles, e.Err) }}}}
	tr := New(feed)
	feed.Record.Store(&catalog.FeedRecord{Name: "kv", Mode: feedtype.ModeSequence})
	const over, anew = 1, 2
	tr.committed(tr.newScan(over), []int64{1, 2, 3}, true)
	l := tr.newScan(over)
	tr.Scanned(l, anew, []int64{1}, true, nil)
	if len(troubles) > 0 || tr.possible.Above != 3 {
		t.Errorf("reported %v, scans above %d", troubles, tr.possible.Above)
	}
	tr.Scanned(l, over, []int64{1}, true, nil)
	if len(troubles) != 1 || !tr.possible.All() {
		t.Errorf("after a sequence reset: reported %v, scans %v", troubles, tr.possible)
	}
}

// TestOvertakenWriterListIsIgnored: two scans list the open writers, and the answer of the first
// comes last. A writer that began between the two is missing in that answer, and is still open.
func TestOvertakenWriterListIsIgnored(t *testing.T) {
	const generation = 1
	between := []dialect.Writer{{Session: "a", Transaction: "1"}}
	for _, inOrder := range []bool{true, false} {
		var tr Tracker
		tr.committed(tr.newScan(generation), []int64{1}, true)
		tr.committed(tr.newScan(generation), []int64{2000}, true)
		for seq := int64(2001); seq < 3000; seq++ {
			tr.committed(tr.newScan(generation), []int64{seq}, true)
		}
		first, due := tr.nextQuery(generation)
		if !due {
			t.Fatalf("no writer query is due for the gaps in %v", tr.possible)
		}
		for seq := int64(3001); seq < 3500; seq++ { // 3000 was drawn by the writer that began between
			tr.committed(tr.newScan(generation), []int64{seq}, true)
		}
		tr.open.next = time.Time{}
		second, _ := tr.nextQuery(generation)
		if inOrder {
			tr.setWriters(first, nil)
			tr.setWriters(second, between)
		} else {
			tr.setWriters(second, between)
			tr.setWriters(first, nil)
		}
		tr.committed(tr.newScan(generation), nil, true)
		if !tr.possible.Has(3000) {
			t.Errorf("in order %v: a number is closed while its writer is open: %v", inOrder, tr.possible)
		}
	}
}

// TestNumbersPublishedInSmallBatchesAreReadOnce: numbers above a gap that were published in small batches are not
// read again.
func TestNumbersPublishedInSmallBatchesAreReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tr Tracker
		for seq := int64(1); seq < 2000; seq++ {
			if seq != 100 {
				tr.committed(tr.newScan(1), []int64{seq}, true)
			}
		}
		if l := tr.newScan(1); !l.Among.Has(100) || l.Among.Has(101) || l.Among.Has(1999) || !tr.Since(1).Has(2000) {
			t.Errorf("the scan reads %v", l.Among)
		}
		if q, due := tr.nextQuery(1); !due || q.upTo != 1999 {
			t.Errorf("no writer query is due for the gap: %v, %v", q, due)
		}
	})
}

// TestShardScanClosesNoGap: the scan of one shard leaves numbers out only while the process makes full scans in time.
// It removes the numbers that it has moved. It closes no gap, and does not count as a full scan.
func TestShardScanClosesNoGap(t *testing.T) {
	var tr Tracker
	if l := tr.newShardScan(1); !l.Among.All() || !l.oneShard {
		t.Errorf("the first scan of a shard: %+v", l)
	}
	tr.committed(tr.newScan(1), []int64{1, 2, 3}, false)
	if l := tr.newShardScan(1); l.Among.All() || l.Among.Above != 3 {
		t.Errorf("after a full scan it reads %+v", l.Among)
	}
	if l := tr.newShardScan(2); !l.Among.All() {
		t.Errorf("in another generation it reads %+v", l.Among)
	}
	tr.committed(tr.newShardScan(1), []int64{5}, false)
	if l := tr.newScan(1); l.possible.Above != 5 || !l.possible.Has(4) {
		t.Errorf("numbers that were moved are read again: %+v", l.possible)
	}
	tr.open.upTo, tr.open.closable = 5, 5
	all := tr.newScan(1)
	for _, l := range []Scan{tr.newShardScan(1), all.OfShard()} {
		if tr.committed(l, []int64{6}, true); !tr.possible.Has(4) {
			t.Fatalf("4 is closed by the scan of one shard")
		}
		tr.possible = remove(all.possible, nil)
	}
	if tr.committed(all, nil, true); tr.possible.Has(4) {
		t.Error("4 is not closed by a scan of all shards")
	}
	tr.fullScanAt = time.Now().Add(-fullScanEvery)
	l := tr.newShardScan(1)
	if !l.Among.All() || l.possible.All() {
		t.Errorf("when full scans are overdue it reads %+v", l.Among)
	}
	if tr.committed(l, []int64{7}, true); time.Now().Before(tr.fullScanAt) {
		t.Error("the scan of one shard counts as a full scan")
	}
	if late := tr.committed(l, []int64{2}, true); late != 2 || !tr.possible.All() {
		t.Errorf("late number %d, possible %+v", late, tr.possible)
	}
}
