// Package faults kills, pauses and cuts off real relay processes for a while, and judges
// what their receiver got meanwhile.
//
// It is a module of its own, because of the proxy that cuts connections:
//
//	go test -C cmd/internal/faults                                           15 s of faults, on PostgreSQL
//	ROWFEED_FAULTS_SECONDS=60 go test -C cmd/internal/faults -v -timeout 30m  a minute, on PostgreSQL and MariaDB
//
// ROWFEED_FAULTS_SEED repeats the choices of a run (what processes make of them is theirs),
// ROWFEED_FAULTS_SHARDS sets the number of shards (8), ROWFEED_FAULTS_LEASE the ttl of their
// leases in seconds (2), ROWFEED_TEST_ENGINES the databases.
package faults

import (
	"fmt"
	"slices"
)

// Answer is what a receiver made of an entry.
type Answer int

const (
	// Busy: it was away, or refused to look. Nothing became of the entry.
	Busy Answer = iota
	// Took: it has taken the entry in.
	Took
	// Repeated: it has had this entry, or a later one of the key.
	Repeated
	// Superseded: it has heard from a holder of a later claim.
	Superseded
)

func (a Answer) String() string { return [...]string{"busy", "took", "repeated", "superseded"}[a] }

// Arrival is an entry as it came in, in the order in which entries did.
type Arrival struct {
	Key      int64
	Version  int64 // what the row says; 0 for a delete
	Delete   bool
	Position int64
	Shard    int // the data shard
	Epoch    int64
	Sender   string // the process
	Answer   Answer
	Fate     Fate
}

// Fate is what is known of a request that came after a later one of its claim: see await.
type Fate int

const (
	// Awaited: its sender waited for the answer; so it is with all that came in order.
	Awaited Fate = iota
	// GivenUp: its connection ended, and before that its sender had gone on.
	GivenUp
	// Unknown: its connection ended. The sender may have given it up before, or not.
	Unknown
)

// maxUnknown is how often an entry may come out of order in a claim without that anything
// is known of it. It takes a request each, cut off and read when a later one was answered;
// a sender that lacks the answer sends it again and again.
const maxUnknown = 3

// Write is one that may have been committed; a key's versions grow with every write.
type Write struct {
	Version int64
	Delete  bool
}

// History are a key's writes, in their order. What was rolled back is not among them.
type History map[int64][]Write

// Verdict is what Judge found.
type Verdict struct {
	Arrivals, Taken, Repeated, Superseded, Busy int
	// GivenUp are arrivals out of order that their sender no longer waited for, and Unknown
	// those of which it is not known whether it did.
	GivenUp, Unknown int
	Epochs           int // claims in which something arrived, of all shards
	Faults           []string
	Wrong            []int64 // keys that the faults are about
}

// maxFaults are listed; what is wrong is often wrong everywhere.
const maxFaults = 50

// Judge compares what a receiver got with what was written. part is the consumer shard of
// a data shard; final has the versions of the rows that are there in the end. The log must
// reach until after the last delivery.
//
// Faults begin with a word: lost (a row that the receiver does not have), stale (it has an
// older version), ghost (it has a row that is gone), order (an older version came after a
// newer one), invented (a version that was never committed), epoch (a claim of two
// processes, or an entry taken in from an earlier claim than one before it).
func Judge(log []Arrival, part func(shard int) int, history History, final map[int64]int64) Verdict {
	j := &judging{part: part, history: history, claims: map[claim]*claimSeen{}, epochs: map[int]int64{},
		state: map[int64]state{}}
	for i, a := range log {
		j.arrived(i, a)
	}
	j.compare(final)
	j.Epochs = len(j.claims)
	return j.Verdict
}

// claim is one of a consumer shard's lease.
type claim struct {
	shard int
	epoch int64
}

type claimSeen struct {
	sender string
	top    int64
	seen   map[int64]bool  // positions
	keys   map[int64]int64 // each key's highest position
	// unknown counts, by position, what came with that fate.
	unknown map[int64]int
}

// state is what the receiver knows of a key.
type state struct {
	version  int64 // for a delete: the first deletion that it can be
	deleted  bool
	position int64
}

type judging struct {
	Verdict
	part    func(int) int
	history History
	claims  map[claim]*claimSeen
	epochs  map[int]int64 // by data shard: the highest epoch that was taken in
	state   map[int64]state
}

func (j *judging) fault(key int64, format string, args ...any) {
	if len(j.Faults) < maxFaults {
		j.Faults = append(j.Faults, fmt.Sprintf(format, args...))
		if !slices.Contains(j.Wrong, key) {
			j.Wrong = append(j.Wrong, key)
		}
	}
}

func (j *judging) arrived(i int, a Arrival) {
	j.Arrivals++
	j.inClaim(i, a)
	switch a.Answer {
	case Busy:
		j.Busy++
	case Repeated:
		j.Repeated++
	case Superseded:
		j.Superseded++
	case Took:
		j.Taken++
		j.took(i, a)
	}
}

// inClaim looks at the order in which a claim's one process sends: of a key never an earlier
// position, and each above all before it, but for those that are sent again. A page that is
// fetched again may have one more: of a key whose row was gone, without its deletion having
// been published, and is there again.
func (j *judging) inClaim(i int, a Arrival) {
	of := claim{j.part(a.Shard), a.Epoch}
	t := j.claims[of]
	if t == nil {
		t = &claimSeen{sender: a.Sender, seen: map[int64]bool{}, keys: map[int64]int64{}, unknown: map[int64]int{}}
		j.claims[of] = t
	}
	if t.sender != a.Sender {
		j.fault(a.Key, "epoch: arrival %d: epoch %d of shard %d is one of %s and of %s", i, a.Epoch, of.shard, t.sender,
			a.Sender)
	}
	again := t.seen[a.Position] || slices.ContainsFunc(j.history[a.Key], func(w Write) bool { return w.Delete })
	earlier := a.Position < t.keys[a.Key] || a.Position < t.top && !again
	switch {
	case earlier && a.Fate == GivenUp:
		j.GivenUp++
		return // it was sent long ago
	case earlier && a.Fate == Unknown:
		j.Unknown++
		if t.unknown[a.Position]++; t.unknown[a.Position] == maxUnknown+1 {
			j.fault(a.Key, "order: arrival %d: within epoch %d of shard %d position %d came after a later one %d times",
				i, a.Epoch, of.shard, a.Position, maxUnknown+1)
		}
		return // it may have been sent long ago
	case a.Position < t.keys[a.Key]:
		j.fault(a.Key, "order: arrival %d: within epoch %d key %d came at position %d after %d", i, a.Epoch, a.Key,
			a.Position, t.keys[a.Key])
	case earlier:
		j.fault(a.Key, "order: arrival %d: within epoch %d of shard %d position %d came after %d", i, a.Epoch, of.shard,
			a.Position, t.top)
	}
	t.seen[a.Position] = true
	t.top = max(t.top, a.Position)
	t.keys[a.Key] = max(t.keys[a.Key], a.Position)
}

// took follows what the receiver knows of a key.
func (j *judging) took(i int, a Arrival) {
	if top := j.epochs[a.Shard]; a.Epoch < top {
		j.fault(a.Key, "epoch: arrival %d: key %d was taken in from epoch %d after one of epoch %d", i, a.Key, a.Epoch,
			top)
	}
	j.epochs[a.Shard] = max(j.epochs[a.Shard], a.Epoch)
	old := j.state[a.Key]
	if a.Position <= old.position {
		j.fault(a.Key, "order: arrival %d: key %d was taken in at position %d after %d", i, a.Key, a.Position,
			old.position)
	}
	writes := j.history[a.Key]
	now := state{version: a.Version, deleted: a.Delete, position: a.Position}
	switch at := slices.IndexFunc(writes, func(w Write) bool {
		if a.Delete {
			// An entry may show a deletion that has its own position yet to come.
			return w.Delete && (w.Version > old.version || w.Version == old.version && old.deleted)
		}
		return !w.Delete && w.Version == a.Version
	}); {
	case at < 0 && a.Delete:
		j.fault(a.Key, "order: arrival %d: key %d came as deleted, and no deletion follows version %d", i, a.Key,
			old.version)
		now.version = old.version
	case at < 0:
		j.fault(a.Key, "invented: arrival %d: key %d has no version %d", i, a.Key, a.Version)
	case a.Delete:
		now.version = writes[at].Version
	case a.Version < old.version:
		j.fault(a.Key, "order: arrival %d: version %d of key %d came after %d", i, a.Version, a.Key, old.version)
	}
	j.state[a.Key] = now
}

// compare looks at what the receiver has in the end.
func (j *judging) compare(final map[int64]int64) {
	keys := map[int64]bool{}
	for key := range final {
		keys[key] = true
	}
	for key := range j.state {
		keys[key] = true
	}
	for _, key := range sorted(keys) {
		version, there := final[key]
		got, known := j.state[key]
		switch {
		case there && !known:
			j.fault(key, "lost: key %d never came; its version is %d", key, version)
		case there && got.deleted:
			j.fault(key, "lost: key %d came last as deleted, at position %d; its version is %d", key, got.position,
				version)
		case there && got.version != version:
			j.fault(key, "stale: key %d came last as version %d, at position %d; its version is %d", key, got.version,
				got.position, version)
		case !there && !got.deleted:
			j.fault(key, "ghost: key %d came last as version %d, at position %d; it has no row", key, got.version,
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
