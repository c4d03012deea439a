package values

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestRowsOfAPageKeepTheirValues (M66): the rows of a page have their own values, although drivers use memory again
// from row to row. NULL after a value is NULL.
func TestRowsOfAPageKeepTheirValues(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kinds (id INTEGER NOT NULL PRIMARY KEY, t VARCHAR(100), " +
			"b " + x.Text("values.binary_type") + ", n BIGINT)")
		f := x.Add(rowfeed.FeedSpec{Name: "kinds", Table: "kinds"})
		const rows = 100
		text := func(i int) string { return strings.Repeat(string(rune('a'+i%26)), 1+i%50) }
		var values []string
		for i := range rows {
			value := fmt.Sprintf("(%d, '%s', %s, %d)", i, text(i), x.Text("values.binary_literal", text(i)), i*1000)
			if i%3 == 0 {
				value = fmt.Sprintf("(%d, NULL, NULL, NULL)", i)
			}
			values = append(values, value)
		}
		x.Exec("INSERT INTO kinds VALUES " + strings.Join(values, ", "))
		x.Publish(f)
		page := x.Fetch(f, "", rows)
		if len(page.Entries) != rows {
			x.Fatalf("the page has %d entries, want %d", len(page.Entries), rows)
		}
		seen := map[int]bool{}
		for _, e := range page.Entries {
			id, _ := e.Key.Get("id")
			i := int(id.(int64))
			if seen[i] {
				x.Errorf("the page has row %d twice", i)
			}
			seen[i] = true
			ofRow, _ := e.Row.Get("id")
			written, _ := e.Row.Get("t")
			binary, _ := e.Row.Get("b")
			n, _ := e.Row.Get("n")
			if i%3 == 0 {
				if ofRow != id || written != nil || binary != nil || n != nil {
					x.Errorf("the entry of row %d has %s", i, e.Row.AppendJSON(nil))
				}
				continue
			}
			if b, _ := binary.([]byte); ofRow != id || written != text(i) || !bytes.Equal(b, []byte(text(i))) ||
				n != int64(i*1000) {
				x.Errorf("the entry of row %d has %s", i, e.Row.AppendJSON(nil))
			}
		}
	})
}
