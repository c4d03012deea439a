package dialect

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/rowfeed/rowfeed/feedtype"
)

// A page can have a million values. So they are scanned without reflection, and without allocations other than
// those of the values. database/sql passes the driver's value to a [database/sql.Scanner] as it is.

// rowsTogether is how many rows of a page share one allocation. A caller that keeps one row keeps the values of
// all of them in memory.
const rowsTogether = 16

// cell scans one value of a row.
type cell struct {
	text bool // the driver's bytes are text
	to   *any
}

// cellsOf returns the cells for a feed's rows, those of the key first.
func cellsOf(f *Feed) []cell {
	cells := make([]cell, 0, len(f.Key)+len(f.Columns))
	for _, columns := range [][]Column{f.Key, f.Columns} {
		for _, c := range columns {
			cells = append(cells, cell{text: c.Kind != feedtype.Binary && c.Kind != feedtype.Dynamic})
		}
	}
	return cells
}

// Scan implements [database/sql.Scanner]. It copies bytes, which belong to the driver and change with the next
// row.
func (c *cell) Scan(v any) error {
	b, is := v.([]byte)
	switch {
	case !is:
		*c.to = v
	case c.text:
		*c.to = string(b)
	default:
		*c.to = bytes.Clone(b)
	}
	return nil
}

// scanNumber scans an integer. It is not valid if the value is NULL.
type scanNumber struct {
	n     int64
	valid bool
}

// Scan implements [database/sql.Scanner].
func (s *scanNumber) Scan(v any) (err error) {
	s.valid = v != nil
	switch v := v.(type) {
	case int64:
		s.n = v
	case nil:
		s.n = 0
	case []byte:
		s.n, err = strconv.ParseInt(string(v), 10, 64)
	case string:
		s.n, err = strconv.ParseInt(v, 10, 64)
	default:
		err = fmt.Errorf("the driver returned %T for an integer", v)
	}
	return err
}

// scanText scans a text that is the same in every row.
type scanText struct{ text string }

// Scan implements [database/sql.Scanner].
func (s *scanText) Scan(v any) error {
	switch v := v.(type) {
	case string:
		s.text = v
	case []byte:
		if s.text != string(v) { // this conversion allocates nothing
			s.text = string(v)
		}
	default:
		return errors.New("the driver returned no text")
	}
	return nil
}
