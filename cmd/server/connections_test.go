package server

import (
	"errors"
	"net"
	"testing"
)

// caller is a connection from an address.
type caller struct {
	net.Conn
	from   net.Addr
	closed bool
}

func (c *caller) RemoteAddr() net.Addr { return c.from }
func (c *caller) Close() error         { c.closed = true; return nil }

// queue is a listener with waiting connections.
type queue struct {
	net.Listener
	callers []*caller
}

var errEmpty = errors.New("nobody calls")

func (q *queue) Accept() (net.Conn, error) {
	if len(q.callers) == 0 {
		return nil, errEmpty
	}
	c := q.callers[0]
	q.callers = q.callers[1:]
	return c, nil
}

// TestOneAddressCannotUseAllConnections: one address cannot have all connections, except this machine. Closing a
// connection twice frees one place.
func TestOneAddressCannotUseAllConnections(t *testing.T) {
	q := &queue{}
	refused := 0
	l := newCountedListener(q, Limits{Connections: 4}.withDefaults(), func(string) { refused++ })
	call := func(ip string) (net.Conn, *caller) {
		c := &caller{from: &net.TCPAddr{IP: net.ParseIP(ip), Port: 1000}}
		q.callers = append(q.callers, c)
		conn, err := l.Accept()
		if (err != nil) != c.closed {
			t.Fatalf("%s: %v, and closed: %v", ip, err, c.closed)
		}
		return conn, c
	}
	first, _ := call("192.0.2.1")
	_, second := call("192.0.2.1")
	if _, third := call("192.0.2.1"); second.closed || !third.closed || refused != 1 {
		t.Errorf("two may be open: %v %v %d", second.closed, third.closed, refused)
	}
	if _, other := call("2001:db8::1"); other.closed {
		t.Error("another address is hindered")
	}
	first.Close()
	first.Close()
	if _, again := call("192.0.2.1"); again.closed {
		t.Error("its connection still counts")
	}
	if _, more := call("192.0.2.1"); !more.closed {
		t.Error("a connection that closed twice counts as two")
	}
	if _, here := call("127.0.0.1"); here.closed {
		t.Error("this machine is hindered")
	}
	if _, all := call("127.0.0.1"); !all.closed {
		t.Error("a fifth connection")
	}
}
