package faults

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Inbox is a receiver of webhooks as GUARANTEES.md asks for one: of each shard it refuses
// epochs lower than the highest that it has seen, and of each key positions that are not
// above the last one. It writes down everything that it is sent.
//
// The last two parts of a request's path name the sender.
type Inbox struct {
	// Key and Version are the columns of a row's key and version.
	Key, Version string
	// Patience is how long a request that comes out of order is held until its sender
	// turns out to have given it up: shorter than a relay waits for an answer.
	Patience time.Duration
	// Part is the consumer shard of a data shard, whose entries come in order; where it is
	// nil each is one by itself.
	Part func(shard int) int

	mu     sync.Mutex
	mood   func() (busy bool, delay time.Duration)
	log    []Arrival
	epochs map[int]int64
	keys   map[int64]known
	claims map[claim]*sent
	wrong  error // a request that no relay should send
}

type known struct {
	position, version int64
	deleted           bool
}

// sent is what came in a claim, whatever became of it.
type sent struct {
	top  int64           // the highest position
	seen map[int64]bool  // positions
	keys map[int64]int64 // each key's highest position
	// inOrder counts the requests none of whose entries came out of order.
	inOrder int
}

// late is an entry that came after a later one of its claim: of its key, or any if it is
// the first at its position.
type late struct {
	at      int // its place in the log
	of      *sent
	inOrder int // of then
}

// NewInbox makes an empty one.
func NewInbox(key, version string) *Inbox {
	return &Inbox{Key: key, Version: version, Patience: 20 * time.Second, epochs: map[int]int64{},
		keys: map[int64]known{}, claims: map[claim]*sent{}}
}

// SetMood says how requests fare from now on: nil takes them in at once.
func (b *Inbox) SetMood(mood func() (busy bool, delay time.Duration)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mood = mood
}

// Log is what has come so far, or what was wrong with a request.
func (b *Inbox) Log() ([]Arrival, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Arrival(nil), b.log...), b.wrong
}

// Rows are the versions of the rows that it has.
func (b *Inbox) Rows() map[int64]int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	rows := map[int64]int64{}
	for key, k := range b.keys {
		if !k.deleted {
			rows[key] = k.version
		}
	}
	return rows
}

type message struct {
	Data struct {
		Epoch   int64
		Entries []struct {
			Position string
			Shard    int
			Op       string
			Key      map[string]json.Number
			Row      map[string]json.RawMessage
		}
	}
}

func (b *Inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return // cut off on its way
	}
	arrivals, err := b.parse(body, strings.Join(lastTwo(r.URL.Path), "/"))
	if err != nil {
		b.mu.Lock()
		b.wrong = fmt.Errorf("%w: %s", err, body)
		b.mu.Unlock()
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	b.mu.Lock()
	mood := b.mood
	b.mu.Unlock()
	if mood != nil {
		busy, delay := mood()
		t := time.NewTimer(delay)
		<-t.C // also when the sender has gone: it is at work, and does not look
		if busy {
			b.await(r, b.write(arrivals, Busy))
			if rand.N(2) == 0 {
				w.Header().Set("Retry-After", "1")
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
	}
	held, refused := b.take(arrivals)
	b.await(r, held)
	if refused { // all the same to a sender whose claim is over
		w.WriteHeader([]int{http.StatusOK, http.StatusConflict, http.StatusGone}[rand.N(3)])
	}
}

func lastTwo(path string) []string {
	parts := strings.Split(path, "/")
	return parts[max(0, len(parts)-2):]
}

func (b *Inbox) parse(body []byte, sender string) ([]Arrival, error) {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, err
	}
	if len(m.Data.Entries) == 0 {
		return nil, fmt.Errorf("no entries")
	}
	var all []Arrival
	for _, e := range m.Data.Entries {
		a := Arrival{Shard: e.Shard, Epoch: m.Data.Epoch, Sender: sender, Delete: e.Op == "delete"}
		var err error
		if a.Position, err = strconv.ParseInt(e.Position, 10, 64); err != nil {
			return nil, err
		}
		if a.Key, err = e.Key[b.Key].Int64(); err != nil {
			return nil, err
		}
		if !a.Delete {
			if err := json.Unmarshal(e.Row[b.Version], &a.Version); err != nil {
				return nil, err
			}
		}
		all = append(all, a)
	}
	return all, nil
}

// write notes arrivals that all get the same answer. late are those of put.
func (b *Inbox) write(arrivals []Arrival, answer Answer) []late {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range arrivals {
		arrivals[i].Answer = answer
	}
	return b.put(arrivals)
}

// put appends a request to the log, and answers what of it came out of order; b.mu is held.
func (b *Inbox) put(arrivals []Arrival) (all []late) {
	claims := map[*sent]bool{}
	for _, a := range arrivals {
		of := claim{a.Shard, a.Epoch}
		if b.Part != nil {
			of.shard = b.Part(a.Shard)
		}
		t := b.claims[of]
		if t == nil {
			t = &sent{seen: map[int64]bool{}, keys: map[int64]int64{}}
			b.claims[of] = t
		}
		claims[t] = true
		b.log = append(b.log, a)
		if a.Position < t.keys[a.Key] || a.Position < t.top && !t.seen[a.Position] {
			all = append(all, late{at: len(b.log) - 1, of: t, inOrder: t.inOrder})
			continue // and so it is if it comes again
		}
		t.seen[a.Position] = true
		t.top = max(t.top, a.Position)
		t.keys[a.Key] = max(t.keys[a.Key], a.Position)
	}
	if len(all) == 0 {
		for t := range claims {
			t.inOrder++
		}
	}
	return all
}

// take decides about the entries of a request, in one go. late are those of put.
func (b *Inbox) take(arrivals []Arrival) (all []late, refused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range arrivals {
		a := &arrivals[i]
		was := b.keys[a.Key]
		switch {
		case a.Epoch < b.epochs[a.Shard]:
			a.Answer, refused = Superseded, true
		case a.Position <= was.position:
			a.Answer = Repeated
		default:
			a.Answer = Took
			b.keys[a.Key] = known{a.Position, a.Version, a.Delete}
		}
		b.epochs[a.Shard] = max(b.epochs[a.Shard], a.Epoch)
	}
	return b.put(arrivals), refused
}

// await holds the answer to a request that came out of order until its connection ends: its
// sender must have given it up before it sent a later one. If it goes on meanwhile, with
// something in order, it has: it sends one after the other. If it does not, nobody knows:
// the connection of one that waits for the answer may be cut as well. One that still waits
// when Patience is over is at fault.
func (b *Inbox) await(r *http.Request, all []late) {
	if len(all) == 0 {
		return
	}
	t := time.NewTimer(b.Patience)
	defer t.Stop()
	select {
	case <-r.Context().Done():
	case <-t.C:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range all {
		b.log[l.at].Fate = Unknown
		if l.of.inOrder > l.inOrder {
			b.log[l.at].Fate = GivenUp
		}
	}
}
