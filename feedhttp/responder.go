package feedhttp

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/rowfeed/rowfeed/feedtype"
)

// responder sends pages, small bodies and problems. It adds entity tags, and compresses pages.
type responder struct {
	sender
	log           *slog.Logger
	noCompression bool
}

// writePage answers a request with a page. If all parts are made before the first is sent, the header has the length
// and the entity tag. A page that several requests share is encoded once.
func (o *responder) writePage(w http.ResponseWriter, r *http.Request, form answerForm, page feedtype.Page,
	by *coding,
) {
	if !o.noCompression {
		w.Header().Set("Vary", varyCoded)
	}
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
	if len(whole) < minCompressed {
		by = nil
	}
	tag, _ := page.Shared(form.name+", tag", func() []byte { return tagOf(w.Header(), whole) })
	if tagged(w, r, string(tag), by != nil) {
		return
	}
	if by != nil {
		w.Header().Set("Content-Encoding", by.name)
		whole, _ = page.Shared(form.name+", "+by.name, func() []byte {
			data, _ := newPartCompressor(by, nil, whole, -1).part(nil, 0, 0)
			return data
		})
	}
	o.writeBody(w, r, http.StatusOK, form.mediaType, whole)
}

// writeSmall answers a request with a small body and its entity tag, without compression.
func (o *responder) writeSmall(w http.ResponseWriter, r *http.Request, mediaType string, body []byte) {
	if !tagged(w, r, string(tagOf(nil, body)), false) {
		o.writeBody(w, r, http.StatusOK, mediaType, body)
	}
}

// writeParts sends an answer while it is made. If that fails after the first byte, the answer must not look complete.
// So writeParts aborts the connection (the stream, with HTTP/2), before the last part, which has the cursor.
func (o *responder) writeParts(w http.ResponseWriter, r *http.Request, mediaType string, parts part, by *coding) {
	buffer := getBuffer()
	defer func() { putBuffer(buffer) }()
	data, next := parts(buffer, 0, writeChunk)
	buffer = data
	if next < 0 && len(data) < minCompressed {
		by = nil
	}
	if next < 0 && tagged(w, r, string(tagOf(w.Header(), data)), by != nil) {
		return
	}
	if by != nil {
		w.Header().Set("Content-Encoding", by.name)
		z := newPartCompressor(by, parts, data, next)
		defer func() { putBuffer(z.plain) }()
		parts = z.part
		buffer = getBuffer() // z owns the first buffer now, even if the next line panics
		data, next = parts(buffer, 0, writeChunk)
		buffer = data
	}
	if next < 0 {
		o.writeBody(w, r, http.StatusOK, mediaType, data)
		return
	}
	writeHeader(w, http.StatusOK, mediaType)
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
		if o.write(w, data) != nil {
			panic(http.ErrAbortHandler) // the client has disconnected, or has stopped reading
		}
		if next < 0 {
			break
		}
		data, next = parts(data[:0], next, writeChunk)
		buffer = data
	}
	clearDeadline(w)
}

// coding returns the coding of the answer to a request, or nil.
func (o *responder) coding(r *http.Request) *coding {
	if o.noCompression {
		return nil
	}
	return wantedCoding(r.Header.Values("Accept-Encoding"))
}

// writeProblem answers a request with a problem.
func (o *responder) writeProblem(w http.ResponseWriter, r *http.Request, p Problem) {
	w.Header().Del("Content-Encoding") // of the page that failed
	w.Header().Del("ETag")
	o.writeBody(w, r, p.Status, problemMediaType, p.prepare(w.Header()))
}
