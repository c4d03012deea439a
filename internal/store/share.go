package store

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// Sharing lets those who ask for the same thing at about the same time share one
// answer. An answer is shared only with those who had asked before it began to be
// found, so that it holds whatever had happened when they asked; where keep is set,
// whoever asks at all asks about one moment that has passed, and every answer will do.
type Sharing[K comparable, V any] struct {
	Keep bool

	mu    sync.Mutex
	calls map[K]*call[V]
}

// call is one finding of an answer.
type call[V any] struct {
	find   func(context.Context) (V, error)
	done   chan struct{} // closed when value and err are there
	value  V
	err    error
	askers int                // who wait for it
	cancel context.CancelFunc // nil until it begins
	next   *call[V]           // begins when this one has ended
}

// Do answers what find finds, be it this caller's or another's. The finding goes on
// for as long as anybody waits for it; it has the values of its first asker's context.
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
	case !s.Keep: // it began before we asked
		if c.next == nil {
			c.next = &call[V]{find: find, done: make(chan struct{})}
		}
		c = c.next
	}
	c.askers++
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

// begin starts a call; s.mu is held.
func (s *Sharing[K, V]) begin(ctx context.Context, key K, c *call[V]) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	go func() {
		defer cancel()
		defer s.end(ctx, key, c)
		c.run(own)
	}()
}

// end lets those begin who came while a call was under way.
func (s *Sharing[K, V]) end(ctx context.Context, key K, c *call[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.calls[key] != c || s.Keep:
	case c.next != nil && c.next.askers > 0:
		s.calls[key] = c.next
		s.begin(ctx, key, c.next)
	default:
		delete(s.calls, key)
	}
}

// run finds the answer. Its goroutine belongs to no asker, so that nobody could recover
// a panic of the driver's or of an Observer: it is an answer, as a failure is.
func (c *call[V]) run(ctx context.Context) {
	defer close(c.done)
	defer func() {
		if p := recover(); p != nil {
			c.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	c.err = errUnfound
	c.value, c.err = c.find(ctx)
}

// errUnfound is the answer of a finding that ended its goroutine (runtime.Goexit).
var errUnfound = errors.New("it ended without an answer")

// leave takes one asker away, and with the last one the call.
func (s *Sharing[K, V]) leave(key K, c *call[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.askers--; c.askers > 0 || c.cancel == nil {
		return
	}
	c.cancel()
	if s.Keep && s.calls[key] == c {
		delete(s.calls, key)
	}
}
