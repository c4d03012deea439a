package feedhttp

import "testing"

func TestNegotiateSelectsAcceptedMediaType(t *testing.T) {
	const none = ""
	for _, c := range []struct {
		accept []string
		want   string
	}{
		{nil, jsonMediaType},
		{[]string{""}, jsonMediaType},
		{[]string{"*/*"}, jsonMediaType},
		{[]string{"application/*"}, jsonMediaType},
		{[]string{"application/json"}, jsonMediaType},
		{[]string{"application/json; charset=utf-8"}, jsonMediaType},
		{[]string{"APPLICATION/X-NDJSON"}, ndjsonMediaType},
		{[]string{"application/x-ndjson, */*"}, ndjsonMediaType},
		{[]string{"application/x-ndjson, */*;q=0.1"}, ndjsonMediaType},
		{[]string{"application/x-ndjson;q=0.5, application/json"}, jsonMediaType},
		{[]string{"application/x-ndjson", "application/json;q=0.9"}, ndjsonMediaType},
		{[]string{"application/json, application/x-ndjson"}, jsonMediaType},
		{[]string{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, jsonMediaType},
		{[]string{"application/json;q=0, */*"}, ndjsonMediaType},
		{[]string{"application/json;q=0, application/x-ndjson;q=0.0"}, none},
		{[]string{"*/*;q=0"}, none},
		{[]string{"text/html"}, none},
		{[]string{"text/*"}, none},
		{[]string{"application/json;q=2"}, none},
		{[]string{"application/json;q=NaN"}, none},
		{[]string{";;;, application/x-ndjson"}, ndjsonMediaType},
	} {
		got, ok := negotiate(c.accept, jsonMediaType, ndjsonMediaType)
		if got != c.want || ok != (c.want != none) {
			t.Errorf("%q: %q, %v; want %q", c.accept, got, ok, c.want)
		}
	}
}
