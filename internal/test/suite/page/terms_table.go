package page

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// endedTerms counts the terms that are not the present one.
func endedTerms(x *suite.Env) int64 {
	x.Helper()
	return x.Scalar("SELECT count(*) FROM rowfeed_terms t JOIN rowfeed_sequences s " +
		"ON s.name = t.feed AND s.term <> t.term")
}

// TestPublishersKeepTheirTerms (M74): two publishers take turns, as two servers with consistent=true do. Each takes its
// own term back. So the table of terms does not grow, and no cursor is refused. A publisher that starts later adds one
// term.
func TestPublishersKeepTheirTerms(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		publishers := []*rowfeed.Feed{f, anotherProcess(x)}
		reader := anotherProcess(x)
		var cursors []rowfeed.Cursor
		x.Fill(1)
		x.Publish(f)
		cursor := x.Fetch(reader, "", 0).Cursor
		for turn := range 1000 {
			x.Exec("UPDATE kv SET v = v + 1")
			if n := x.Publish(publishers[turn%2]); n != 1 {
				x.Fatalf("turn %d: %d keys published", turn, n)
			}
			page := x.Fetch(reader, cursor, 0)
			if len(page.Entries) != 1 {
				x.Fatalf("turn %d: %d entries", turn, len(page.Entries))
			}
			if cursor = page.Cursor; turn%50 < 2 {
				cursors = append(cursors, cursor)
			}
		}
		// That of the publisher whose turn is over, and that which feed add drew.
		if n := endedTerms(x); n > 2 {
			x.Errorf("%d terms have ended", n)
		}
		x.Exec("UPDATE kv SET v = v + 1")
		third := anotherProcess(x)
		x.Publish(third)
		if n := endedTerms(x); n > 3 {
			x.Errorf("%d terms have ended, with a third publisher", n)
		}
		for _, c := range cursors {
			if page := x.Fetch(third, c, 0); len(page.Entries) != 1 {
				x.Errorf("after %s: %d entries", c, len(page.Entries))
			}
		}
	})
}

// failing makes statements fail: the n-th one since it was armed, before it is sent, or after the database has run it.
type failing struct{ left, after atomic.Int64 }

func (f *failing) hooks() testdb.Hooks {
	return testdb.Hooks{
		Before: func(_ context.Context, ev testdb.TapEvent) error {
			if ev.Kind != testdb.Rollback && f.left.Add(-1) == 0 && f.after.Load() == 0 {
				return testdb.ErrInjected
			}
			return nil
		},
		After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if ev.Kind != testdb.Rollback && f.left.Load() == 0 && f.after.Load() == 1 {
				f.left.Store(-1)
				return testdb.ErrInjected
			}
			return err
		},
	}
}

// TestFirstPassOfATermFailsAnywhere (M74, H15): the first pass of a publisher fails at one of its statements, also at
// its COMMIT, whose outcome then is unknown. The next passes go on, of this publisher and of another one. Every ended
// term has the highest head that a commit gave in it, and no reader is refused.
func TestFirstPassOfATermFailsAnywhere(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		insertKV(x, f, 1)
		reader := x.Recorder(anotherProcess(x), 10)
		heads := map[string]string{} // of each term
		look := func(when string) {
			x.Helper()
			state := strings.Fields(x.List("SELECT term, value FROM rowfeed_sequences")[0])
			heads[state[0]] = state[1]
			for _, line := range x.List("SELECT t.term, t.upto FROM rowfeed_terms t JOIN rowfeed_sequences s " +
				"ON s.name = t.feed AND s.term <> t.term") {
				ended := strings.Fields(line)
				if want, known := heads[ended[0]]; known && ended[1] != want {
					x.Errorf("%s: term %s is known up to %s, and went up to %s", when, ended[0], ended[1], want)
				}
			}
			reader.Read()
		}
		look("at first")
		for n, id := int64(1), 2; ; n++ {
			passed := true
			for after := range int64(2) {
				broken := &failing{}
				other := x.Tapped(broken.hooks(), nil)
				id++
				x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id))
				broken.after.Store(after)
				broken.left.Store(n)
				_, err := other.Publish(x.Ctx)
				when := fmt.Sprintf("statement %d, after it %d, %v", n, after, err)
				passed = passed && err == nil
				broken.left.Store(-1)
				look(when)
				for _, next := range []*rowfeed.Feed{other, f, other} {
					id++
					x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id))
					x.Publish(next)
					look(when)
				}
			}
			if passed {
				x.Logf("a pass has %d statements at most", n-1)
				break
			}
		}
		reader.Check(x.KVRows(), suite.ByID)
		x.WantSound(f)
	})
}

// TestOldTermsArePurged (M74): a term goes if it ended more than 90 days ago and 10,000 newer ones exist. A reader with
// a purged term is refused.
func TestOldTermsArePurged(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		insertKV(x, x.AddKV(), 1)
		const lowest, between = int64(feedtype.LowestTerm), 9_997
		const old, young, first = lowest, lowest + 1, lowest + 2
		now := time.Now().UnixMicro()
		days := func(n int64) int64 { return now - n*24*time.Hour.Microseconds() }
		rows := []string{
			fmt.Sprintf("('kv', %d, 1, %d)", old, days(91)),
			fmt.Sprintf("('kv', %d, 1, %d)", young, days(89)),
		}
		for term := range int64(between) {
			rows = append(rows, fmt.Sprintf("('kv', %d, 1, %d)", first+term, days(1)+term))
		}
		for some := range slices.Chunk(rows, 1000) {
			x.Exec("INSERT INTO rowfeed_terms (feed, term, upto, ended_at) VALUES " + strings.Join(some, ", "))
		}
		x.Exec("INSERT INTO rowfeed_terms (feed, term, upto, ended_at) VALUES " + // of another feed
			fmt.Sprintf("('other', %d, 1, %d)", old, days(91)))
		cursor := func(term int64) rowfeed.Cursor { return rowfeed.Cursor("1." + feedtype.Term(term).String()) }
		all := int64(between + 3) // and that of other
		for round := range 3 {
			f := anotherProcess(x)
			insertKV(x, f, 2+round)
			all++ // the term of the publisher before
			if round == 1 {
				all--
			}
			if n := x.Scalar("SELECT count(*) FROM rowfeed_terms"); n != all {
				x.Fatalf("round %d: %d terms, want %d", round, n, all)
			}
			if round == 0 {
				x.Fetch(f, cursor(old), 0)
			} else {
				wantHistoryLost(x, f, cursor(old))
			}
			x.Fetch(f, cursor(young), 0)
			x.Fetch(f, cursor(first), 0)
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_terms WHERE feed = 'other'"); n != 1 {
			x.Errorf("%d terms of another feed", n)
		}
	})
}

// TestDumpOfTwoMomentsKnowsNoMoreThanItsHead (H15): a dump that is no snapshot has the sequence of one moment and the
// terms of a later one. What the terms tell above the sequence's head is lost, so a reader of that is refused, also
// after the head has passed it.
func TestDumpOfTwoMomentsKnowsNoMoreThanItsHead(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f, other := x.AddKV(), anotherProcess(x)
		insertKV(x, f, 1)
		insertKV(x, other, 2) // f's term ends at 1
		dump := x.Save()
		insertKV(x, f, 3) // in its own term again
		lost := x.Fetch(f, "", 0).Cursor
		insertKV(x, other, 4)              // f's term ends at 3
		x.Load(dump.WithTermsOf(x.Save())) // with the head 2
		f = anotherProcess(x)
		wantHistoryLost(x, f, lost)
		for id := 5; id < 8; id++ {
			insertKV(x, f, id)
			wantHistoryLost(x, f, lost)
		}
	})
}
