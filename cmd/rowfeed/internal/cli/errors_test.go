package cli

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestOnlyAClosedOutputIsNoFailure: a command whose output is no longer read ends with success. One whose
// connection to a database or server breaks fails.
func TestOnlyAClosedOutputIsNoFailure(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{&fs.PathError{Op: "write", Path: os.Stdout.Name(), Err: syscall.EPIPE}, ExitDone},
		{&net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.EPIPE)}, ExitFailed},
	} {
		var stderr bytes.Buffer
		a := &App{Stderr: &stderr}
		code := a.Report(t.Context(), fmt.Errorf("feed %q: read: %w", "kv", c.err))
		if code != c.code || strings.Contains(stderr.String(), "broken pipe") != (c.code == ExitFailed) {
			t.Errorf("%v: exit code %d, want %d; printed %q", c.err, code, c.code, stderr.String())
		}
	}
}
