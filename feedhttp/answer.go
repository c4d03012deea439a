package feedhttp

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed"
)

const (
	// writeChunk is what a client must take within the write timeout: a slow one may read
	// a large page for as long as it takes, one that stands still is cut off. A page that is
	// larger is sent while it is made, in parts of about so many bytes.
	writeChunk          = 64 << 10
	defaultWriteTimeout = 30 * time.Second
	defaultHeartbeat    = 15 * time.Second
	// sharedSize bounds what is kept of a page for all who share it.
	sharedSize = 256 << 10
	// keepBuffer bounds the buffers that are kept for other answers: one large row must not
	// make them all large.
	keepBuffer = 4 * writeChunk
)

// buffers are those that parts of answers are made in.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, writeChunk+writeChunk/4); return &b }}

func takeBuffer() []byte { return (*buffers.Get().(*[]byte))[:0] }

func leaveBuffer(b []byte) {
	if cap(b) <= keepBuffer {
		buffers.Put(&b)
	}
}

// part appends a part of an answer to dst, in the manner of [rowfeed.Page.AppendJSONPart].
type part func(dst []byte, i, size int) (_ []byte, next int)

// writePage answers a request with a page. One whose parts are all made before the first of
// them is sent has its length in the header. What many have waited for is made once.
func (h *Handler) writePage(w http.ResponseWriter, r *http.Request, format string, page rowfeed.Page, feed string) {
	parts := page.AppendLinesPart
	if format == jsonMediaType {
		parts = func(dst []byte, i, size int) ([]byte, int) {
			if dst, i = page.AppendJSONPart(dst, feed, i, size); i < 0 {
				dst = append(dst, '\n')
			}
			return dst, i
		}
	}
	zip := h.compressed(w, r)
	form := format + " of " + feed // which may have several names
	whole, shared := page.Shared(form, func() []byte {
		data, next := parts(nil, 0, sharedSize)
		if next >= 0 {
			return nil
		}
		return data
	})
	if !shared || whole == nil {
		h.writeParts(w, r, format, parts, zip)
		return
	}
	if zip && len(whole) >= gzipFrom {
		w.Header().Set("Content-Encoding", "gzip")
		whole, _ = page.Shared(form+", gzip", func() []byte {
			data, _ := newZipped(nil, whole, -1).part(nil, 0, 0)
			return data
		})
	}
	h.write(w, r, http.StatusOK, format, whole)
}

// writeParts sends an answer while it is made. What breaks off after the first byte must not
// look whole: then the connection does, too (of HTTP/2 the stream), and the last part, which
// has the cursor, was not sent.
func (h *Handler) writeParts(w http.ResponseWriter, r *http.Request, mediaType string, parts part, zip bool) {
	buffer := takeBuffer()
	defer func() { leaveBuffer(buffer) }()
	data, next := parts(buffer, 0, writeChunk)
	buffer = data
	if zip && (next >= 0 || len(data) >= gzipFrom) {
		w.Header().Set("Content-Encoding", "gzip")
		z := newZipped(parts, data, next)
		defer func() { leaveBuffer(z.plain) }()
		parts = z.part
		buffer = takeBuffer() // the first one is z's from here on, also where the next line panics
		data, next = parts(buffer, 0, writeChunk)
		buffer = data
	}
	if next < 0 {
		h.write(w, r, http.StatusOK, mediaType, data)
		return
	}
	begin(w, http.StatusOK, mediaType)
	if r.Method == http.MethodHead {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			if v != http.ErrAbortHandler {
				h.log.ErrorContext(r.Context(), "page panicked", "path", r.URL.Path, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			}
			panic(http.ErrAbortHandler)
		}
	}()
	for {
		if h.pass(w, data) != nil {
			panic(http.ErrAbortHandler) // the client has gone, or stands still
		}
		if next < 0 {
			break
		}
		data, next = parts(data[:0], next, writeChunk)
		buffer = data
	}
	undeadline(w)
}

// begin writes the header of an answer.
func begin(w http.ResponseWriter, status int, mediaType string) {
	header := w.Header()
	header.Set("Content-Type", mediaType)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff") // a row may hold HTML
	w.WriteHeader(status)
}

// write answers a request with a body that is all there.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, status int, mediaType string, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	begin(w, status, mediaType)
	if r.Method == http.MethodHead {
		return
	}
	if h.send(w, body) != nil {
		return // the client is gone
	}
	undeadline(w)
}

// undeadline leaves no deadline of ours behind: other handlers may answer on this connection.
func undeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
}

// send writes data through to the client, which must take it chunk by chunk in time.
func (h *Handler) send(w http.ResponseWriter, data []byte) error {
	if err := h.pass(w, data); err != nil {
		return err
	}
	err := http.NewResponseController(w).Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// pass is send that leaves the end of the data to be sent with what follows.
func (h *Handler) pass(w http.ResponseWriter, data []byte) error {
	control := http.NewResponseController(w)
	for len(data) > 0 {
		n := min(len(data), writeChunk)
		_ = control.SetWriteDeadline(time.Now().Add(h.cfg.WriteTimeout)) // where it is not supported the server's own holds
		if _, err := w.Write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}
