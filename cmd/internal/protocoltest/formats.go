package protocoltest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// cloudEvent is an event of a batch of CloudEvents.
type cloudEvent struct {
	SpecVersion string          `json:"specversion"`
	ID          string          `json:"id"`
	Source      string          `json:"source"`
	Type        string          `json:"type"`
	Subject     string          `json:"subject"`
	Method      string          `json:"method"`
	Data        json.RawMessage `json:"data"`
}

// batch reads a batch of events, and returns an error if an event lacks a member.
func (f *feed) batch(
	ctx context.Context, path string, query url.Values,
) (all []cloudEvent, a *response, err error) {
	a, err = f.ask(ctx, http.MethodGet, path, query, "Accept", batchType)
	if err != nil {
		return nil, nil, err
	}
	if a.status != http.StatusOK || a.mediaType() != batchType {
		return nil, nil, fmt.Errorf("status %d, Content-Type %q", a.status, a.header.Get("Content-Type"))
	}
	if err := json.Unmarshal(a.body, &all); err != nil {
		return nil, nil, err
	}
	for _, e := range all {
		if e.SpecVersion != "1.0" || e.ID == "" || e.Source == "" || e.Type == "" || e.Subject == "" ||
			(e.Method == "DELETE") != (e.Data == nil) {
			return nil, nil, fmt.Errorf("the event %q lacks a member, or has data although it is a delete", e.ID)
		}
	}
	return all, a, nil
}

// pageOfLines compares the feed in NDJSON with the feed in JSON.
func pageOfLines(ctx context.Context, f *feed) error {
	return f.compared(ctx, func(upto string) (all []entry, err error) {
		for query := f.with("limit", "500"); ; {
			a, err := f.ask(ctx, http.MethodGet, f.fetchPath(), query, "Accept", linesType)
			if err != nil {
				return nil, err
			}
			if a.status != http.StatusOK || a.mediaType() != linesType ||
				!bytes.HasSuffix(a.body, []byte("\n")) {
				return nil, fmt.Errorf("status %d, Content-Type %q", a.status, a.header.Get("Content-Type"))
			}
			lines := strings.Split(strings.TrimSuffix(string(a.body), "\n"), "\n")
			for _, line := range lines[:len(lines)-1] {
				var e entry
				if err := json.Unmarshal([]byte(line), &e); err != nil || e.Position == "" {
					return nil, fmt.Errorf("a line is not an entry: %.200s", line)
				}
				if above(e.Position, upto) {
					return all, nil
				}
				all = append(all, e)
			}
			var end page
			if err := json.Unmarshal([]byte(lines[len(lines)-1]), &end); err != nil || end.Cursor == nil ||
				end.More == nil || end.Base64 == nil {
				return nil, fmt.Errorf("the last line is %.200s", lines[len(lines)-1])
			}
			if !*end.More {
				return all, nil
			}
			query.Set("after", *end.Cursor)
		}
	})
}

func formatChecks() []check {
	return []check{
		{"8.1", "With `Accept: application/x-ndjson` a page MUST have one line for each entry, and a last line with " +
			"cursor, more and base64.", pageOfLines},
		{"8.2", "HEAD MUST be answered like GET, without a body.", func(ctx context.Context, f *feed) error {
			get, err := f.ask(ctx, http.MethodGet, f.fetchPath(), f.with("limit", "1"))
			if err != nil {
				return err
			}
			head, err := f.ask(ctx, http.MethodHead, f.fetchPath(), f.with("limit", "1"))
			if err == nil && (head.status != get.status || head.mediaType() != get.mediaType() || len(head.body) > 0) {
				err = fmt.Errorf("status %d, Content-Type %q, %d bytes; GET: %d, %q",
					head.status, head.mediaType(), len(head.body), get.status, get.mediaType())
			}
			return err
		}},
		{"8.3", "With `Accept: application/cloudevents-batch+json` a page SHOULD be a batch of CloudEvents, " +
			"with the cursor in Rowfeed-Cursor and more in Rowfeed-More.", func(ctx context.Context, f *feed) error {
			all, a, err := f.batch(ctx, f.fetchPath(), f.with("limit", "5"))
			if err != nil {
				return err
			}
			more, err := strconv.ParseBool(a.header.Get("Rowfeed-More"))
			if _, given := a.header["Rowfeed-Cursor"]; err != nil || !given {
				return fmt.Errorf("Rowfeed-Cursor %q, Rowfeed-More %q",
					a.header.Get("Rowfeed-Cursor"), a.header.Get("Rowfeed-More"))
			}
			if more {
				next, _, err := f.batch(ctx, f.fetchPath(), f.with("after", a.header.Get("Rowfeed-Cursor")))
				if err != nil || len(next) > 0 && len(all) > 0 && next[0].ID == all[0].ID {
					return fmt.Errorf("the cursor %q does not lead on: %v", a.header.Get("Rowfeed-Cursor"), err)
				}
			}
			return nil
		}},
		{"8.4", "`/_feeds/http-feeds/{feed}` SHOULD have the feed as http-feeds.org defines it: a batch of " +
			"CloudEvents after `lastEventId`, an empty batch at the end.", func(ctx context.Context, f *feed) error {
			path, query, seen := "/_feeds/http-feeds/"+url.PathEscape(f.name), f.with("limit", "500"), map[string]bool{}
			for len(seen) < f.maxEntries {
				all, _, err := f.batch(ctx, path, query)
				if err != nil || len(all) == 0 {
					return err
				}
				for _, e := range all {
					if seen[e.ID] {
						return fmt.Errorf("the event %q came twice", e.ID)
					}
					seen[e.ID] = true
				}
				query.Set("lastEventId", all[len(all)-1].ID)
			}
			return nil
		}},
		{"8.5", "`GET /_feeds/openapi.json` SHOULD be an OpenAPI description of the server.",
			func(ctx context.Context, f *feed) error {
				var doc struct {
					OpenAPI string         `json:"openapi"`
					Paths   map[string]any `json:"paths"`
				}
				err := f.getJSON(ctx, "/_feeds/openapi.json", nil, &doc)
				if err == nil && (doc.OpenAPI == "" || doc.Paths["/_feeds/fetch/{feed}"] == nil) {
					err = fmt.Errorf("it does not describe /_feeds/fetch/{feed}")
				}
				return err
			}},
	}
}
