package open

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/rowfeed/rowfeed"
)

// sameFile opens connections to a file only while it is the file that the first connection found at its path. A file
// that is moved away from a running process stays open, and changes to it are invisible at the path. Therefore the pool
// checks a connection's file whenever it hands out the connection.
type sameFile struct {
	driver.Connector
	path   string
	create bool // the first connection may create the file

	mu    sync.Mutex
	first os.FileInfo
}

// Connect implements driver.Connector.
func (f *sameFile) Connect(ctx context.Context) (driver.Conn, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	conn, err := f.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	// The opened file is the first one only if that was at the path before and after.
	if err := f.check(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	whole, ok := conn.(fileDriverConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver's %T lacks a method", conn), conn.Close())
	}
	return &fileConn{whole, f}, nil
}

// check returns an error unless the file that was at the path at the first check is still there. Only the wrapped
// error has the path, because HTTP clients get the text of the outer one.
func (f *sameFile) check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == nil && f.create {
		if err := createFile(f.path); err != nil {
			return err
		}
	}
	now, err := os.Stat(f.path)
	switch {
	case err == nil && f.first == nil:
		f.first = now
	case err == nil && !os.SameFile(f.first, now):
		return &rowfeed.Error{Code: rowfeed.DatabaseChanged, Object: "database",
			Cause: "its file was replaced by another one while it was in use",
			Err:   fmt.Errorf("%s is not the file that was opened", f.path),
			Next: "stop rowfeed; if the file is an older copy, run `rowfeed feed bump NAME` for each feed; " +
				"then start again"}
	case errors.Is(err, fs.ErrNotExist):
		return &rowfeed.Error{Code: rowfeed.Unavailable, Object: "database",
			Cause: "its file is gone: it was moved or deleted while it was in use", Err: err,
			Next: "put it back together with its -wal and -shm files, " +
				"or stop rowfeed and start it with the file's new path"}
	}
	return err
}

// createFile creates an empty file, which is an empty database, if there is none. It never opens an existing one:
// closing it would release this process's locks on it.
func createFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// fileDriverConn has the methods of the driver's connections that database/sql uses.
type fileDriverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type fileConn struct {
	fileDriverConn
	file *sameFile
}

// ResetSession implements driver.SessionResetter. The pool calls it before it hands out a connection again. On an error
// the pool opens another connection, whose error explains why.
func (c *fileConn) ResetSession(ctx context.Context) error {
	if c.file.check() != nil {
		return driver.ErrBadConn
	}
	return c.fileDriverConn.ResetSession(ctx)
}
