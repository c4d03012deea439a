package protocoltest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// expected is a request, and the problem that is expected in its response.
type expected struct {
	method, path    string // GET, where it is empty
	query           url.Values
	accept          string
	status          int
	code, parameter string
}

// problem fails if the response is not the expected problem, with all its members, and with Cache-Control: no-store.
func (f *feed) problem(ctx context.Context, want expected) error {
	if want.method == "" {
		want.method = http.MethodGet
	}
	var header []string
	if want.accept != "" {
		header = []string{"Accept", want.accept}
	}
	a, err := f.ask(ctx, want.method, want.path, want.query, header...)
	if err != nil {
		return err
	}
	asked := fmt.Sprintf("%s %s?%s", want.method, want.path, want.query.Encode())
	var got struct {
		Type, Title, Detail, Parameter string
		Status                         int
	}
	switch err := json.Unmarshal(a.body, &got); {
	case a.status != want.status:
		return fmt.Errorf("%s: status %d, not %d: %.200s", asked, a.status, want.status, a.body)
	case a.mediaType() != problemType || err != nil:
		return fmt.Errorf("%s: Content-Type %q: %.200s", asked, a.header.Get("Content-Type"), a.body)
	case got.Type != "urn:rowfeed:problem:"+want.code:
		return fmt.Errorf("%s: type %q, not %s", asked, got.Type, want.code)
	case got.Title == "" || got.Detail == "" || got.Status != a.status:
		return fmt.Errorf("%s: title, detail or status is missing or wrong: %s", asked, a.body)
	case got.Parameter != want.parameter:
		return fmt.Errorf("%s: parameter %q, not %q", asked, got.Parameter, want.parameter)
	case !slices.Contains(a.header.Values("Cache-Control"), "no-store"):
		return fmt.Errorf("%s: Cache-Control %q", asked, a.header.Get("Cache-Control"))
	case want.status == http.StatusMethodNotAllowed && a.header.Get("Allow") != "GET, HEAD":
		return fmt.Errorf("%s: Allow %q", asked, a.header.Get("Allow"))
	}
	return nil
}

func (f *feed) problems(ctx context.Context, all ...expected) error {
	for _, want := range all {
		if err := f.problem(ctx, want); err != nil {
			return err
		}
	}
	return nil
}

// badParameter expects that a page is refused because of a parameter.
func (f *feed) badParameter(parameter, value string) expected {
	return expected{path: f.fetchPath(), query: f.with(parameter, value), status: 400, code: "invalid-request",
		parameter: parameter}
}

func problemChecks() []check {
	return []check{
		{"7.1", "A request for an unknown feed MUST be answered with 404 and the code unknown-feed (403 and " +
			"forbidden, if the client may not know which feeds exist). An error is an RFC 9457 problem: " +
			"application/problem+json with type, title, status and detail, status is that of the response, and the " +
			"response has Cache-Control: no-store.",
			func(ctx context.Context, f *feed) error {
				unknown := expected{path: "/_feeds/fetch/no_such_feed_as_this", status: 404, code: "unknown-feed"}
				forbidden := unknown
				forbidden.status, forbidden.code = 403, "forbidden"
				if err := f.problem(ctx, unknown); err != nil && f.problem(ctx, forbidden) != nil {
					return err
				}
				return nil
			}},
		{"7.2", "A parameter that is unknown or given twice MUST be refused with 400, and the member parameter names " +
			"it.", func(ctx context.Context, f *feed) error {
			twice := f.badParameter("limit", "1")
			twice.query.Add("limit", "1")
			return f.problems(ctx, f.badParameter("offset", "1"), f.badParameter("after[]", "1"), twice)
		}},
		{"7.3", "A limit that is no whole number between 1 and 10000 MUST be refused with 400 and the parameter limit.",
			func(ctx context.Context, f *feed) error {
				return f.problems(ctx, f.badParameter("limit", "0"), f.badParameter("limit", "10001"),
					f.badParameter("limit", "-1"), f.badParameter("limit", "ten"), f.badParameter("limit", ""))
			}},
		{"7.4", "A wait without a unit, below 0 or above 1m MUST be refused with 400 and the parameter wait.",
			func(ctx context.Context, f *feed) error {
				return f.problems(ctx, f.badParameter("wait", "30"), f.badParameter("wait", "-1s"),
					f.badParameter("wait", "61s"))
			}},
		{"7.5", "A request that accepts no format of the server MUST be answered with 406 and the code not-acceptable.",
			func(ctx context.Context, f *feed) error {
				return f.problem(ctx, expected{path: f.fetchPath(), query: f.with(), accept: "image/png", status: 406,
					code: "not-acceptable"})
			}},
		{"7.6", "A method that is neither GET nor HEAD MUST be answered with 405, " +
			"the code method-not-allowed and `Allow: GET, HEAD`.", func(ctx context.Context, f *feed) error {
			// PROPFIND changes nothing on any server.
			return f.problem(ctx,
				expected{method: "PROPFIND", path: f.fetchPath(), query: f.with(), status: 405,
					code: "method-not-allowed"})
		}},
		{"7.7", "An unknown path MUST be answered with 404 and the code not-found.",
			func(ctx context.Context, f *feed) error {
				return f.problem(ctx, expected{path: f.fetchPath() + "/more", status: 404, code: "not-found"})
			}},
		{"7.8", "A 200 MUST NOT be sent before the page was read: a request that fails has the status of its " +
			"problem, in every format, and also for a stream.",
			func(ctx context.Context, f *feed) error {
				for _, accept := range []string{linesType, batchType} {
					bad := f.badParameter("after", "x")
					if bad.accept = accept; f.problem(ctx, bad) != nil {
						return f.problem(ctx, bad)
					}
				}
				bad := f.badParameter("after", "x")
				bad.path, bad.accept = strings.Replace(bad.path, "/fetch/", "/stream/", 1), streamType
				return f.problem(ctx, bad)
			}},
	}
}
