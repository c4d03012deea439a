package conformance

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestRelaySetsAside (H25, S6): a refused key becomes a dead letter, its
// later versions join it, all else goes on, and it is delivered when an operator asks for
// that, as the row is then.
func TestRelaySetsAside(t *testing.T) {
	each(t, func(x *env) {
		f := x.addKV()
		x.fill(5)
		x.publish(f)
		s := &spy{env: x}
		bad := map[int64]bool{1: true, 3: true, 5: true}
		s.decide = func(e sink.Entry) sink.Result {
			if bad[entryID(e)] {
				return sink.Reject(errOff)
			}
			return sink.Accept()
		}
		r := s.relay(f)
		r.SetAside = true
		s.run(r)
		s.wantTaken("2 upsert 2", "4 upsert 4")
		letters := func() (keys string) {
			id := rowfeed.ConsumerID{Consumer: "test", Feed: "kv"}
			all, err := x.rf.Admin().DeadLetters(x.ctx, id, nil)
			if err != nil {
				x.Fatal(err)
			}
			for _, l := range all {
				keys += fmt.Sprintf("%s@%s+%d ", l.Key, l.Position, l.Collapsed)
			}
			return keys
		}
		if got := letters(); got != `{"id":1}@1+0 {"id":3}@3+0 {"id":5}@5+0 ` {
			x.Errorf("dead letters: %s", got)
		}
		x.exec("UPDATE kv SET v = 9 WHERE id = 1", "UPDATE kv SET v = 9 WHERE id = 2", "DELETE FROM kv WHERE id = 3")
		x.publish(f)
		s.run(r)
		s.wantTaken("7 upsert 2")
		if got := letters(); got != `{"id":1}@6+1 {"id":3}@8+1 {"id":5}@5+0 ` {
			x.Errorf("dead letters: %s", got)
		}
		bad = map[int64]bool{5: true}
		if _, err := x.rf.Admin().RetryDeadLetters(x.ctx, rowfeed.ConsumerID{Consumer: "test", Feed: "kv"}, nil); err != nil {
			x.Fatal(err)
		}
		s.run(r)
		s.wantTaken("6 upsert 1", "8 delete 3")
		if got := letters(); got != `{"id":5}@5+0 ` {
			x.Errorf("dead letters: %s", got)
		}
		if at := x.storedCursor(); at != "8" {
			x.Errorf("the cursor is %q", at)
		}
	})
}

// TestRelayAsksForDeadLetters (S6): while no key is set aside no statement
// mentions dead letters; later one for each batch does, and one in the beginning. That one
// also tells of a letter that is to be released, which needs no pause between batches.
func TestRelayAsksForDeadLetters(t *testing.T) {
	each(t, func(x *env) {
		f := x.addKV()
		x.fill(9)
		x.publish(f)
		var asked []string
		rf := x.tappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "dead_letters") {
				asked = append(asked, ev.SQL)
			}
			return nil
		}}, nil)
		s := &spy{env: x}
		r := s.relay(f)
		r.DB, r.Limit, r.SetAside, r.Retry.MaxAttempts = rf, 3, true, 1
		s.run(r)
		if s.batches != 3 || len(asked) > 0 {
			x.Errorf("%d batches, asked %q", s.batches, asked)
		}
		s.decide = func(e sink.Entry) sink.Result {
			if entryID(e) == 10 {
				return sink.Reject(errOff)
			}
			return sink.Accept()
		}
		x.fillFrom(10, 10)
		x.publish(f)
		s.run(r)
		x.fillFrom(11, 19)
		x.publish(f)
		s.batches, asked, s.took = 0, nil, nil
		s.run(r)
		if s.batches != 3 || len(asked) != 4 {
			x.Errorf("%d batches, asked %d times: %q", s.batches, len(asked), asked)
		}
		s.wantTaken(upserts(11, 19)...)

		x.fillFrom(20, 28)
		x.publish(f)
		s.decide = nil
		s.before = func([]sink.Entry) {
			s.before = nil
			if _, err := x.rf.Admin().RetryDeadLetters(x.ctx, rowfeed.ConsumerID{Consumer: "test", Feed: "kv"}, nil); err != nil {
				x.Error(err)
			}
		}
		s.run(r)
		s.wantTaken(append(append(upserts(20, 25), "10 upsert 10"), upserts(26, 28)...)...)
	})
}

// TestRelayManyDeadLetters (S6): more letters than are read at once, and batches that hold keys
// with letters and without.
func TestRelayManyDeadLetters(t *testing.T) {
	each(t, func(x *env) {
		const many = 502
		f := x.addKV()
		x.fill(many)
		x.publish(f)
		s := &spy{env: x, decide: func(sink.Entry) sink.Result { return sink.Reject(errOff) }}
		r := s.relay(f)
		r.Limit, r.SetAside, r.Retry.MaxAttempts = 1000, true, 1
		s.run(r)
		id := rowfeed.ConsumerID{Consumer: "test", Feed: "kv"}
		if n := x.scalar("SELECT count(*) FROM rowfeed_dead_letters"); n != many {
			x.Fatalf("%d dead letters", n)
		}
		s.decide = nil
		x.fillFrom(many+1, many+600)
		x.exec("UPDATE kv SET v = 1 WHERE id = 1 OR id IN (501, 502)")
		x.publish(f)
		s.run(r)
		s.wantTaken(upserts(many+1, many+600)...)
		if n := x.scalar("SELECT count(*) FROM rowfeed_dead_letters WHERE collapsed = 1"); n != 3 {
			x.Errorf("%d versions have joined their letters", n)
		}
		x.fillFrom(many+601, many+603)
		x.publish(f)
		r.Limit = 1
		s.before = func([]sink.Entry) {
			s.before = nil
			if n, err := x.rf.Admin().RetryDeadLetters(x.ctx, id, []byte(`{"id":7}`)); err != nil || n != 1 {
				x.Errorf("%d letters are to be released, %v", n, err)
			}
		}
		s.run(r)
		s.wantTaken(fmt.Sprintf("%d upsert %d", many+604, many+601), fmt.Sprintf("%d upsert %d", many+605, many+602), "7 upsert 7",
			fmt.Sprintf("%d upsert %d", many+606, many+603))
	})
}
