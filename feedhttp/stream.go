package feedhttp

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"runtime/debug"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

const (
	streamMediaType = "text/event-stream"
	// streamLimit is the maximum number of entries that a stream holds for a slow client.
	streamLimit = feedtype.DefaultLimit
	// streamMemory is the maximum memory to encode a page of a stream, which is not encoded part by part.
	streamMemory = math.MaxInt / 2
	// reconnect asks clients to wait 2 s before they reconnect.
	reconnect = "retry: 2000\n\n"
	heartbeat = ": nothing new\n\n"
	// earlyPause is the pause before the next fetch if the source answered earlier than requested, without an entry.
	earlyPause = time.Second
)

// streamEndpoint answers with Server-Sent Events: one event per entry, whose id is the cursor after the entry. A stream
// ends if the client disconnects or stops reading, and when Close is called. If reading the feed fails, it ends after
// an event named "problem".
type streamEndpoint struct {
	sources   *sources
	out       *responder
	heartbeat time.Duration
}

func (e streamEndpoint) answer(w http.ResponseWriter, r *http.Request, c call) error {
	name := c.feed
	req, err := streamRequest(c.values, r.Header)
	if err != nil {
		return err
	}
	source, err := e.sources.catalog.Source(r.Context(), name)
	if err != nil {
		return err
	}
	leave, err := e.sources.wait(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	share := e.sources.memory.newShare(name, e.sources.client(r.Context()), req.Limit, streamMemory)
	defer share.Leave()
	fetch := func(ctx context.Context) (feedtype.Page, error) {
		return share.page(ctx, req, func(req feedtype.Request) (feedtype.Page, error) { return source.Fetch(ctx, req) })
	}
	// An invalid request fails at the first page, while a status can still be sent.
	page, err := fetch(r.Context())
	if err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Type", c.format)
	header.Set("Cache-Control", unkept)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Accel-Buffering", "no") // a proxy that buffers answers would never forward a stream
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(e.sources.closing, cancel)()
	defer func() {
		if v := recover(); v != nil { // too late for a status
			e.out.log.ErrorContext(ctx, "stream panicked", "feed", name, "panic", fmt.Sprint(v), "stack",
				string(debug.Stack()))
			failed := problem(feedtype.Failed, "", "the stream failed (the server's log has the cause)")
			e.sendProblem(ctx, w, name, failed)
		}
	}()
	if e.out.writeAndFlush(w, []byte(reconnect)) != nil {
		return nil
	}
	for early := false; ; {
		data, err := events(page, req.After)
		if err != nil {
			e.sendProblem(ctx, w, name, err)
			return nil
		}
		if len(data) == 0 && !page.More {
			data = []byte(heartbeat)
		}
		if e.out.writeAndFlush(w, data) != nil {
			return nil // the client has disconnected, or has stopped reading
		}
		page.Entries, data = nil, nil // the stream waits without memory
		share.Leave()
		clearDeadline(w) // over HTTP/2 the deadline would also end an idle stream
		if early {
			select {
			case <-ctx.Done():
			case <-time.After(earlyPause):
			}
		}
		asked := time.Now()
		req.After, req.Wait = page.Cursor, e.heartbeat
		if page, err = fetch(ctx); ctx.Err() != nil {
			return nil
		} else if err != nil {
			e.sendProblem(ctx, w, name, err)
			return nil
		}
		idle := len(page.Entries) == 0 && (!page.More || page.Cursor == req.After)
		early = idle && time.Since(asked) < e.heartbeat/2
	}
}

// streamRequest parses which shards are read, and the cursor at which the stream begins. A client that reconnects
// sends the URL of its first request, and Last-Event-ID, which is newer than the cursor in the URL. A client that has
// received no event may send an empty Last-Event-ID.
func streamRequest(values url.Values, header http.Header) (req feedtype.Request, err error) {
	req = feedtype.Request{After: feedtype.Cursor(values.Get("after")), Limit: streamLimit}
	if id := header.Get("Last-Event-ID"); id != "" {
		req.After = feedtype.Cursor(id)
	}
	req.Shards, err = parseShards(values)
	return req, err
}

// events encodes a page as events, once for all streams that fetched it with the same cursor.
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

// appendEvents appends a page as events. If the page has a new cursor but no entries, it appends the id alone:
// clients store it without reporting an event.
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

// appendData appends lines of data. A line break in JSON is always white space.
func appendData(dst, json []byte) []byte {
	for line := range bytes.FieldsFuncSeq(json, func(r rune) bool { return r == '\n' || r == '\r' }) {
		dst = append(append(append(dst, "data: "...), line...), '\n')
	}
	return dst
}

// sendProblem sends the error that ends the stream. Its event is not named "error", because EventSource uses that name
// for its own errors.
func (e streamEndpoint) sendProblem(ctx context.Context, w http.ResponseWriter, name string, err error) {
	p := ProblemOf(err, name)
	if p.Status >= http.StatusInternalServerError {
		e.out.log.ErrorContext(ctx, "stream failed", "feed", name, "status", p.Status, "error", err)
	}
	data, _ := marshal(p) // strings and an int cannot fail
	_ = e.out.writeAndFlush(w, append(appendData([]byte("event: problem\n"), data), '\n'))
}
