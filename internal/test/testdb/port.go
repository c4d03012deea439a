package testdb

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
	"time"
)

// patience bounds every waiting for something that must come: the machine may do other work.
const patience = 3 * time.Minute

// Address is one on 127.0.0.1 on which nobody listens, and nobody else will until the test ends: for a process
// that is started later, or killed and started again.
func Address(t testing.TB) string {
	t.Helper()
	port, release, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return "127.0.0.1:" + strconv.Itoa(port)
}

// freePort returns a port that nobody listens on, and that no other test process takes before
// release. It lies below the range from which the kernel gives ports to outgoing connections and to those
// who ask for any, so that a killed server finds it free again.
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
