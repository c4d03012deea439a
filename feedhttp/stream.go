package feedhttp

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

const (
	streamMediaType = "text/event-stream"
	// streamLimit is the most entries that a stream holds for a client that is slow.
	streamLimit = feedtype.DefaultLimit
	// reconnect is what clients are asked to wait before they come back.
	reconnect = "retry: 2000\n\n"
	heartbeat = ": nothing new\n\n"
	// unwaiting is the pause where a source does not wait as it is asked to.
	unwaiting = time.Second
)

// stream answers with Server-Sent Events: an entry an event, whose id is the cursor
// behind it. It ends when the client goes, stands still, or Close is called, and after
// an event named "problem" when reading fails.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, c call) error {
	name := c.feed
	req, err := streamRequest(c.values, r.Header)
	if err != nil {
		return err
	}
	source, err := h.catalog.Source(r.Context(), name)
	if err != nil {
		return err
	}
	leave, err := h.cfg.Wait(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	// What is wrong with the request shows at its first page, while there is still a
	// status to say so.
	page, err := source.Fetch(r.Context(), req)
	if err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Type", c.format)
	header.Set("Cache-Control", unkept)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Accel-Buffering", "no") // a proxy that collects an answer first would never pass this one on
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(h.life, cancel)()
	defer func() {
		if v := recover(); v != nil { // too late for an answer of its own
			h.log.ErrorContext(ctx, "stream panicked", "feed", name, "panic", fmt.Sprint(v), "stack",
				string(debug.Stack()))
			h.endWith(ctx, w, name, problem(feedtype.Failed, "", "the stream failed (the server's log has the cause)"))
		}
	}()
	if h.send(w, []byte(reconnect)) != nil {
		return nil
	}
	for early := false; ; {
		data, err := events(page, req.After)
		if err != nil {
			h.endWith(ctx, w, name, err)
			return nil
		}
		if len(data) == 0 && !page.More {
			data = []byte(heartbeat)
		}
		if h.send(w, data) != nil {
			return nil // the client has gone, or stands still
		}
		undeadline(w) // over HTTP/2 it would end a stream that has nothing to say, too
		if early {
			select {
			case <-ctx.Done():
			case <-time.After(unwaiting):
			}
		}
		asked := time.Now()
		req.After, req.Wait = page.Cursor, h.cfg.Heartbeat
		if page, err = source.Fetch(ctx, req); ctx.Err() != nil {
			return nil
		} else if err != nil {
			h.endWith(ctx, w, name, err)
			return nil
		}
		idle := len(page.Entries) == 0 && (!page.More || page.Cursor == req.After)
		early = idle && time.Since(asked) < h.cfg.Heartbeat/2
	}
}

// streamRequest says what a stream is of, and where it begins. A client that comes back sends the last id that
// it has seen beside the address that it first asked for: the id is newer. One that has
// seen none may send an empty header, which is no cursor.
func streamRequest(values url.Values, header http.Header) (req feedtype.Request, err error) {
	req = feedtype.Request{After: feedtype.Cursor(values.Get("after")), Limit: streamLimit}
	if id := header.Get("Last-Event-ID"); id != "" {
		req.After = feedtype.Cursor(id)
	}
	req.Shards, err = parseShards(values)
	return req, err
}

// events are a page's, made once for all who have waited for it where they are.
func events(page feedtype.Page, after feedtype.Cursor) (data []byte, err error) {
	data, shared := page.Shared("events after "+string(after), func() []byte {
		data, failed := appendEvents(nil, page, after)
		if failed != nil || len(data) > sharedSize {
			return nil
		}
		return data
	})
	if shared && data != nil {
		return data, nil
	}
	return appendEvents(nil, page, after)
}

// appendEvents appends a page as events. Where the page has moved the cursor on and
// shows nothing of it, the id goes out by itself: clients take it, and tell nobody.
func appendEvents(dst []byte, page feedtype.Page, after feedtype.Cursor) ([]byte, error) {
	for i, e := range page.Entries {
		cursor, err := page.CursorAt(after, i)
		if err != nil {
			return nil, err
		}
		dst = append(append(append(dst, "id: "...), cursor...), "\ndata: "...)
		begun := len(dst)
		dst = e.AppendJSON(dst)
		if bytes.ContainsAny(dst[begun:], "\n\r") {
			dst = appendData(dst[:begun-len("data: ")], bytes.Clone(dst[begun:]))
		} else {
			dst = append(dst, '\n')
		}
		dst = append(dst, '\n')
	}
	if len(page.Entries) == 0 && page.Cursor != after {
		dst = append(append(append(dst, "id: "...), page.Cursor...), "\n\n"...)
	}
	return dst, nil
}

// appendData appends lines of data. A line break in JSON is white space, wherever it is.
func appendData(dst, json []byte) []byte {
	for line := range bytes.FieldsFuncSeq(json, func(r rune) bool { return r == '\n' || r == '\r' }) {
		dst = append(append(append(dst, "data: "...), line...), '\n')
	}
	return dst
}

// endWith says why the stream ends. It is no event named "error", which is what
// EventSource calls its own.
func (h *Handler) endWith(ctx context.Context, w http.ResponseWriter, name string, err error) {
	p := ProblemOf(err, name)
	if p.Status >= http.StatusInternalServerError {
		h.log.ErrorContext(ctx, "stream failed", "feed", name, "status", p.Status, "error", err)
	}
	data, _ := marshal(p) // strings and an int
	_ = h.send(w, append(appendData([]byte("event: problem\n"), data), '\n'))
}
