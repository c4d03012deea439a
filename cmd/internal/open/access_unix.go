//go:build unix

package open

import (
	"errors"

	"golang.org/x/sys/unix"
)

// accessible answers why this process may not read (and write) a path; nil where it
// may. It opens nothing: closing a SQLite file gives up the process's locks on it.
func accessible(path string, write bool) error {
	mode := uint32(unix.R_OK)
	if write {
		mode |= unix.W_OK
	}
	err := unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS)
	if errors.Is(err, unix.ENOENT) {
		return nil // what is not there yet is its directory's matter
	}
	return err
}
