//go:build unix

package open

import (
	"errors"

	"golang.org/x/sys/unix"
)

// accessible returns why this process may not read (and write) a path, or nil. It opens nothing, because closing a
// SQLite file releases the process's locks on it.
func accessible(path string, write bool) error {
	mode := uint32(unix.R_OK)
	if write {
		mode |= unix.W_OK
	}
	err := unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS)
	if errors.Is(err, unix.ENOENT) {
		return nil // for a missing file, its directory is checked instead
	}
	return err
}
