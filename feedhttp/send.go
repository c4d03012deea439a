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

// undeadline removes the write deadline: other handlers may answer on this connection.
func undeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
}
