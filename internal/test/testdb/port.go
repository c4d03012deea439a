package testdb

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
	"time"
)

// patience bounds every wait: the machine may do other work.
const patience = 3 * time.Minute

// Address returns an address on 127.0.0.1 for a process that the test starts later, or kills and starts again. No other
// process listens there until the test ends.
func Address(t testing.TB) string {
	t.Helper()
	port, release, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return "127.0.0.1:" + strconv.Itoa(port)
}

// freePort returns a free port. No other test process uses it before release is called. It is below the range of ports
// that the kernel assigns, so that a killed server finds its port free.
func freePort() (port int, release func(), err error) {
	for range 100 {
		port := 15000 + rand.IntN(17000)
		if release = reserve(port); release == nil {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			return port, release, l.Close()
		}
		release()
	}
	return 0, func() {}, fmt.Errorf("testdb: no free port: %w", err)
}
