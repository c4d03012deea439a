package relay

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestRefusedKeyIsSetAside (H25, S6): a refused key becomes a dead letter, its later versions join the letter, and all
// other keys continue. When an operator retries it, the key is delivered as its row is then.
func TestRefusedKeyIsSetAside(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(5)
		x.Publish(f)
		s := &spy{Env: x}
		bad := map[int64]bool{1: true, 3: true, 5: true}
		s.decide = func(e sink.Entry) sink.Result {
			if bad[entryID(e)] {
				return sink.Reject(suite.ErrOff)
			}
			return sink.Accept()
		}
		r := s.relay(f)
		r.SetAside = true
		s.run(r)
		s.wantTaken("2 upsert 2", "4 upsert 4")
		letters := func() (keys string) {
			id := suite.TestConsumer
			page, err := x.RF.Admin().DeadLetters(x.Ctx, suite.Letters(id, ""))
			all := page.Letters
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
		x.Exec("UPDATE kv SET v = 9 WHERE id = 1", "UPDATE kv SET v = 9 WHERE id = 2", "DELETE FROM kv WHERE id = 3")
		x.Publish(f)
		s.run(r)
		s.wantTaken("7 upsert 2")
		if got := letters(); got != `{"id":1}@6+1 {"id":3}@8+1 {"id":5}@5+0 ` {
			x.Errorf("dead letters: %s", got)
		}
		bad = map[int64]bool{5: true}
		if _, err := x.RF.Admin().RetryDeadLetters(x.Ctx, suite.Letters(suite.TestConsumer, ""), nil); err != nil {
			x.Fatal(err)
		}
		s.run(r)
		s.wantTaken("6 upsert 1", "8 delete 3")
		if got := letters(); got != `{"id":5}@5+0 ` {
			x.Errorf("dead letters: %s", got)
		}
		if at := x.StoredCursor(); at != "8" {
			x.Errorf("the cursor is %q", at)
		}
	})
}

// TestDeadLettersCostOneStatementPerBatch (S6): while no key is set aside, no statement mentions dead letters. Later
// one statement per batch does, and one at the start, which also finds a letter that is to be released.
func TestDeadLettersCostOneStatementPerBatch(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(9)
		x.Publish(f)
		var asked []string
		rf := x.TappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "dead_letters") {
				asked = append(asked, ev.SQL)
			}
			return nil
		}}, nil)
		s := &spy{Env: x}
		r := s.relay(f)
		r.DB, r.Limit, r.SetAside, r.Retry.MaxAttempts = rf, 3, true, 1
		s.run(r)
		if s.batches != 3 || len(asked) > 0 {
			x.Errorf("%d batches, asked %q", s.batches, asked)
		}
		s.decide = func(e sink.Entry) sink.Result {
			if entryID(e) == 10 {
				return sink.Reject(suite.ErrOff)
			}
			return sink.Accept()
		}
		x.FillFrom(10, 10)
		x.Publish(f)
		s.run(r)
		x.FillFrom(11, 19)
		x.Publish(f)
		s.batches, asked, s.took = 0, nil, nil
		s.run(r)
		if s.batches != 3 || len(asked) != 4 {
			x.Errorf("%d batches, asked %d times: %q", s.batches, len(asked), asked)
		}
		s.wantTaken(suite.Upserts(11, 19)...)

		x.FillFrom(20, 28)
		x.Publish(f)
		s.decide = nil
		s.before = func([]sink.Entry) {
			s.before = nil
			if _, err := x.RF.Admin().RetryDeadLetters(x.Ctx, suite.Letters(suite.TestConsumer, ""), nil); err != nil {
				x.Error(err)
			}
		}
		s.run(r)
		s.wantTaken(append(append(suite.Upserts(20, 25), "10 upsert 10"), suite.Upserts(26, 28)...)...)
	})
}

// TestManyLettersAreDelivered (S6): there are more letters than one statement reads, and batches with keys that have
// letters and keys that have none.
func TestManyLettersAreDelivered(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		const many = 502
		f := x.AddKV()
		x.Fill(many)
		x.Publish(f)
		s := &spy{Env: x, decide: func(sink.Entry) sink.Result { return sink.Reject(suite.ErrOff) }}
		r := s.relay(f)
		r.Limit, r.SetAside, r.Retry.MaxAttempts = 1000, true, 1
		s.run(r)
		id := suite.TestConsumer
		if n := x.Scalar("SELECT count(*) FROM rowfeed_dead_letters"); n != many {
			x.Fatalf("%d dead letters", n)
		}
		s.decide = nil
		x.FillFrom(many+1, many+600)
		x.Exec("UPDATE kv SET v = 1 WHERE id = 1 OR id IN (501, 502)")
		x.Publish(f)
		s.run(r)
		s.wantTaken(suite.Upserts(many+1, many+600)...)
		if n := x.Scalar("SELECT count(*) FROM rowfeed_dead_letters WHERE collapsed = 1"); n != 3 {
			x.Errorf("%d versions have joined their letters", n)
		}
		x.FillFrom(many+601, many+603)
		x.Publish(f)
		r.Limit = 1
		s.before = func([]sink.Entry) {
			s.before = nil
			if n, err := x.RF.Admin().RetryDeadLetters(x.Ctx,
				suite.Letters(id, `{"id":7}`), nil); err != nil || n != 1 {
				x.Errorf("%d letters are to be released, %v", n, err)
			}
		}
		s.run(r)
		s.wantTaken(fmt.Sprintf("%d upsert %d", many+604, many+601), fmt.Sprintf("%d upsert %d", many+605, many+602),
			"7 upsert 7", fmt.Sprintf("%d upsert %d", many+606, many+603))
	})
}
