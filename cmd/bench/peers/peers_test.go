package peers

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/cmd/bench/measuring"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// peer delivers to a handler the rows that users' transactions have inserted into the table items.
type peer interface {
	// begin makes what the peer needs in the database of a cell. Rows that are written later must be handled.
	begin(c *cell)
	// record does what the peer needs in the user's transaction that has inserted these rows.
	record(ctx context.Context, tx userTx, payloads []string) error
	// run delivers rows, one at a time or several at once, until ctx ends. It then ends in order.
	run(ctx context.Context, handle handler) error
	// end removes what would outlive the database.
	end(ctx context.Context) error
}

// keyed is a peer that needs another key of items than its id.
type keyed interface{ key() string }

// preparer is a peer whose statements work only if the arguments are sent separately, at the cost of a round trip.
type preparer interface{ prepares(e testdb.Engine) bool }

// waker is a peer that the user notifies of a commit.
type waker interface{ committed() }

// handler handles a row. It cannot fail, and ignores its context: it may hang.
type handler func(payload string)

// contestant is a peer with all its configurations that were tried.
type contestant struct {
	name           string
	families       []string
	message        bool // it delivers a row of its own, which could be all that the user writes
	loses          bool // it is known to skip rows
	configurations []configuration
}

// configuration is one way to set up a peer. why says what it tries.
type configuration struct {
	name, why string
	make      func() peer
}

func (c *contestant) with(configuration string) entrant {
	for _, each := range c.configurations {
		if each.name == configuration {
			return entrant{contestant: c, configuration: each}
		}
	}
	panic(fmt.Sprintf("%s has no configuration %q", c.name, configuration))
}

var contestants = []*contestant{&rowfeedPeer, &watermillPeer, &riverPeer, &pglogreplPeer, &naivePeer}

// entrant is a contestant in one configuration, measured in turns with the others.
type entrant struct {
	*contestant
	configuration configuration
	alone         bool // the user writes only the peer's message, and no row
}

func (who entrant) key() string {
	key := who.name + "/" + who.configuration.name
	if who.alone {
		key += "/alone"
	}
	return key
}

// peerMeasure is one comparison of all peers.
type peerMeasure struct {
	name  string
	title string
	head  []string // after database, peer and configuration
	tune  bool     // configurations matter so much that TestPeersTuning runs all of them to choose
	// also, if set, returns entrants in addition to these.
	also func(entrants []entrant) []entrant
	cell func(c *cell)                            // one run of an entrant
	row  func(s *standings, who entrant) []string // the cells below head
	plot dots
}

var peerMeasures = []peerMeasure{drainMeasure, costMeasure, latencyMeasure(200), latencyMeasure(1000), racingMeasure,
	firstMeasure, idleMeasure, heldMeasure, hangMeasure}

// TestPeers compares rowfeed with others that tell of committed rows: on the same server, with the
// same rows of 200 bytes and the same durability, in turns. Each has the configuration that chosen
// names, and rowfeed its defaults besides; each run has a database of its own. One cell again:
//
//	go test -timeout 0 -run 'TestPeers/drain/postgres15/river'
func TestPeers(t *testing.T) {
	servers := &peerServers{T: t}
	for _, m := range peerMeasures {
		t.Run(m.name, func(t *testing.T) {
			m.compare(t, servers, false, func(e testdb.Engine) (entrants []entrant) {
				for _, c := range contestants {
					best := chosenFor(m.name, e.Family, c)
					if !slices.Contains(c.families, e.Family) {
						continue
					}
					if c == &rowfeedPeer && best != "default" {
						entrants = append(entrants, c.with("default")) // the default is shown for comparison
					}
					entrants = append(entrants, c.with(best))
				}
				return entrants
			})
		})
	}
}

// TestPeersTuning tries all configurations of the peers, so that the best of them can be named in
// chosen: a * is at those that are.
//
//	go test -timeout 0 -tune -run 'TestPeersTuning/latency-200/postgres15/river'
func TestPeersTuning(t *testing.T) {
	if !*tune {
		t.Skip("with -tune it tries all configurations")
	}
	servers := &peerServers{T: t}
	for _, m := range peerMeasures {
		if !m.tune {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			m.compare(t, servers, true, func(e testdb.Engine) (entrants []entrant) {
				for _, c := range contestants {
					for _, each := range c.configurations {
						if slices.Contains(c.families, e.Family) {
							entrants = append(entrants, c.with(each.name))
						}
					}
				}
				return entrants
			})
		})
	}
}

// standings are the figures of a measure on one server.
type standings struct {
	measure  peerMeasure
	engine   testdb.Engine
	entrants []entrant
	figures  figures[string]
	counts   map[string]*counts // by entrant, over all repetitions
}

// comparison is a running measure on one server.
type comparison struct {
	*testing.T
	standings
	tuning bool // all configurations are run
	server *testdb.Server
}

// compare runs a measure on each server and prints its table.
func (m peerMeasure) compare(
	t *testing.T, servers *peerServers, tuning bool, entrants func(e testdb.Engine) []entrant,
) {
	var all []string
	out := m.table()
	testdb.Quick(t)
	testdb.Only(t, testdb.Servers...)
	for _, e := range testdb.Engines() {
		if !e.HasServer() {
			continue // no other peer supports this database
		}
		t.Run(e.Name, func(t *testing.T) {
			e.Require(t)
			p := &comparison{T: t, tuning: tuning, standings: standings{measure: m, engine: e, entrants: entrants(e),
				figures: figures[string]{}, counts: map[string]*counts{}}}
			if m.also != nil {
				p.entrants = append(p.entrants, m.also(p.entrants)...)
			}
			p.server = servers.start(t, e, m)
			// without the compiler's version
			version, _, _ := strings.Cut(measuring.On(t, p.server.NewDatabase(t)).Version(), " (")
			all = append(all, e.Name+" "+version)
			p.turns()
			p.rows(&out, tuning)
			if *record && !tuning {
				p.save(t, version)
			}
		})
	}
	if len(out.Rows) > 0 {
		fmt.Println(out.Markdown())
		fmt.Printf("%s, %s, %d cores\n", strings.Join(append(all, versions(t)...), ", "), runtime.Version(),
			runtime.NumCPU())
	}
}

func (m peerMeasure) table() table {
	return table{Title: m.title, Head: append([]string{"database", "peer", "configuration"}, m.head...)}
}

// versions are the versions of the modules that are compared, and of the drivers.
func versions(t *testing.T) (versions []string) {
	t.Helper()
	data, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(
		`(?m)^\s*github\.com/\S*(watermill-sql/v4|riverqueue/river|pglogrepl|pgx/v5|go-sql-driver/mysql) (v\S+)`,
	).FindAllStringSubmatch(string(data), -1) {
		versions = append(versions, m[1]+" "+m[2])
	}
	return versions
}

// peerServers starts a server for each measure. In a short run one server is used for all, and it is not durable.
type peerServers struct {
	*testing.T
	kept map[testdb.Engine]*testdb.Server
}

func (s *peerServers) start(t *testing.T, e testdb.Engine, m peerMeasure) *testdb.Server {
	t.Helper()
	var more []string
	if e.Family == "postgres" {
		more = append(more, "wal_level=logical") // pglogrepl needs it; all peers have the same server
		if m.name == idleMeasure.name || testing.Short() {
			more = append(more, "shared_preload_libraries=pg_stat_statements")
		}
	}
	if !testing.Short() {
		return e.Dedicated(t, e.Production(more...)...)
	}
	if s.kept[e] == nil {
		if s.kept == nil {
			s.kept = map[testdb.Engine]*testdb.Server{}
		}
		var options []testdb.Option
		for _, setting := range more {
			options = append(options, testdb.Setting(setting))
		}
		s.kept[e] = e.Dedicated(s.T, options...)
	}
	return s.kept[e]
}

// turns runs a cell for each repetition and entrant, in turns.
func (p *comparison) turns() {
	for rep := range *reps {
		for i := range p.entrants {
			who := p.entrants[(i+rep)%len(p.entrants)]
			name := who.name
			if p.tuning {
				name += "/" + who.configuration.name
			}
			if who.alone {
				name += "/alone"
			}
			p.Run(name, func(t *testing.T) { p.measure.cell(p.cell(t, who)) })
		}
	}
}

// add stores a figure of an entrant.
func (p *comparison) add(who entrant, what string, v float64) { p.figures.Add(who.key()+" "+what, v) }

func (s *standings) of(who entrant, what string) figure { return s.figures[who.key()+" "+what] }

// over divides an entrant's figure by another's of the same repetitions. It is empty if they have different numbers of
// runs.
func over(a, b figure) string {
	if len(a) == 0 || len(a) != len(b) {
		return ""
	}
	return a.Over(b).Ratio()
}

// first is the first entrant of a contestant, or nil.
func (s *standings) first(c *contestant) (who entrant) {
	for _, who := range s.entrants {
		if who.contestant == c {
			return who
		}
	}
	return entrant{contestant: c}
}

// rows adds a row for each entrant that was measured. A * marks the chosen ones.
func (s *standings) rows(out *table, star bool) {
	for _, who := range s.entrants {
		if s.counts[who.key()] == nil {
			continue // -run excluded it, or it failed
		}
		name, configuration := who.name, who.configuration.name
		if who.alone {
			name += ", its message alone"
		}
		if star && configuration == chosenFor(s.measure.name, s.engine.Family, who.contestant) {
			configuration += " *"
		}
		out.Row(append([]string{s.engine.Name, name, configuration}, s.measure.row(s, who)...)...)
	}
}

// outcomes is what happened to all rows, over all repetitions of an entrant.
func (s *standings) outcomes(who entrant) *counts { return s.counts[who.key()] }

// cell is one run of one entrant on a database of its own.
type cell struct {
	*measuring.Bed
	entrant
	p       *comparison
	peer    peer
	users   *users
	ledger  *ledger
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// cell prepares the table items and the peer.
func (p *comparison) cell(t *testing.T, who entrant) *cell {
	t.Helper()
	c := &cell{Bed: measuring.On(t, p.server.NewDatabase(t)), entrant: who, p: p, peer: who.configuration.make(),
		ledger: newLedger()}
	key, id := "id", "GENERATED ALWAYS AS IDENTITY"
	if p.engine.Family == "mysql" {
		id = "AUTO_INCREMENT"
	}
	if k, ok := c.peer.(keyed); ok {
		key = k.key()
	}
	c.SQL("CREATE TABLE items (id bigint NOT NULL " + id +
		", writer int NOT NULL, payload varchar(200) NOT NULL, PRIMARY KEY (" + key + "))")
	prepared := false
	if x, ok := c.peer.(preparer); ok {
		prepared = x.prepares(p.engine)
	}
	c.users = c.newUsers(prepared)
	t.Cleanup(func() {
		c.stop()
		if err := c.peer.end(context.Background()); err != nil {
			t.Error(err)
		}
	})
	c.peer.begin(c)
	return c
}

// start runs the peer's consumer until stop is called.
func (c *cell) start() {
	ctx, cancel := context.WithCancel(c.Context())
	c.cancel = cancel
	c.running.Go(func() {
		if err := c.peer.run(ctx, c.ledger.handle); err != nil {
			c.Errorf("%s: %v", c.entrant.key(), err)
		}
	})
}

// stop ends the consumer. Further calls do nothing.
func (c *cell) stop() {
	if c.cancel != nil {
		c.cancel()
		c.running.Wait()
	}
}

// warm writes a few rows and waits until they were handled, so that connections are open, statements prepared and
// shards acquired.
func (c *cell) warm() {
	c.Helper()
	c.ledger.forget()
	for writer := range writerCount {
		c.Must(c.write(c.Context(), writer, 8, 0))
	}
	if !c.settle(c.Context()) {
		c.Fatalf("%s handled %d of %d rows", c.entrant.key(), c.ledger.count().Handled, c.ledger.count().Committed)
	}
	c.ledger.forget()
}

// settle waits until all committed rows were handled. It returns false if rows are missing and none has arrived for so
// long that none will.
func (c *cell) settle(ctx context.Context) bool {
	patience := 30 * time.Second // far above every poll, deadline and hold
	if c.loses {
		patience = time.Second // the peer polls many times in that time
	}
	return c.ledger.settle(ctx, patience)
}

// countErrors stops the consumer and counts what went wrong. stopped means that it did not wait for the rest.
func (c *cell) countErrors(stopped bool) *counts {
	c.stop()
	all := c.p.counts[c.entrant.key()]
	if all == nil {
		all = &counts{}
		c.p.counts[c.entrant.key()] = all
	}
	this := c.ledger.count()
	if stopped {
		this.Lost, this.Stopped = 0, 1
	}
	all.add(this)
	if this.Phantoms > 0 {
		c.Errorf("%s handed over %d rows that were never committed", c.entrant.key(), this.Phantoms)
	}
	return this
}
