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

// Inbox is a safe receiver of webhooks, as CONSUMERS.md defines it. For each shard it refuses epochs lower than the
// highest that it has seen. For each key it refuses positions that are not above the last one. It logs all entries that
// it gets.
//
// The last two parts of a request's path name the sender.
type Inbox struct {
	// Key and Version are the columns of a row's key and version.
	Key, Version string
	// Patience is how long a request that arrives out of order is held, to find out that its sender has given it up. It
	// is shorter than a relay waits for a response.
	Patience time.Duration
	// Part returns the consumer's shard of a data shard; its entries arrive in order. If Part is nil, each data shard
	// has an order of its own.
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

// sent is what arrived in a claim, whether or not it was accepted.
type sent struct {
	top  int64           // the highest position
	seen map[int64]bool  // positions
	keys map[int64]int64 // each key's highest position
	// inOrder counts the requests without entries out of order.
	inOrder int
}

// late is an entry that arrived after a later entry of its claim: of the same key, or of any key if the entry is the
// first at its position.
type late struct {
	at      int // its index in the log
	of      *sent
	inOrder int // inOrder at that time
}

// NewInbox returns an empty inbox.
func NewInbox(key, version string) *Inbox {
	return &Inbox{Key: key, Version: version, Patience: 20 * time.Second, epochs: map[int]int64{},
		keys: map[int64]known{}, claims: map[claim]*sent{}}
}

// SetMood sets how the inbox answers from now on. nil accepts all requests at once.
func (b *Inbox) SetMood(mood func() (busy bool, delay time.Duration)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mood = mood
}

// Log returns the arrivals so far, or what was wrong with a request.
func (b *Inbox) Log() ([]Arrival, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Arrival(nil), b.log...), b.wrong
}

// Rows returns the versions of the rows that it has.
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
		return // the connection was cut
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
		<-t.C // also if the sender has gone: the receiver works, and does not check its connection
		if busy {
			b.await(r, b.write(arrivals, Busy))
			if rand.N(2) == 0 {
				w.Header().Set("Retry-After", "1")
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
	}
	held, refused := b.accept(arrivals)
	b.await(r, held)
	if refused { // a sender whose claim is over gets the same answer for either
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

// write logs arrivals that all get the same answer. late are those of put.
func (b *Inbox) write(arrivals []Arrival, answer Answer) []late {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range arrivals {
		arrivals[i].Answer = answer
	}
	return b.put(arrivals)
}

// put appends a request to the log, and returns the entries that are out of order. b.mu is held.
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
			continue // a repeated entry is out of order again
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

// accept decides about the entries of a request in one step. late are those of put.
func (b *Inbox) accept(arrivals []Arrival) (all []late, refused bool) {
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
			a.Answer = Accepted
			b.keys[a.Key] = known{a.Position, a.Version, a.Delete}
		}
		b.epochs[a.Shard] = max(b.epochs[a.Shard], a.Epoch)
	}
	return b.put(arrivals), refused
}

// await holds the answer to a request that arrived out of order until its connection ends. Its sender must have given
// up the request before it sent a later one. If the sender meanwhile sends a request in order, it has given up this
// one, because it sends one request after the other. If it does not, nothing is known: the connection of a sender that
// waits for the answer may also be cut. A request that still waits after Patience is an error of its sender.
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
