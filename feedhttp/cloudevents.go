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
	// eventsMediaType is the media type of the JSON batch format of CloudEvents.
	eventsMediaType = "application/cloudevents-batch+json"
)

// The types of events. A deleted row has no data.
const (
	upsertEvent = "io.github.rowfeed.upsert"
	deleteEvent = "io.github.rowfeed.delete"
)

// eventsHeader sets the headers with the cursor of a batch.
func eventsHeader(w http.ResponseWriter, page feedtype.Page) {
	w.Header().Set(cursorHeader, string(page.Cursor))
	w.Header().Set(moreHeader, strconv.FormatBool(page.More))
}

// eventParts encodes a page as a batch of events on one line. id returns the id of the i-th entry's event.
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

// appendEvent appends an entry as a CloudEvent. Its subject is the entry's key. It has a time if the position is a
// ULID. The member method is defined by http-feeds.
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
	data, _ := marshal(text) // strings cannot fail
	return append(dst, data...)
}
