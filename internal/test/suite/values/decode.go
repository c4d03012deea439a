package values

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// exactDecimal reads text, as the types of decimal libraries do.
type exactDecimal struct{ text string }

func (d *exactDecimal) UnmarshalText(text []byte) error { d.text = string(text); return nil }

// decoded has a field for every usual way to hold values. Names of columns differ in case and underscores, or are in
// tags.
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

// TestDecodeIsExact: rows are decoded into structs exactly, or fail with an error that names the column.
func TestDecodeIsExact(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.Statements("values.table_of_decoded_values")...)
		f := x.Add(rowfeed.FeedSpec{Name: "every", Table: "every"})
		x.Publish(f)
		e := x.Fetch(f, "", 1).Entries[0]

		var got decoded
		if err := e.Decode(&got); err != nil {
			x.Fatal(err)
		}
		want := decoded{
			ID: math.MinInt64, Small: math.MinInt16,
			Amount: "123456789012345678901234567890.0100", Exact: exactDecimal{"123456789012345678901234567890.0100"},
			Title: "é", Body: []byte{0, 255},
			CreatedAt: time.Date(2026, 1, 31, 12, 0, 0, 123456000, time.UTC),
			Day:       time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), Ratio: 0.1,
			Raw: json.RawMessage(`{"A":[1,2]}`), Maybe: new(int64),
			MaybeAt:   sql.NullTime{Time: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), Valid: true},
			MaybeText: sql.NullString{String: "x", Valid: true}, MaybeInt: sql.Null[int64]{V: 7, Valid: true},
		}
		*want.Maybe = 9007199254740993
		want.Document.A = []int{1, 2}
		fmt.Sscan(x.Text("values.biggest_integer"), &want.Biggest)
		got.Raw = json.RawMessage(strings.ReplaceAll(string(got.Raw), " ", ""))
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(exactDecimal{})); diff != "" {
			x.Error(diff)
		}

		values := map[string]any{}
		if err := e.Decode(values); err != nil || values["id"] != int64(math.MinInt64) ||
			values["maybe"] != int64(9007199254740993) {
			x.Errorf("the entry decodes into the map %v, %v", values, err)
		}
		var number struct{ Maybe big.Int }
		if err := e.Decode(&number); err != nil || number.Maybe.String() != "9007199254740993" {
			x.Errorf("the entry decodes into %v, %v, want a big.Int", number, err)
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
				x.Errorf("%s: the entry decodes into %+v without an error", name, into)
			}
		}
		err := e.Decode(&decoded{}, rowfeed.EveryField)
		if err == nil || !strings.Contains(err.Error(), `field Absent has no column "Absent"`) {
			x.Errorf("decoding with EveryField failed with %v", err)
		}

		// NULL can be decoded into types that can hold it.
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
		if err := null.Decode(&maybe); err != nil || maybe.Maybe != nil || maybe.MaybeAt.Valid ||
			maybe.MaybeText.Valid || maybe.Body != nil || maybe.More != nil {
			x.Errorf("the row of NULLs decodes into %+v, %v", maybe, err)
		}
		err = null.Decode(&struct{ Title string }{})
		if err == nil || !strings.Contains(err.Error(), `column "title", field Title: NULL`) {
			x.Errorf("decoding NULL into a string failed with %v", err)
		}
	})
}

type hiddenPart struct{ K map[string]int }

// TestDecodeClearsFormerValues: a struct that is decoded into again has the values of the second row only. A field that
// cannot be set is an error.
func TestDecodeClearsFormerValues(t *testing.T) {
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
				x.Errorf("decoding into a nil pointer to an unexported struct failed with %v", err)
			}
		}
		if diff := cmp.Diff(map[string]int{"b": 2}, into.K); diff != "" {
			x.Error(diff)
		}
	})
}
