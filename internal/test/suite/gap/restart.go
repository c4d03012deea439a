package gap

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/fixture"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestRestartedSeqsAreFound (H29): if the database's numbering is set back, new seqs are below the published ones,
// where no scan goes. A consistent request finds them at once. The scan of the whole table finds them after some
// seconds. Either reports the problem.
func TestRestartedSeqsAreFound(t *testing.T) { testSetBack(t, rowfeed.ModeSequence) }

// TestRestartedRecordNumbersAreFound (H29) is TestRestartedSeqsAreFound for an outbox.
func TestRestartedRecordNumbersAreFound(t *testing.T) { testSetBack(t, rowfeed.ModeOutbox) }

func testSetBack(t *testing.T, mode string) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		t.Parallel()
		if fixture.Of(e).OneWriter {
			return // there every scan is of the whole table
		}
		x := suite.NewEnv(t, e, nil)
		x.Migrate()
		p := newPublisher(x, mode, 0)
		setBack := x.Text("gap.restart_numbers", p.table, p.number)
		const wholeEvery = 10 * time.Second // the interval between scans of the whole table
		from := 0
		for round, find := range []func(){
			func() {
				page, err := p.feed.Fetch(x.Ctx, rowfeed.Request{After: rowfeed.Now, Consistent: true, Shards: p.part})
				if err != nil || x.Scalar("SELECT count(*) FROM "+p.table) != 0 {
					x.Errorf("after a consistent request a change is left: %v, %v", page, err)
				}
			},
			func() {
				x.Eventually("the publisher finds the change", func() bool { return x.Publish(p.feed) == 1 })
			},
		} {
			var before int
			for found := true; found; {
				// The first scan here is one of the whole table. On a busy machine the next of these scans may be due
				// before the change is written. It finds the change too early, and then the round starts again.
				began := time.Now()
				from += 1000
				p.publishMany(from)
				p.awaitNoGap()
				x.Exec(setBack, fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", from/1000))
				before = len(p.troubles())
				found = x.Publish(p.feed) != 0
				if took := time.Since(began); found && (took < wholeEvery/2 || from == 20_000) {
					x.Fatalf("round %d: the next pass published the change, after %s", round, took)
				}
			}
			find()
			found := p.troubles()
			if len(found) != before+1 || !suite.IsCode(found[before], rowfeed.DatabaseChanged) {
				x.Errorf("round %d: the publisher reports %v", round, found)
			}
		}
		x.WantSound(p.feed)
	})
}

// TestFailedCommitKeepsSeqs (M8): a pass whose COMMIT fails has deleted no change, and the next pass publishes it.
func TestFailedCommitKeepsSeqs(t *testing.T) { testFailedCommit(t, rowfeed.ModeSequence) }

// TestFailedCommitKeepsRecords is TestFailedCommitKeepsSeqs for an outbox.
func TestFailedCommitKeepsRecords(t *testing.T) { testFailedCommit(t, rowfeed.ModeOutbox) }

func testFailedCommit(t *testing.T, mode string) {
	eachPublisher(t, mode, func(p *publisher) {
		x := p.Env
		p.publishMany(1000)
		p.awaitNoGap()
		p.mu.Lock()
		p.failing, p.deleted = true, false
		p.mu.Unlock()
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
		if _, err := p.feed.Publish(x.Ctx); !errors.Is(err, testdb.ErrInjected) {
			x.Fatalf("the pass's COMMIT did not fail: %v", err)
		}
		p.wantNextPass("the change of the failed pass", 1)
	})
}

// TestRecreatedFeedHasNewSeqs (H29): a feed that was dropped and added again has a new table of changes, whose seqs
// start again. A publisher that does not know this yet finds them all the same.
func TestRecreatedFeedHasNewSeqs(t *testing.T) { testRecreated(t, rowfeed.ModeSequence) }

// TestRecreatedFeedHasNewRecords is TestRecreatedFeedHasNewSeqs for an outbox.
func TestRecreatedFeedHasNewRecords(t *testing.T) { testRecreated(t, rowfeed.ModeOutbox) }

func testRecreated(t *testing.T, mode string) {
	eachPublisher(t, mode, func(p *publisher) {
		x := p.Env
		p.publishMany(1000)
		p.awaitNoGap()
		x.Drop()
		x.Exec("DELETE FROM kv")
		addFeed(x, mode)
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
		_, err := p.feed.Fetch(x.Ctx, rowfeed.Request{Consistent: true, Shards: p.part})
		if err != nil || x.Scalar("SELECT count(*) FROM "+p.table) != 0 {
			x.Errorf("after a consistent request a change is left, or %v", err)
		}
		p.wantNoTrouble("after the request")
	})
}
