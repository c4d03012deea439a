package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/testdb"
	relays "github.com/rowfeed/rowfeed/relay"
	"github.com/rowfeed/rowfeed/sink"
	"github.com/rowfeed/rowfeed/sink/stdout"
	"github.com/rowfeed/rowfeed/sink/webhook"
)

// spy is a sink that writes down what it is handed, and decides about it as the test
// says; without a word it accepts.
type spy struct {
	*env
	mu      sync.Mutex
	handed  []string // "3 upsert 7" for every entry, in every attempt
	took    []string // those accepted
	batches int
	decide  func(e sink.Entry) sink.Result
	// before, when set, is called with every batch before anything is decided.
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

// took answers what was accepted since it was asked last.
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
	return &relays.Relay{Name: "test", Source: f, DB: s.rf, Sink: s, Retry: rowfeed.Retry{MaxAttempts: 3, Backoff: time.Millisecond, MaxBackoff: 2 * time.Millisecond}}
}

// run is RunOnce, which must go well.
func (s *spy) run(r *relays.Relay) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	if err := r.RunOnce(ctx); err != nil {
		s.Fatal(err)
	}
}

func (x *env) storedCursor() (value string) {
	x.Helper()
	if err := x.db.Admin().QueryRowContext(x.ctx, "SELECT value FROM rowfeed_cursors WHERE consumer = 'test'").Scan(&value); err != nil {
		x.Fatal(err)
	}
	return value
}

var errOff = errors.New("switched off")

// entryID is an entry's key, as a number.
func entryID(e sink.Entry) int64 {
	id, _ := e.Key.Get("id")
	return id.(int64)
}

// TestRelay (M56): everything arrives once, in order, page by page; changes and deletes
// follow; and the cursor never gets ahead of what was delivered.
func TestRelay(t *testing.T) {
	each(t, func(x *env) {
		f := x.addKV()
		x.fill(7)
		x.publish(f)
		s := &spy{env: x}
		s.before = func(batch []sink.Entry) {
			if batch[0].ID() != "kv:1:0:"+batch[0].Position {
				x.Errorf("idempotency key %q", batch[0].ID())
			}
			at, _, _ := strings.Cut("0"+x.storedCursor(), "@")
			if stored, _ := strconv.Atoi(at); fmt.Sprint(stored+1) != batch[0].Position {
				x.Errorf("the cursor is %s while position %s is delivered", at, batch[0].Position)
			}
		}
		r := s.relay(f)
		r.Limit = 3
		s.run(r)
		s.wantTaken(upserts(1, 7)...)
		if s.batches != 3 {
			x.Errorf("%d batches", s.batches)
		}
		x.exec("DELETE FROM kv WHERE id = 3", "UPDATE kv SET v = 1 WHERE id = 2")
		x.publish(f)
		s.run(r)
		s.wantTaken("8 delete 3", "9 upsert 2")
		s.run(r)
		s.wantTaken()
		if at := x.storedCursor(); at != "9" {
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
		if err := crashing(relaying); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	})
}

// TestRelayKilledAtEveryStatement: a relay's process is killed before each of its
// statements in turn; whoever goes on delivers the rest. Nothing is left out, at most one
// batch comes again, and no key's versions change places.
func TestRelayKilledAtEveryStatement(t *testing.T) {
	each(t, func(x *env) {
		f := x.addKV()
		x.fill(5)
		x.publish(f)
		file := filepath.Join(x.TempDir(), "lines")
		again := 0
		for n := 1; ; n++ {
			child := testdb.CrashChild(x.T, "relay to a file", "URL="+x.db.URL, fmt.Sprint("N=", n), "LINES="+file)
			blocked := child.WaitMarker(x.ctx)
			child.Kill()
			x.exec("UPDATE rowfeed_leases SET expires_at = 1")
			s := &spy{env: x}
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
			if unique := slices.Compact(slices.Sorted(slices.Values(got))); !slices.Equal(unique, upserts(1, 5)) {
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
			x.exec("DELETE FROM rowfeed_cursors")
			if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
				x.Fatal(err)
			}
		}
		if again == 0 {
			x.Error("no kill fell between a delivery and its cursor")
		}
	})
}

// TestRelayPartial: of a batch in part accepted only the rest is delivered again, with
// the version that is there then, and the cursor waits for it.
func TestRelayPartial(t *testing.T) {
	each(t, func(x *env) {
		f := x.addKV()
		x.fill(4)
		x.publish(f)
		s, attempts := &spy{env: x}, 0
		s.decide = func(e sink.Entry) sink.Result {
			if entryID(e) == 2 {
				if attempts++; attempts < 4 {
					return sink.Retry(0, errOff)
				}
			}
			return sink.Accept()
		}
		r := s.relay(f)
		if err := r.RunOnce(x.ctx); !errors.Is(err, errOff) || x.storedCursor() != "" {
			x.Fatalf("%v, cursor %q", err, x.storedCursor())
		}
		ctx, cancel := context.WithCancel(x.ctx)
		defer cancel()
		attempts = 0
		s.taken()
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		x.eventually("the cursor follows", func() bool { return x.storedCursor() == "4" })
		cancel()
		if err := <-ended; err != nil {
			x.Error(err)
		}
		s.mu.Lock()
		handed := slices.Clone(s.handed)
		s.mu.Unlock()
		if want := []string{"1 upsert 1", "2 upsert 2", "3 upsert 3", "4 upsert 4", "2 upsert 2", "2 upsert 2", "2 upsert 2"}; !slices.Equal(handed, want) {
			x.Errorf("handed over: %q", handed)
		}
		s.wantTaken("1 upsert 1", "3 upsert 3", "4 upsert 4", "2 upsert 2")
	})
}

// TestRelayRefused: an entry that the sink rejects is tried as often as asked for, and
// then ends the relay right before it, with everything else delivered.
func TestRelayRefused(t *testing.T) {
	each(t, func(x *env) {
		f := x.addKV()
		x.fill(5)
		x.publish(f)
		s := &spy{env: x}
		s.decide = func(e sink.Entry) sink.Result {
			if entryID(e) == 3 {
				return sink.Reject(errOff)
			}
			return sink.Accept()
		}
		r := s.relay(f)
		err := r.RunOnce(x.ctx)
		x.wantCode(err, rowfeed.HandlerFailed)
		if !errors.Is(err, errOff) || !strings.Contains(err.Error(), `position 3 with key {"id":3} was refused 3 times`) {
			x.Errorf("error: %v", err)
		}
		if at := x.storedCursor(); at != "2@5" {
			x.Errorf("the cursor is %q", at)
		}
		if want := append(upserts(1, 5), "3 upsert 3", "3 upsert 3"); !slices.Equal(s.handed, want) {
			x.Errorf("handed over %q", s.handed)
		}
		s.taken()
		s.decide = nil
		s.run(r)
		s.wantTaken(upserts(3, 5)...) // a new run knows nothing of what the old one delivered
	})
}

// TestRelaySetsAside (deliverable 7, hazard 25): a refused key becomes a dead letter, its
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
			all, err := x.rf.DeadLetters(x.ctx, id, nil)
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
		if _, err := x.rf.RetryDeadLetters(x.ctx, rowfeed.ConsumerID{Consumer: "test", Feed: "kv"}, nil); err != nil {
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

// TestRelayAsksForDeadLetters (deliverable 7): while no key is set aside no statement
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
			if _, err := x.rf.RetryDeadLetters(x.ctx, rowfeed.ConsumerID{Consumer: "test", Feed: "kv"}, nil); err != nil {
				x.Error(err)
			}
		}
		s.run(r)
		s.wantTaken(append(append(upserts(20, 25), "10 upsert 10"), upserts(26, 28)...)...)
	})
}

// TestRelayManyDeadLetters: more letters than are read at once, and batches that hold keys
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
			if n, err := x.rf.RetryDeadLetters(x.ctx, id, []byte(`{"id":7}`)); err != nil || n != 1 {
				x.Errorf("%d letters are to be released, %v", n, err)
			}
		}
		s.run(r)
		s.wantTaken(fmt.Sprintf("%d upsert %d", many+604, many+601), fmt.Sprintf("%d upsert %d", many+605, many+602), "7 upsert 7",
			fmt.Sprintf("%d upsert %d", many+606, many+603))
	})
}

// TestRelayDown (deliverable 7): a sink that is away costs no entry an attempt, however
// long that is, and keeps the cursor where it is.
func TestRelayDown(t *testing.T) {
	each(t, func(x *env) {
		f := x.addKV()
		x.fill(3)
		x.publish(f)
		s, calls := &spy{env: x}, 0
		s.decide = func(sink.Entry) sink.Result {
			if calls++; calls <= 60 { // 20 batches, at 3 attempts an entry
				return sink.Retry(0, errOff)
			}
			return sink.Accept()
		}
		r := s.relay(f)
		r.SetAside = true
		var troubles int
		r.Observe = func(e relays.Event) {
			if e.Kind == relays.Delivered && e.Err != nil {
				troubles++
			}
		}
		ctx, cancel := context.WithCancel(x.ctx)
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		x.eventually("everything is delivered", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.took) == 3 })
		x.eventually("the cursor follows", func() bool { return x.storedCursor() == "3" })
		cancel()
		if err := <-ended; err != nil {
			x.Error(err)
		}
		s.wantTaken(upserts(1, 3)...)
		if troubles != 20 {
			x.Errorf("%d failed batches were told of", troubles)
		}
		all, err := x.rf.DeadLetters(x.ctx, rowfeed.ConsumerID{Consumer: "test", Feed: "kv"}, nil)
		if err != nil || len(all) > 0 {
			x.Errorf("dead letters: %v, %v", all, err)
		}
	})
}

// TestRelayDownByWebhook (deliverable 7): an endpoint that refuses connections for longer
// than all attempts of an entry would take. Nothing is set aside, and everything is
// delivered when it is back.
func TestRelayDownByWebhook(t *testing.T) {
	each(t, func(x *env) {
		f := x.addKV()
		x.fill(3)
		x.publish(f)
		// Not a port that the kernel gives to outgoing connections: it must stay free.
		var listener net.Listener
		for listener == nil {
			listener, _ = net.Listen("tcp", fmt.Sprint("127.0.0.1:", 15000+rand.IntN(17000)))
		}
		address := listener.Addr().String()
		hook, err := webhook.New(webhook.Config{URL: "http://" + address, AllowPrivate: true})
		if err != nil {
			x.Fatal(err)
		}
		defer hook.Close()
		if err := listener.Close(); err != nil { // from now on connections are refused
			x.Fatal(err)
		}
		s := &spy{env: x}
		r := s.relay(f)
		r.Sink, r.SetAside = hook, true
		var refused atomic.Int64
		r.Observe = func(e relays.Event) {
			if e.Kind == relays.Delivered && errors.Is(e.Err, syscall.ECONNREFUSED) {
				refused.Add(1)
			}
		}
		ctx, cancel := context.WithCancel(x.ctx)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		x.eventually("it has tried often enough", func() bool { return refused.Load() > 3*int64(r.Retry.MaxAttempts) })
		if n := x.scalar("SELECT count(*) FROM rowfeed_dead_letters"); n > 0 || x.storedCursor() != "" {
			x.Errorf("%d dead letters, cursor %q", n, x.storedCursor())
		}
		var got atomic.Int64
		listener, err = net.Listen("tcp", address)
		if err != nil {
			x.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			got.Add(int64(strings.Count(string(body), `"op":"upsert"`)))
		})}
		go server.Serve(listener)
		defer server.Close()
		x.eventually("the cursor follows", func() bool { return x.storedCursor() == "3" })
		cancel()
		if err := <-ended; err != nil {
			x.Error(err)
		}
		if n := x.scalar("SELECT count(*) FROM rowfeed_dead_letters"); n > 0 || got.Load() != 3 {
			x.Errorf("%d dead letters, %d entries delivered", n, got.Load())
		}
	})
}

// TestRelayTakesOver (M54, M56): of two instances one works and the other stands by, and
// takes over when that one ends, and when it is paused until its lease is over. What the
// paused one still delivers is of an earlier epoch, and its cursor is not stored.
func TestRelayTakesOver(t *testing.T) {
	each(t, func(x *env) {
		f := x.addKV()
		x.fill(2)
		x.publish(f)
		start := func(s *spy) (working chan int64, stop func()) {
			working = make(chan int64, 10)
			r := s.relay(f)
			r.Observe = func(e relays.Event) {
				if e.Kind == relays.Working {
					working <- e.Epoch
				}
			}
			ctx, cancel := context.WithCancel(x.ctx)
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
		first, second := &spy{env: x}, &spy{env: x}
		working, stopFirst := start(first)
		if epoch := <-working; epoch != 1 {
			x.Errorf("the first epoch is %d", epoch)
		}
		standing, stopSecond := start(second)
		x.eventually("everything is delivered", func() bool { return x.storedCursorOr("") == "2" })
		first.wantTaken(upserts(1, 2)...)
		stopFirst()
		if epoch := <-standing; epoch != 2 {
			x.Errorf("the second epoch is %d", epoch)
		}
		var epochs []int64
		reached, release := make(chan struct{}), make(chan struct{})
		second.before = func(batch []sink.Entry) {
			epochs = append(epochs, batch[0].Epoch)
			close(reached)
			<-release // whatever becomes of its context: this is a process that stands still
		}
		x.exec("INSERT INTO kv VALUES (3, 'k', 0)")
		x.publish(f)
		<-reached
		x.exec("UPDATE rowfeed_leases SET expires_at = 1")
		third := &spy{env: x}
		third.before = func(batch []sink.Entry) { epochs = append(epochs, batch[0].Epoch) }
		_, stopThird := start(third)
		x.eventually("the third delivers", func() bool { return x.storedCursor() == "3" })
		third.wantTaken("3 upsert 3")
		x.exec("INSERT INTO kv VALUES (4, 'k', 0)")
		x.publish(f)
		x.eventually("the third goes on", func() bool { return x.storedCursor() == "4" })
		close(release)
		stopSecond()
		if at := x.storedCursor(); at != "4" {
			x.Errorf("the paused one made %q of the cursor", at)
		}
		stopThird()
		if !slices.Equal(epochs, []int64{2, 3, 3}) {
			x.Errorf("epochs of the batches: %v", epochs)
		}
	})
}

// storedCursorOr is storedCursor where the row may not be there yet.
func (x *env) storedCursorOr(otherwise string) string {
	if all := x.list("SELECT value FROM rowfeed_cursors WHERE consumer = 'test'"); len(all) == 1 {
		return all[0]
	}
	return otherwise
}

// TestDeliverEpoch (hazard 27): the cursor of a consumer under a lease cannot be written
// any more by the holder of an earlier term, also where nothing was delivered since; that
// one ends, and delivers nothing after its batch.
func TestDeliverEpoch(t *testing.T) {
	each(t, func(x *env) {
		f := x.addKV()
		x.fill(2)
		x.publish(f)
		handed := func(into *[]string, then func()) func(context.Context, []rowfeed.Entry) ([]rowfeed.Refusal, error) {
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
		consumer := func(epoch int64, deliver func(context.Context, []rowfeed.Entry) ([]rowfeed.Refusal, error)) *rowfeed.Consumer {
			return &rowfeed.Consumer{Name: "test", Source: f, DB: x.rf, Epoch: epoch, Deliver: deliver, Limit: 1}
		}
		ended := make(chan error, 1)
		go func() {
			ended <- consumer(1, handed(&old, func() { reached <- struct{}{}; <-release })).RunOnce(x.ctx)
		}()
		<-reached // the old one has delivered its first batch, and is paused
		err := consumer(2, handed(&late, func() {
			if len(late) == 1 {
				close(release) // the new one has delivered the same; neither has stored anything
				x.wantCode(<-ended, rowfeed.LeaseLost)
			}
		})).RunOnce(x.ctx)
		if err != nil {
			x.Fatal(err)
		}
		if !slices.Equal(old, []string{"1"}) || !slices.Equal(late, []string{"1", "2"}) {
			x.Errorf("the old one delivered %v, the new one %v", old, late)
		}
		if at := x.storedCursor(); at != "2" {
			x.Errorf("the cursor is %q", at)
		}
		x.wantCode(consumer(1, handed(&old, func() {})).RunOnce(x.ctx), rowfeed.LeaseLost)
	})
}

// quickly are the retries of a test that waits for them.
var quickly = rowfeed.Retry{MaxAttempts: 2, Backoff: 1e6, MaxBackoff: 2e6}
