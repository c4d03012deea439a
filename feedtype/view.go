package feedtype

import (
	"encoding/base64"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// View is a selection of rows and columns of a feed. The zero value shows everything. Rows are selected by columns of
// the key only, because a tombstone has no other columns. So a tombstone is visible to the same clients as its row
// was, and does not reveal a key to other clients.
type View struct {
	// Where are conditions on the key, all of which must hold.
	Where []ViewFilter `json:"where,omitempty"`
	// Mask are columns that are left out, as if the feed did not have them.
	Mask []string `json:"mask,omitempty"`
}

// ViewFilter requires that a column of the key has one of some values. They are compared as text, in the canonical
// spelling of the column's type: 007 equals 7 in an integer column. The comparison is exact, even if the database
// regards A and a as equal.
type ViewFilter struct {
	Column string   `json:"column"`
	Values []string `json:"values"`
}

// IsZero tells whether the view shows everything.
func (v View) IsZero() bool { return len(v.Where) == 0 && len(v.Mask) == 0 }

// Validate returns an error with the code InvalidRequest if a condition is incomplete, or if a column is named twice.
func (v View) Validate() error {
	seen := map[string]bool{}
	for _, w := range v.Where {
		switch {
		case w.Column == "" || len(w.Values) == 0:
			return Invalid("where", "write it as column=value, or column=value,value")
		case seen[w.Column]:
			return Invalid("where", "%q is given twice; write all its values behind one '='", w.Column)
		}
		seen[w.Column] = true
	}
	for i, name := range v.Mask {
		if name == "" || slices.Contains(v.Mask[:i], name) {
			return Invalid("mask", "%q is empty or given twice: name each column once", name)
		}
	}
	return nil
}

// Fits returns an error with the code Refused if the view cannot be applied to the feed: the feed lacks one of its
// columns, or a masked column is in the key.
func (v View) Fits(info *Info) error {
	_, err := v.through(info.Name, info.Key, info.Columns)
	return err
}

// Info returns the feed's description as the view shows it.
func (v View) Info(info *Info) (*Info, error) {
	l, err := v.through(info.Name, info.Key, info.Columns)
	if err != nil {
		return nil, err
	}
	seen := *info
	seen.Columns = l.columns
	seen.Base64 = BinaryColumns(info.Key, l.columns)
	return &seen, nil
}

// Page returns a page of the feed as the view shows it. The cursor stays the same, and is behind the entries that
// were left out. Encoded forms of the page (Page.Shared) are not shared with the result.
func (v View) Page(feed string, p Page) (Page, error) {
	l, err := v.through(feed, p.Key, p.Columns)
	if err != nil {
		return Page{}, err
	}
	seen := Page{Entries: make([]Entry, 0, len(p.Entries)), Cursor: p.Cursor, More: p.More, Key: p.Key,
		Columns: l.columns, Standing: p.Standing}
	for _, e := range p.Entries {
		if !l.shows(e.Key) {
			continue
		}
		if e.Op == Upsert {
			if e.Row, err = l.row(feed, e.Row); err != nil {
				return Page{}, err
			}
		}
		seen.Entries = append(seen.Entries, e)
	}
	return seen, nil
}

// lens is a view, applied to the columns of a feed.
type lens struct {
	wanted  []map[string]bool // for each column of the key; nil allows every value
	kept    []int             // indexes in the delivered columns
	all     []Column          // delivered
	columns []Column          // the delivered columns that are kept
	key     []Column
}

// through applies the view to the columns of a feed. It refuses a view that names a missing column, which may have
// been renamed: showing nothing is safer than showing too much.
func (v View) through(feed string, key, columns []Column) (*lens, error) {
	refuse := func(next, format string, args ...any) error {
		e := Invalid("view", format, args...)
		e.Code, e.Object, e.Next = Refused, FeedObject(feed), next
		return e
	}
	named := func(all []Column, name string) int {
		return slices.IndexFunc(all, func(c Column) bool { return c.Name == name })
	}
	l := &lens{wanted: make([]map[string]bool, len(key)), all: columns, columns: []Column{}, key: key}
	for _, w := range v.Where {
		i := named(key, w.Column)
		if i < 0 {
			return nil, refuse("filter by one of "+columnNames(key)+", which tombstones have, too",
				"%q is not a column of its key", w.Column)
		}
		l.wanted[i] = make(map[string]bool, len(w.Values))
		for _, text := range w.Values {
			value, ok := spelled(key[i], text)
			if !ok {
				return nil, refuse("write the value as entries show it",
					"%q is not a value of column %q, which is %s", text, w.Column, key[i].Type)
			}
			l.wanted[i][value] = true
		}
	}
	for _, name := range v.Mask {
		switch {
		case named(key, name) >= 0:
			return nil, refuse("leave it out of the mask; a row is told by its key, and so is a tombstone",
				"column %q is of its key, and cannot be masked", name)
		case named(columns, name) < 0:
			return nil, refuse("mask some of "+columnNames(columns), "it delivers no column %q that could be masked",
				name)
		}
	}
	for i, c := range columns {
		if !slices.Contains(v.Mask, c.Name) {
			l.kept = append(l.kept, i)
			l.columns = append(l.columns, c)
		}
	}
	return l, nil
}

func columnNames(columns []Column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return strings.Join(names, ", ")
}

// shows tells whether the view shows rows with this key.
func (l *lens) shows(key Row) bool {
	for i, wanted := range l.wanted {
		if wanted == nil {
			continue
		}
		value, ok := key.Get(l.key[i].Name)
		if !ok {
			return false
		}
		if text, ok := spelling(l.key[i], value); !ok || !wanted[text] {
			return false
		}
	}
	return true
}

// row returns the row without masked columns.
func (l *lens) row(feed string, r Row) (Row, error) {
	if len(l.kept) == len(l.all) {
		return r, nil
	}
	if !slices.Equal(r.columns, l.all) { // the columns cannot be matched
		return Row{}, &Error{Code: Refused, Object: FeedObject(feed),
			Cause: "view: an entry has other columns than its page"}
	}
	seen := Row{columns: l.columns, values: make([]any, len(l.kept))}
	for i, from := range l.kept {
		seen.values[i] = r.values[from]
	}
	return seen, nil
}

// spelling returns the canonical text of a value. ok is false for a value that a filter cannot ask for.
func spelling(c Column, value any) (text string, ok bool) {
	switch v := value.(type) {
	case string:
		if c.Kind == Decimal {
			return decimalText(v)
		}
		return unpadded(c, v), c.Kind != Binary // text in a binary column could be taken for base64
	case []byte:
		return base64.StdEncoding.EncodeToString(v), c.Kind == Binary
	case int64, uint64, bool, float64:
		return string(AppendValue(nil, c.Kind, v)), true
	}
	return "", false
}

// spelled returns the canonical text of the value that text stands for. ok is false if text is not a value of the
// column.
func spelled(c Column, text string) (string, bool) {
	switch c.Kind {
	case Integer:
		n, ok := new(big.Int).SetString(text, 10)
		if !ok {
			return "", false
		}
		return n.String(), true
	case Decimal:
		return decimalText(text)
	case Boolean:
		b, err := strconv.ParseBool(text)
		return strconv.FormatBool(b), err == nil
	case Float32, Float64:
		f, err := strconv.ParseFloat(text, floatBits(c.Kind))
		return string(appendFloat(nil, c.Kind, f)), err == nil
	case Binary:
		raw, err := base64.StdEncoding.DecodeString(text)
		return base64.StdEncoding.EncodeToString(raw), err == nil
	}
	if c.Type == "uuid" {
		return strings.ToLower(text), true
	}
	return unpadded(c, text), true
}

// unpadded returns a text without the blanks that pad a column of fixed length.
func unpadded(c Column, text string) string {
	if strings.HasPrefix(c.Type, "character(") {
		return strings.TrimRight(text, " ")
	}
	return text
}

// decimalText returns a decimal number in a canonical form: 1.50 and 1.5 have the same one.
func decimalText(text string) (string, bool) {
	r, ok := new(big.Rat).SetString(text)
	if !ok || strings.ContainsAny(text, "/eExX_pP") || len(text) > 1000 {
		return text, text == "NaN" || strings.HasSuffix(text, "Infinity")
	}
	return r.RatString(), true
}
