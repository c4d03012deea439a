package testdb

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"

	"github.com/rowfeed/rowfeed/internal/tap"
)

// What watches and steers statements is package tap; these are its names for tests.
type (
	// TapKind says what a TapEvent is about.
	TapKind = tap.Kind
	// TapEvent is one statement, or one end of a transaction, on its way to the database.
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

// Held is a statement that a test keeps from being sent; see Hold.
type Held struct {
	// Reached is closed when the statement is about to be sent.
	Reached  <-chan struct{}
	reached  chan struct{}
	released chan struct{}
	match    func(TapEvent) bool
	first    sync.Once
	release  sync.Once
}

// Hold makes a hook that holds the first statement match accepts, until Release
// or until the statement's context ends; all others pass:
//
//	held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit })
//	db := d.OpenTapped(t, testdb.Hooks{Before: held.Before})
//	go publish(db)
//	<-held.Reached // the transaction is complete but for its COMMIT
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

// Release lets the statement go on, also before it has come; calling it again
// does nothing.
func (h *Held) Release() { h.release.Do(func() { close(h.released) }) }

// ErrInjected is an error for hooks to return: it is none of the database's.
var ErrInjected = errors.New("testdb: injected failure")
