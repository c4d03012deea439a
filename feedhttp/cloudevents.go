package feedhttp

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rowfeed/rowfeed/feedtype"
)

const (
	// eventsMediaType is CloudEvents' JSON batch format.
	eventsMediaType = "application/cloudevents-batch+json"
	// cursorHeader and moreHeader have what a batch of events has no place for.
	cursorHeader = "Rowfeed-Cursor"
	moreHeader   = "Rowfeed-More"
)

// The types of events. What was deleted has no data.
const (
	upsertEvent = "io.github.rowfeed.upsert"
	deleteEvent = "io.github.rowfeed.delete"
)

// eventsHeader tells how far a batch goes.
func (h *Handler) eventsHeader(w http.ResponseWriter, page feedtype.Page) {
	w.Header().Set(cursorHeader, string(page.Cursor))
	w.Header().Set(moreHeader, strconv.FormatBool(page.More))
}

// eventParts are a page's as a batch of events, on a line; id is that of the i-th entry's.
func eventParts(page feedtype.Page, feed string, id func(i int) string) part {
	source := "/_feeds/" + url.PathEscape(feed)
	return func(dst []byte, i, size int) ([]byte, int) {
		if i == 0 {
			dst = append(dst, '[')
		}
		for ; i < len(page.Entries); i++ {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst = appendEvent(dst, page.Entries[i], id(i), source); len(dst) >= size && i+1 < len(page.Entries) {
				return dst, i + 1
			}
		}
		return append(dst, "]\n"...), -1
	}
}

// appendEvent appends an entry as a CloudEvent. Its subject is the key, which is what it is
// about; its time that of its position, which only a ULID has. method is http-feeds' word.
func appendEvent(dst []byte, e feedtype.Entry, id, source string) []byte {
	dst = appendText(append(dst, `{"specversion":"1.0","id":`...), id)
	dst = appendText(append(dst, `,"source":`...), source)
	kind := upsertEvent
	if e.Op == feedtype.Delete {
		kind = deleteEvent
	}
	dst = append(append(append(dst, `,"type":"`...), kind...), `","subject":`...)
	dst = appendText(dst, string(e.Key.AppendJSON(nil)))
	if at, err := ulid.ParseStrict(e.Position); err == nil {
		dst = append(at.Timestamp().UTC().AppendFormat(append(dst, `,"time":"`...), time.RFC3339Nano), '"')
	}
	if e.Op == feedtype.Delete {
		return append(dst, `,"method":"DELETE"}`...)
	}
	dst = e.Row.AppendJSON(append(dst, `,"datacontenttype":"application/json","data":`...))
	return append(dst, '}')
}

// appendText appends a JSON string.
func appendText(dst []byte, text string) []byte {
	data, _ := marshal(text) // any text can be written
	return append(dst, data...)
}
