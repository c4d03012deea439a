package faults

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/relay"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

const (
	instances  = 3
	consumer   = "faults"
	dataShards = 64
	// patience bounds every wait for a condition: the machine may do other work.
	patience = 5 * time.Minute
)

// campaign is one database, the processes that use it, and the faults.
type campaign struct {
	*testing.T
	seed    uint64
	shards  int           // the number of shards that the relay's instances share
	lease   time.Duration // short, so that a campaign has many take-overs
	program string
	db      *testdb.Database

	inbox     *Inbox
	relays    []*instance
	publisher *testdb.Child
	takeOvers *takeOvers
	writers   *writers
	ending    bool // the relays have been told to end

	kills, pauses, cuts, restarts atomic.Int64
}

// TestCampaign (M51, M56) runs three relay processes of one consumer, each with its own proxies. One process after the
// other is killed with -9 and started again, others are stopped for longer than their lease. Connections to the
// database and to the receiver are cut, delayed and stalled. The receiver is unavailable, or slow. Twice the database
// is killed and started again. In the end the receiver must have the final state of every key, and the order of
// arrivals must be as GUARANTEES.md promises: see Check.
func TestCampaign(t *testing.T) {
	seed := number(t, "ROWFEED_FAULTS_SEED", uint64(time.Now().UnixNano()))
	shards := int(number(t, "ROWFEED_FAULTS_SHARDS", 8))
	lease := time.Duration(number(t, "ROWFEED_FAULTS_LEASE", 2)) * time.Second
	length := time.Duration(number(t, secondsVariable, 15)) * time.Second
	program := build(t)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		if !e.HasServer() {
			t.Skip("no server, and no connections to it")
		}
		t.Logf("ROWFEED_FAULTS_SEED=%d", seed)
		c := &campaign{T: t, seed: seed, shards: shards, lease: lease, program: program,
			db: e.Dedicated(t, testdb.Durable()).NewDatabase(t)}
		c.prepare()
		if !c.wait("the receiver has the first rows", c.drained) {
			t.FailNow()
		}
		var err error
		if c.writers, err = startWriters(context.Background(), c.db.URL, seed); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.writers.stop() })
		c.faults(length)
		history := c.writers.stop()
		c.wait("everything is delivered", c.drained)
		c.ending = true
		for _, in := range c.relays {
			in.signal(syscall.SIGTERM)
		}
		c.wait("the relays end", func() error {
			for _, in := range c.relays {
				if alive(in.child) {
					return fmt.Errorf("instance %d lives", in.i)
				}
			}
			return nil
		})
		c.check(history)
	})
}

func upTo(rng *rand.Rand, d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }

// rowfeed runs a command to its end, and returns its output.
func (c *campaign) rowfeed(args ...string) string {
	c.Helper()
	out, err := exec.Command(c.program, append([]string{"--db", c.db.URL}, args...)...).CombinedOutput()
	if err != nil {
		c.Fatalf("rowfeed %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// prepare makes the table with its feed, and starts all processes.
func (c *campaign) prepare() {
	c.Helper()
	c.db.Exec(c, createTable)
	for key := range keys {
		if key%2 == 0 {
			c.db.Exec(c, fmt.Sprintf("INSERT INTO kv VALUES (%d, 0, '')", key))
		}
	}
	c.rowfeed("init")
	c.rowfeed("feed", "add", "kv", "--table", "kv", "--data-shards", strconv.Itoa(dataShards))
	c.publisher = start(c, c.program, "--db", c.db.URL, "publish", "kv")

	c.inbox = NewInbox("id", "v")
	c.inbox.Part = c.part
	server := httptest.NewServer(c.inbox)
	c.Cleanup(server.CloseClientConnections)
	p := newProxies(c.T)
	for i := range instances {
		in := &instance{t: c.T, i: i,
			database: p.to(fmt.Sprint("database", i), "127.0.0.1:"+strconv.Itoa(c.db.Server().Port)),
			receiver: p.to(fmt.Sprint("receiver", i), server.Listener.Addr().String())}
		db, err := through(in.database, c.db.URL)
		if err != nil {
			c.Fatal(err)
		}
		in.hook = "http://" + in.receiver.Listen
		in.program = []string{c.program, "--db", db, "relay", "kv", "--consumer", consumer, "--allow-private",
			"--limit", "200", "--lease", c.lease.String()}
		if c.shards > 1 {
			in.program = append(in.program, "--shard-count", strconv.Itoa(c.shards))
		}
		in.start()
		c.relays = append(c.relays, in)
	}
	c.takeOvers = newTakeOvers(relay.LeaseName(consumer, "kv"))
	if c.shards > 1 {
		first := admin.JobLease(admin.ConsumerGroup(consumer, "kv"), c.shards, 0)
		c.takeOvers = newTakeOvers(strings.TrimSuffix(first, "0"))
	}
}

// happened reports whether every kind of fault has happened, and a take-over was measured.
func (c *campaign) happened() bool {
	return c.kills.Load() > 0 && c.pauses.Load() > 0 && c.cuts.Load() > 0 && c.takeOvers.measured() > 0
}

// faults lasts for a while. On a busy machine it lasts until all faults have happened. When it returns, all processes
// live and are connected.
func (c *campaign) faults(length time.Duration) {
	c.Helper()
	ctx, end := context.WithCancel(context.Background())
	defer end()
	var others, watching sync.WaitGroup
	watch, blind := context.WithCancel(context.Background())
	defer blind()
	watching.Go(func() { c.takeOvers.watch(watch, c.db.Admin()) })
	database := func(in *instance) *toxiproxy.Proxy { return in.database }
	receiver := func(in *instance) *toxiproxy.Proxy { return in.receiver }
	for i, fault := range []func(context.Context, *rand.Rand){c.pauseOthers, c.varyAnswers,
		func(ctx context.Context, rng *rand.Rand) { c.cutConnections(ctx, rng, database) },
		func(ctx context.Context, rng *rand.Rand) { c.cutConnections(ctx, rng, receiver) }} {
		rng := rand.New(rand.NewPCG(c.seed, uint64(100+i)))
		others.Go(func() { fault(ctx, rng) })
	}
	rng := rand.New(rand.NewPCG(c.seed, 99))
	began := time.Now()
	for tick := time.NewTicker(time.Second); time.Since(began) < length ||
		!c.happened() && time.Since(began) < patience; {
		<-tick.C
		c.reviveAll()
		c.killOne(rng)
		if done := c.restarts.Load(); done < 2 && time.Since(began) > length*time.Duration(done+1)/3 {
			c.restartDatabase(rng)
		}
	}
	end()
	others.Wait()
	for c.restarts.Load() < 2 { // a server may take long to start
		c.restartDatabase(rng)
	}
	c.inbox.SetMood(nil)
	c.reviveAll()
	blind()
	watching.Wait()
}

// wait polls for a condition. Its error says how far the condition is from holding. wait returns whether the condition
// held in time.
func (c *campaign) wait(what string, holds func() error) bool {
	c.Helper()
	began := time.Now()
	for {
		err := holds()
		if err == nil {
			c.Logf("%s after %.1f s", what, time.Since(began).Seconds())
			return true
		}
		if !alive(c.publisher) {
			c.Fatalf("the publisher has ended:\n%s", tail(c.publisher.Output(), 20))
		}
		if time.Since(began) > patience {
			c.Logf("%s%s", c.rowfeed("lease", "list"), c.rowfeed("consumer", "list"))
			for _, in := range c.relays {
				c.Logf("instance %d, run %d:\n%s", in.i, in.run, tail(in.child.Output(), 15))
			}
			c.Errorf("%s: not after %s: %v", what, patience, err)
			return false
		}
		if !c.ending {
			c.reviveAll()
		}
		pause(context.Background(), 20*time.Millisecond)
	}
}

// rows returns the table's keys and versions.
func (c *campaign) rows() (map[int64]int64, error) {
	rows, err := c.db.Admin().Query("SELECT id, v FROM kv")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[int64]int64{}
	for rows.Next() {
		var key, version int64
		if err := rows.Scan(&key, &version); err != nil {
			return nil, err
		}
		all[key] = version
	}
	return all, rows.Err()
}

// drained returns an error unless the receiver has all rows of the table, no change is pending, and the relay's cursors
// are at the head.
func (c *campaign) drained() error {
	if _, err := c.inbox.Log(); err != nil {
		c.Fatal(err)
	}
	for what, query := range map[string]string{
		"changes not published": "SELECT count(*) FROM rowfeed_changes_kv",
		"cursors not there": "SELECT count(*) FROM rowfeed_cursors c, " +
			"rowfeed_sequences s WHERE c.feed = 'kv' AND s.name = 'kv' AND c.value NOT LIKE CONCAT(s.value, '.%')",
	} {
		var n int
		if err := c.db.Admin().QueryRow(query).Scan(&n); err != nil {
			return err
		}
		if n > 0 {
			return fmt.Errorf("%d %s", n, what)
		}
	}
	want, err := c.rows()
	if err != nil {
		return err
	}
	if got := c.inbox.Rows(); !maps.Equal(got, want) {
		return fmt.Errorf("the receiver has %d rows, the table %d; %d versions differ",
			len(got), len(want), differ(got, want))
	}
	return nil
}

func differ(a, b map[int64]int64) (n int) {
	for key, version := range a {
		if other, ok := b[key]; ok && other != version {
			n++
		}
	}
	return n
}

// describe returns what happened to a key.
func describe(log []Arrival, key int64) string {
	var lines []string
	for i, a := range log {
		if a.Key == key {
			lines = append(lines, fmt.Sprintf("\n  arrival %d: %+v", i, a))
		}
	}
	return strings.Join(lines, "")
}

// part returns the shard of the consumer for a data shard: i of n has those from i*D/n to (i+1)*D/n.
func (c *campaign) part(shard int) int { return ((shard+1)*c.shards - 1) / dataShards }

func (c *campaign) check(history History) {
	c.Helper()
	final, err := c.rows()
	if err != nil {
		c.Fatal(err)
	}
	for key := range int64(keys) { // as they were first inserted
		if key%2 == 0 {
			history[key] = append([]Write{{}}, history[key]...)
		}
	}
	log, err := c.inbox.Log()
	if err != nil {
		c.Fatal(err)
	}
	v := Check(log, c.part, history, final)
	for _, fault := range v.Faults {
		c.Error(fault)
	}
	for _, key := range v.Wrong {
		c.Logf("key %d was written %v, and arrived as %s", key, history[key], describe(log, key))
	}
	ended := 0
	for _, in := range c.relays {
		ended += len(in.ended)
	}
	c.Logf("%d kills, %d pauses, %d cuts, %d restarts of the database; %d processes could not start meanwhile",
		c.kills.Load(), c.pauses.Load(), c.cuts.Load(), c.restarts.Load(), ended)
	c.Logf("%d transactions committed, %d failed, %d with an unknown outcome",
		c.writers.committed, c.writers.failed, c.writers.unknown)
	c.Logf("%d arrivals in %d claims: "+
		"%d accepted, %d repeated, %d of earlier claims, %d while busy, %d of requests given up, %d possibly given up",
		v.Arrivals, v.Epochs, v.Taken, v.Repeated, v.Superseded, v.Busy, v.GivenUp, v.Unknown)
	c.Logf("%s", c.takeOvers.report(c.lease))
	if !c.happened() || c.restarts.Load() != 2 || v.Epochs < 2 {
		c.Errorf("not every kind of fault has happened; %d take-overs were measured", c.takeOvers.measured())
	}
}
