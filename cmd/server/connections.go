package server

import (
	"net"
	"sync"
)

// countedListener limits the open connections. It closes further connections at once: clients whose connections wait
// in the queue would get no error.
type countedListener struct {
	net.Listener
	limits  Limits
	refused func(cause string)

	mu   sync.Mutex
	open int
	of   map[string]int // by address; an address without connections has no entry
}

func newCountedListener(l net.Listener, limits Limits, refused func(cause string)) *countedListener {
	return &countedListener{Listener: l, limits: limits, refused: refused, of: make(map[string]int)}
}

// Accept implements net.Listener.
func (l *countedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address := clientAddress(conn.RemoteAddr().String())
		if cause := l.enter(address); cause != "" {
			conn.Close()
			l.refused(cause)
			continue
		}
		return &countedConn{Conn: conn, leave: sync.OnceFunc(func() { l.leave(address) })}, nil
	}
}

// enter counts a connection, or returns the reason why it is refused.
func (l *countedListener) enter(address string) (cause string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.limits.Connections >= 0 && l.open >= l.limits.Connections:
		return "as many connections as --max-connections allows"
	case address != "" && l.limits.ConnectionsPerAddress >= 0 && l.of[address] >= l.limits.ConnectionsPerAddress:
		return "as many connections of one address as --max-connections-per-address allows"
	}
	l.open++
	l.of[address]++
	return ""
}

func (l *countedListener) leave(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.of[address]--; l.of[address] == 0 {
		delete(l.of, address)
	}
}

type countedConn struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
