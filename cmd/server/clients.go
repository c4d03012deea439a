package server

import (
	"container/list"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// clients counts the recent requests of clients. It keeps the maxClients most recent clients. A client that it
// forgets has sent nothing for longer than all others.
type clients struct {
	rate  rate.Limit
	burst int

	mu     sync.Mutex
	recent *list.List // of *bucket, the most recent first
	known  map[string]*list.Element
}

type bucket struct {
	key  string
	rate *rate.Limiter
}

func newClients(l Limits) clients {
	burst := l.Burst
	if burst < 0 {
		burst = math.MaxInt
	}
	return clients{rate: rate.Limit(l.Rate), burst: burst, recent: list.New(), known: make(map[string]*list.Element)}
}

// count counts a request. It returns 0 if the request is allowed, else the time after which it may be sent again.
func (c *clients) count(key string) (after time.Duration) {
	if key == "" || c.rate < 0 {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.known[key]
	if !ok {
		at = c.recent.PushFront(&bucket{key, rate.NewLimiter(c.rate, c.burst)})
		c.known[key] = at
		if c.recent.Len() > maxClients {
			delete(c.known, c.recent.Remove(c.recent.Back()).(*bucket).key)
		}
	}
	c.recent.MoveToFront(at)
	return timeUntilAllowed(at.Value.(*bucket).rate, true)
}

// wouldWait is count without counting the request.
func (c *clients) wouldWait(key string) (after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.known[key]
	if !ok {
		return 0
	}
	return timeUntilAllowed(at.Value.(*bucket).rate, false)
}

// timeUntilAllowed returns the time until the limiter allows a request. With consume, an allowed request counts.
func timeUntilAllowed(l *rate.Limiter, consume bool) time.Duration {
	if consume && l.Allow() || !consume && l.Tokens() >= 1 {
		return 0
	}
	return time.Duration((1 - l.Tokens()) / float64(l.Limit()) * float64(time.Second))
}
