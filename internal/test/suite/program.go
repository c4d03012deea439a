package suite

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// Program is a running binary.
type Program struct {
	*testdb.Child
	Args []string
}

// runs tells whether the program is still running.
func (p *Program) runs() bool { return syscall.Kill(p.PID(), 0) == nil }

// WantAlive asserts that the program is still running.
func (x *Env) WantAlive(p *Program) {
	x.Helper()
	if !p.runs() {
		x.Fatalf("%s ended, though nothing stopped it:\n%s", strings.Join(p.Args[1:], " "), p.Output())
	}
}

// WaitFor waits for a line of the program's output.
func (x *Env) WaitFor(p *Program, line *regexp.Regexp) []string {
	x.Helper()
	var found []string
	x.Eventually(fmt.Sprintf("%s prints %s", strings.Join(p.Args[1:], " "), line), func() bool {
		found = line.FindStringSubmatch(p.Output())
		if found == nil {
			x.WantAlive(p)
		}
		return found != nil
	})
	return found
}

// RaceSeed returns the environment variable ROWFEED_TEST_SEED, or 1 if it is not set. The seed decides what the writers
// do and which processes are killed. The database and the machine decide the rest.
func RaceSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(1)
	if text := os.Getenv("ROWFEED_TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("ROWFEED_TEST_SEED=%d", seed)
	return seed
}

// OrNull returns the SQL of a number, which is NULL for 0.
func OrNull(id int64) string {
	if id == 0 {
		return "NULL"
	}
	return fmt.Sprint(id)
}
