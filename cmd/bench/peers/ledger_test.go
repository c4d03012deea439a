package peers

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/cmd/bench/measuring"
)

// ledger records which rows were committed, and when, and which rows were handled, when and in what order.
type ledger struct {
	mu       sync.Mutex
	writers  [writerCount + 1][]*written // the last one is the holder of an open transaction
	last     [writerCount + 1]int        // the highest number handled, of each writer
	warm     [writerCount + 1]int        // the number of rows before the measurement
	twice    int
	swapped  int
	handled  int // rows handled for the first time
	took     int // rows committed
	missed   int // rows before the measurement that were never handled
	latestAt time.Time
	longest  time.Duration // duration of the longest user's transaction

	hang hang
}

// written is a row.
type written struct {
	committed, handled time.Time
}

// hang makes the handler hang with this row when it gets the row for the first time.
type hang struct {
	writer, seq int // none if seq is 0
	begun       chan struct{}
	release     chan struct{}
	times       int
}

func newLedger() *ledger { return &ledger{} }

// payloads draws the next rows of a writer: 200 bytes that begin with the numbers of writer and row.
func (l *ledger) payloads(writer, n int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	payloads := make([]string, n)
	for i := range payloads {
		l.writers[writer] = append(l.writers[writer], &written{})
		head := fmt.Sprintf("%02d %010d ", writer, len(l.writers[writer]))
		payloads[i] = head + payload[len(head):]
	}
	return payloads
}

// rowOf returns the row that a payload belongs to: its writer and its number, from 1 on.
func rowOf(payload string) (writer, seq int) {
	writer, err := strconv.Atoi(payload[:2])
	if err == nil {
		seq, err = strconv.Atoi(payload[3:13])
	}
	if err != nil || len(payload) != len(measuring.Payload) {
		panic(fmt.Sprintf("no row of this benchmark: %q", payload))
	}
	return writer, seq
}

// commit records that rows were committed.
func (l *ledger) commit(payloads []string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range payloads {
		writer, seq := rowOf(p)
		l.writers[writer][seq-1].committed = at
	}
	l.took += len(payloads)
}

// wrote records the duration of a user's transaction.
func (l *ledger) wrote(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.longest = max(l.longest, took)
}

// handle is the handler of every peer.
func (l *ledger) handle(payload string) {
	writer, seq := rowOf(payload)
	l.mu.Lock()
	now := time.Now()
	if l.hang.seq == seq && l.hang.writer == writer {
		if l.hang.times++; l.hang.times == 1 {
			close(l.hang.begun)
			release := l.hang.release
			l.mu.Unlock()
			<-release
			l.mu.Lock()
			now = time.Now()
		}
	}
	defer l.mu.Unlock()
	r := l.writers[writer][seq-1]
	if !r.handled.IsZero() {
		l.twice++
		return
	}
	r.handled, l.latestAt = now, now
	l.handled++
	if seq < l.last[writer] {
		l.swapped++
	}
	l.last[writer] = max(l.last[writer], seq)
}

// arm lets the handler hang with the next row of a writer. begun is closed when the handler hangs.
func (l *ledger) arm(writer int) (begun <-chan struct{}, release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hang = hang{writer: writer, seq: len(l.writers[writer]) + 1, begun: make(chan struct{}),
		release: make(chan struct{})}
	return l.hang.begun, sync.OnceFunc(func() { close(l.hang.release) })
}

// settle waits until all committed rows were handled, or nothing has happened for so long.
func (l *ledger) settle(ctx context.Context, patience time.Duration) bool {
	began := time.Now()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for {
		l.mu.Lock()
		handled, took, latest := l.handled+l.missed, l.took, l.latestAt
		l.mu.Unlock()
		if handled >= took {
			return true
		}
		if latest.Before(began) {
			latest = began
		}
		if time.Since(latest) > patience {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-look.C:
		}
	}
}

// forget excludes the rows so far from the waits. Errors with those rows still count.
func (l *ledger) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for writer, records := range l.writers {
		l.warm[writer] = len(records)
	}
	l.longest, l.missed = 0, l.took-l.handled
}

// holder is the number of the writer that holds a transaction open.
const holder = writerCount

// waits returns how long each row took from its commit to the handler, in milliseconds. A row may arrive before the
// response to COMMIT. Rows that were never handled, and the holder's, are left out.
func (l *ledger) waits() (waits figure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for writer, records := range l.writers[:holder] {
		for i, r := range records[l.warm[writer]:] {
			hung := l.hang.writer == writer && l.hang.seq == l.warm[writer]+i+1
			if !r.handled.IsZero() && !r.committed.IsZero() && !hung {
				waits = append(waits, milliseconds(max(r.handled.Sub(r.committed), 0)))
			}
		}
	}
	return waits
}

// handledBy returns the number of rows committed between two times, and how many of them were handled by the second.
func (l *ledger) handledBy(from, to time.Time) (committed, handled int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, records := range l.writers {
		for _, r := range records {
			if r.committed.Before(from) || r.committed.After(to) {
				continue
			}
			committed++
			if !r.handled.IsZero() && r.handled.Before(to) {
				handled++
			}
		}
	}
	return committed, handled
}

// counts is what happened to all rows.
type counts struct {
	Committed, Handled int
	Lost               int // committed and never handled
	Twice              int // handled a second time
	Swapped            int // handled after a later row of the same writer
	Phantoms           int // handled and never committed
	Stopped            int // runs that were stopped before all rows had arrived
}

func (c *counts) add(o *counts) {
	c.Committed += o.Committed
	c.Handled += o.Handled
	c.Lost += o.Lost
	c.Twice += o.Twice
	c.Swapped += o.Swapped
	c.Phantoms += o.Phantoms
	c.Stopped += o.Stopped
}

// cells are the cells of the columns wrongs.
func (c *counts) cells() []string {
	if c.Stopped > 0 {
		return []string{"–", count(float64(c.Twice)), count(float64(c.Swapped))}
	}
	return []string{count(float64(c.Lost)), count(float64(c.Twice)), count(float64(c.Swapped))}
}

var wrongs = []string{"lost", "twice", "out of order"}

func (l *ledger) count() *counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &counts{Committed: l.took, Handled: l.handled, Twice: l.twice, Swapped: l.swapped}
	for _, records := range l.writers {
		for _, r := range records {
			switch {
			case r.handled.IsZero() && !r.committed.IsZero():
				c.Lost++
			case !r.handled.IsZero() && r.committed.IsZero():
				c.Phantoms++
			}
		}
	}
	return c
}
