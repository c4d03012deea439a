package feedhttp

import (
	"errors"
	"net/http"
	"strconv"
	"time"
)

const (
	// writeChunk is the number of bytes that a client has to read within the write timeout. A slow client may read a
	// large page for any time, but a client that stops reading is disconnected. A larger page is sent while it is
	// made, in parts of about this size.
	writeChunk = 64 << 10
)

// sender sends data to clients, each of which must read a chunk within the timeout.
type sender struct{ timeout time.Duration }

// writeBody answers a request with a complete body.
func (s sender) writeBody(w http.ResponseWriter, r *http.Request, status int, mediaType string, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	writeHeader(w, status, mediaType)
	if r.Method == http.MethodHead {
		return
	}
	if s.writeAndFlush(w, body) != nil {
		return // the client has disconnected
	}
	clearDeadline(w)
}

// writeAndFlush sends data to the client at once.
func (s sender) writeAndFlush(w http.ResponseWriter, data []byte) error {
	if err := s.write(w, data); err != nil {
		return err
	}
	err := http.NewResponseController(w).Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// write writes data, whose end may be sent with later data. The client must read each chunk within the timeout.
func (s sender) write(w http.ResponseWriter, data []byte) error {
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

// writeHeader writes the header of an answer.
func writeHeader(w http.ResponseWriter, status int, mediaType string) {
	header := w.Header()
	header.Set("Content-Type", mediaType)
	header.Set("Cache-Control", unkept)
	if header.Get("ETag") != "" {
		header.Set("Cache-Control", revalidated)
	}
	header.Set("X-Content-Type-Options", "nosniff") // a row may contain HTML
	w.WriteHeader(status)
}

// clearDeadline removes the write deadline: other handlers may answer on this connection.
func clearDeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
}
