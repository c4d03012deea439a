package conform

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// wish is a request, and the problem that it should get.
type wish struct {
	method, path    string // GET, where it is empty
	query           url.Values
	accept          string
	status          int
	code, parameter string
}

// problem wants a problem, whole, and not to be kept.
func (p *probe) problem(ctx context.Context, w wish) error {
	if w.method == "" {
		w.method = http.MethodGet
	}
	var header []string
	if w.accept != "" {
		header = []string{"Accept", w.accept}
	}
	a, err := p.ask(ctx, w.method, w.path, w.query, header...)
	if err != nil {
		return err
	}
	asked := fmt.Sprintf("%s %s?%s", w.method, w.path, w.query.Encode())
	var said struct {
		Type, Title, Detail, Parameter string
		Status                         int
	}
	switch err := json.Unmarshal(a.body, &said); {
	case a.status != w.status:
		return fmt.Errorf("%s: status %d, not %d: %.200s", asked, a.status, w.status, a.body)
	case a.mediaType() != problemType || err != nil:
		return fmt.Errorf("%s: Content-Type %q: %.200s", asked, a.header.Get("Content-Type"), a.body)
	case said.Type != "urn:rowfeed:problem:"+w.code:
		return fmt.Errorf("%s: type %q, not %s", asked, said.Type, w.code)
	case said.Title == "" || said.Detail == "" || said.Status != a.status:
		return fmt.Errorf("%s: title, detail or status is missing or wrong: %s", asked, a.body)
	case said.Parameter != w.parameter:
		return fmt.Errorf("%s: parameter %q, not %q", asked, said.Parameter, w.parameter)
	case !slices.Contains(a.header.Values("Cache-Control"), "no-store"):
		return fmt.Errorf("%s: Cache-Control %q", asked, a.header.Get("Cache-Control"))
	case w.status == http.StatusMethodNotAllowed && a.header.Get("Allow") != "GET, HEAD":
		return fmt.Errorf("%s: Allow %q", asked, a.header.Get("Allow"))
	}
	return nil
}

func (p *probe) problems(ctx context.Context, wishes ...wish) error {
	for _, w := range wishes {
		if err := p.problem(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// badly is a fetch whose parameter is at fault.
func (p *probe) badly(parameter, value string) wish {
	return wish{path: p.fetchPath(), query: p.with(parameter, value), status: 400, code: "invalid-request",
		parameter: parameter}
}

func ofProblems() []check {
	return []check{
		{"7.1", "A feed that there is not MUST be answered with 404 and the code unknown-feed (403 and forbidden, " +
			"where who asks may not know). An error is an RFC 9457 problem: application/problem+json with type, " +
			"title, status and detail, of which status is that of the answer, and it is not to be kept (no-store).",
			func(ctx context.Context, p *probe) error {
				unknown := wish{path: "/_feeds/fetch/no_such_feed_as_this", status: 404, code: "unknown-feed"}
				forbidden := unknown
				forbidden.status, forbidden.code = 403, "forbidden"
				if err := p.problem(ctx, unknown); err != nil && p.problem(ctx, forbidden) != nil {
					return err
				}
				return nil
			}},
		{"7.2", "A parameter that there is not, or that is given twice, MUST be refused with 400, " +
			"and named by the member parameter.", func(ctx context.Context, p *probe) error {
			twice := p.badly("limit", "1")
			twice.query.Add("limit", "1")
			return p.problems(ctx, p.badly("offset", "1"), p.badly("after[]", "1"), twice)
		}},
		{"7.3", "A limit that is no whole number between 1 and 10000 MUST be refused with 400 and the parameter limit.",
			func(ctx context.Context, p *probe) error {
				return p.problems(ctx, p.badly("limit", "0"), p.badly("limit", "10001"), p.badly("limit", "-1"),
					p.badly("limit", "ten"), p.badly("limit", ""))
			}},
		{"7.4", "A wait without a unit, below 0 or above 1m MUST be refused with 400 and the parameter wait.",
			func(ctx context.Context, p *probe) error {
				return p.problems(ctx, p.badly("wait", "30"), p.badly("wait", "-1s"), p.badly("wait", "61s"))
			}},
		{"7.5", "Who accepts no form that there is MUST be answered with 406 and the code not-acceptable.",
			func(ctx context.Context, p *probe) error {
				return p.problem(ctx, wish{path: p.fetchPath(), query: p.with(), accept: "image/png", status: 406,
					code: "not-acceptable"})
			}},
		{"7.6", "A method that is neither GET nor HEAD MUST be answered with 405, " +
			"the code method-not-allowed and `Allow: GET, HEAD`.", func(ctx context.Context, p *probe) error {
			// which changes nothing anywhere
			return p.problem(ctx,
				wish{method: "PROPFIND", path: p.fetchPath(), query: p.with(), status: 405, code: "method-not-allowed"})
		}},
		{"7.7", "A path that there is not MUST be answered with 404 and the code not-found.",
			func(ctx context.Context, p *probe) error {
				return p.problem(ctx, wish{path: p.fetchPath() + "/more", status: 404, code: "not-found"})
			}},
		{"7.8",
			"A 200 MUST NOT be sent before the page was read: what cannot be answered has the status of its problem, " +
				"whatever the form that was asked for, also of a stream.",
			func(ctx context.Context, p *probe) error {
				for _, accept := range []string{linesType, batchType} {
					bad := p.badly("after", "x")
					if bad.accept = accept; p.problem(ctx, bad) != nil {
						return p.problem(ctx, bad)
					}
				}
				bad := p.badly("after", "x")
				bad.path, bad.accept = strings.Replace(bad.path, "/fetch/", "/stream/", 1), streamType
				return p.problem(ctx, bad)
			}},
	}
}
