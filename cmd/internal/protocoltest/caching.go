package protocoltest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// notCached returns an error if a cache may use the response again without asking the server.
func notCached(a *response) error {
	control := strings.ToLower(strings.Join(a.header.Values("Cache-Control"), ","))
	for _, word := range []string{"public", "immutable", "max-age", "s-maxage", "stale-"} {
		if strings.Contains(control, word) {
			return fmt.Errorf("Cache-Control: %s", control)
		}
	}
	if !strings.Contains(control, "no-store") && !strings.Contains(control, "no-cache") {
		return fmt.Errorf("Cache-Control: %q", control)
	}
	return nil
}

func cachingChecks() []check {
	return []check{
		{"9.1", "A cache MUST NOT use a page again without asking the server, however old the page's positions are: " +
			"its rows change. Cache-Control has no-cache or no-store, and neither public nor an age.",
			func(ctx context.Context, f *feed) error {
				for _, limit := range []string{"1", "500"} {
					page, err := f.fetch(ctx, f.with("limit", limit))
					if err != nil {
						return err
					}
					if err := notCached(page.response); err != nil {
						return err
					}
				}
				return nil
			}},
		{"9.2", "A page SHOULD have an ETag, and If-None-Match with it is answered with 304 while the page is the " +
			"same.",
			func(ctx context.Context, f *feed) error {
				page, err := f.fetch(ctx, f.with("limit", "1"))
				if err != nil {
					return err
				}
				tag := page.header.Get("ETag")
				if tag == "" {
					return fmt.Errorf("there is none")
				}
				again, err := f.ask(ctx, http.MethodGet, f.fetchPath(), f.with("limit", "1"), "Accept", jsonType,
					"If-None-Match", tag)
				if err == nil &&
					(again.status != http.StatusNotModified || len(again.body) > 0 || again.header.Get("ETag") != tag) {
					err = fmt.Errorf("status %d, ETag %q, %d bytes",
						again.status, again.header.Get("ETag"), len(again.body))
				}
				return err
			}},
		{"9.3", "Two different pages MUST NOT have the same ETag, nor two formats of the same page.",
			func(ctx context.Context, f *feed) error {
				all, _, _, err := f.beginning(ctx, 2)
				if err != nil {
					return err
				}
				tags := map[string]string{}
				for _, accept := range []string{jsonType, linesType} {
					for _, limit := range []int{1, 2, min(len(all), 50)} {
						a, err := f.ask(ctx, http.MethodGet, f.fetchPath(), f.with("limit", fmt.Sprint(limit)),
							"Accept", accept)
						if err != nil {
							return err
						}
						tag := strings.TrimPrefix(a.header.Get("ETag"), "W/")
						if other, known := tags[tag]; tag != "" && known && other != string(a.body) {
							return fmt.Errorf("%s is that of two", tag)
						}
						tags[tag] = string(a.body)
					}
				}
				return nil
			}},
		{"9.4", "`Vary` MUST name Accept, and Accept-Encoding if pages are compressed.",
			func(ctx context.Context, f *feed) error {
				a, err := f.ask(ctx, http.MethodGet, f.fetchPath(), f.with("limit", "500"),
					"Accept-Encoding", "zstd, gzip")
				if err != nil {
					return err
				}
				named := map[string]bool{}
				for name := range strings.SplitSeq(strings.Join(a.header.Values("Vary"), ","), ",") {
					named[strings.ToLower(strings.TrimSpace(name))] = true
				}
				if !named["accept"] || a.header.Get("Content-Encoding") != "" && !named["accept-encoding"] {
					return fmt.Errorf("the response has Vary: %s", strings.Join(a.header.Values("Vary"), ", "))
				}
				return nil
			}},
	}
}
