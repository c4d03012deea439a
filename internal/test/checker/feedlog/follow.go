package feedlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Follower reads a feed over HTTP from its beginning.
type Follower struct {
	// URL is the URL of the feed's pages: http://127.0.0.1:8080/_feeds/fetch/kv. It may select a part of the feed:
	// …/kv?shard=7.
	URL string
	// Limit is the number of entries to ask for at once.
	Limit int
	// Wait, if not 0, is how long the server holds a request until there is an entry.
	Wait time.Duration
	// Patience is how long the server may fail to answer a page. A server whose database is unavailable answers 5xx,
	// which is no fault.
	Patience time.Duration
	// Quiet, if not 0, ends Follow when no entry has arrived for so long.
	Quiet time.Duration
	// Got is called with every entry, in the order of arrival.
	Got func(Entry) error
}

// Stats count what Follow did.
type Stats struct {
	Pages, Failures int
}

const (
	betweenPages = 2 * time.Millisecond
	afterFailure = 20 * time.Millisecond
)

// Follow reads until finish is closed, and a page that was requested after that has reached the head and is empty. Then
// the feed has nothing more. Follow fails if the feed refuses its own cursor.
func (f *Follower) Follow(ctx context.Context, finish <-chan struct{}) (Stats, error) {
	var stats Stats
	cursor, answered, news := "", time.Now(), time.Now()
	for {
		finishing := f.Quiet > 0 && time.Since(news) > f.Quiet
		select {
		case <-finish:
			finishing = true
		default:
		}
		wait := f.Wait
		if finishing {
			wait = 0
		}
		page, err := f.page(ctx, cursor, wait)
		var away *awayError
		switch {
		case errors.As(err, &away) && ctx.Err() == nil && time.Since(answered) < f.Patience:
			stats.Failures++
			pause(ctx, afterFailure)
			continue
		case err != nil:
			return stats, err
		}
		stats.Pages++
		answered = time.Now()
		for _, e := range page.Entries {
			news = answered
			if err := f.Got(e); err != nil {
				return stats, err
			}
		}
		if page.Cursor == "" && len(page.Entries) > 0 {
			return stats, fmt.Errorf("a page with %d entries above %q has no cursor", len(page.Entries), cursor)
		}
		cursor = page.Cursor
		if page.More {
			continue
		}
		if finishing && len(page.Entries) == 0 {
			return stats, nil
		}
		pause(ctx, betweenPages)
	}
}

type page struct {
	Entries []Entry `json:"entries"`
	Cursor  string  `json:"cursor"`
	More    bool    `json:"more"`
}

// awayError is the error of a server, or its database, that is unavailable.
type awayError struct{ err error }

func (e *awayError) Error() string { return e.err.Error() }
func (e *awayError) Unwrap() error { return e.err }

func (f *Follower) page(ctx context.Context, after string, wait time.Duration) (page, error) {
	query := url.Values{"after": {after}, "limit": {strconv.Itoa(f.Limit)}}
	if wait > 0 {
		query.Set("wait", wait.String())
	}
	joint := "?"
	if strings.Contains(f.URL, "?") {
		joint = "&"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL+joint+query.Encode(), nil)
	if err != nil {
		return page{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return page{}, &awayError{err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return page{}, &awayError{err}
	}
	if response.StatusCode != http.StatusOK {
		err := fmt.Errorf("after=%s: %s: %s", after, response.Status, body)
		if response.StatusCode >= 500 {
			err = &awayError{err}
		}
		return page{}, err
	}
	// Every member must be present: a page without "more" would end Follow too early.
	var wire struct {
		Entries *[]Entry `json:"entries"`
		Cursor  *string  `json:"cursor"`
		More    *bool    `json:"more"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return page{}, fmt.Errorf("after=%s: %w: %s", after, err, body)
	}
	if wire.Entries == nil || wire.Cursor == nil || wire.More == nil {
		return page{}, fmt.Errorf("after=%s: entries, cursor or more is missing: %s", after, body)
	}
	return page{*wire.Entries, *wire.Cursor, *wire.More}, nil
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
