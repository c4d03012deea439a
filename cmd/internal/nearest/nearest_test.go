package nearest

import "testing"

func TestNearestNameIsSuggested(t *testing.T) {
	names := []string{"myevent", "kv", "orders", "order_lines"}
	for wrong, want := range map[string]string{
		"MyEvent": "myevent", "KV": "kv", "order": "orders", "oders": "orders", "orderlines": "order_lines",
		"kw": "", "customers": "", "": "", "orders": "",
	} {
		if got := Name(wrong, names); got != want {
			t.Errorf("%q: %q, want %q", wrong, got, want)
		}
	}
}
