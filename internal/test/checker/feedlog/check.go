// Package feedlog checks whether the log of a reader, which has what the reader got from a feed, agrees with the rows
// of the table at the end. It only uses what the HTTP contract says, and shares no code with rowfeed, so that it cannot
// have the same error.
package feedlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
)

// Entry is an entry as received. Key and Row are JSON objects. Position is a number or a ULID.
type Entry struct {
	Position string          `json:"position"`
	Op       string          `json:"op"`
	Key      json.RawMessage `json:"key"`
	Row      json.RawMessage `json:"row,omitempty"`
}

// Rules describe the columns of the table.
type Rules struct {
	// Key are the key columns.
	Key []string
	// Writer and Number are the columns of rows that are inserted once and never changed. Each writer counts its own
	// rows upwards, one transaction after the other. Rows without a Writer are not checked. If Writer is empty, the
	// table has no such rows.
	Writer, Number string
	// After is a column with the (single) key of another such row, or NULL. The commit of that row was acknowledged
	// before the transaction of this row began.
	After string
}

// Verdict is the result of Check.
type Verdict struct {
	Entries int // received
	Keys    int // keys that exist, as far as the reader knows
	Ordered int // entries whose order was checked
	Faults  []string
}

const (
	upsert = "upsert"
	// maxFaults limits the listed faults: one cause may affect all keys.
	maxFaults = 100
)

// Check compares a reader's log with the rows of the table at the end. The log must have been read to the head after
// the last change was published. Faults start with a word: malformed, order, repeated, lost, stale, ghost, causality.
func Check(log []Entry, table []json.RawMessage, rules Rules) Verdict {
	c := &logCheck{rules: rules, last: map[string]lastEntry{}, numbers: map[string]int64{}}
	for _, e := range log {
		c.read(e)
	}
	c.compare(table)
	return Verdict{Entries: len(log), Keys: c.known, Ordered: c.ordered, Faults: c.faults}
}

type lastEntry struct{ position, op, row string }

type logCheck struct {
	rules   Rules
	place   string               // the highest position so far, as placeOf formats it
	highest string               // the same, as it was received
	last    map[string]lastEntry // by key
	numbers map[string]int64     // by writer: the highest number so far
	known   int
	ordered int
	faults  []string
}

func (c *logCheck) fault(format string, args ...any) {
	if len(c.faults) < maxFaults {
		c.faults = append(c.faults, fmt.Sprintf(format, args...))
	}
}

// read checks the next entry of the log.
func (c *logCheck) read(e Entry) {
	key, _, err := canonical(e.Key)
	if err != nil {
		c.fault("malformed: position %s: key: %v", e.Position, err)
		return
	}
	place, position := placeOf(e.Position), e.Position
	switch {
	case place == "" || c.place != "" && len(place) != len(c.place):
		c.fault("malformed: position %q of key %s", position, key)
		return
	case place == c.place:
		c.fault("repeated: position %s, now for key %s", position, key)
	case place < c.place:
		c.fault("order: position %s of key %s came after %s", position, key, c.highest)
	}
	if place > c.place {
		c.place, c.highest = place, position
	}
	entry := lastEntry{position: position, op: e.Op}
	switch e.Op {
	case upsert:
		var row map[string]any
		if entry.row, row, err = canonical(e.Row); err != nil {
			c.fault("malformed: position %s: row: %v", position, err)
			return
		}
		if of, err := c.keyOf(row); err != nil || of != key {
			c.fault("malformed: position %s: key %s and row %s do not belong together", position, key, entry.row)
		}
		c.checkOrder(position, key, row)
	case "delete":
	default:
		c.fault("malformed: position %s: operation %q", position, e.Op)
	}
	c.last[key] = entry
}

var ulid = regexp.MustCompile("^[0-7][0-9A-HJKMNP-TV-Z]{25}$")

// placeOf formats a position so that texts have the order of the positions. It is empty for an invalid position.
// Numbers get 19 digits, ULIDs have 26 characters: no feed has both.
func placeOf(position string) string {
	if ulid.MatchString(position) {
		return position
	}
	if n, err := strconv.ParseInt(position, 10, 64); err == nil && n > 0 {
		return fmt.Sprintf("%019d", n)
	}
	return ""
}

// checkOrder checks the order of commits: a transaction that had committed before another began has the lower position.
func (c *logCheck) checkOrder(position, key string, row map[string]any) {
	if c.rules.Writer == "" || row[c.rules.Writer] == nil {
		return
	}
	c.ordered++
	writer := fmt.Sprint(row[c.rules.Writer])
	number, err := strconv.ParseInt(fmt.Sprint(row[c.rules.Number]), 10, 64)
	if err != nil {
		c.fault("malformed: position %s: %s is %v", position, c.rules.Number, row[c.rules.Number])
		return
	}
	if highest, seen := c.numbers[writer]; seen && number <= highest {
		c.fault("causality: position %s: number %d of writer %s came after %d", position, number, writer, highest)
	}
	c.numbers[writer] = max(c.numbers[writer], number)
	if c.rules.After == "" || row[c.rules.After] == nil {
		return
	}
	before, err := c.keyOf(map[string]any{c.rules.Key[0]: row[c.rules.After]})
	if _, seen := c.last[before]; err != nil || !seen {
		c.fault("causality: position %s: key %s came before key %s, which had been committed before it began",
			position, key, before)
	}
}

// compare checks the final state of the reader.
func (c *logCheck) compare(table []json.RawMessage) {
	final := make(map[string]bool, len(table))
	for _, data := range table {
		row, values, err := canonical(data)
		if err != nil {
			c.fault("malformed: the table's row %s: %v", data, err)
			continue
		}
		key, err := c.keyOf(values)
		if err != nil {
			c.fault("malformed: the table's row %s: %v", row, err)
			continue
		}
		final[key] = true
		last, seen := c.last[key]
		switch {
		case !seen:
			c.fault("lost: key %s was never received; its row is %s", key, row)
		case last.op != upsert:
			c.fault("lost: key %s was last received as %s at %s; its row is %s", key, last.op, last.position, row)
		case last.row != row:
			c.fault("stale: key %s was last received at %s as %s; its row is %s", key, last.position, last.row, row)
		}
	}
	var ghosts []string
	for key, last := range c.last {
		if last.op == upsert {
			c.known++
			if !final[key] {
				ghosts = append(ghosts, fmt.Sprintf("ghost: key %s was last received at %s as %s; it has no row",
					key, last.position, last.row))
			}
		}
	}
	slices.Sort(ghosts)
	for _, ghost := range ghosts {
		c.fault("%s", ghost)
	}
}

// keyOf returns the key columns of a row.
func (c *logCheck) keyOf(row map[string]any) (string, error) {
	key := make(map[string]any, len(c.rules.Key))
	for _, name := range c.rules.Key {
		value, ok := row[name]
		if !ok {
			return "", fmt.Errorf("it has no key column %q", name)
		}
		key[name] = value
	}
	text, err := json.Marshal(key)
	return string(text), err
}

// canonical writes a JSON object with sorted members and without white space. Numbers stay as they are written, so no
// digit is lost.
func canonical(data json.RawMessage) (string, map[string]any, error) {
	var values map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&values); err != nil {
		return "", nil, err
	}
	if values == nil {
		return "", nil, fmt.Errorf("%s is no object", data)
	}
	text, err := json.Marshal(values)
	return string(text), values, err
}

// ReadLines reads JSON values that are separated by line breaks or other white space.
func ReadLines[T any](r io.Reader) ([]T, error) {
	var all []T
	for decoder := json.NewDecoder(r); ; {
		var v T
		switch err := decoder.Decode(&v); err {
		case nil:
			all = append(all, v)
		case io.EOF:
			return all, nil
		default:
			return all, fmt.Errorf("value %d: %w", len(all)+1, err)
		}
	}
}
