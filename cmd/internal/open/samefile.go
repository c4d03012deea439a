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

// sameFile makes connections to a file as long as it is the one that the first of them
// found at its path. A file that is moved away under a running process stays open, and
// what is published into it is lost to everybody who looks at the path. So each
// connection is asked, when the pool hands it out, whether its file is still there.
type sameFile struct {
	driver.Connector
	path   string
	create bool // the first connection may make the file

	mu    sync.Mutex
	first os.FileInfo
}

// Connect implements driver.Connector.
func (f *sameFile) Connect(ctx context.Context) (driver.Conn, error) {
	if err := f.look(); err != nil {
		return nil, err
	}
	conn, err := f.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	// The file that was opened is the first one only if that was there before and after.
	if err := f.look(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	whole, ok := conn.(fileDriverConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver's %T lacks a method", conn), conn.Close())
	}
	return &fileConn{whole, f}, nil
}

// look answers an error unless the first file is at the path. The path itself stays in
// the error's inner part, which strangers are not shown.
func (f *sameFile) look() error {
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
			Next: "stop rowfeed; where the file is a copy from before, run `rowfeed feed bump NAME` for each feed; " +
				"then start again"}
	case errors.Is(err, fs.ErrNotExist):
		return &rowfeed.Error{Code: rowfeed.Unavailable, Object: "database",
			Cause: "its file is gone: it was moved or deleted while it was in use", Err: err,
			Next: "put it back together with its -wal and -shm files, " +
				"or stop rowfeed and start it with the file's new path"}
	}
	return err
}

// createFile makes an empty file where there is none, which is an empty database. It
// never opens one that is there: closing it would give up the locks that this process
// holds on it.
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

// fileDriverConn is all that database/sql makes use of in the driver's connections.
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

// ResetSession implements driver.SessionResetter: the pool asks it before it hands a
// connection out again. A bad one is closed, and the attempt at another tells why.
func (c *fileConn) ResetSession(ctx context.Context) error {
	if c.file.look() != nil {
		return driver.ErrBadConn
	}
	return c.fileDriverConn.ResetSession(ctx)
}
