package cli

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed"
)

// ServerURL parses the URL of a server.
func ServerURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "url",
			Cause: "url: it does not have the form http://host:port", Next: "write it like http://127.0.0.1:8080"}
	}
	return u, nil
}

// OptionalText is a flag whose empty value differs from a flag that was not given.
type OptionalText struct{ Value *string }

func (o *OptionalText) String() string {
	if o.Value == nil {
		return ""
	}
	return *o.Value
}

func (o *OptionalText) Set(text string) error { o.Value = &text; return nil }
func (o *OptionalText) Type() string          { return "text" }

// ShardNumber is a flag for the number of a consumer's shard. Shards of a feed with ULIDs may be negative.
type ShardNumber int

func (n *ShardNumber) String() string { return strconv.Itoa(int(*n)) }
func (n *ShardNumber) Type() string   { return "shard" }

func (n *ShardNumber) Set(text string) error {
	i, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("%q is not the number of a shard", text)
	}
	*n = ShardNumber(i)
	return nil
}

// Duration is a flag for a duration that may have days: "30d", "1d12h", "90m".
type Duration struct {
	time.Duration
	Given bool
}

func (d *Duration) Set(text string) (err error) {
	d.Given = true
	d.Duration, err = parseDuration(text)
	return err
}

func (d *Duration) Type() string { return "duration" }

func (d *Duration) String() string {
	if d.Duration == 0 {
		return ""
	}
	return d.Duration.String()
}

// Seconds is a flag for a number of seconds: "2", "0.5".
type Seconds time.Duration

func (s *Seconds) String() string {
	return strconv.FormatFloat(time.Duration(*s).Seconds(), 'g', -1, 64)
}

func (s *Seconds) Type() string { return "seconds" }

func (s *Seconds) Set(text string) error {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0 && n <= time.Hour.Seconds()) {
		return fmt.Errorf("%q is not a number of seconds above 0, up to %g", text, time.Hour.Seconds())
	}
	*s = Seconds(n * float64(time.Second))
	return nil
}

// Retention is a flag that says how long entries are kept, or how many.
type Retention struct {
	rowfeed.Retention
	Given bool
}

func (r *Retention) Set(text string) (err error) {
	r.Retention, r.Given = rowfeed.Retention{}, true
	if text == "forever" {
		return nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if r.Count = n; n < 1 {
			return fmt.Errorf("%d is less than 1 entry; write forever to keep all entries", n)
		}
		return nil
	}
	if r.Age, err = parseDuration(text); err != nil {
		return fmt.Errorf("%q is neither a duration, like 30d, nor a number of entries, nor forever", text)
	}
	if r.Age <= 0 {
		return fmt.Errorf("%q keeps no entries; write forever to keep all entries", text)
	}
	return nil
}

func (r *Retention) Type() string { return "duration|number" }

func (r *Retention) String() string {
	if r.ForEver() {
		return ""
	}
	return r.Retention.String()
}

func parseDuration(text string) (time.Duration, error) {
	const day = 24 * time.Hour
	bad := fmt.Errorf("%q is not a duration; write it like 30d, 12h or 90s", text)
	days, rest, ok := strings.Cut(text, "d")
	if !ok {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, bad
		}
		return d, nil
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil || n > 100*365 {
		return 0, bad
	}
	d := time.Duration(n) * day
	if rest != "" {
		more, err := time.ParseDuration(rest)
		if err != nil || more < 0 || more >= day {
			return 0, bad
		}
		d += more
	}
	return d, nil
}

// Rate is a flag for a number per second: "100/s", "90/m", "100".
type Rate struct{ PerSecond float64 }

func (r *Rate) String() string {
	if r.PerSecond == 0 {
		return ""
	}
	return strconv.FormatFloat(r.PerSecond, 'g', -1, 64) + "/s"
}

func (r *Rate) Type() string { return "N/s" }

func (r *Rate) Set(text string) error {
	number, unit, given := strings.Cut(text, "/")
	seconds, known := map[string]float64{"s": 1, "m": 60, "h": 3600}[unit]
	if !given {
		seconds, known = 1, true
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !known || !(n > 0 && n <= 1e9) {
		return fmt.Errorf("%q is not a rate; write it like 100/s", text)
	}
	r.PerSecond = n / seconds
	return nil
}

// NameList is a flag for names that commas separate. A comma inside parentheses or double quotes belongs to its name,
// as in "id:numeric(10,2)".
type NameList struct{ Names []string }

func (l *NameList) String() string { return strings.Join(l.Names, ",") }
func (l *NameList) Type() string   { return "names" }

func (l *NameList) Set(text string) error {
	var names []string
	var name strings.Builder
	depth, quoted := 0, false
	for _, r := range text {
		switch {
		case r == '"':
			quoted = !quoted
			continue
		case quoted:
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			names = append(names, name.String())
			name.Reset()
			continue
		}
		name.WriteRune(r)
	}
	names = append(names, name.String())
	if quoted || depth != 0 {
		return fmt.Errorf("%q has no closing quote or parenthesis", text)
	}
	for i, n := range names {
		if names[i] = strings.TrimSpace(n); names[i] == "" {
			return fmt.Errorf("%q contains an empty name", text)
		}
	}
	l.Names = names
	return nil
}

// oneOf is a flag whose value is one of a few words.
type oneOf struct {
	of    []string
	value *string
}

func (o *oneOf) String() string {
	if o.value == nil {
		return ""
	}
	return *o.value
}

func (o *oneOf) Type() string { return "word" }

func (o *oneOf) Set(text string) error {
	for _, w := range o.of {
		if w == text {
			o.value = &text
			return nil
		}
	}
	return fmt.Errorf("%q is not one of: %s", text, strings.Join(o.of, ", "))
}
