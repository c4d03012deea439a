package feedhttp

import (
	"testing"

	"github.com/rowfeed/rowfeed/feedtype"
)

// TestEventIDsKeepTheCursor: the cursor in the id of an event is the cursor after its entry. If the position of that
// cursor is above the entry, as the last of a page may be, the id has it as the start mark.
func TestEventIDsKeepTheCursor(t *testing.T) {
	for _, c := range []struct {
		position, cursor, id string
		want                 feedtype.Cursor
	}{
		{"4", "4", "kv:1:-7:4", "1:4"},
		{"4", "1:4", "kv:1:-7:4", "1:4"},
		{"4", "9", "kv:1:-7:4@9", "1:4@9"},
		{"4", "4@9", "kv:1:-7:4@9", "1:4@9"},
		{"4", "4.7k3f2c7adq", "kv:1:-7:4@.7k3f2c7adq", "1:4.7k3f2c7adq"},
		{"4", "4~60.7k3f2c7adq", "kv:1:-7:4@~60.7k3f2c7adq", "1:4~60.7k3f2c7adq"},
		{"4", "4@9.7k3f2c7adq", "kv:1:-7:4@9.7k3f2c7adq", "1:4@9.7k3f2c7adq"},
		{"4", "4@9~60.7k3f2c7adq", "kv:1:-7:4@9~60.7k3f2c7adq", "1:4@9~60.7k3f2c7adq"},
		{"4", "9.7k3f2c7adq", "kv:1:-7:4@9.7k3f2c7adq", "1:4@9.7k3f2c7adq"},
		{"4", "9@12~60.7k3f2c7adq", "kv:1:-7:4@12~60.7k3f2c7adq", "1:4@12~60.7k3f2c7adq"},
		{"01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "kv:1:-7:01ARZ3NDEKTSV4RRFFQ69G5FAV",
			"1:01ARZ3NDEKTSV4RRFFQ69G5FAV"},
	} {
		page := feedtype.Page{Cursor: feedtype.Cursor(c.cursor),
			Entries: []feedtype.Entry{{Position: c.position, Shard: -7, Generation: 1}}}
		id := eventID(page, "2", "kv", 0)
		if id != c.id {
			t.Errorf("%s at %s has the id %s", c.cursor, c.position, id)
		}
		if got, err := cursorOfEvent(id, "kv", feedtype.Shards{}); got != c.want || err != nil {
			t.Errorf("%s: %s, %v", id, got, err)
		}
		if err := c.want.Check(); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	page := feedtype.Page{Cursor: "1785000000:9~60.7k3f2c7adq", Entries: []feedtype.Entry{
		{Position: "4", Generation: 1785000000}, {Position: "9", Generation: 1785000000}}}
	id := eventID(page, "", "kv", 0)
	if got, err := cursorOfEvent(id, "kv", feedtype.Shards{}); got != "1785000000:4@9~60.7k3f2c7adq" || err != nil {
		t.Errorf("inside of a page: %s, %s, %v", id, got, err)
	}
}
