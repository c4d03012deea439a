//go:build unix

package read

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// readerGone tells whether out is a pipe that nobody reads any more, without
// writing to it: a quiet tail would otherwise not notice.
func readerGone(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLNVAL) != 0
}
