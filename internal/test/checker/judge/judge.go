// Package judge decides whether what a reader received from a feed can be the
// truth, given the table as it stands in the end. It knows nothing of rowfeed but
// what stands in the HTTP contract, and shares no code with it, so that an error
// there cannot hide itself here.
package judge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
)

// Entry is one entry as received. Key and Row are JSON objects. Position is a number or a ULID.
type Entry struct {
	Position string          `json:"position"`
	Op       string          `json:"op"`
	Key      json.RawMessage `json:"key"`
	Row      json.RawMessage `json:"row,omitempty"`
}

// Rules say what the columns of the table mean.
type Rules struct {
	// Key are the key columns.
	Key []string
	// Writer and Number are the columns of rows that are inserted once and never
	// changed: each writer counts its own upwards, one transaction after the other.
	// Rows where Writer is NULL are of no interest. Empty: there are none.
	Writer, Number string
	// After is a column that holds the (single) key of another such row, whose commit
	// had been acknowledged before the transaction of this one began; or NULL.
	After string
}

// Verdict is what Judge found.
type Verdict struct {
	Entries int // received
	Keys    int // that the reader knows to exist
	Ordered int // entries to which the rules about order applied
	Faults  []string
}

const (
	upsert = "upsert"
	// maxFaults are listed; a feed that is wrong is often wrong everywhere.
	maxFaults = 100
)

// Judge compares a reader's log with the rows of the table in the end. The log must
// have been read to the head after the last change was published. Faults start with
// a word: malformed, order, repeated, lost, stale, ghost, causality.
func Judge(log []Entry, table []json.RawMessage, rules Rules) Verdict {
	j := &judging{rules: rules, last: map[string]lastEntry{}, numbers: map[string]int64{}}
	for _, e := range log {
		j.read(e)
	}
	j.compare(table)
	return Verdict{Entries: len(log), Keys: j.known, Ordered: j.ordered, Faults: j.faults}
}

type lastEntry struct{ position, op, row string }

type judging struct {
	rules   Rules
	place   string               // the highest position so far, as placeOf writes it
	highest string               // the same, as it was received
	last    map[string]lastEntry // by key
	numbers map[string]int64     // by writer: the highest number so far
	known   int
	ordered int
	faults  []string
}

func (j *judging) fault(format string, args ...any) {
	if len(j.faults) < maxFaults {
		j.faults = append(j.faults, fmt.Sprintf(format, args...))
	}
}

// read takes the log's next entry.
func (j *judging) read(e Entry) {
	key, _, err := canonical(e.Key)
	if err != nil {
		j.fault("malformed: position %s: key: %v", e.Position, err)
		return
	}
	place, position := placeOf(e.Position), e.Position
	switch {
	case place == "" || j.place != "" && len(place) != len(j.place):
		j.fault("malformed: position %q of key %s", position, key)
		return
	case place == j.place:
		j.fault("repeated: position %s, now for key %s", position, key)
	case place < j.place:
		j.fault("order: position %s of key %s came after %s", position, key, j.highest)
	}
	if place > j.place {
		j.place, j.highest = place, position
	}
	entry := lastEntry{position: position, op: e.Op}
	switch e.Op {
	case upsert:
		var row map[string]any
		if entry.row, row, err = canonical(e.Row); err != nil {
			j.fault("malformed: position %s: row: %v", position, err)
			return
		}
		if of, err := j.keyOf(row); err != nil || of != key {
			j.fault("malformed: position %s: key %s and row %s do not belong together", position, key, entry.row)
		}
		j.checkOrder(position, key, row)
	case "delete":
	default:
		j.fault("malformed: position %s: operation %q", position, e.Op)
	}
	j.last[key] = entry
}

var ulid = regexp.MustCompile("^[0-7][0-9A-HJKMNP-TV-Z]{25}$")

// placeOf writes a position so that texts are ordered as positions are; empty where it is
// none. Numbers have 19 digits then, ULIDs are 26 characters long: no feed has both.
func placeOf(position string) string {
	if ulid.MatchString(position) {
		return position
	}
	if n, err := strconv.ParseInt(position, 10, 64); err == nil && n > 0 {
		return fmt.Sprintf("%019d", n)
	}
	return ""
}

// checkOrder applies the rules about order: whoever committed before another began
// stands before it.
func (j *judging) checkOrder(position, key string, row map[string]any) {
	if j.rules.Writer == "" || row[j.rules.Writer] == nil {
		return
	}
	j.ordered++
	writer := fmt.Sprint(row[j.rules.Writer])
	number, err := strconv.ParseInt(fmt.Sprint(row[j.rules.Number]), 10, 64)
	if err != nil {
		j.fault("malformed: position %s: %s is %v", position, j.rules.Number, row[j.rules.Number])
		return
	}
	if highest, seen := j.numbers[writer]; seen && number <= highest {
		j.fault("causality: position %s: number %d of writer %s came after %d", position, number, writer, highest)
	}
	j.numbers[writer] = max(j.numbers[writer], number)
	if j.rules.After == "" || row[j.rules.After] == nil {
		return
	}
	before, err := j.keyOf(map[string]any{j.rules.Key[0]: row[j.rules.After]})
	if _, seen := j.last[before]; err != nil || !seen {
		j.fault("causality: position %s: key %s came before key %s, which had been committed before it began",
			position, key, before)
	}
}

// compare looks at what the reader ends with.
func (j *judging) compare(table []json.RawMessage) {
	final := make(map[string]bool, len(table))
	for _, data := range table {
		row, values, err := canonical(data)
		if err != nil {
			j.fault("malformed: the table's row %s: %v", data, err)
			continue
		}
		key, err := j.keyOf(values)
		if err != nil {
			j.fault("malformed: the table's row %s: %v", row, err)
			continue
		}
		final[key] = true
		last, seen := j.last[key]
		switch {
		case !seen:
			j.fault("lost: key %s was never received; its row is %s", key, row)
		case last.op != upsert:
			j.fault("lost: key %s was last received as %s at %s; its row is %s", key, last.op, last.position, row)
		case last.row != row:
			j.fault("stale: key %s was last received at %s as %s; its row is %s", key, last.position, last.row, row)
		}
	}
	var ghosts []string
	for key, last := range j.last {
		if last.op == upsert {
			j.known++
			if !final[key] {
				ghosts = append(ghosts, fmt.Sprintf("ghost: key %s was last received at %s as %s; it has no row",
					key, last.position, last.row))
			}
		}
	}
	slices.Sort(ghosts)
	for _, ghost := range ghosts {
		j.fault("%s", ghost)
	}
}

// keyOf picks the key columns.
func (j *judging) keyOf(row map[string]any) (string, error) {
	key := make(map[string]any, len(j.rules.Key))
	for _, name := range j.rules.Key {
		value, ok := row[name]
		if !ok {
			return "", fmt.Errorf("it has no key column %q", name)
		}
		key[name] = value
	}
	text, err := json.Marshal(key)
	return string(text), err
}

// canonical writes a JSON object with its members sorted and without blanks. Numbers
// stay as they are written: no digit is lost.
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

// ReadLines reads one JSON value a line (or any other blank between them).
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
