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

// TestSeqsAreASet: whatever is taken out of Seqs, in whatever order, they hold the numbers that
// a set would, however rough a few more.
func TestSeqsAreASet(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		const top = 2500
		var s dialect.Seqs
		gone := map[int64]bool{} // what must have gone, or may have come back
		exact := true
		for range 12 {
			var seqs []int64
			for seq, density := int64(1)+random.Int64N(top), 1+random.Int64N(4); seq < top && len(seqs) < 600; seq += 1 + random.Int64N(density) {
				if s.Has(seq) {
					seqs = append(seqs, seq)
				}
			}
			switch random.IntN(6) {
			case 0:
				settled := random.Int64N(top)
				s = onlyAbove(s, settled)
				for seq := int64(1); seq <= settled; seq++ {
					gone[seq] = true
				}
			case 1:
				before := s
				s, exact = coarse(s), false
				if len(s.Gaps) > maxGaps {
					t.Fatalf("seed %d: %d gaps", seed, len(s.Gaps))
				}
				for seq := int64(1); seq <= top; seq++ {
					if before.Has(seq) && !s.Has(seq) {
						t.Fatalf("seed %d: %d is missing from %v, which was %v", seed, seq, s, before)
					}
				}
			default:
				s = without(s, seqs)
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

// TestRoughKeepsLongStretches: gaps far from each other stay apart, up to the number that one
// statement looks at, and those near each other become one.
func TestRoughKeepsLongStretches(t *testing.T) {
	gap := func(first, n int64) dialect.Run { return dialect.Run{First: first, N: n} }
	for _, c := range []struct{ s, want dialect.Seqs }{
		{dialect.Seqs{Above: 10_000}, dialect.Seqs{Above: 10_000}},
		{dialect.Seqs{Gaps: []dialect.Run{gap(5, 1)}, Above: 10_000}, dialect.Seqs{Gaps: []dialect.Run{gap(5, 1)}, Above: 10_000}},
		{dialect.Seqs{Gaps: []dialect.Run{gap(5, 1), gap(9, 2)}, Above: 10_000}, dialect.Seqs{Gaps: []dialect.Run{gap(5, 6)}, Above: 10_000}},
		{dialect.Seqs{Gaps: []dialect.Run{gap(5, 1), gap(9_990, 1)}, Above: 10_000}, dialect.Seqs{Gaps: []dialect.Run{gap(5, 1)}, Above: 9_989}},
		{dialect.Seqs{Gaps: []dialect.Run{gap(9_990, 1)}, Above: 10_000}, dialect.Seqs{Above: 9_989}},
	} {
		if got := coarse(c.s); got.Above != c.want.Above || !slices.Equal(got.Gaps, c.want.Gaps) {
			t.Errorf("coarse(%v) is %v, want %v", c.s, got, c.want)
		}
	}
	var many dialect.Seqs
	for i := range int64(40) {
		many.Gaps = append(many.Gaps, gap(1+i*1000, 1))
	}
	many.Above = 100_000
	got := coarse(many)
	if len(got.Gaps) > maxGaps || got.Above != many.Above {
		t.Errorf("%d gaps above %d of 40", len(got.Gaps), got.Above)
	}
}

// TestWhoIsWaitedFor: a writer is over when its transaction is. One that had no name yet when it
// was seen may be the one that its session has now; and an orphan may be anybody.
func TestWhoIsWaitedFor(t *testing.T) {
	w := func(session, transaction string) dialect.Writer {
		return dialect.Writer{Session: session, Transaction: transaction}
	}
	orphan := dialect.Writer{Session: "0", Transaction: "9", Orphan: true}
	for _, c := range []struct {
		what              string
		before, now, open []dialect.Writer
	}{
		{"it goes on", []dialect.Writer{w("a", "1")}, []dialect.Writer{w("a", "1"), w("b", "2")}, []dialect.Writer{w("a", "1")}},
		{"it has ended", []dialect.Writer{w("a", "1")}, []dialect.Writer{w("b", "2")}, nil},
		{"its session has begun another", []dialect.Writer{w("a", "1")}, []dialect.Writer{w("a", "2")}, nil},
		{"another session has it", []dialect.Writer{w("a", "1")}, []dialect.Writer{w("b", "1")}, []dialect.Writer{w("a", "1")}},
		{"still without a name", []dialect.Writer{w("a", "")}, []dialect.Writer{w("a", "")}, []dialect.Writer{w("a", "")}},
		{"it has got its name", []dialect.Writer{w("a", "")}, []dialect.Writer{w("a", "1")}, []dialect.Writer{w("a", "1")}},
		{"its session is at nothing", []dialect.Writer{w("a", "")}, []dialect.Writer{w("b", "1")}, nil},
		{"an orphan", []dialect.Writer{w("a", "1")}, []dialect.Writer{orphan}, []dialect.Writer{orphan}},
		{"an orphan of before", []dialect.Writer{orphan}, []dialect.Writer{orphan}, []dialect.Writer{orphan}},
		{"it was nobody's", nil, []dialect.Writer{w("a", "1")}, nil},
	} {
		if got := stillOpen(c.before, c.now); !slices.Equal(got, c.open) {
			t.Errorf("%s: waits for %v, want %v", c.what, got, c.open)
		}
	}
}

// TestWhoIsAskedAboutAFeedMadeAnew: how far the seqs of the old one went says nothing of the new
// one's, whoever hears first of it.
func TestWhoIsAskedAboutAFeedMadeAnew(t *testing.T) {
	var u Tracker
	const over, anew = 1, 2
	var seqs []int64
	for seq := int64(2); seq <= 1000; seq++ {
		seqs = append(seqs, seq)
	}
	u.took(u.begin(over), seqs, true)
	u.took(u.begin(over), []int64{1002}, true)
	u.took(u.begin(over), []int64{2000}, true)
	if len(u.left.Gaps) == 0 {
		t.Fatalf("no gaps in %v", u.left)
	}
	q, due := u.due(anew)
	u.took(u.begin(anew), []int64{1}, true)
	if due {
		u.asked(q, nil)
	}
	u.took(u.begin(anew), nil, true)
	if !u.left.Has(2) {
		t.Errorf("a seq that nobody has drawn yet is given up: %v", u.left)
	}
	if _, due := u.due(over); due {
		t.Error("somebody is asked about a feed that is gone")
	}
}

// TestTakenFromAFeedMadeAnew: what a look at the old one takes from the new one, whose record came
// in between, is no surprise, and says nothing of what may come of either.
func TestTakenFromAFeedMadeAnew(t *testing.T) {
	var troubles []error
	feed := &catalog.Feed{Name: "kv", Store: &store.Store{Observer: &feedtype.Observer{Trouble: func(e feedtype.TroubleEvent) { troubles = append(troubles, e.Err) }}}}
	u := New(feed)
	feed.Record.Store(&catalog.Record{Name: "kv", Mode: feedtype.ModeSequence})
	const over, anew = 1, 2
	u.took(u.begin(over), []int64{1, 2, 3}, true)
	l := u.begin(over)
	u.Scanned(l, anew, []int64{1}, true, nil)
	if len(troubles) > 0 || u.left.Above != 3 {
		t.Errorf("told %v, and looks above %d", troubles, u.left.Above)
	}
	u.Scanned(l, over, []int64{1}, true, nil)
	if len(troubles) != 1 || !u.left.All() {
		t.Errorf("of a number that was set back: told %v, and looks among %v", troubles, u.left)
	}
}

// TestAnswersThatWereOvertaken: two looks of a process ask who is at work, and the first answer comes
// last: a writer that had drawn in between is not in it, and is at work still.
func TestAnswersThatWereOvertaken(t *testing.T) {
	const generation = 1
	between := []dialect.Writer{{Session: "a", Transaction: "1"}}
	for _, inOrder := range []bool{true, false} {
		var u Tracker
		u.took(u.begin(generation), []int64{1}, true)
		u.took(u.begin(generation), []int64{2000}, true)
		for seq := int64(2001); seq < 3000; seq++ {
			u.took(u.begin(generation), []int64{seq}, true)
		}
		first, due := u.due(generation)
		if !due {
			t.Fatalf("nobody asks about the gaps in %v", u.left)
		}
		for seq := int64(3001); seq < 3500; seq++ { // 3000 was drawn, by the one between
			u.took(u.begin(generation), []int64{seq}, true)
		}
		u.open.next = time.Time{}
		second, _ := u.due(generation)
		if inOrder {
			u.asked(first, nil)
			u.asked(second, between)
		} else {
			u.asked(second, between)
			u.asked(first, nil)
		}
		u.took(u.begin(generation), nil, true)
		if !u.left.Has(3000) {
			t.Errorf("in order %v: a seq is given up whose writer is at work: %v", inOrder, u.left)
		}
	}
}

// TestFewAtATimeBehindAGap: what is published little by little behind a gap is passed over like what
// comes at once. The clock is the bubble's.
func TestFewAtATimeBehindAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var u Tracker
		for seq := int64(1); seq < 2000; seq++ {
			if seq != 100 {
				u.took(u.begin(1), []int64{seq}, true)
			}
		}
		if l := u.begin(1); !l.Among.Has(100) || l.Among.Has(101) || l.Among.Has(1999) || !u.Since(1).Has(2000) {
			t.Errorf("it looks among %v", l.Among)
		}
		if q, due := u.due(1); !due || q.upTo != 1999 {
			t.Errorf("nobody asks about the gap: %v, %v", q, due)
		}
	})
}

// TestGlances: who reads one shard leaves out what a publisher of his process does, as long as that looks
// everywhere in time. What he takes is taken; that the whole table was looked at, or that nothing comes
// up to a number, is told by none of his looks, nor by what a publisher finds in one shard.
func TestGlances(t *testing.T) {
	var u Tracker
	if l := u.beginShard(1); !l.Among.All() || !l.part {
		t.Errorf("the first glance: %+v", l)
	}
	u.took(u.begin(1), []int64{1, 2, 3}, false)
	if l := u.beginShard(1); l.Among.All() || l.Among.Above != 3 {
		t.Errorf("beside a publisher he looks at %+v", l.Among)
	}
	if l := u.beginShard(2); !l.Among.All() {
		t.Errorf("in another generation he looks at %+v", l.Among)
	}
	u.took(u.beginShard(1), []int64{5}, false)
	if l := u.begin(1); l.left.Above != 5 || !l.left.Has(4) {
		t.Errorf("what he has taken is looked for: %+v", l.left)
	}
	u.open.upTo, u.open.settled = 5, 5
	all := u.begin(1)
	for _, l := range []Scan{u.beginShard(1), all.OfShard()} {
		if u.took(l, []int64{6}, true); !u.left.Has(4) {
			t.Fatalf("4 is given up by a look into one shard")
		}
		u.left = without(all.left, nil)
	}
	if u.took(all, nil, true); u.left.Has(4) {
		t.Error("4 is not given up by a look everywhere")
	}
	u.whole = time.Now().Add(-wholeEvery)
	l := u.beginShard(1)
	if !l.Among.All() || l.left.All() {
		t.Errorf("when nobody looks everywhere any more he looks at %+v", l.Among)
	}
	if u.took(l, []int64{7}, true); time.Now().Before(u.whole) {
		t.Error("a look into one shard counts as one everywhere")
	}
	if surprise := u.took(l, []int64{2}, true); surprise != 2 || !u.left.All() {
		t.Errorf("surprised by %d, left %+v", surprise, u.left)
	}
}
