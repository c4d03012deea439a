package protocoltest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// streamTimeout is how long a stream may take to send the entries that exist.
const streamTimeout = 20 * time.Second

// event is an event of a stream.
type event struct {
	id    string
	entry entry
}

// listen reads the first n events of a stream that have data.
func (f *feed) listen(ctx context.Context, query url.Values, lastID string, n int) (all []event, err error) {
	ctx, cancel := context.WithTimeout(ctx, streamTimeout)
	defer cancel()
	header := []string{"Accept", streamType}
	if lastID != "" {
		header = append(header, "Last-Event-ID", lastID)
	}
	resp, err := f.request(ctx, http.MethodGet, strings.Replace(f.fetchPath(), "/fetch/", "/stream/", 1), query,
		header...)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK ||
		!strings.HasPrefix(kind, streamType) {
		return nil, fmt.Errorf("status %d, Content-Type %q", resp.StatusCode, kind)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxBody)
	id, data := "", ""
	for len(all) < n && lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		switch value = strings.TrimPrefix(value, " "); {
		case field == "id":
			id = value
		case field == "data":
			data += value + "\n"
		case lines.Text() == "" && data != "":
			e := event{id: id}
			if err := json.Unmarshal([]byte(data), &e.entry); err != nil {
				return nil, fmt.Errorf("an event has the data %.200q: %w", data, err)
			}
			all, data = append(all, e), ""
		}
	}
	if len(all) < n {
		return nil, fmt.Errorf("%d of %d events arrived: %v", len(all), n, lines.Err())
	}
	return all, nil
}

// events reads the events of the feed's first entries, 20 at most, and the same entries from pages.
func (f *feed) events(ctx context.Context, least int) (all []event, shown []entry, err error) {
	shown, _, _, err = f.beginning(ctx, least)
	if err != nil {
		return nil, nil, err
	}
	shown = shown[:min(len(shown), 20)]
	all, err = f.listen(ctx, f.with(), "", len(shown))
	return all, shown, err
}

func streamChecks() []check {
	return []check{
		{"6.1", "A stream MUST be text/event-stream and have the entries that pages have, in the same order, one " +
			"event for each entry.", func(ctx context.Context, f *feed) error {
			all, shown, err := f.events(ctx, 1)
			if err != nil {
				return err
			}
			for i, e := range all {
				if i > 0 && !above(e.entry.Position, all[i-1].entry.Position) {
					return fmt.Errorf("position %s follows %s", e.entry.Position, all[i-1].entry.Position)
				}
			}
			var streamed []entry
			for _, e := range all {
				streamed = append(streamed, e.entry)
			}
			after, _, _, err := f.readTo(ctx, nil, 500, shown[len(shown)-1].Position)
			if err != nil {
				return err
			}
			return same(shown, streamed, append(after, streamed[max(0, len(after)):]...))
		}},
		{"6.2", "The id of an event MUST be the cursor behind its entry.", func(ctx context.Context, f *feed) error {
			all, _, err := f.events(ctx, 2)
			if err != nil {
				return err
			}
			for _, e := range all[:min(len(all)-1, 3)] {
				page, err := f.fetch(ctx, f.with("after", e.id))
				if err != nil {
					return err
				}
				if len(page.Entries) == 0 || !above(page.Entries[0].Position, e.entry.Position) {
					return fmt.Errorf("behind the id %q of position %s the page is not the rest",
						e.id, e.entry.Position)
				}
			}
			return nil
		}},
		{"6.3", "`Last-Event-ID` MUST take precedence over after.", func(ctx context.Context, f *feed) error {
			all, _, err := f.events(ctx, 3)
			if err != nil {
				return err
			}
			next, err := f.listen(ctx, f.with("after", ""), all[1].id, 1)
			if err == nil && !above(next[0].entry.Position, all[1].entry.Position) {
				err = fmt.Errorf("position %[2]s follows the id %[1]q", all[1].id, next[0].entry.Position)
			}
			return err
		}},
	}
}
