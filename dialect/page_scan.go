package dialect

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/rowfeed/rowfeed/feedtype"
)

// A page has a million values before long, so they are read without reflection, and without
// an allocation that the value itself does not need: database/sql hands what implements
// [database/sql.Scanner] over as the driver has it.

// rowsTogether is how many rows of a page share an allocation. Whoever keeps one of them
// keeps the values of all.
const rowsTogether = 16

// cell is where a value of a row goes.
type cell struct {
	text bool // bytes are text, whatever the driver makes of it
	to   *any
}

// cellsOf are those of a feed's rows, the key first.
func cellsOf(f *Feed) []cell {
	cells := make([]cell, 0, len(f.Key)+len(f.Columns))
	for _, columns := range [][]Column{f.Key, f.Columns} {
		for _, c := range columns {
			cells = append(cells, cell{text: c.Kind != feedtype.Binary && c.Kind != feedtype.Dynamic})
		}
	}
	return cells
}

// Scan implements [database/sql.Scanner]. Bytes are the driver's until the next row.
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

// scanNumber is where an integer goes; not valid where it is NULL.
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
		err = fmt.Errorf("the driver answered %T for an integer", v)
	}
	return err
}

// scanText is where a text goes that is the same in every row.
type scanText struct{ text string }

// Scan implements [database/sql.Scanner].
func (s *scanText) Scan(v any) error {
	switch v := v.(type) {
	case string:
		s.text = v
	case []byte:
		if s.text != string(v) { // which allocates nothing
			s.text = string(v)
		}
	default:
		return errors.New("the driver answered no text")
	}
	return nil
}
