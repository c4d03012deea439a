package feedtype

import (
	"context"
	"encoding/json"
)

// Room is the memory for the page of a Request. A server that bounds the memory of its pages implements it.
type Room interface {
	// Enter waits until there is memory for the page, and returns its bytes, as Page.Bytes counts them. A Source calls
	// it before it reads rows. If the page has memory already, Enter does not wait.
	Enter(ctx context.Context) (bytes int, err error)
	// Leave gives the memory back. A Source calls it before it waits for an entry.
	Leave()
}

// EntryBytes is about how much memory an entry takes, besides the bytes of its texts and binary values. columns is the
// number of its values.
func EntryBytes(columns int) int { return 256 + 32*columns }

// Bytes is about how much memory the page takes.
func (p Page) Bytes() (bytes int) {
	for i := range p.Entries {
		e := &p.Entries[i]
		bytes += EntryBytes(len(e.Key.values)+len(e.Row.values)) + e.Key.bytes() + e.Row.bytes()
	}
	return bytes
}

// bytes is the sum of the lengths of texts and binary values.
func (r Row) bytes() (bytes int) {
	for _, v := range r.values {
		switch v := v.(type) {
		case string:
			bytes += len(v)
		case []byte:
			bytes += len(v)
		case json.RawMessage:
			bytes += len(v)
		}
	}
	return bytes
}
