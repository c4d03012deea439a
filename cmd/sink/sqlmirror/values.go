package sqlmirror

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// convert converts a Row's value for a driver without loss. It returns an error if the column's kind cannot hold the
// value. If only the column's type cannot, the database returns an error.
func convert(c dialect.Column, v any) (any, error) {
	wrong := func() (any, error) { return nil, fmt.Errorf("a %T cannot be a value of kind %s", v, c.Kind) }
	if v == nil {
		return nil, nil
	}
	switch c.Kind {
	case feedtype.Dynamic:
		switch v := v.(type) {
		case bool:
			return truth(v), nil
		case json.RawMessage:
			return string(v), nil
		case uint64:
			return nil, fmt.Errorf("%d is above the greatest integer there", v)
		}
		return v, nil
	case feedtype.Boolean:
		switch v {
		case true, false:
			return v, nil
		case int64(0), int64(1):
			return v == int64(1), nil
		}
		return wrong()
	case feedtype.Binary:
		switch v := v.(type) {
		case []byte:
			return v, nil
		case string:
			return []byte(v), nil
		case json.RawMessage:
			return []byte(v), nil
		}
		return wrong()
	case feedtype.Integer:
		switch v := v.(type) {
		case bool:
			return truth(v), nil
		case float64:
			if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
				return int64(v), nil
			}
			return wrong()
		}
	case feedtype.Float32, feedtype.Float64:
		if f, ok := v.(float64); ok && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f, nil
		}
	}
	text, ok := textOf(v)
	if !ok {
		return wrong()
	}
	switch c.Kind {
	case feedtype.Integer:
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return i, nil
		}
	case feedtype.Date, feedtype.Timestamp, feedtype.TimestampTZ:
		return clock(text), nil
	}
	return text, nil
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func textOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.RawMessage:
		return string(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case uint64:
		return strconv.FormatUint(v, 10), true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	case []byte:
		return string(v), utf8.Valid(v)
	}
	return "", false
}

// clock writes an RFC 3339 time as databases do, without the Z of UTC.
func clock(text string) string {
	date, time, ok := strings.Cut(text, "T")
	if !ok || len(date) < len("2006-01-02") {
		return text
	}
	return date + " " + strings.TrimSuffix(time, "Z")
}
