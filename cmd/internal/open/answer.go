package open

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"
)

// answering bounds the whole time of making a connection. The driver may bound only the dialing. Then it would wait
// forever for a port that is open and never answers.
type answering struct {
	driver.Connector
	within time.Duration // 0: the driver has its own bound, or the URL asks for none
}

// Connect implements driver.Connector.
func (a answering) Connect(ctx context.Context) (driver.Conn, error) {
	bounded, cancel := ctx, func() {}
	if a.within > 0 {
		bounded, cancel = context.WithTimeout(ctx, a.within)
	}
	defer cancel()
	conn, err := a.Connector.Connect(bounded)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = silence{}
	}
	return conn, err
}

// silence is the error of a server that did not answer in time. It is a network error, and not that of the caller's
// context, which has time left.
type silence struct{}

func (silence) Error() string {
	return "the server did not answer in time"
}

// Timeout and Temporary make it a net.Error. Dialects classify it as a failed connection.
func (silence) Timeout() bool   { return true }
func (silence) Temporary() bool { return true }
