package testdb

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"

	"github.com/rowfeed/rowfeed/internal/tap"
)

// Package tap observes and controls statements. These are its names for tests.
type (
	// TapKind is the kind of a TapEvent.
	TapKind = tap.Kind
	// TapEvent is a statement, or the end of a transaction, that is sent to the database.
	TapEvent = tap.Event
	// Hooks are called around every event.
	Hooks = tap.Hooks
)

// The kinds of event.
const (
	Begin    = tap.Begin
	Exec     = tap.Exec
	Query    = tap.Query
	Commit   = tap.Commit
	Rollback = tap.Rollback
)

// Tap wraps a connector so that the hooks see everything that database/sql sends.
func Tap(connector driver.Connector, h Hooks) driver.Connector { return tap.Connector(connector, h) }

// Unwrap returns the driver's own connection under a tapped one, and anything else as it is.
func Unwrap(driverConn any) any { return tap.Unwrap(driverConn) }

// Held is a statement that a test prevents from being sent; see Hold.
type Held struct {
	// Reached is closed when the statement is about to be sent.
	Reached  <-chan struct{}
	reached  chan struct{}
	released chan struct{}
	match    func(TapEvent) bool
	first    sync.Once
	release  sync.Once
}

// Hold makes a hook that holds the first statement that match accepts, until Release is called or the statement's
// context ends. All other statements are sent:
//
//	held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit })
//	db := d.OpenTapped(t, testdb.Hooks{Before: held.Before})
//	go publish(db)
//	<-held.Reached // the transaction is complete except for its COMMIT
//	…
//	held.Release()
func Hold(match func(TapEvent) bool) *Held {
	reached := make(chan struct{})
	return &Held{Reached: reached, reached: reached, released: make(chan struct{}), match: match}
}

// Before is the hook.
func (h *Held) Before(ctx context.Context, ev TapEvent) error {
	if !h.match(ev) {
		return nil
	}
	mine := false
	h.first.Do(func() { mine = true })
	if !mine {
		return nil
	}
	close(h.reached)
	select {
	case <-h.released:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Release lets the statement be sent. It may be called before the statement is reached. Further calls do nothing.
func (h *Held) Release() { h.release.Do(func() { close(h.released) }) }

// ErrInjected is an error for hooks to return. No database returns it.
var ErrInjected = errors.New("testdb: injected failure")
