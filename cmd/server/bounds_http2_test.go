package server_test

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/cmd/server"
)

// TestHeaderTimeoutIsSeparate: the timeout of a header applies even if that of a body is longer.
func TestHeaderTimeoutIsSeparate(t *testing.T) {
	x := newFixture(t)
	r := run(t, server.Config{DB: x.db, Limits: server.Limits{HeaderTimeout: time.Millisecond, BodyTimeout: time.Hour}})
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: l"); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil { // only a test that hangs reaches this
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

// TestUnreadDataOverHTTP2IsLimited: over HTTP/2 a client may send only as much unread data as a request may have.
func TestUnreadDataOverHTTP2IsLimited(t *testing.T) {
	x := newFixture(t)
	s := runSecured(t, x, server.Config{})
	c, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"),
		&tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const settings, windowUpdate, ping = 4, 8, 6
	frame := func(kind byte, body ...byte) string {
		return string(append([]byte{0, 0, byte(len(body)), kind, 0, 0, 0, 0, 0}, body...))
	}
	if _, err := io.WriteString(c,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+frame(settings)+frame(ping, 1, 2, 3, 4, 5, 6, 7, 8)); err != nil {
		t.Fatal(err)
	}
	window := 65_535 // initial window of HTTP/2
	for in := bufio.NewReader(c); ; {
		head := make([]byte, 9)
		if _, err := io.ReadFull(in, head); err != nil {
			t.Fatal(err)
		}
		body := make([]byte, binary.BigEndian.Uint32(append([]byte{0}, head[:3]...)))
		if _, err := io.ReadFull(in, body); err != nil {
			t.Fatal(err)
		}
		if head[3] == windowUpdate {
			window += int(binary.BigEndian.Uint32(body))
		} else if head[3] == ping { // everything before the answer has arrived
			break
		}
	}
	if window > 64<<10 {
		t.Errorf("the server reads %d bytes of a request that it does not process", window)
	}
}
