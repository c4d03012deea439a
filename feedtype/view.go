package feedtype

import (
	"encoding/base64"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// View is a part of what feeds show: some rows, some columns. The zero value shows all.
// Rows are chosen by columns of the key alone, since a tombstone has nothing else: it is
// judged like the row was, and tells nobody of a key that he does not see.
type View struct {
	// Where must hold, all of it.
	Where []ViewFilter `json:"where,omitempty"`
	// Mask are columns that are left out, as if the feed had none of them.
	Mask []string `json:"mask,omitempty"`
}

// ViewFilter wants one of some values in a column of the key. They are compared as text, in
// the one spelling that a value of the column's type has (007 is 7 where it holds integers), and
// exactly: also where the database takes A for a.
type ViewFilter struct {
	Column string   `json:"column"`
	Values []string `json:"values"`
}

// IsZero tells whether the view shows all.
func (v View) IsZero() bool { return len(v.Where) == 0 && len(v.Mask) == 0 }

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
			return Invalid("mask", "%q is no column, or given twice", name)
		}
	}
	return nil
}

// Fits refuses a feed that the view cannot be taken of: without one of its columns, or
// with a masked one in the key.
func (v View) Fits(info *Info) error {
	_, err := v.through(info.Name, info.Key, info.Columns)
	return err
}

// Info is what the feed looks like through the view.
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

// Page is what a page of the feed looks like through the view. Its cursor stays, and leads
// past what was left out. What others have made of the page (Page.Shared) is not shared with it.
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

// lens is a view of a feed that has certain columns.
type lens struct {
	wanted  []map[string]bool // by the key's columns; nil: anything
	kept    []int             // of the delivered columns
	all     []Column          // delivered
	columns []Column          // those that are kept
	key     []Column
}

// through makes a lens. A column that is not there (any more: it may have another name by
// now) is refused, and nothing is shown.
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
				"%q is no column of its key", w.Column)
		}
		l.wanted[i] = make(map[string]bool, len(w.Values))
		for _, text := range w.Values {
			value, ok := spelled(key[i], text)
			if !ok {
				return nil, refuse("write the value as entries show it",
					"%q is no value of column %q, which is %s", text, w.Column, key[i].Type)
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

// shows tells whether rows of the key are seen.
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

// row is what is seen of a row.
func (l *lens) row(feed string, r Row) (Row, error) {
	if len(l.kept) == len(l.all) {
		return r, nil
	}
	if !slices.Equal(r.columns, l.all) { // which column is which, nobody knows
		return Row{}, &Error{Code: Refused, Object: FeedObject(feed),
			Cause: "view: an entry has other columns than its page"}
	}
	seen := Row{columns: l.columns, values: make([]any, len(l.kept))}
	for i, from := range l.kept {
		seen.values[i] = r.values[from]
	}
	return seen, nil
}

// spelling is the one text of a value, where it can be asked for.
func spelling(c Column, value any) (text string, ok bool) {
	switch v := value.(type) {
	case string:
		if c.Kind == Decimal {
			return decimalText(v)
		}
		return unpadded(c, v), c.Kind != Binary // where it could be taken for bytes
	case []byte:
		return base64.StdEncoding.EncodeToString(v), c.Kind == Binary
	case int64, uint64, bool, float64:
		return string(AppendValue(nil, c.Kind, v)), true
	}
	return "", false
}

// spelled is the spelling of the value that a text stands for.
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

// unpadded is a text without the blanks that a column of a fixed length fills it up with.
func unpadded(c Column, text string) string {
	if strings.HasPrefix(c.Type, "character(") {
		return strings.TrimRight(text, " ")
	}
	return text
}

// decimalText is a decimal number without what does not change it: 1.50 is 1.5.
func decimalText(text string) (string, bool) {
	r, ok := new(big.Rat).SetString(text)
	if !ok || strings.ContainsAny(text, "/eExX_pP") || len(text) > 1000 {
		return text, text == "NaN" || strings.HasSuffix(text, "Infinity")
	}
	return r.RatString(), true
}
