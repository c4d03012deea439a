package feedhttp

import (
	"context"
	"log/slog"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Config holds the settings of a Handler. The zero value is good.
type Config struct {
	// Log gets the complete error of every answer with a status of 500 or more. Clients do not see all of it.
	// Default: no log.
	Log *slog.Logger
	// NoPublish says that this process must not publish. Requests with consistent=true, which would publish, are then
	// refused with 400.
	NoPublish bool
	// NoCompression disables compression. By default pages of 1400 bytes or more are compressed with zstd or gzip
	// for clients that accept it. Streams are never compressed.
	NoCompression bool
	// Tracer creates spans of requests, which continue the trace of the client's headers. Default: none.
	Tracer feedtype.Tracer
	// Heartbeat is the interval of comments in a stream without entries. They keep the client and proxies from
	// closing the connection. Default 15 s.
	Heartbeat time.Duration
	// WriteTimeout is the maximum time in which a client has to read 64 KiB of an answer before it is disconnected.
	// Default 30 s.
	WriteTimeout time.Duration
	// PageTimeout is the maximum time to make a page, in addition to the request's own wait. If the database does not
	// answer in time, the answer is 503, as if it could not be reached. Default 30 s.
	PageTimeout time.Duration
	// Wait, if set, is called before a request waits for an entry, and before a stream begins. leave is called when
	// the wait or the stream has ended. An error of Wait is answered instead. Default: all requests may wait.
	Wait func(ctx context.Context) (leave func(), err error)
	// PageMemory is the maximum memory, in bytes, of all pages that are read, encoded and sent at the same time. The
	// pages of one feed, and of one client, have at most half of it. Pages get smaller when memory is short. A request
	// that waits for memory longer than half of PageTimeout is refused with 503. Default 64 MiB.
	PageMemory int
	// Client returns the client that a request's pages count for, or "" if it is not known. Default: always "".
	Client func(ctx context.Context) string
}

const (
	defaultWriteTimeout = 30 * time.Second
	defaultHeartbeat    = 15 * time.Second
	defaultPageTimeout  = 30 * time.Second
)

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Heartbeat <= 0 {
		c.Heartbeat = defaultHeartbeat
	}
	if c.WriteTimeout <= 0 {
		c.WriteTimeout = defaultWriteTimeout
	}
	if c.PageTimeout <= 0 {
		c.PageTimeout = defaultPageTimeout
	}
	if c.PageMemory <= 0 {
		c.PageMemory = defaultPageMemory
	}
	if c.Client == nil {
		c.Client = func(context.Context) string { return "" }
	}
	if c.Wait == nil {
		c.Wait = func(context.Context) (func(), error) { return func() {}, nil }
	}
	return c
}
