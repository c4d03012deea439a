package store

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// Sharing lets concurrent callers with the same key share one call. A caller never joins a call that began before it
// came, since that call may have missed what was committed in between. With Keep callers do join it, and an answer is
// kept for all later callers: they ask about a moment that has passed.
type Sharing[K comparable, V any] struct {
	Keep bool

	mu    sync.Mutex
	calls map[K]*call[V]
}

// call is one call that callers share.
type call[V any] struct {
	find    func(context.Context) (V, error)
	done    chan struct{} // closed when value and err are set
	value   V
	err     error
	callers int                // how many wait for the answer
	cancel  context.CancelFunc // nil until the call begins
	next    *call[V]           // begins when this call has ended
}

// Do returns the answer of find, called for this caller or for another one. The call is canceled when no caller waits
// for it any more. Its context has the values of the first caller's context.
func (s *Sharing[K, V]) Do(ctx context.Context, key K, find func(context.Context) (V, error)) (V, error) {
	s.mu.Lock()
	c := s.calls[key]
	switch {
	case c == nil:
		if s.calls == nil {
			s.calls = make(map[K]*call[V])
		}
		c = &call[V]{find: find, done: make(chan struct{})}
		s.calls[key] = c
		s.begin(ctx, key, c)
	case !s.Keep: // the call began before this caller came
		if c.next == nil {
			c.next = &call[V]{find: find, done: make(chan struct{})}
		}
		c = c.next
	}
	c.callers++
	s.mu.Unlock()
	select {
	case <-c.done:
		return c.value, c.err
	case <-ctx.Done():
		s.leave(key, c)
		var none V
		return none, ctx.Err()
	}
}

// begin starts a call in a new goroutine; s.mu is held.
func (s *Sharing[K, V]) begin(ctx context.Context, key K, c *call[V]) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	go func() {
		defer cancel()
		defer s.end(ctx, key, c)
		c.run(own)
	}()
}

// end removes a call that has ended, or starts the next one.
func (s *Sharing[K, V]) end(ctx context.Context, key K, c *call[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.calls[key] != c || s.Keep:
	case c.next != nil && c.next.callers > 0:
		s.calls[key] = c.next
		s.begin(ctx, key, c.next)
	default:
		delete(s.calls, key)
	}
}

// run calls find. A panic of a driver or an Observer becomes an error of the answer, since no caller could recover it
// in this goroutine.
func (c *call[V]) run(ctx context.Context) {
	defer close(c.done)
	defer func() {
		if p := recover(); p != nil {
			c.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	c.err = errNoAnswer
	c.value, c.err = c.find(ctx)
}

// errNoAnswer is the error of a call that ended its goroutine (runtime.Goexit).
var errNoAnswer = errors.New("the shared call ended without an answer")

// leave removes one caller from a call, and cancels the call when no caller is left.
func (s *Sharing[K, V]) leave(key K, c *call[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.callers--; c.callers > 0 || c.cancel == nil {
		return
	}
	c.cancel()
	if s.Keep && s.calls[key] == c {
		delete(s.calls, key)
	}
}
