package feedtype

import (
	"testing"
)

// TestViewFilterComparesCanonicalSpelling: a filter's value is compared in the canonical spelling of its column's type.
// A text that is not a value of the type matches nothing.
func TestViewFilterComparesCanonicalSpelling(t *testing.T) {
	for _, c := range []struct {
		kind   Kind
		text   string
		value  any
		equals bool
	}{
		{Integer, "007", int64(7), true},
		{Integer, "18446744073709551615", uint64(18446744073709551615), true},
		{Integer, "7.0", int64(7), false},
		{Integer, "7 OR 1=1", int64(7), false},
		{Integer, "", int64(0), false},
		{Decimal, "1.5", "1.50", true},
		{Decimal, "-0", "0.00", true},
		{Decimal, "1/2", "0.5", false},
		{Decimal, "0x10", "16", false},
		{Decimal, "NaN", "NaN", true},
		{Boolean, "TRUE", true, true},
		{Boolean, "yes", true, false},
		{Float64, "1", 1.0, true},
		{Float64, "0.1", 0.1, true},
		{Binary, "AAE=", []byte{0, 1}, true},
		{Binary, "AAE=", "AAE=", false}, // text in a binary column
		{Text, "acme", "acme", true},
		{Text, "acme", "Acme", false},
		{Text, "", "", true},
		{Text, "", nil, false},
		{Dynamic, "7", int64(7), true},
		{Dynamic, "AAE=", []byte{0, 1}, false},
	} {
		column := Column{Name: "c", Kind: c.kind}
		want, given := spelled(column, c.text)
		got, has := spelling(column, c.value)
		if equals := given && has && want == got; equals != c.equals {
			t.Errorf("%s: %q is %v: %v (%q, %q)", c.kind, c.text, c.value, equals, want, got)
		}
	}
	uuid, _ := spelled(Column{Type: "uuid", Kind: Text}, "ABCD")
	if uuid != "abcd" {
		t.Error(uuid)
	}
}
