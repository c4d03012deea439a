package consume

import (
	"context"
	"database/sql"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// failureWrites counts statements that store or remove a failure, without those that store a cursor.
type failureWrites struct{ stored, removed atomic.Int64 }

func (w *failureWrites) hooks() testdb.Hooks {
	return testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
		switch {
		case strings.Contains(ev.SQL, "failing_since = COALESCE"):
			w.stored.Add(1)
		case strings.Contains(ev.SQL, "SET failure = NULL"):
			w.removed.Add(1)
		}
		return nil
	}}
}

// TestFailureIsStoredUntilSuccess (M72): the error of a consumer that ends is stored with its cursor, with the attempts
// of all runs and the time of the first. The commit of the next success removes it, and an event says so. A consumer
// that has not failed sends no statement about failures.
func TestFailureIsStoredUntilSuccess(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Fill(1)
		x.Publish(f)
		var writes failureWrites
		var recovered []rowfeed.RecoveredEvent
		rf := x.TappedDB(writes.hooks(), &rowfeed.Config{Observer: &rowfeed.Observer{
			Recovered: func(e rowfeed.RecoveredEvent) { recovered = append(recovered, e) }}})
		c := r.Consumer(f, rf)
		r.Once(c)
		r.Fail = failsOn(2)
		x.FillFrom(2, 2)
		x.Publish(f)
		if writes.stored.Load()+writes.removed.Load() > 0 || len(recovered) > 0 {
			x.Errorf("without a failure: %d and %d statements, %+v", writes.stored.Load(), writes.removed.Load(),
				recovered)
		}
		var since time.Time
		for run := 1; run <= 2; run++ {
			x.WantCode(c.RunOnce(x.Ctx), rowfeed.HandlerFailed)
			failing, err := x.RF.Admin().Failing(x.Ctx)
			if err != nil || len(failing) != 1 {
				x.Fatalf("failing: %+v, %v", failing, err)
			}
			got := failing[0]
			if run == 1 {
				since = got.Since
			}
			if !strings.Contains(got.Error, "id 2 cannot be handled") || strings.Contains(got.Error, `consumer "`) {
				x.Errorf("the error is %q", got.Error)
			}
			want := admin.Failing{Kind: admin.KindConsumer, Feed: "kv", Consumer: "test", ShardCount: 1,
				Failure: rowfeed.Failure{Error: got.Error, Since: since, Attempts: 3 * run}}
			if !reflect.DeepEqual(got, want) || since.IsZero() {
				x.Errorf("run %d: %+v, want %+v", run, got, want)
			}
			all, err := x.RF.Admin().Consumers(x.Ctx, suite.TestConsumer)
			if err != nil || len(all) != 1 || all[0].State() != "failing" ||
				!reflect.DeepEqual(*all[0].Failure, want.Failure) {
				x.Errorf("consumers: %+v, %v", all, err)
			}
		}
		r.Fail = nil
		r.Once(c)
		if failing, err := x.RF.Admin().Failing(x.Ctx); err != nil || len(failing) > 0 {
			x.Errorf("after a success: %+v, %v", failing, err)
		}
		if all, err := x.RF.Admin().Consumers(x.Ctx, suite.TestConsumer); err != nil || all[0].State() != "ok" {
			x.Errorf("after a success: %+v, %v", all, err)
		}
		want := []rowfeed.RecoveredEvent{{Feed: "kv", Consumer: "test", ShardCount: 1, Attempts: 6}}
		if !reflect.DeepEqual(recovered, want) || writes.removed.Load() > 0 {
			x.Errorf("%+v, want %+v; %d statements", recovered, want, writes.removed.Load())
		}
	})
}

// away is a source that cannot be reached until it was asked so many times.
type away struct {
	rowfeed.Source
	times atomic.Int64
}

func (s *away) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	if s.times.Add(-1) >= 0 {
		return rowfeed.Page{}, &feedtype.Error{Code: feedtype.Unavailable, Object: "the server", Cause: "it is away"}
	}
	return s.Source.Fetch(ctx, req)
}

// TestFastAttemptsAreStoredRarely (M72): of 200 attempts in quick succession 8 are stored, when their number has
// doubled. The first empty page removes the failure.
func TestFastAttemptsAreStoredRarely(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		r.Once(r.Consumer(f, x.RF))
		var writes failureWrites
		var attempts []int
		recovered := make(chan rowfeed.RecoveredEvent, 1)
		rf := x.TappedDB(writes.hooks(), &rowfeed.Config{Observer: &rowfeed.Observer{
			Trouble:   func(e rowfeed.TroubleEvent) { attempts = append(attempts, e.Attempt) },
			Recovered: func(e rowfeed.RecoveredEvent) { recovered <- e },
		}})
		source := &away{Source: f}
		source.times.Store(200)
		c := r.Consumer(source, rf)
		c.Options.Retry = rowfeed.Retry{Backoff: time.Microsecond, MaxBackoff: time.Microsecond}
		ctx, cancel := context.WithCancel(x.Ctx)
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		event := <-recovered
		cancel()
		if err := <-ended; err != nil && ctx.Err() == nil {
			x.Error(err)
		}
		if event.Attempts != 200 || len(attempts) != 200 || attempts[199] != 200 || writes.stored.Load() != 8 ||
			writes.removed.Load() != 1 {
			x.Errorf("%+v, %d attempts, stored %d times, removed %d times", event, len(attempts), writes.stored.Load(),
				writes.removed.Load())
		}
		if failing, err := x.RF.Admin().Failing(x.Ctx); err != nil || len(failing) > 0 {
			x.Errorf("after a success: %+v, %v", failing, err)
		}
	})
}

// TestFailureOvertakesNoInstance (M72): a consumer that stores its failure while another instance handles the same page
// does not keep that instance from storing its cursor, and stores nothing once it has.
func TestFailureOvertakesNoInstance(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Fill(1)
		x.Publish(f)
		failing := r.Consumer(f, x.RF)
		failing.Handle = func(context.Context, *sql.Tx, []rowfeed.Entry) error { return suite.ErrOff }
		handled := 0
		working := r.Consumer(f, x.RF)
		working.Handle = func(context.Context, *sql.Tx, []rowfeed.Entry) error {
			if handled++; handled == 1 && !x.Has.OneWriter {
				x.WantCode(failing.RunOnce(x.Ctx), rowfeed.HandlerFailed)
			}
			return nil
		}
		r.Once(working)
		if handled != 1 {
			x.Errorf("the page was handled %d times", handled)
		}
		all, err := x.RF.Admin().Failing(x.Ctx)
		if err != nil || len(all) > 0 {
			x.Errorf("failing: %+v, %v", all, err)
		}
	})
}
