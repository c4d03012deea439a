package relay

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/rowfeed/rowfeed"
	relays "github.com/rowfeed/rowfeed/cmd/relay"
	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestStandbyTakesOver (M54, M56): of two instances one works and the other stands by. The other takes over when the
// first ends, or is paused until its lease has expired. What the paused instance still delivers has an earlier epoch,
// and its cursor is not stored.
func TestStandbyTakesOver(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(2)
		x.Publish(f)
		start := func(s *spy) (working chan int64, stop func()) {
			working = make(chan int64, 10)
			r := s.relay(f)
			r.Observe = func(e relays.Event) {
				if e.Kind == relays.Working {
					working <- e.Epoch
				}
			}
			ctx, cancel := context.WithCancel(x.Ctx)
			ended := make(chan error, 1)
			go func() { ended <- r.Run(ctx) }()
			stop = sync.OnceFunc(func() {
				cancel()
				if err := <-ended; err != nil {
					x.Error(err)
				}
			})
			x.Cleanup(stop)
			return working, stop
		}
		first, second := &spy{Env: x}, &spy{Env: x}
		working, stopFirst := start(first)
		if epoch := <-working; epoch != 1 {
			x.Errorf("the first epoch is %d", epoch)
		}
		standing, stopSecond := start(second)
		x.Eventually("everything is delivered", func() bool { return storedCursorOr(x, "") == "2" })
		first.wantTaken(suite.Upserts(1, 2)...)
		stopFirst()
		if epoch := <-standing; epoch != 2 {
			x.Errorf("the second epoch is %d", epoch)
		}
		var epochs []int64
		reached, release := make(chan struct{}), make(chan struct{})
		second.before = func(batch []sink.Entry) {
			epochs = append(epochs, batch[0].Epoch)
			close(reached)
			<-release // ignores its context, as a stopped process does
		}
		x.Exec("INSERT INTO kv VALUES (3, 'k', 0)")
		x.Publish(f)
		<-reached
		x.Exec("UPDATE rowfeed_leases SET expires_at = 1")
		third := &spy{Env: x}
		third.before = func(batch []sink.Entry) { epochs = append(epochs, batch[0].Epoch) }
		_, stopThird := start(third)
		x.Eventually("the third delivers", func() bool { return x.StoredCursor() == "3" })
		third.wantTaken("3 upsert 3")
		x.Exec("INSERT INTO kv VALUES (4, 'k', 0)")
		x.Publish(f)
		x.Eventually("the third instance continues", func() bool { return x.StoredCursor() == "4" })
		close(release)
		stopSecond()
		if at := x.StoredCursor(); at != "4" {
			x.Errorf("the paused one made %q of the cursor", at)
		}
		stopThird()
		if !slices.Equal(epochs, []int64{2, 3, 3}) {
			x.Errorf("epochs of the batches: %v", epochs)
		}
	})
}

// storedCursorOr returns the stored cursor, or otherwise if it has no row yet.
func storedCursorOr(x *suite.Env, otherwise string) string {
	if all := x.List("SELECT value FROM rowfeed_cursors WHERE consumer = 'test'"); len(all) == 1 {
		return string(suite.Place(rowfeed.Cursor(all[0])))
	}
	return otherwise
}

// TestLaterEpochProtectsCursor (M56, H27): the holder of an earlier claim cannot write the cursor of a consumer under a
// lease any more, even if nothing was delivered since. It ends, and delivers nothing after its batch.
func TestLaterEpochProtectsCursor(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(2)
		x.Publish(f)
		type deliver = func(context.Context, []rowfeed.Entry) ([]rowfeed.Refusal, error)
		handed := func(into *[]string, then func()) deliver {
			return func(_ context.Context, entries []rowfeed.Entry) ([]rowfeed.Refusal, error) {
				for _, e := range entries {
					*into = append(*into, e.Position)
				}
				then()
				return nil, nil
			}
		}
		var old, late []string
		reached, release := make(chan struct{}, 10), make(chan struct{})
		consumer := func(epoch int64, deliver deliver) *rowfeed.RelayConsumer {
			return &rowfeed.RelayConsumer{Epoch: epoch,
				Consumer: rowfeed.Consumer{Name: "test", Source: f, DB: x.RF, Deliver: deliver,
					Options: rowfeed.ConsumerOptions{Limit: 1}}}
		}
		ended := make(chan error, 1)
		go func() {
			ended <- consumer(1, handed(&old, func() { reached <- struct{}{}; <-release })).RunOnce(x.Ctx)
		}()
		<-reached // the first holder has delivered its first batch, and is paused
		err := consumer(2, handed(&late, func() {
			if len(late) == 1 {
				close(release) // the second holder has delivered the same batch; neither cursor is stored
				x.WantCode(<-ended, rowfeed.LeaseLost)
			}
		})).RunOnce(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		if !slices.Equal(old, []string{"1"}) || !slices.Equal(late, []string{"1", "2"}) {
			x.Errorf("the first holder delivered %v, the second %v", old, late)
		}
		if at := x.StoredCursor(); at != "2" {
			x.Errorf("the cursor is %q", at)
		}
		x.WantCode(consumer(1, handed(&old, func() {})).RunOnce(x.Ctx), rowfeed.LeaseLost)
	})
}
