package rowfeed

import (
	"testing"

	"github.com/rowfeed/rowfeed/dialect"
)

// TestSpelling: a filter's value is compared in the one spelling of its column's type, and
// what is no value of it fits nothing.
func TestSpelling(t *testing.T) {
	for _, c := range []struct {
		kind   dialect.Kind
		text   string
		value  any
		equals bool
	}{
		{dialect.Integer, "007", int64(7), true},
		{dialect.Integer, "18446744073709551615", uint64(18446744073709551615), true},
		{dialect.Integer, "7.0", int64(7), false},
		{dialect.Integer, "7 OR 1=1", int64(7), false},
		{dialect.Integer, "", int64(0), false},
		{dialect.Decimal, "1.5", "1.50", true},
		{dialect.Decimal, "-0", "0.00", true},
		{dialect.Decimal, "1/2", "0.5", false},
		{dialect.Decimal, "0x10", "16", false},
		{dialect.Decimal, "NaN", "NaN", true},
		{dialect.Boolean, "TRUE", true, true},
		{dialect.Boolean, "yes", true, false},
		{dialect.Float64, "1", 1.0, true},
		{dialect.Float64, "0.1", 0.1, true},
		{dialect.Binary, "AAE=", []byte{0, 1}, true},
		{dialect.Binary, "AAE=", "AAE=", false}, // text in a column of bytes
		{dialect.Text, "acme", "acme", true},
		{dialect.Text, "acme", "Acme", false},
		{dialect.Text, "", "", true},
		{dialect.Text, "", nil, false},
		{dialect.Dynamic, "7", int64(7), true},
		{dialect.Dynamic, "AAE=", []byte{0, 1}, false},
	} {
		column := Column{Name: "c", Kind: c.kind}
		want, given := spelled(column, c.text)
		got, has := spelling(column, c.value)
		if equals := given && has && want == got; equals != c.equals {
			t.Errorf("%s: %q is %v: %v (%q, %q)", c.kind, c.text, c.value, equals, want, got)
		}
	}
	uuid, _ := spelled(Column{Type: "uuid", Kind: dialect.Text}, "ABCD")
	if uuid != "abcd" {
		t.Error(uuid)
	}
}
