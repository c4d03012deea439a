package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	relays "github.com/rowfeed/rowfeed/cmd/relay"
	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/cmd/sink/stdout"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// spy is a sink that records its batches, and decides about them as the test says. By default it accepts.
type spy struct {
	*suite.Env
	mu      sync.Mutex
	handed  []string // each like "3 upsert 7", for every attempt
	took    []string // the accepted ones
	batches int
	decide  func(e sink.Entry) sink.Result
	// before, if set, is called with every batch before a decision.
	before func(batch []sink.Entry)
}

func (s *spy) Deliver(_ context.Context, batch []sink.Entry) []sink.Result {
	if s.before != nil {
		s.before(batch)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches++
	results := make([]sink.Result, len(batch))
	for i, e := range batch {
		id, _ := e.Key.Get("id")
		text := fmt.Sprintf("%s %s %v", e.Position, e.Op, id)
		s.handed = append(s.handed, text)
		results[i] = sink.Accept()
		if s.decide != nil {
			results[i] = s.decide(e)
		}
		if results[i].State == sink.Accepted {
			s.took = append(s.took, text)
		}
	}
	return results
}

func (s *spy) Close() error { return nil }

// taken returns the entries that were accepted since its last call.
func (s *spy) taken() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.took
	s.took, s.handed = nil, nil
	return was
}

func (s *spy) wantTaken(want ...string) {
	s.Helper()
	if got := s.taken(); !slices.Equal(got, want) {
		s.Fatalf("delivered:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// relay delivers the feed kv to the spy.
func (s *spy) relay(f rowfeed.Source) *relays.Relay {
	return &relays.Relay{Name: "test", Source: f, DB: s.RF, Sink: s, Lease: 30 * time.Second,
		Retry: rowfeed.Retry{MaxAttempts: 3, Backoff: time.Millisecond, MaxBackoff: 2 * time.Millisecond}}
}

// run calls RunOnce, which must succeed.
func (s *spy) run(r *relays.Relay) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Ctx, suite.Patience())
	defer cancel()
	if err := r.RunOnce(ctx); err != nil {
		s.Fatal(err)
	}
}

// entryID returns an entry's key as a number.
func entryID(e sink.Entry) int64 {
	id, _ := e.Key.Get("id")
	return id.(int64)
}

// TestRelayDeliversInOrder (M56): everything arrives once, in order, page by page. Changes and deletes follow. The
// cursor is never ahead of what was delivered.
func TestRelayDeliversInOrder(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(7)
		x.Publish(f)
		s := &spy{Env: x}
		s.before = func(batch []sink.Entry) {
			id := batch[0].ID()
			if !strings.HasPrefix(id, "kv:1.") || !strings.HasSuffix(id, ":0:"+batch[0].Position) {
				x.Errorf("idempotency key %q", id)
			}
			at, _, _ := strings.Cut("0"+x.StoredCursor(), "@")
			if stored, _ := strconv.Atoi(at); fmt.Sprint(stored+1) != batch[0].Position {
				x.Errorf("the cursor is %s while position %s is delivered", at, batch[0].Position)
			}
		}
		r := s.relay(f)
		r.Limit = 3
		s.run(r)
		s.wantTaken(suite.Upserts(1, 7)...)
		if s.batches != 3 {
			x.Errorf("%d batches", s.batches)
		}
		x.Exec("DELETE FROM kv WHERE id = 3", "UPDATE kv SET v = 1 WHERE id = 2")
		x.Publish(f)
		s.run(r)
		s.wantTaken("8 delete 3", "9 upsert 2")
		s.run(r)
		s.wantTaken()
		if at := x.StoredCursor(); at != "9" {
			x.Errorf("the cursor is %q", at)
		}
	})
}

// relaying is a relay in a child process that writes entry lines to a file.
func relaying(ctx context.Context, rf *rowfeed.DB) error {
	f, err := rf.Feed(ctx, "kv")
	if err != nil {
		return err
	}
	file, err := os.OpenFile(os.Getenv("LINES"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	r := &relays.Relay{Name: "test", Source: f, DB: rf, Sink: stdout.New(file), Limit: 2}
	return r.RunOnce(ctx)
}

func init() {
	testdb.RegisterChild("relay to a file", func() {
		if err := suite.Crashing(relaying); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	})
}

// TestRelayKilledAtEveryStatement (M56): a relay's process is killed before each of its statements in turn, and the
// next instance delivers the rest. Nothing is left out, at most one batch comes again, and the versions of a key stay
// in order.
func TestRelayKilledAtEveryStatement(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(5)
		x.Publish(f)
		file := filepath.Join(x.TempDir(), "lines")
		again := 0
		n, step := x.Kills()
		for ; ; n += step {
			child := testdb.CrashChild(x.T, "relay to a file", "URL="+x.DB.URL, fmt.Sprint("N=", n), "LINES="+file)
			blocked := child.WaitMarker(x.Ctx)
			child.Kill()
			x.Exec("UPDATE rowfeed_leases SET expires_at = 1")
			s := &spy{Env: x}
			s.run(s.relay(f))
			data, err := os.ReadFile(file)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				x.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(string(data)) {
				var e struct {
					Position, Op string
					Key          struct{ ID int64 }
				}
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					x.Fatal(err)
				}
				got = append(got, fmt.Sprintf("%s %s %d", e.Position, e.Op, e.Key.ID))
			}
			got = append(got, s.taken()...)
			if unique := slices.Compact(slices.Sorted(slices.Values(got))); !slices.Equal(unique, suite.Upserts(1, 5)) {
				x.Fatalf("killed before statement %d: delivered %q", n, got)
			}
			if len(got) > 5 {
				again++
			}
			if len(got) > 7 {
				x.Errorf("killed before statement %d: more than one batch came again: %q", n, got)
			}
			if !blocked {
				break
			}
			x.Exec("DELETE FROM rowfeed_cursors")
			if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
				x.Fatal(err)
			}
		}
		if again == 0 {
			x.Error("no kill fell between a delivery and its cursor")
		}
	})
}

// TestRestOfBatchIsRetried (S6): if a sink accepts a part of a batch, only the rest is delivered again, with its latest
// version, and the cursor waits for it.
func TestRestOfBatchIsRetried(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(4)
		x.Publish(f)
		s, attempts := &spy{Env: x}, 0
		s.decide = func(e sink.Entry) sink.Result {
			if entryID(e) == 2 {
				if attempts++; attempts < 4 {
					return sink.Retry(0, suite.ErrOff)
				}
			}
			return sink.Accept()
		}
		r := s.relay(f)
		if err := r.RunOnce(x.Ctx); !errors.Is(err, suite.ErrOff) || x.StoredCursor() != "" {
			x.Fatalf("%v, cursor %q", err, x.StoredCursor())
		}
		ctx, cancel := context.WithCancel(x.Ctx)
		defer cancel()
		attempts = 0
		s.taken()
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		x.Eventually("the cursor follows", func() bool { return x.StoredCursor() == "4" })
		cancel()
		if err := <-ended; err != nil {
			x.Error(err)
		}
		s.mu.Lock()
		handed := slices.Clone(s.handed)
		s.mu.Unlock()
		want := []string{
			"1 upsert 1",
			"2 upsert 2",
			"3 upsert 3",
			"4 upsert 4",
			"2 upsert 2",
			"2 upsert 2",
			"2 upsert 2",
		}
		if !slices.Equal(handed, want) {
			x.Errorf("handed over: %q", handed)
		}
		s.wantTaken("1 upsert 1", "3 upsert 3", "4 upsert 4", "2 upsert 2")
	})
}

// TestRefusedEntryEndsRelay (S6): an entry that the sink refuses is tried as often as Retry says. Then the relay ends
// right before it, with everything else delivered.
func TestRefusedEntryEndsRelay(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(5)
		x.Publish(f)
		s := &spy{Env: x}
		s.decide = func(e sink.Entry) sink.Result {
			if entryID(e) == 3 {
				return sink.Reject(suite.ErrOff)
			}
			return sink.Accept()
		}
		r := s.relay(f)
		err := r.RunOnce(x.Ctx)
		x.WantCode(err, rowfeed.HandlerFailed)
		if !errors.Is(err, suite.ErrOff) ||
			!strings.Contains(err.Error(), `position 3 with key {"id":3} was refused 3 times`) {
			x.Errorf("error: %v", err)
		}
		if at := x.StoredCursor(); at != "2@5" {
			x.Errorf("the cursor is %q", at)
		}
		if want := append(suite.Upserts(1, 5), "3 upsert 3", "3 upsert 3"); !slices.Equal(s.handed, want) {
			x.Errorf("handed over %q", s.handed)
		}
		s.taken()
		s.decide = nil
		s.run(r)
		s.wantTaken(suite.Upserts(3, 5)...) // a new run does not know what the former one has delivered
	})
}

// quickly are the retries of a test that waits for them.
var quickly = rowfeed.Retry{MaxAttempts: 2, Backoff: 1e6, MaxBackoff: 2e6}
