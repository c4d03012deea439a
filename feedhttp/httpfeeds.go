package feedhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rowfeed/rowfeed/feedtype"
)

// httpFeedsEndpoint answers in the format of http-feeds.org: a batch of CloudEvents after the last event that the
// client has processed, or an empty batch at the end of the feed.
type httpFeedsEndpoint struct {
	sources *sources
	out     *responder
	tags    *columnTags
}

func (e httpFeedsEndpoint) answer(w http.ResponseWriter, r *http.Request, c call) error {
	req, err := httpFeedsRequest(c.values, c.feed)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(r.Context(), req.Wait+e.sources.timeout)
	defer cancel()
	r = r.WithContext(bounded)
	source, err := e.sources.catalog.Source(r.Context(), c.feed)
	if err != nil {
		return err
	}
	by := e.out.coding(r)
	share := e.sources.share(r, c.feed, req, by)
	defer share.Leave()
	page, err := e.sources.fetch(r, source, req, share)
	// A page may be empty although more follows. Clients of http-feeds treat an empty batch as the end.
	for err == nil && len(page.Entries) == 0 && page.More && page.Cursor != req.After {
		req.After = page.Cursor
		page, err = e.sources.fetch(r, source, req, share)
	}
	if err != nil {
		return renameParam(err, "after", "lastEventId")
	}
	e.tags.pageHeader(w, c.feed, page)
	id := func(i int) string { return eventID(page, req.After, c.feed, i) }
	e.out.writePage(w, r,
		answerForm{c.format, "http-feeds of " + c.feed + " after " + string(req.After), eventParts(page, c.feed, id)},
		page, by)
	return nil
}

// httpFeedsRequest parses the parameters. In http-feeds, the lastEventId "null" means that there is no last event.
func httpFeedsRequest(values url.Values, feed string) (req feedtype.Request, err error) {
	if req.Shards, err = parseShards(values); err != nil {
		return feedtype.Request{}, err
	}
	if req.Limit, err = parseLimit(values); err != nil {
		return feedtype.Request{}, err
	}
	if values.Has("timeout") {
		text := values.Get("timeout")
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil || time.Duration(n)*time.Millisecond > MaxWait {
			return feedtype.Request{}, badParameter("timeout",
				"", "%q is not a whole number of milliseconds between 0 and %d", text, MaxWait/time.Millisecond)
		}
		req.Wait = time.Duration(n) * time.Millisecond
	}
	if id := values.Get("lastEventId"); id != "" && id != "null" {
		if req.After, err = cursorOfEvent(id, feed, req.Shards); err != nil {
			return feedtype.Request{}, err
		}
	}
	return req, nil
}

// cursorOfEvent returns the cursor that is in an event's id. The ULIDs of different shards cannot be compared: with
// the id of another shard's event, entries of this shard could be missed.
func cursorOfEvent(id, feed string, shards feedtype.Shards) (feedtype.Cursor, error) {
	rest, ours := strings.CutPrefix(id, feed+":")
	fields := strings.SplitN(rest, ":", 3)
	if !ours || len(fields) != 3 {
		return "", badParameter("lastEventId",
			"send the unchanged id of an event, or omit lastEventId to start at the beginning",
			"%q is not the id of an event of this feed", id)
	}
	generation, _, _ := strings.Cut(fields[0], ".") // a stamp follows
	state := fields[2]
	shard, err := strconv.Atoi(fields[1])
	if err != nil {
		return "", badParameter("lastEventId",
			"send the unchanged id of an event, or omit lastEventId to start at the beginning",
			"%q has no shard", id)
	}
	position, rest, _ := strings.Cut(state, "@")
	if strings.HasPrefix(rest, "~") || strings.HasPrefix(rest, ".") { // a cursor without a start mark has no "@"
		state = position + rest
	}
	if _, err := ulid.ParseStrict(position); err == nil && shards != (feedtype.Shards{}) &&
		shards != feedtype.One(shard) {
		return "", badParameter("lastEventId",
			"send the id of an event of the requested shard, or omit lastEventId to start at the beginning",
			"%q is the id of an event of another shard", id)
	}
	return feedtype.Cursor(generation + ":" + state), nil
}

// eventID returns the id of the i-th entry's event. Clients of http-feeds store only the id, so the id contains all
// parts of the cursor after the entry. The entry's position comes first, then "@" and the rest of the cursor: the start
// mark (up to which the client needs no deletes) if it is above the entry, the head, and the term.
func eventID(page feedtype.Page, after feedtype.Cursor, feed string, i int) string {
	e := page.Entries[i]
	id := e.ID(feed)
	cursor, err := page.CursorAt(after, i)
	if err != nil {
		panic(fmt.Sprintf("the source returned a page without cursors: %v", err))
	}
	at, err := cursor.State()
	if err != nil {
		panic(fmt.Sprintf("the source returned a page with an invalid cursor: %v", err))
	}
	// The last cursor of a page may be above the entry. The id keeps that position as its start mark.
	at.Generation, at.Mark = 1, at.Seen()
	if at.Position, err = feedtype.ParsePosition(e.Position); err != nil {
		panic(fmt.Sprintf("the source returned a page with an invalid position: %v", err))
	}
	if rest := strings.TrimPrefix(string(at.Cursor()), e.Position); rest != "" {
		id += "@" + strings.TrimPrefix(rest, "@")
	}
	return id
}

// renameParam renames the parameter of an error, because the parameter has another name on this path.
func renameParam(err error, parameter, name string) error {
	var e *feedtype.Error
	if !errors.As(err, &e) || e.Param != parameter {
		return err
	}
	renamed := *e
	renamed.Param = name
	renamed.Cause = strings.Replace(renamed.Cause, parameter+":", name+":", 1)
	return &renamed
}
