package open

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"
)

// answering bounds making a connection as a whole, where the driver bounds no more than
// the dialing: a port that is open and never says a word would be waited for without end.
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

// silence is a server that did not answer in time. It is an error of the network, and
// not of the caller's context, which has time left.
type silence struct{}

func (silence) Error() string {
	return "something took the connection or the packets there, and did not answer in time"
}

// Timeout and Temporary make it a net.Error, which dialects take for a connection that
// could not be made.
func (silence) Timeout() bool   { return true }
func (silence) Temporary() bool { return true }
