package consume

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// told is a source that says how far its shards are as a test wants it.
type told struct {
	feedtype.Source
	now   *feedtype.Standings
	since []string
}

func (s *told) Standings(_ context.Context, since string, _ time.Duration) (*feedtype.Standings, error) {
	s.since = append(s.since, since)
	if since == s.now.Digest {
		return &feedtype.Standings{Digest: since}, nil
	}
	return s.now, nil
}

// TestOwnMovesOfCursorsDoNotSlowWorker: a worker that is at a shard that moves all the time, be it that it moves it
// itself, does not take that for the moves of others' shards, behind which it pauses ever longer; and a page that
// brought something is newer than the look before it.
func TestOwnMovesOfCursorsDoNotSlowWorker(t *testing.T) {
	source := &told{}
	in := &instance{assignment: &assignment{c: &Consumer{Source: source}, count: 1}}
	own := &workerShard{run: &shardRun{assignment: &assignment{shard: 1}, watermark: "a"}}
	w := in.newWorker(t.Context(), 0, 0)
	w.shards[1], w.watermarks = own, &feedtype.Standings{Digest: "0", Shards: map[int]string{1: "a"}}
	look := func(digest, at string) {
		t.Helper()
		source.now = &feedtype.Standings{Digest: digest, Shards: map[int]string{1: at}}
		if err := w.meetShards(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	want := func(due bool, vain int) {
		t.Helper()
		if own.due != due || w.vain != vain {
			t.Errorf("due %t, vain %d; want %t, %d", own.due, w.vain, due, vain)
		}
	}
	look("1", "b")
	want(true, 0)
	look("2", "c") // while it is at it
	want(true, 0)
	own.run.watermark = "d" // the page has brought more
	w.afterPage(own, true)
	want(false, 0)
	w.watermarks.Shards[2] = "new" // beside it, a page of a server that lags
	lagging := &workerShard{run: &shardRun{assignment: &assignment{shard: 2}, watermark: "old"}}
	if w.afterPage(lagging, false); !lagging.due || lagging.vain != 1 {
		t.Errorf("the shard beside it: due %t, vain %d; want true, 1", lagging.due, lagging.vain)
	}
	look("3", "d")
	want(false, 0)
	if last := source.since[len(source.since)-1]; last != "" {
		t.Errorf("what was said before its page was asked for again since %q", last)
	}
	look("4", "d") // others' shards
	want(false, 1)
	look("5", "d")
	want(false, 2)
	look("6", "e")
	want(true, 0)
	w.afterPage(own, false) // a page of a server that lags
	look("7", "f")
	want(true, 1)
}

// TestSuccessEndsFailureOfItsOperation (M72): a worker that cannot read the watermarks, but can check its cursors in
// between, still fails. Its pauses grow until the watermarks are read.
func TestSuccessEndsFailureOfItsOperation(t *testing.T) {
	in := &instance{assignment: &assignment{c: &Consumer{}, count: 1}}
	w := in.newWorker(t.Context(), 0, 0)
	w.retry.outages = 3
	away := errors.New("away")
	for _, step := range []struct {
		op      operation
		err     error
		outages int
	}{{meeting, away, 3}, {checking, nil, 3}, {checking, away, 3}, {checking, nil, 3}, {meeting, nil, 0}} {
		if err := w.outcomeOf(t.Context(), step.op, step.err); err != step.err || w.retry.outages != step.outages {
			t.Errorf("%+v: %d outages, %v", step, w.retry.outages, err)
		}
	}
}
