package feedhttp

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
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
	// revalidated is what may be kept, by its reader alone, and shown again only after the server
	// was asked: rows change under the same positions. unkept is everything else.
	revalidated = "private, no-cache"
	unkept      = "no-store"
	// vary is what every answer depends on: its form, and who asks. varyCoded where it may be
	// compressed.
	vary      = "Accept, Authorization, Cookie"
	varyCoded = "Accept, Accept-Encoding, Authorization, Cookie"
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

// answerForm is what is made of a page.
type answerForm struct {
	mediaType string
	name      string // what is made of it for whom: of the same page, the same name is the same bytes
	parts     part
}

// objectParts are a page's as one JSON object, on a line.
func objectParts(page feedtype.Page, feed string) part {
	return func(dst []byte, i, size int) ([]byte, int) {
		if dst, i = page.AppendJSONPart(dst, feed, i, size); i < 0 {
			dst = append(dst, '\n')
		}
		return dst, i
	}
}

// writePage answers a request with a page. One whose parts are all made before the first of
// them is sent has its length and its tag in the header. What many have waited for is made once.
func (h *Handler) writePage(w http.ResponseWriter, r *http.Request, form answerForm, page feedtype.Page) {
	by := h.codingFor(w, r)
	whole, shared := page.Shared(form.name, func() []byte {
		data, next := form.parts(nil, 0, sharedSize)
		if next >= 0 {
			return nil
		}
		return data
	})
	if !shared || whole == nil {
		h.writeParts(w, r, form.mediaType, form.parts, by)
		return
	}
	if len(whole) < codedFrom {
		by = nil
	}
	tag, _ := page.Shared(form.name+", tag", func() []byte { return tagOf(w.Header(), whole) })
	if h.tagged(w, r, string(tag), by != nil) {
		return
	}
	if by != nil {
		w.Header().Set("Content-Encoding", by.name)
		whole, _ = page.Shared(form.name+", "+by.name, func() []byte {
			data, _ := newCoded(by, nil, whole, -1).part(nil, 0, 0)
			return data
		})
	}
	h.write(w, r, http.StatusOK, form.mediaType, whole)
}

// writeWhole answers a request with a small answer, with its tag.
func (h *Handler) writeWhole(w http.ResponseWriter, r *http.Request, mediaType string, body []byte) {
	if !h.tagged(w, r, string(tagOf(nil, body)), false) {
		h.write(w, r, http.StatusOK, mediaType, body)
	}
}

// writeParts sends an answer while it is made. What breaks off after the first byte must not
// look whole: then the connection does, too (of HTTP/2 the stream), and the last part, which
// has the cursor, was not sent.
func (h *Handler) writeParts(w http.ResponseWriter, r *http.Request, mediaType string, parts part, by *coding) {
	buffer := takeBuffer()
	defer func() { leaveBuffer(buffer) }()
	data, next := parts(buffer, 0, writeChunk)
	buffer = data
	if next < 0 && len(data) < codedFrom {
		by = nil
	}
	if next < 0 && h.tagged(w, r, string(tagOf(w.Header(), data)), by != nil) {
		return
	}
	if by != nil {
		w.Header().Set("Content-Encoding", by.name)
		z := newCoded(by, parts, data, next)
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
				h.log.ErrorContext(r.Context(), "page panicked", "path", r.URL.Path, "panic", fmt.Sprint(v), "stack",
					string(debug.Stack()))
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
	header.Set("Cache-Control", unkept)
	if header.Get("ETag") != "" {
		header.Set("Cache-Control", revalidated)
	}
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
		// where it is not supported the server's own holds
		_ = control.SetWriteDeadline(time.Now().Add(h.cfg.WriteTimeout))
		if _, err := w.Write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}
