package bench

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed"
)

// latencies measures how long after its commit the handler has a row, with publisher and
// consumer in one process.
type latencies struct {
	*bed
	table string
	stop  context.CancelFunc
	ended chan error

	mu      sync.Mutex
	handled map[int64]time.Time // when the handler had a row first
}

// latencies starts a feed's publisher and a consumer, which end with end.
func (b *bed) latencies(db *rowfeed.DB, f *rowfeed.Feed, table string) *latencies {
	b.Helper()
	l := &latencies{bed: b, table: table, ended: make(chan error, 2), handled: map[int64]time.Time{}}
	ctx, stop := context.WithCancel(b.Context())
	l.stop = stop
	c := &rowfeed.Consumer{Name: "c", Source: f, DB: db, Options: rowfeed.ConsumerOptions{Limit: 1000},
		Handle: func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
			now := time.Now()
			l.mu.Lock()
			defer l.mu.Unlock()
			for _, e := range entries {
				id, _ := e.Key.Get("id")
				if _, known := l.handled[id.(int64)]; !known {
					l.handled[id.(int64)] = now
				}
			}
			return nil
		}}
	go func() { l.ended <- f.RunPublisher(ctx) }()
	go func() { l.ended <- c.Run(ctx) }()
	return l
}

// commit inserts so many rows one by one, from an id on, and answers how long each took to the
// handler, in milliseconds.
func (l *latencies) commit(first, commits, perSecond int) (waits figure) {
	l.Helper()
	committed := make([]time.Time, commits)
	pace := time.NewTicker(time.Second / time.Duration(perSecond))
	defer pace.Stop()
	for i := range commits {
		<-pace.C
		l.SQL(l.insert(first + i))
		committed[i] = time.Now()
	}
	for i, at := range committed {
		waits = append(waits, l.since(first+i, at))
	}
	return waits
}

func (l *latencies) insert(id int) string {
	return fmt.Sprintf("INSERT INTO %s (id, payload) VALUES (%d, '%s')", l.table, id, payload)
}

// since waits for a row and answers how long after at the handler had it, in milliseconds.
func (l *latencies) since(id int, at time.Time) float64 {
	l.Helper()
	for {
		l.mu.Lock()
		had, known := l.handled[int64(id)]
		l.mu.Unlock()
		if known {
			return milliseconds(max(had.Sub(at), 0)) // it may come before the answer to COMMIT
		}
		l.Must(l.Context().Err())
		<-time.After(time.Millisecond)
	}
}

func (l *latencies) end() {
	l.Helper()
	l.stop()
	l.Must(<-l.ended)
	l.Must(<-l.ended)
}
