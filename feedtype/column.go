package feedtype

// TableName is the name of a table, with its schema if one was given.
type TableName struct {
	Schema string `json:"schema,omitempty"`
	Name   string `json:"name"`
}

func (t TableName) String() string {
	if t.Schema == "" {
		return t.Name
	}
	return t.Schema + "." + t.Name
}

// Kind is how the values of a column are represented. In the list below, the left side is the raw form that
// [Spelling.Value] reads, and the right side the JSON that rowfeed writes.
//
// A column may contain a value that does not fit its kind: SQLite types values, not columns, and text may not be
// UTF-8. Such a value is a JSON object with one member, which names the value's own type: {"$binary":"base64"},
// {"$text":"…"} or {"$float":"Infinity"}. Text that is not UTF-8 is {"$text64":"base64"} if the column may hold
// binary values too, and otherwise {"$binary":"base64"}.
//
// A JSON null is {"$json":null}, which distinguishes it from SQL's NULL. A JSON document that looks like one of these
// objects is wrapped in {"$json":…} as well. A document that is nested too deeply for decoders is {"$text":"…"}.
type Kind string

const (
	Integer     Kind = "integer"     // int64, uint64 or decimal digits     number
	Float32     Kind = "float32"     // float64 or its text                 number; "NaN", "Infinity", "-Infinity"
	Float64     Kind = "float64"     // float64 or its text                 number; "NaN", "Infinity", "-Infinity"
	Boolean     Kind = "boolean"     // bool                                true, false
	Decimal     Kind = "decimal"     // text                                string, all digits kept
	Text        Kind = "text"        // text                                string
	Binary      Kind = "binary"      // []byte                              string, base64 (standard, padded)
	JSON        Kind = "json"        // text                                the JSON value itself
	Date        Kind = "date"        // text                                string, 2006-01-02
	Time        Kind = "time"        // text                                string, 15:04:05.999999
	Timestamp   Kind = "timestamp"   // text                                string, RFC 3339 without offset
	TimestampTZ Kind = "timestamptz" // text or Unix seconds with fraction   string, RFC 3339 in UTC
	Dynamic     Kind = "dynamic"     // any of int64, float64, string, []byte    by the value's own type
)
