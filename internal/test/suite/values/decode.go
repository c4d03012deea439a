package values

import (
	"database/sql"
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// exactDecimal is a type as decimal libraries have one: it reads text.
type exactDecimal struct{ text string }

func (d *exactDecimal) UnmarshalText(text []byte) error { d.text = string(text); return nil }

// decoded has a field for every way in which values are commonly kept. Names of
// columns differ in case and underscores, or stand in tags.
type decoded struct {
	ID        int64
	Biggest   uint64 `db:"big"`
	Small     int16
	Amount    string
	Exact     exactDecimal `rowfeed:"amount"`
	Title     string
	Body      []byte
	CreatedAt time.Time
	Day       time.Time
	Ratio     float64
	Document  struct{ A []int }
	Raw       json.RawMessage `json:"document"`
	Maybe     *int64
	MaybeAt   sql.NullTime
	MaybeText sql.NullString
	MaybeInt  sql.Null[int64]
	Ignored   string `rowfeed:"-"`
	Absent    int
}

// decodable is the table, in each family's types; rows 1 has values, 2 NULLs.
var decodable = map[string][]string{
	"sqlite": {`CREATE TABLE every (id INTEGER PRIMARY KEY, big INTEGER, small INTEGER, amount TEXT, title TEXT, body BLOB, created_at TEXT, day TEXT,
		ratio REAL, document TEXT, maybe INTEGER, maybe_at TEXT, maybe_text TEXT, maybe_int INTEGER, more INTEGER)`,
		`INSERT INTO every VALUES (-9223372036854775808, 9223372036854775807, -32768, '123456789012345678901234567890.0100', 'é', x'00ff', '2026-01-31T12:00:00.123456Z', '2026-01-31',
		0.1, '{"A":[1,2]}', 9007199254740993, '2026-01-31 12:00:00', 'x', 7, 1)`},
	"postgres": {`CREATE TABLE every (id bigint PRIMARY KEY, big numeric(20), small smallint, amount numeric, title text, body bytea, created_at timestamptz, day date,
		ratio double precision, document jsonb, maybe bigint, maybe_at timestamp, maybe_text text, maybe_int bigint, more int)`,
		`INSERT INTO every VALUES (-9223372036854775808, 18446744073709551615, -32768, 123456789012345678901234567890.0100, 'é', '\x00ff', '2026-01-31 13:00:00.123456+01', '2026-01-31',
		0.1, '{"A":[1,2]}', 9007199254740993, '2026-01-31 12:00:00', 'x', 7, 1)`},
	"mysql": {`CREATE TABLE every (id bigint PRIMARY KEY, big bigint unsigned, small smallint, amount decimal(40,4), title varchar(9) CHARACTER SET utf8mb4, body varbinary(9), created_at timestamp(6) NULL, day date,
		ratio double, document json, maybe bigint, maybe_at datetime, maybe_text varchar(9), maybe_int bigint, more int)`,
		`INSERT INTO every VALUES (-9223372036854775808, 18446744073709551615, -32768, 123456789012345678901234567890.0100, 'é', x'00ff', FROM_UNIXTIME(1769860800.123456), '2026-01-31',
		0.1, '{"A":[1,2]}', 9007199254740993, '2026-01-31 12:00:00', 'x', 7, 1)`},
}

// TestDecode: rows go into structs exactly, or with an error that names the column;
// never approximately.
func TestDecode(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec(decodable[x.Family()]...)
		f := x.Add(rowfeed.FeedSpec{Name: "every", Table: "every"})
		x.Publish(f)
		e := x.Fetch(f, "", 1).Entries[0]

		var got decoded
		if err := e.Decode(&got); err != nil {
			x.Fatal(err)
		}
		want := decoded{ID: math.MinInt64, Biggest: math.MaxUint64, Small: math.MinInt16, Amount: "123456789012345678901234567890.0100",
			Exact: exactDecimal{"123456789012345678901234567890.0100"}, Title: "é", Body: []byte{0, 255},
			CreatedAt: time.Date(2026, 1, 31, 12, 0, 0, 123456000, time.UTC), Day: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), Ratio: 0.1,
			Raw: json.RawMessage(`{"A":[1,2]}`), Maybe: new(int64), MaybeAt: sql.NullTime{Time: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), Valid: true},
			MaybeText: sql.NullString{String: "x", Valid: true}, MaybeInt: sql.Null[int64]{V: 7, Valid: true}}
		*want.Maybe = 9007199254740993
		want.Document.A = []int{1, 2}
		if x.Family() == "sqlite" {
			want.Biggest = math.MaxInt64
		}
		got.Raw = json.RawMessage(strings.ReplaceAll(string(got.Raw), " ", ""))
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(exactDecimal{})); diff != "" {
			x.Error(diff)
		}

		values := map[string]any{}
		if err := e.Decode(values); err != nil || values["id"] != int64(math.MinInt64) || values["maybe"] != int64(9007199254740993) {
			x.Errorf("a map: %v %v", values, err)
		}
		var number struct{ Maybe big.Int }
		if err := e.Decode(&number); err != nil || number.Maybe.String() != "9007199254740993" {
			x.Errorf("big.Int: %v %v", number, err)
		}
		for name, into := range map[string]any{
			"too small":    &struct{ ID int32 }{},
			"unsigned":     &struct{ ID uint64 }{},
			"not exact":    &struct{ Amount float64 }{},
			"rounded":      &struct{ Maybe float64 }{},
			"text":         &struct{ Title int }{},
			"no time":      &struct{ Title time.Time }{},
			"bytes":        &struct{ Body string }{},
			"no struct":    new(int),
			"no pointer":   struct{ ID int64 }{},
			"float32":      &struct{ Ratio float32 }{},
			"not a number": &struct{ Title bool }{},
		} {
			if err := e.Decode(into); err == nil {
				x.Errorf("%s: %+v", name, into)
			}
		}
		err := e.Decode(&decoded{}, rowfeed.EveryField)
		if err == nil || !strings.Contains(err.Error(), `field Absent has no column "Absent"`) {
			x.Errorf("EveryField: %v", err)
		}

		// NULL goes where it can be told from a value.
		x.Exec("INSERT INTO every (id) VALUES (1)")
		x.Publish(f)
		null := x.Fetch(f, "1", 1).Entries[0]
		maybe := struct {
			Maybe     *int64
			MaybeAt   sql.NullTime
			MaybeText sql.NullString
			Body      []byte
			Document  map[string]any
			More      any
		}{Maybe: new(int64), MaybeText: sql.NullString{Valid: true}, Body: []byte("old"), More: 1}
		if err := null.Decode(&maybe); err != nil || maybe.Maybe != nil || maybe.MaybeAt.Valid || maybe.MaybeText.Valid || maybe.Body != nil || maybe.More != nil {
			x.Errorf("NULLs: %+v %v", maybe, err)
		}
		if err := null.Decode(&struct{ Title string }{}); err == nil || !strings.Contains(err.Error(), `column "title", field Title: NULL`) {
			x.Errorf("NULL into a string: %v", err)
		}
	})
}

type hiddenPart struct{ K map[string]int }

// TestDecodeAgain: a struct that is used again holds what the row has, and nothing of
// the row before; what cannot be made is an error, not a panic.
func TestDecodeAgain(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, '{\"a\":1}', 0)", "INSERT INTO kv VALUES (2, '{\"b\":2}', 0)")
		x.Publish(f)
		var into struct{ K map[string]int }
		var impossible struct{ *hiddenPart }
		for _, e := range x.Fetch(f, "", 0).Entries {
			if err := e.Decode(&into); err != nil {
				x.Fatal(err)
			}
			if err := e.Decode(&impossible); err == nil || !strings.Contains(err.Error(), "unexported") {
				x.Errorf("into a nil pointer to an unexported struct: %v", err)
			}
		}
		if diff := cmp.Diff(map[string]int{"b": 2}, into.K); diff != "" {
			x.Error(diff)
		}
	})
}
