// Package stdout implements the sink that writes entries as NDJSON, one per line, like `rowfeed fetch` and `rowfeed
// tail`.
package stdout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/rowfeed/rowfeed/cmd/sink"
)

// Sink writes a batch with one call of Write. An entry is accepted once its line is written. What happens to the line
// later is up to the reader.
type Sink struct {
	mu     sync.Mutex
	out    io.Writer
	buf    []byte
	torn   bool // the last write ended in the middle of a line
	closed bool
}

// New returns a sink that writes to out, which stays open after Close.
func New(out io.Writer) *Sink { return &Sink{out: out} }

var errClosed = errors.New("stdout: the sink is closed")

// keep is the maximum size of a buffer that is kept for the next batch.
const keep = 1 << 20

// Deliver writes the batch. Lines that were written completely before an error are accepted. After an incomplete
// line, the next batch begins with a line break.
func (s *Sink) Deliver(ctx context.Context, batch []sink.Entry) []sink.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return sink.All(batch, sink.Retry(0, errClosed))
	}
	if err := ctx.Err(); err != nil || len(batch) == 0 {
		return sink.All(batch, sink.Retry(0, err))
	}
	lines := s.buf[:0]
	if s.torn {
		lines = append(lines, '\n')
	}
	ends := make([]int, len(batch))
	for i, e := range batch {
		lines = append(e.AppendJSON(lines), '\n')
		ends[i] = len(lines)
	}
	n, err := s.out.Write(lines)
	if n < len(lines) && err == nil {
		err = io.ErrShortWrite
	}
	if n > 0 {
		s.torn = n <= len(lines) && lines[n-1] != '\n'
	}
	if s.buf = lines; cap(lines) > keep {
		s.buf = nil
	}
	results := sink.All(batch, sink.Accept())
	for i, end := range ends {
		if end > n {
			results[i] = sink.Retry(0, fmt.Errorf("write entry lines: %w", err))
		}
	}
	return results
}

// Close closes the sink, but not the writer.
func (s *Sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}
