package consume

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestResetShardDoesNotSplitGenerations (H24): one shard was reset to its beginning, where a source refuses nothing,
// and the feed has a new generation. The shard does not continue alone while the other shard's cursor is of the old
// generation.
func TestResetShardDoesNotSplitGenerations(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(8), x.Receiver()
		c := r.ShardsOf(f, x.RF, 2)
		x.InsertKV(1, 21)
		x.Publish(f)
		r.Once(c)
		x.Exec("DELETE FROM applied")
		if _, err := f.Admin().Bump(x.Ctx); err != nil {
			x.Fatal(err)
		}
		if n, err := x.RF.Admin().ResetConsumer(x.Ctx, shardID(0)); n != 1 || err != nil {
			x.Fatal(n, err)
		}
		if n, err := x.RF.Admin().PauseConsumer(x.Ctx, shardID(1)); n != 1 || err != nil {
			x.Fatal(n, err)
		}
		err := c.RunOnce(x.Ctx)
		x.WantCode(err, rowfeed.GenerationChanged)
		if !strings.Contains(err.Error(), "consumer reset test") {
			x.Errorf("the next step: %v", err)
		}
		if n := x.Scalar("SELECT count(*) FROM applied"); n != 0 {
			x.Errorf("%d entries of the new generation were applied although a cursor is of the old one", n)
		}
		refused := 0
		c.Options.OnRefused = func(context.Context, *sql.Tx, error) error {
			refused++
			return nil
		}
		x.WantCode(c.RunOnce(x.Ctx), rowfeed.ConsumerPaused)
		if n, err := x.RF.Admin().ResumeConsumer(x.Ctx, shardID(1)); n != 1 || err != nil {
			x.Fatal(n, err)
		}
		r.Once(c)
		if n := x.Scalar("SELECT count(*) FROM applied"); n != 20 || refused != 1 {
			x.Errorf("%d entries were applied, after %d refusals; cursors %v", n, refused, x.Cursors("test"))
		}
	})
}

// refusals is a source that holds the refusals of two shards until it has both.
type refusals struct {
	rowfeed.Source
	mu   sync.Mutex
	of   map[rowfeed.Shards]bool
	both chan struct{}
}

func (s *refusals) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	page, err := s.Source.Fetch(ctx, req)
	if suite.IsCode(err, rowfeed.CursorAhead) {
		s.mu.Lock()
		if s.of[req.Shards] = true; len(s.of) == 2 {
			select {
			case <-s.both:
			default:
				close(s.both)
			}
		}
		s.mu.Unlock()
		<-s.both
	}
	return page, err
}

// TestTwoRefusalsRestartOnce (H24): two shards are refused at the same time. Both restart once: the second waits for
// the first, and then finds its cursor reset.
func TestTwoRefusalsRestartOnce(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(8), x.Receiver()
		x.InsertKV(1, 21)
		x.Publish(f)
		r.Once(r.ShardsOf(f, x.RF, 2))
		x.Exec("DELETE FROM applied", "UPDATE rowfeed_cursors SET value = '1000'")
		m := newTeammate(r, &refusals{Source: f, of: map[rowfeed.Shards]bool{}, both: make(chan struct{})}, 2)
		m.c.Options.Lease = suite.StuckTTL
		var mu sync.Mutex
		calls := 0
		called := func() int {
			mu.Lock()
			defer mu.Unlock()
			return calls
		}
		m.c.Options.OnRefused = func(ctx context.Context, _ *sql.Tx, _ error) error {
			mu.Lock()
			calls++
			first := calls == 1
			mu.Unlock()
			if first {
				for ctx.Err() == nil && called() == 1 && !x.Waits() {
					suite.Rest(ctx, time.Millisecond)
				}
			}
			return nil
		}
		m.start()
		x.Eventually("both shards are through", func() bool { return x.Scalar("SELECT count(*) FROM applied") >= 20 })
		m.end()
		if n := x.Scalar("SELECT count(*) FROM applied"); n != 20 || called() != 1 {
			x.Errorf("%d entries were applied, after %d calls of OnRefused", n, called())
		}
	})
}

// TestCursorsAreMadeAgain (M22): an instance creates a consumer's cursors, and finds that another instance has created
// them. Before it has locked them, the consumer is dropped. The instance then creates them. With one writer at a time
// this order is impossible.
func TestCursorsAreMadeAgain(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(8), x.Receiver()
		x.InsertKV(1, 21)
		x.Publish(f)
		inserts, locks := make(chan struct{}), make(chan struct{})
		goOn, lock := make(chan struct{}), make(chan struct{})
		var mu sync.Mutex
		step := 0
		rf := x.TappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if ev.Kind != testdb.Exec || !strings.Contains(ev.SQL, "rowfeed_cursors") || x.Has.OneWriter {
				return nil
			}
			mu.Lock()
			was := step
			if strings.Contains(ev.SQL, "INSERT") && step == 0 ||
				strings.Contains(ev.SQL, "SET version = version + 1") && step == 1 {
				step++
			}
			now := step
			mu.Unlock()
			switch {
			case was == 0 && now == 1:
				close(inserts)
				<-goOn
			case was == 1 && now == 2:
				close(locks)
				<-lock
			}
			return nil
		}}, nil)
		ended := make(chan error, 1)
		go func() { ended <- divide(r, f, rf, 2) }()
		if !x.Has.OneWriter {
			<-inserts
			if err := divide(r, f, x.RF, 2); err != nil {
				x.Fatal(err)
			}
			close(goOn)
			<-locks
			dropped := make(chan error, 1)
			go func() {
				_, err := x.RF.Admin().DropConsumer(x.Ctx, suite.TestConsumer)
				dropped <- err
			}()
			var err error
			x.Eventually("the consumer is dropped, or that waits for the insert", func() bool {
				select {
				case err = <-dropped:
					dropped <- err
					return true
				default:
					return x.Waits()
				}
			})
			close(lock)
			if err := <-dropped; err != nil {
				x.Fatal(err)
			}
		}
		if err := <-ended; err != nil {
			x.Fatal(err)
		}
		r.Once(r.ShardsOf(f, x.RF, 2))
		x.WantCursors("test", "0/2 20", "1/2 20")
	})
}

// TestNewerOfTwoLettersIsKept (H25): if a key has two dead letters in two shards, the later one is kept.
func TestNewerOfTwoLettersIsKept(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(8), x.Receiver()
		x.InsertKV(1, 3)
		x.Publish(f)
		r.Fail = failsOn(1)
		c := r.ShardsOf(f, x.RF, 2)
		c.OnFailure = rowfeed.SetAside
		r.Once(c)
		columns := "consumer, feed, key_digest, key_json, position, op, state, attempts, collapsed, error, " +
			"first_at, last_at, data_shard"
		x.Exec("UPDATE rowfeed_dead_letters SET generation = -7, shard = 0",
			"INSERT INTO rowfeed_dead_letters ("+columns+", shard, generation) "+
				"SELECT "+columns+", 1, -5 FROM rowfeed_dead_letters",
			"UPDATE rowfeed_cursors SET aside = 1")
		if err := divide(r, f, x.RF, 1); err != nil {
			x.Fatal(err)
		}
		if n := x.Scalar("SELECT MAX(generation) FROM rowfeed_dead_letters"); n != -7 {
			x.Errorf("a letter of generation %d is kept", -n)
		}
	})
}

// divide gives the consumer a number of shards, as a relay does before it waits for its lease.
func divide(r *suite.Receiver, source rowfeed.Source, rf *rowfeed.DB, shards int) error {
	c := &rowfeed.RelayConsumer{Consumer: *r.ShardsOf(source, rf, shards)}
	return c.Divide(r.Ctx)
}
