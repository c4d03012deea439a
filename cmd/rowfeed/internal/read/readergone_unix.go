//go:build unix

package read

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// readerGone reports whether out is a pipe whose reader has closed it. It does not write to the pipe: tail of an idle
// feed has nothing to write.
func readerGone(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLNVAL) != 0
}
