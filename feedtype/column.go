package feedtype

// TableName is a table, with its schema where one is given.
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

// Kind is how a column's values travel: the raw form that [Spelling.Value] reads
// (left), and the JSON that rowfeed writes (right). Every value that its column's
// kind cannot hold (SQLite types values, not columns; text may not be UTF-8)
// travels by its own type, as an object with one member that names it:
// {"$binary":"base64"}, {"$text":"…"}, {"$float":"Infinity"}, and {"$text64":"base64"}
// for text that is not UTF-8 in a column that may hold binary values too. A JSON
// null, to tell it from SQL's NULL, is {"$json":null}; so is a document that could be
// taken for one of these. One nested too deeply for decoders is {"$text":"…"}.
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
