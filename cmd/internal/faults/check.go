// Package faults kills, pauses and disconnects real relay processes for a while, and checks what their receiver got
// meanwhile.
//
// It is a module of its own, because of the proxy that cuts connections:
//
//	go test -C cmd/internal/faults                                           15 s of faults, on PostgreSQL
//	ROWFEED_FAULTS_SECONDS=60 go test -C cmd/internal/faults -v -timeout 30m  a minute, on PostgreSQL and MariaDB
//
// ROWFEED_FAULTS_SEED repeats the random choices of a run; the timing of the processes still differs.
// ROWFEED_FAULTS_SHARDS sets the number of shards (8), ROWFEED_FAULTS_LEASE the time to live of their leases in
// seconds (2), ROWFEED_TEST_ENGINES the databases.
package faults

import (
	"fmt"
	"slices"
)

// Answer is a receiver's answer to an entry.
type Answer int

const (
	// Busy: the receiver was unavailable, or refused the request. The entry has no effect.
	Busy Answer = iota
	// Accepted: the receiver has accepted the entry.
	Accepted
	// Repeated: the receiver already has this entry, or a later one of the key.
	Repeated
	// Superseded: the receiver has got a request of a later claim.
	Superseded
)

func (a Answer) String() string { return [...]string{"busy", "accepted", "repeated", "superseded"}[a] }

// Arrival is an entry in the order of arrival.
type Arrival struct {
	Key      int64
	Version  int64 // the row's version; 0 for a delete
	Delete   bool
	Position int64
	Shard    int // the data shard
	Epoch    int64
	Sender   string // the process
	Answer   Answer
	Fate     Fate
}

// Fate tells what became of a request that arrived out of order: after a later request of the same claim. See await.
type Fate int

const (
	// Awaited: its sender waited for the answer. All requests in order have this fate.
	Awaited Fate = iota
	// GivenUp: its connection ended, after its sender had sent a later request.
	GivenUp
	// Unknown: its connection ended, and the inbox cannot tell whether its sender had given it up before.
	Unknown
)

// maxUnknown is how often an entry of one claim may arrive out of order with an unknown fate. A proxy causes it if it
// cuts a request, and the inbox reads the request after it has answered a later one. A sender that gets no answer
// repeats the request, so this can happen more than once.
const maxUnknown = 3

// Write is a write that may have been committed. A key's versions grow with every write.
type Write struct {
	Version int64
	Delete  bool
}

// History has a key's writes, in their order, without those that were rolled back.
type History map[int64][]Write

// Verdict is the result of Check.
type Verdict struct {
	Arrivals, Taken, Repeated, Superseded, Busy int
	// GivenUp and Unknown count the arrivals out of order with that fate.
	GivenUp, Unknown int
	Epochs           int // claims of all shards in which something arrived
	Faults           []string
	Wrong            []int64 // the keys of Faults
}

// maxFaults limits the listed faults: one cause may affect all keys.
const maxFaults = 50

// Check compares what a receiver got with what was written. part returns the consumer's shard of a data shard. final
// has the versions of the rows at the end. The log must include the last delivery.
//
// Faults begin with a word: lost (the receiver lacks a row), stale (it has an older version), ghost (it has a row that
// was deleted), order (an older version arrived after a newer one), invented (a version that was never committed),
// epoch (two processes had the same claim, or an entry of an earlier claim was accepted after one of a later claim).
func Check(log []Arrival, part func(shard int) int, history History, final map[int64]int64) Verdict {
	c := &logCheck{part: part, history: history, claims: map[claim]*claimSeen{}, epochs: map[int]int64{},
		state: map[int64]state{}}
	for i, a := range log {
		c.arrived(i, a)
	}
	c.compare(final)
	c.Epochs = len(c.claims)
	return c.Verdict
}

// claim is a claim on the lease of a consumer's shard.
type claim struct {
	shard int
	epoch int64
}

type claimSeen struct {
	sender string
	top    int64
	seen   map[int64]bool  // positions
	keys   map[int64]int64 // each key's highest position
	// unknown counts arrivals with the fate Unknown, by position.
	unknown map[int64]int
}

// state is what the receiver knows of a key.
type state struct {
	version  int64 // for a delete: the first deletion that the entry can be
	deleted  bool
	position int64
}

type logCheck struct {
	Verdict
	part    func(int) int
	history History
	claims  map[claim]*claimSeen
	epochs  map[int]int64 // by data shard: the highest accepted epoch
	state   map[int64]state
}

func (c *logCheck) fault(key int64, format string, args ...any) {
	if len(c.Faults) < maxFaults {
		c.Faults = append(c.Faults, fmt.Sprintf(format, args...))
		if !slices.Contains(c.Wrong, key) {
			c.Wrong = append(c.Wrong, key)
		}
	}
}

func (c *logCheck) arrived(i int, a Arrival) {
	c.Arrivals++
	c.inClaim(i, a)
	switch a.Answer {
	case Busy:
		c.Busy++
	case Repeated:
		c.Repeated++
	case Superseded:
		c.Superseded++
	case Accepted:
		c.Taken++
		c.accepted(i, a)
	}
}

// inClaim checks the order in which the process of a claim sends. A key never has an earlier position, and each entry
// is above all earlier ones, except entries that are sent again. A page that is fetched again may have one more entry:
// of a key whose row was deleted, without a published delete, and inserted again.
func (c *logCheck) inClaim(i int, a Arrival) {
	of := claim{c.part(a.Shard), a.Epoch}
	t := c.claims[of]
	if t == nil {
		t = &claimSeen{sender: a.Sender, seen: map[int64]bool{}, keys: map[int64]int64{}, unknown: map[int64]int{}}
		c.claims[of] = t
	}
	if t.sender != a.Sender {
		c.fault(a.Key, "epoch: arrival %d: epoch %d of shard %d belongs to %s and to %s", i, a.Epoch, of.shard,
			t.sender,
			a.Sender)
	}
	again := t.seen[a.Position] || slices.ContainsFunc(c.history[a.Key], func(w Write) bool { return w.Delete })
	earlier := a.Position < t.keys[a.Key] || a.Position < t.top && !again
	switch {
	case earlier && a.Fate == GivenUp:
		c.GivenUp++
		return // an entry that is sent again
	case earlier && a.Fate == Unknown:
		c.Unknown++
		if t.unknown[a.Position]++; t.unknown[a.Position] == maxUnknown+1 {
			c.fault(a.Key, "order: arrival %d: within epoch %d of shard %d position %d arrived after a later one %d "+
				"times",
				i, a.Epoch, of.shard, a.Position, maxUnknown+1)
		}
		return // may be an entry that is sent again
	case a.Position < t.keys[a.Key]:
		c.fault(a.Key, "order: arrival %d: within epoch %d key %d arrived at position %d after %d", i, a.Epoch, a.Key,
			a.Position, t.keys[a.Key])
	case earlier:
		c.fault(a.Key, "order: arrival %d: within epoch %d of shard %d position %d arrived after %d", i, a.Epoch,
			of.shard,
			a.Position, t.top)
	}
	t.seen[a.Position] = true
	t.top = max(t.top, a.Position)
	t.keys[a.Key] = max(t.keys[a.Key], a.Position)
}

// accepted updates what the receiver knows of a key.
func (c *logCheck) accepted(i int, a Arrival) {
	if top := c.epochs[a.Shard]; a.Epoch < top {
		c.fault(a.Key, "epoch: arrival %d: key %d was accepted from epoch %d after one of epoch %d", i, a.Key, a.Epoch,
			top)
	}
	c.epochs[a.Shard] = max(c.epochs[a.Shard], a.Epoch)
	old := c.state[a.Key]
	if a.Position <= old.position {
		c.fault(a.Key, "order: arrival %d: key %d was accepted at position %d after %d", i, a.Key, a.Position,
			old.position)
	}
	writes := c.history[a.Key]
	now := state{version: a.Version, deleted: a.Delete, position: a.Position}
	switch at := slices.IndexFunc(writes, func(w Write) bool {
		if a.Delete {
			// An entry may show a deletion whose own position comes later.
			return w.Delete && (w.Version > old.version || w.Version == old.version && old.deleted)
		}
		return !w.Delete && w.Version == a.Version
	}); {
	case at < 0 && a.Delete:
		c.fault(a.Key, "order: arrival %d: key %d arrived as deleted, and no deletion follows version %d", i, a.Key,
			old.version)
		now.version = old.version
	case at < 0:
		c.fault(a.Key, "invented: arrival %d: key %d has no version %d", i, a.Key, a.Version)
	case a.Delete:
		now.version = writes[at].Version
	case a.Version < old.version:
		c.fault(a.Key, "order: arrival %d: version %d of key %d arrived after %d", i, a.Version, a.Key, old.version)
	}
	c.state[a.Key] = now
}

// compare checks what the receiver has at the end.
func (c *logCheck) compare(final map[int64]int64) {
	keys := map[int64]bool{}
	for key := range final {
		keys[key] = true
	}
	for key := range c.state {
		keys[key] = true
	}
	for _, key := range sorted(keys) {
		version, there := final[key]
		got, known := c.state[key]
		switch {
		case there && !known:
			c.fault(key, "lost: key %d never arrived; its version is %d", key, version)
		case there && got.deleted:
			c.fault(key, "lost: key %d last arrived as deleted, at position %d; its version is %d", key, got.position,
				version)
		case there && got.version != version:
			c.fault(key, "stale: key %d last arrived as version %d, at position %d; its version is %d", key,
				got.version,
				got.position, version)
		case !there && !got.deleted:
			c.fault(key, "ghost: key %d last arrived as version %d, at position %d; it has no row", key, got.version,
				got.position)
		}
	}
}

func sorted[K int64 | int](set map[K]bool) []K {
	all := make([]K, 0, len(set))
	for k := range set {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}
