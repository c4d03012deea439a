package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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

const relayShards = 4

func init() {
	testdb.RegisterChild("relay of shards to a file", func() {
		err := suite.Crashing(func(ctx context.Context, rf *rowfeed.DB) error {
			f, err := rf.Feed(ctx, "kv")
			if err != nil {
				return err
			}
			file, err := os.OpenFile(os.Getenv("LINES"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return err
			}
			r := &relays.Relay{
				Name:       "test",
				Source:     f,
				DB:         rf,
				Sink:       stdout.New(file),
				ShardCount: relayShards,
				Lease:      suite.GroupTTL,
				Wait:       50 * time.Millisecond,
			}
			return r.Run(ctx)
		})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	})
}

// sharing is the receiver of several instances of a relay. It asserts that neither the versions of a key nor the epochs
// of a shard decrease, unless an instance has lost a claim, which can happen on a slow machine: its batch is late then.
// The test knows that only at its end.
type sharing struct {
	*suite.Env
	mu       sync.Mutex
	versions map[int64]int64 // by id
	epochs   map[int]int64   // by shard of the relay
	taken    map[string]int  // deliveries, by idempotency key
	at       map[string]bool // epochs that have delivered entries
	lost     int             // claims that were lost
	doubts   []string
}

func newSharing(x *suite.Env) *sharing {
	l := &sharing{
		Env: x, versions: map[int64]int64{}, epochs: map[int]int64{}, taken: map[string]int{}, at: map[string]bool{},
	}
	x.Cleanup(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, doubt := range l.doubts {
			if l.lost == 0 {
				l.Error(doubt)
			}
		}
	})
	return l
}

func (l *sharing) Deliver(_ context.Context, batch []sink.Entry) []sink.Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range batch {
		id := entryID(e)
		v, _ := e.Row.Get("v")
		if v := v.(int64); v < l.versions[id] {
			l.doubts = append(l.doubts, fmt.Sprintf("row %d: version %d after %d", id, v, l.versions[id]))
		} else {
			l.versions[id] = v
		}
		shard := e.Shard * relayShards / 64
		if e.Epoch < l.epochs[shard] {
			l.doubts = append(l.doubts, fmt.Sprintf("shard %d: epoch %d after %d", shard, e.Epoch, l.epochs[shard]))
		}
		l.epochs[shard] = e.Epoch
		l.at[fmt.Sprintf("%d/%d", shard, e.Epoch)] = true
		l.taken[e.ID()]++
	}
	return sink.All(batch, sink.Accept())
}

func (l *sharing) Close() error { return nil }

// has reports whether the receiver has the latest version of every row.
func (l *sharing) has(rows int64, sum int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	var got int64
	for _, v := range l.versions {
		got += v
	}
	return int64(len(l.versions)) == rows && got == sum
}

// relayer starts an instance with a database pool of its own.
func (l *sharing) relayer(f rowfeed.Source) (stop func()) {
	l.Helper()
	rf := l.TappedDB(testdb.Hooks{}, &rowfeed.Config{Observer: &rowfeed.Observer{Job: func(e rowfeed.JobEvent) {
		if e.Kind == rowfeed.JobLost {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.lost++
		}
	}}})
	r := &relays.Relay{
		Name:       "test",
		Source:     f,
		DB:         rf,
		Sink:       l,
		ShardCount: relayShards,
		Lease:      suite.GroupTTL,
		Wait:       50 * time.Millisecond,
	}
	ctx, cancel := context.WithCancel(l.Ctx)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	l.Cleanup(cancel)
	return func() {
		l.Helper()
		cancel()
		if err := <-ended; err != nil {
			l.Errorf("Run: %v", err)
		}
	}
}

// TestRelayInstancesShareShards (M56): instances of a relay share its shards while rows change, and an instance joins
// and leaves. No version of a row follows a later one. Every entry is delivered once, because an instance finishes its
// batch before it hands over a shard.
func TestRelayInstancesShareShards(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, l := x.AddShards(64), newSharing(x)
		x.Fill(50)
		x.Publish(f)
		row := 0
		shared := func(instances int) {
			x.Helper()
			x.Eventually(fmt.Sprintf("%d instances share the shards", instances), func() bool {
				row++
				x.Exec(fmt.Sprintf("UPDATE kv SET v = v + 1 WHERE id = %d", row%50+1))
				x.Publish(f)
				return x.Standing(suite.TestGroup, relayShards).Balanced(relayShards, instances)
			})
		}
		var stops []func()
		for n := 1; n <= 3; n++ {
			stops = append(stops, l.relayer(f))
			shared(n)
		}
		delivered := func() {
			x.Helper()
			sum := x.Scalar("SELECT sum(v) FROM kv")
			x.Eventually("all is delivered", func() bool { return l.has(50, sum) })
			head := x.Scalar("SELECT value FROM rowfeed_sequences WHERE name = 'kv'")
			x.Eventually("the cursors follow", func() bool {
				return x.Scalar(
					fmt.Sprintf("SELECT count(*) FROM rowfeed_cursors WHERE value LIKE '%d.%%'", head),
				) == relayShards
			})
		}
		delivered() // no batch is open now
		stops[0]()
		shared(2)
		delivered()
		for _, stop := range stops[1:] {
			stop()
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		for id, n := range l.taken {
			if n > 1+l.lost {
				x.Errorf("entry %s was delivered %d times", id, n)
			}
		}
		if len(l.at) <= relayShards {
			x.Errorf("the shards were never delivered by another: %v", l.at)
		}
	})
}

// TestKilledInstanceRepeatsOneBatch (M56): an instance is killed with SIGKILL. Others continue with its shards from
// their cursors: at most its last batches come again, in order.
func TestKilledInstanceRepeatsOneBatch(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, l := x.AddShards(64), newSharing(x)
		x.Fill(50)
		x.Publish(f)
		file := filepath.Join(x.TempDir(), "lines")
		child := testdb.CrashChild(x.T, "relay of shards to a file", "URL="+x.DB.URL, "N=0", "LINES="+file)
		stop := l.relayer(f)
		row := 0
		change := func() {
			row++
			x.Exec(fmt.Sprintf("UPDATE kv SET v = v + 1 WHERE id = %d", row%50+1))
			x.Publish(f)
		}
		x.Eventually("both have shards and deliver", func() bool {
			change()
			data, _ := os.ReadFile(file)
			return strings.Count(string(data), "\n") > 50 &&
				x.Standing(suite.TestGroup, relayShards).Balanced(relayShards, 2)
		})
		child.Kill()
		x.Eventually("one has all shards", func() bool {
			change()
			return x.Standing(suite.TestGroup, relayShards).Balanced(relayShards, 1)
		})
		head := x.Scalar("SELECT value FROM rowfeed_sequences WHERE name = 'kv'")
		x.Eventually("the cursors are at the head", func() bool {
			reached := x.Scalar(fmt.Sprintf("SELECT count(*) FROM rowfeed_cursors WHERE value LIKE '%d.%%'", head))
			return reached == relayShards
		})
		stop()
		data, err := os.ReadFile(file)
		if err != nil {
			x.Fatal(err)
		}
		last := map[int64]int64{} // the deliveries of the killed instance
		for line := range strings.Lines(string(data)) {
			var e struct{ Row struct{ ID, V int64 } }
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				continue // the last line is incomplete
			}
			if e.Row.V < last[e.Row.ID] {
				x.Errorf("row %d: version %d after %d", e.Row.ID, e.Row.V, last[e.Row.ID])
			}
			last[e.Row.ID] = e.Row.V
		}
		for id, v := range l.versions {
			last[id] = max(last[id], v)
		}
		var sum int64
		for _, v := range last {
			sum += v
		}
		if want := x.Scalar("SELECT sum(v) FROM kv"); sum != want || len(last) != 50 {
			x.Errorf("of %d rows the versions add up to %d, want %d", len(last), sum, want)
		}
	})
}

// TestRelayOnceDeliversEveryShard (M56): RunOnce delivers the entries of every shard, each under its lease, and waits
// only for leases that are held. A mirror has one shard.
func TestRelayOnceDeliversEveryShard(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, l := x.AddShards(64), newSharing(x)
		x.Fill(20)
		x.Publish(f)
		r := &relays.Relay{Name: "test", Source: f, DB: x.RF, Sink: l, ShardCount: relayShards}
		if err := r.RunOnce(x.Ctx); err != nil {
			x.Fatal(err)
		}
		if len(l.taken) != 20 || len(l.at) != relayShards {
			x.Errorf("%d entries under the epochs %v", len(l.taken), l.at)
		}
		for epoch := range l.at {
			if !strings.HasSuffix(epoch, "/1") {
				x.Errorf("shard and epoch %s", epoch)
			}
		}
		for _, lease := range x.Standing(suite.TestGroup, relayShards).Owners {
			x.Errorf("left behind: %s", lease)
		}
		// With other data shards it goes on from its lowest cursor, which all shards have.
		if _, err := f.Admin().Reshard(x.Ctx, 32, nil); err != nil {
			x.Fatal(err)
		}
		if err := r.RunOnce(x.Ctx); err != nil || len(l.taken) != 20 {
			x.Errorf("after a change of the data shards: %d entries, %v", len(l.taken), err)
		}
		// The refusal of another generation is reported once, not for every shard, with the next step.
		if _, err := f.Admin().Bump(x.Ctx); err != nil {
			x.Fatal(err)
		}
		err := r.RunOnce(x.Ctx)
		x.WantCode(err, rowfeed.GenerationChanged)
		if text := err.Error(); strings.Count(text, "refused its cursor") != 1 || !strings.Contains(text, "--restart") {
			x.Errorf("of a feed with another generation: %s", text)
		}
		r = &relays.Relay{Name: "test", Source: f, Sink: mirrorSink(x, "kv"), ShardCount: 2}
		err = r.RunOnce(x.Ctx)
		x.WantCode(err, rowfeed.InvalidRequest)
		if !strings.Contains(err.Error(), "its sink can only find rows") {
			x.Errorf("the reason: %v", err)
		}
	})
}

// TestLaterClaimsHaveHigherEpochs (M56, H3): whatever the shard count and the names of the leases are, no later claim
// has a lower epoch. A receiver that refuses lower epochs continues.
func TestLaterClaimsHaveHigherEpochs(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, s := x.AddShards(64), &spy{Env: x}
		x.Fill(20)
		last := map[int]int64{} // epoch, by data shard
		var now map[int]int64
		s.decide = func(e sink.Entry) sink.Result {
			if e.Epoch <= last[e.Shard] {
				x.Errorf("data shard %d: epoch %d after %d", e.Shard, e.Epoch, last[e.Shard])
			}
			now[e.Shard] = e.Epoch
			return sink.Accept()
		}
		r := s.relay(f)
		for _, shards := range []int{1, 1, 1, 4, 4, 2, 1, 8} {
			x.Exec("UPDATE kv SET v = v + 1")
			x.Publish(f)
			now = map[int]int64{}
			r.ShardCount, r.KeepShardCount = shards, false // as in an instance that starts
			s.run(r)
			if len(s.taken()) < 20 {
				x.Errorf("%d shards: not all was delivered", shards)
			}
			for shard, epoch := range now {
				last[shard] = epoch
			}
		}
		// The same for a group.
		now = map[int]int64{}
		r.ShardCount, r.KeepShardCount = 3, false
		x.Exec("UPDATE kv SET v = v + 1")
		x.Publish(f)
		ctx, stop := context.WithCancel(x.Ctx)
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		x.Eventually("all is delivered", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.took) >= 20 })
		stop()
		if err := <-ended; err != nil {
			x.Error(err)
		}
	})
}
