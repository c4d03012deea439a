package feedhttp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

const (
	// writeChunk is the number of bytes that a client has to read within the write timeout. A slow client may read a
	// large page for any time, but a client that stops reading is disconnected. A larger page is sent while it is
	// made, in parts of about this size.
	writeChunk          = 64 << 10
	defaultWriteTimeout = 30 * time.Second
	defaultHeartbeat    = 15 * time.Second
	// sharedSize is the maximum size of an encoded page that is kept for the readers who share it.
	sharedSize = 256 << 10
	// revalidated is the Cache-Control of answers that a client may keep, but must revalidate each time, because rows
	// change under the same positions. unkept is that of all other answers.
	revalidated = "private, no-cache"
	unkept      = "no-store"
	// vary lists the headers that every answer depends on: its format, and the client. varyCoded is for answers that
	// may be compressed.
	vary      = "Accept, Authorization, Cookie"
	varyCoded = "Accept, Accept-Encoding, Authorization, Cookie"
	// keepBuffer is the maximum size of a buffer that is kept for later answers. Otherwise one large row would make
	// all buffers large.
	keepBuffer = 4 * writeChunk
)

// buffers has the buffers for parts of answers.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, writeChunk+writeChunk/4); return &b }}

func takeBuffer() []byte { return (*buffers.Get().(*[]byte))[:0] }

func leaveBuffer(b []byte) {
	if cap(b) <= keepBuffer {
		buffers.Put(&b)
	}
}

// part appends a part of an answer to dst, as [feedtype.Page.AppendJSONPart] does.
type part func(dst []byte, i, size int) (_ []byte, next int)

// answerForm is how a page is encoded.
type answerForm struct {
	mediaType string
	name      string // identifies the encoding: the same page and name give the same bytes
	parts     part
}

// objectParts encodes a page as one JSON object on one line.
func objectParts(page feedtype.Page, feed string) part {
	return func(dst []byte, i, size int) ([]byte, int) {
		if dst, i = page.AppendJSONPart(dst, feed, i, size); i < 0 {
			dst = append(dst, '\n')
		}
		return dst, i
	}
}

// sender sends data to clients, each of which must read a chunk within the timeout.
type sender struct{ timeout time.Duration }

// responder sends complete answers: pages, small bodies and problems.
type responder struct {
	sender
	log           *slog.Logger
	noCompression bool
}

// writePage answers a request with a page. If all parts are made before the first is sent, the header has the length
// and the entity tag. A page that several requests share is encoded once.
func (o *responder) writePage(w http.ResponseWriter, r *http.Request, form answerForm, page feedtype.Page) {
	by := o.codingFor(w, r)
	whole, shared := page.Shared(form.name, func() []byte {
		data, next := form.parts(nil, 0, sharedSize)
		if next >= 0 {
			return nil
		}
		return data
	})
	if !shared || whole == nil {
		o.writeParts(w, r, form.mediaType, form.parts, by)
		return
	}
	if len(whole) < codedFrom {
		by = nil
	}
	tag, _ := page.Shared(form.name+", tag", func() []byte { return tagOf(w.Header(), whole) })
	if tagged(w, r, string(tag), by != nil) {
		return
	}
	if by != nil {
		w.Header().Set("Content-Encoding", by.name)
		whole, _ = page.Shared(form.name+", "+by.name, func() []byte {
			data, _ := newCoded(by, nil, whole, -1).part(nil, 0, 0)
			return data
		})
	}
	o.write(w, r, http.StatusOK, form.mediaType, whole)
}

// writeWhole answers a request with a small body, with its entity tag.
func (o *responder) writeWhole(w http.ResponseWriter, r *http.Request, mediaType string, body []byte) {
	if !tagged(w, r, string(tagOf(nil, body)), false) {
		o.write(w, r, http.StatusOK, mediaType, body)
	}
}

// writeParts sends an answer while it is made. If that fails after the first byte, the answer must not look complete.
// So writeParts aborts the connection (the stream, with HTTP/2), before the last part, which has the cursor.
func (o *responder) writeParts(w http.ResponseWriter, r *http.Request, mediaType string, parts part, by *coding) {
	buffer := takeBuffer()
	defer func() { leaveBuffer(buffer) }()
	data, next := parts(buffer, 0, writeChunk)
	buffer = data
	if next < 0 && len(data) < codedFrom {
		by = nil
	}
	if next < 0 && tagged(w, r, string(tagOf(w.Header(), data)), by != nil) {
		return
	}
	if by != nil {
		w.Header().Set("Content-Encoding", by.name)
		z := newCoded(by, parts, data, next)
		defer func() { leaveBuffer(z.plain) }()
		parts = z.part
		buffer = takeBuffer() // z owns the first buffer from here on, even if the next line panics
		data, next = parts(buffer, 0, writeChunk)
		buffer = data
	}
	if next < 0 {
		o.write(w, r, http.StatusOK, mediaType, data)
		return
	}
	begin(w, http.StatusOK, mediaType)
	if r.Method == http.MethodHead {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			if v != http.ErrAbortHandler {
				o.log.ErrorContext(r.Context(), "page panicked", "path", r.URL.Path, "panic", fmt.Sprint(v), "stack",
					string(debug.Stack()))
			}
			panic(http.ErrAbortHandler)
		}
	}()
	for {
		if o.pass(w, data) != nil {
			panic(http.ErrAbortHandler) // the client has disconnected, or has stopped reading
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
	header.Set("Cache-Control", unkept)
	if header.Get("ETag") != "" {
		header.Set("Cache-Control", revalidated)
	}
	header.Set("X-Content-Type-Options", "nosniff") // a row may contain HTML
	w.WriteHeader(status)
}

// write answers a request with a complete body.
func (s sender) write(w http.ResponseWriter, r *http.Request, status int, mediaType string, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	begin(w, status, mediaType)
	if r.Method == http.MethodHead {
		return
	}
	if s.send(w, body) != nil {
		return // the client has disconnected
	}
	undeadline(w)
}

// undeadline removes the write deadline: other handlers may answer on this connection.
func undeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
}

// send writes data and flushes it to the client, which must read each chunk within the write timeout.
func (s sender) send(w http.ResponseWriter, data []byte) error {
	if err := s.pass(w, data); err != nil {
		return err
	}
	err := http.NewResponseController(w).Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// pass is send without the flush: the end of the data may be sent with later data.
func (s sender) pass(w http.ResponseWriter, data []byte) error {
	control := http.NewResponseController(w)
	for len(data) > 0 {
		n := min(len(data), writeChunk)
		// if it is not supported, the deadline of the server holds
		_ = control.SetWriteDeadline(time.Now().Add(s.timeout))
		if _, err := w.Write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}
