package conform

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// maxWindow is the largest zstd window that browsers take.
const maxWindow = 8 << 20

// unkept wants of an answer that nobody shows it again without asking.
func unkept(a *answer) error {
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

// inflated is the body as it was before it was compressed.
func inflated(a *answer) ([]byte, error) {
	switch coding := a.header.Get("Content-Encoding"); coding {
	case "":
		return a.body, nil
	case "gzip":
		z, err := gzip.NewReader(bytes.NewReader(a.body))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(io.LimitReader(z, maxBody))
	case "zstd":
		z, err := zstd.NewReader(bytes.NewReader(a.body), zstd.WithDecoderMaxWindow(maxWindow),
			zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		return io.ReadAll(io.LimitReader(z, maxBody))
	default:
		return nil, fmt.Errorf("Content-Encoding: %s", coding)
	}
}

// coded wants a page that is asked for in a coding to be in none or in that one, and the same page.
func (p *probe) coded(ctx context.Context, accept string, may string) error {
	var plain []byte
	for _, coding := range []string{"identity", accept, "identity"} {
		a, err := p.ask(ctx, http.MethodGet, p.fetchPath(), p.with("limit", "500"), "Accept-Encoding", coding)
		if err != nil {
			return err
		}
		body, err := inflated(a)
		if err != nil {
			return err
		}
		got := a.header.Get("Content-Encoding")
		switch {
		case coding == "identity" && got != "", got != "" && got != may:
			return fmt.Errorf("Accept-Encoding: %s was answered with %s", coding, got)
		case coding != "identity" && got == "":
			if may != "" && len(body) > 64<<10 {
				return untried("pages are not compressed")
			}
		}
		if plain != nil && !bytes.Equal(plain, body) {
			if coding == "identity" {
				return untried("the page changes all the time")
			}
			again, err := p.ask(ctx, http.MethodGet, p.fetchPath(), p.with("limit", "500"), "Accept-Encoding",
				"identity")
			if err != nil {
				return err
			}
			if bytes.Equal(again.body, plain) {
				return fmt.Errorf("in %s it is another page", got)
			}
			return untried("the page changes all the time")
		}
		plain = body
	}
	return nil
}

func ofCaches() []check {
	return []check{
		{"9.1", "A page MUST NOT be shown again without asking, however old its positions are: its rows change. " +
			"Cache-Control has no-cache or no-store, and neither public nor an age.",
			func(ctx context.Context, p *probe) error {
				for _, limit := range []string{"1", "500"} {
					page, err := p.fetch(ctx, p.with("limit", limit))
					if err != nil {
						return err
					}
					if err := unkept(page.answer); err != nil {
						return err
					}
				}
				return nil
			}},
		{"9.2", "A page SHOULD have an ETag, with which If-None-Match is answered by 304 while the page is the same.",
			func(ctx context.Context, p *probe) error {
				page, err := p.fetch(ctx, p.with("limit", "1"))
				if err != nil {
					return err
				}
				tag := page.header.Get("ETag")
				if tag == "" {
					return fmt.Errorf("there is none")
				}
				again, err := p.ask(ctx, http.MethodGet, p.fetchPath(), p.with("limit", "1"), "Accept", jsonType,
					"If-None-Match", tag)
				if err == nil &&
					(again.status != http.StatusNotModified || len(again.body) > 0 || again.header.Get("ETag") != tag) {
					err = fmt.Errorf("status %d, ETag %q, %d bytes",
						again.status, again.header.Get("ETag"), len(again.body))
				}
				return err
			}},
		{"9.3", "Two pages that are not the same MUST NOT have the same ETag, nor two forms of one.",
			func(ctx context.Context, p *probe) error {
				all, _, _, err := p.beginning(ctx, 2)
				if err != nil {
					return err
				}
				tags := map[string]string{}
				for _, accept := range []string{jsonType, linesType} {
					for _, limit := range []int{1, 2, min(len(all), 50)} {
						a, err := p.ask(ctx, http.MethodGet, p.fetchPath(), p.with("limit", fmt.Sprint(limit)),
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
		{"9.4", "`Vary` MUST name Accept, " +
			"and Accept-Encoding where pages are compressed.", func(ctx context.Context, p *probe) error {
			a, err := p.ask(ctx, http.MethodGet, p.fetchPath(), p.with("limit", "500"), "Accept-Encoding", "zstd, gzip")
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

func ofCodings() []check {
	return []check{
		{"10.1", "A page MUST NOT be compressed for who does not ask for it.",
			func(ctx context.Context, p *probe) error {
				return p.coded(ctx, "identity", "")
			}},
		{"10.2", "A page in gzip MUST be the page.", func(ctx context.Context, p *probe) error {
			return p.coded(ctx, "gzip", "gzip")
		}},
		{"10.3", "A page in zstd MUST be the page, with a window of at most 8 MiB.",
			func(ctx context.Context, p *probe) error {
				return p.coded(ctx, "zstd", "zstd")
			}},
	}
}
