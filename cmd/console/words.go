package console

import (
	"fmt"
	"html/template"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rowfeed/rowfeed"
)

// maxValue is the maximum number of characters of a value in a table. tail.js has the same limit.
const maxValue = 160

// functions has the functions of the templates.
var functions = template.FuncMap{
	"ago": ago, "age": age, "group": group, "plural": plural, "segment": url.PathEscape, "process": process,
	"shorten": shorten,
	"head":    func(c rowfeed.Cursor) string { return group(headOf(c)) },
	"isLong":  func(s string) bool { return utf8.RuneCountInString(s) > maxValue },
	"rfc3339": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"utc":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"dict":    dict,
	"text":    func(v any) string { return fmt.Sprint(v) },
	"higher":  func(percent int) int { return percent / 5 }, // of a cell of 20
	"lower":   func(percent int) int { return 20 - percent/5 },
}

// dict makes a map of names and values: a template has a single argument.
func dict(pairs ...any) map[string]any {
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m
}

// headOf is a feed's head without its term: a position, with its generation if that is not the first one.
func headOf(c rowfeed.Cursor) string {
	at, err := c.State()
	if err != nil {
		return string(c)
	}
	head := at.Position.String()
	if at.Generation > 1 {
		head = strconv.FormatInt(at.Generation, 10) + ":" + head
	}
	return head
}

// group formats a number with thousands separators: 1,204,311.
func group(number any) string {
	digits := fmt.Sprint(number)
	if p, ok := number.(*int64); ok {
		if p == nil {
			return "unknown"
		}
		digits = strconv.FormatInt(*p, 10)
	}
	unsigned := strings.TrimPrefix(digits, "-")
	if strings.Trim(unsigned, "0123456789") != "" {
		return digits // a ULID, or another kind of cursor
	}
	out := []byte(digits[:len(digits)-len(unsigned)])
	for i, c := range []byte(unsigned) {
		if i > 0 && (len(unsigned)-i)%3 == 0 {
			out = append(out, ',')
		}
		out = append(out, c)
	}
	return string(out)
}

func plural(n any, noun string) string {
	if text := group(n); text == "1" {
		return "1 " + noun
	} else if strings.HasSuffix(noun, "y") {
		return text + " " + strings.TrimSuffix(noun, "y") + "ies"
	} else {
		return text + " " + noun + "s"
	}
}

// ago formats the time since t. times.js updates it.
func ago(t time.Time) string {
	since := time.Since(t)
	switch {
	case since < -2*time.Second:
		return "in " + age((-since).Seconds())
	case since < 2*time.Second:
		return "just now"
	}
	return age(since.Seconds()) + " ago"
}

// age formats seconds in their two largest units. seconds is a float64 or a *float64, which may be nil.
func age(seconds any) string {
	s, ok := seconds.(float64)
	if p, is := seconds.(*float64); is {
		if p == nil {
			return "unknown"
		}
		s, ok = *p, true
	}
	if !ok || math.IsNaN(s) {
		return "unknown"
	}
	n := int64(max(s, 0))
	switch {
	case s <= 0:
		return "0 s"
	case s < 1:
		return fmt.Sprintf("%d ms", max(int64(s*1000), 1))
	case n < 60:
		return fmt.Sprintf("%d s", n)
	case n < 3600:
		return two(n/60, "min", n%60, "s")
	case n < 86400:
		return two(n/3600, "h", n%3600/60, "min")
	}
	return two(n/86400, "d", n%86400/3600, "h")
}

func two(a int64, aUnit string, b int64, bUnit string) string {
	if b == 0 || a >= 10 {
		return group(a) + " " + aUnit
	}
	return fmt.Sprintf("%d %s %d %s", a, aUnit, b, bUnit)
}

// shorten cuts a text after maxValue characters.
func shorten(s string) string {
	n := 0
	for i := range s {
		if n++; n > maxValue {
			return s[:i] + "…"
		}
	}
	return s
}
