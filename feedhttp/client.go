package feedhttp

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Client reads one feed of a server as a [rowfeed.Source]. Its errors have the codes of the server: errors.Is(err,
// rowfeed.CursorAhead) works over HTTP. If the server cannot be reached, the code is [rowfeed.Unavailable]. A Client
// is safe for concurrent use once its fields are set. It must not be copied after its first use.
type Client struct {
	// URL is the address of the server, such as "http://127.0.0.1:8080", with a path if it is served below one. A
	// user and password in it are sent as basic authentication.
	URL string
	// Feed is the feed's name.
	Feed string
	// Token is sent as bearer token if it is not empty. `rowfeed token add` creates it.
	Token string
	// HTTP sends the requests. Default: http.DefaultClient.
	HTTP *http.Client
	// Tracer creates spans of requests, and sends their trace to the server. Default: the tracer of the context,
	// which a consumer with a tracer sets.
	Tracer feedtype.Tracer
	// Timeout is the maximum time of a request, in addition to the request's own Wait. Default: 1 minute.
	Timeout time.Duration
	// MaxBytes is the maximum size of an answer, after decompression. Default: 256 MiB.
	MaxBytes int64

	known atomic.Pointer[knownInfo]
}

// knownInfo is the description that entries are decoded with.
type knownInfo struct {
	info *feedtype.Info
	tag  string // of the delivered columns
}

var _ feedtype.ShardSource = (*Client)(nil)

const (
	defaultTimeout  = time.Minute
	defaultMaxBytes = 256 << 20
	// columnTries is the maximum number of attempts with a page, if the columns of the table change between the page
	// and the description.
	columnTries = 5
)

// Info returns the description of the feed, as it is now.
func (c *Client) Info(ctx context.Context) (*feedtype.Info, error) {
	body, _, err := c.get(ctx, "/_feeds/"+url.PathEscape(c.Feed), nil, 0)
	if err != nil {
		return nil, err
	}
	info := &feedtype.Info{}
	if err := json.Unmarshal(body, info); err != nil || info.Name == "" || info.Columns == nil {
		return nil, c.notRowfeed("the answer is not a description of a feed", err)
	}
	c.known.Store(&knownInfo{info, columnsTag(info.Columns)})
	return info, nil
}

// Fetch implements [rowfeed.Source].
func (c *Client) Fetch(ctx context.Context, req feedtype.Request) (feedtype.Page, error) {
	query := url.Values{}
	if req.After != feedtype.Beginning {
		query.Set("after", string(req.After))
	}
	if req.Limit != 0 {
		query.Set("limit", strconv.Itoa(req.Limit))
	}
	if req.Consistent {
		query.Set("consistent", "true")
	}
	if err := setShards(query, req.Shards); err != nil {
		return feedtype.Page{}, err
	}
	if req.Wait <= MaxWait || req.Consistent {
		return c.fetch(ctx, query, req.Wait)
	}
	// A server waits for at most MaxWait, so ask repeatedly.
	for until := time.Now().Add(req.Wait); ; {
		asked, wait := time.Now(), min(max(time.Until(until), time.Millisecond), MaxWait)
		page, err := c.fetch(ctx, query, wait)
		if err != nil || len(page.Entries) > 0 || page.More || !time.Now().Before(until) || time.Since(asked) < wait/2 {
			return page, err // also if the server did not wait: it may be shutting down
		}
		query.Set("after", string(page.Cursor))
	}
}

// setShards adds the parameters that select shards.
func setShards(query url.Values, shards feedtype.Shards) error {
	if err := shards.Check(); err != nil || shards.All() {
		return err
	}
	shard, count := shards.Numbers()
	query.Set("shard", strconv.Itoa(shard))
	if count > 0 {
		query.Set("shard_count", strconv.Itoa(count))
	}
	return nil
}

// fetch requests a page, and waits for an entry.
func (c *Client) fetch(ctx context.Context, query url.Values, wait time.Duration) (feedtype.Page, error) {
	if wait != 0 {
		query.Set("wait", wait.String())
	}
	for range columnTries {
		body, header, err := c.get(ctx, "/_feeds/fetch/"+url.PathEscape(c.Feed), query, max(wait, 0))
		if err != nil {
			return feedtype.Page{}, err
		}
		var w wirePage
		if err := json.Unmarshal(body, &w); err != nil || w.Entries == nil || w.Cursor == nil || w.More == nil {
			return feedtype.Page{}, c.notRowfeed("the answer is not a page of a feed", err)
		}
		// Use the known description first. If it does not fit, read the description once.
		tag, known := header.Get(columnsHeader), c.known.Load()
		for fresh := false; ; fresh = true {
			if known != nil && (tag == "" || tag == known.tag || len(w.Entries) == 0) {
				page, ok, err := w.read(known.info)
				if err != nil {
					return feedtype.Page{}, c.notRowfeed("the page cannot be read", err)
				}
				if page.Standing = header.Get(watermarkHeader); ok {
					return page, nil
				}
			}
			if fresh {
				break // the columns have changed since the page: request it again
			}
			if _, err := c.Info(ctx); err != nil {
				return feedtype.Page{}, err
			}
			known = c.known.Load()
		}
	}
	return feedtype.Page{}, c.failure(feedtype.Failed, "the table's columns change too fast", "try again", nil)
}

// wirePage is a page as JSON. Pointers and nil show which members were missing.
type wirePage struct {
	Entries []json.RawMessage `json:"entries"`
	Cursor  *feedtype.Cursor  `json:"cursor"`
	More    *bool             `json:"more"`
	Stamps  []int64           `json:"stamps"` // of the entries; servers of before did not send them
}

// read decodes the page. ok is false if info does not describe its entries.
func (w *wirePage) read(info *feedtype.Info) (page feedtype.Page, ok bool, err error) {
	page = feedtype.Page{Entries: make([]feedtype.Entry, 0, len(w.Entries)), Cursor: *w.Cursor, More: *w.More,
		Key: info.Key, Columns: info.Columns}
	generation := w.Cursor.Generation()
	for i, data := range w.Entries {
		e, ok, err := feedtype.ParseEntry(data, generation, info)
		if err != nil || !ok {
			return feedtype.Page{}, ok, err
		}
		if i < len(w.Stamps) {
			e.Stamp = w.Stamps[i]
		}
		page.Entries = append(page.Entries, e)
	}
	return page, true, nil
}

// failure returns an error about the feed, with the address of the server.
func (c *Client) failure(code feedtype.Code, cause, next string, err error) *feedtype.Error {
	where := c.URL
	if u, e := url.Parse(c.URL); e == nil {
		u.RawQuery, u.Fragment = "", "" // requests do not have them, and they may be a secret
		where = u.Redacted()
	}
	return &feedtype.Error{Code: code, Object: feedObject(c.Feed) + " at " + where, Cause: cause, Next: next, Err: err}
}

func (c *Client) notRowfeed(cause string, err error) *feedtype.Error {
	return c.failure(feedtype.Failed, cause, "check that the URL is that of a `rowfeed serve` (without /_feeds)", err)
}

// Standings implements [rowfeed.ShardSource].
func (c *Client) Standings(ctx context.Context, since string, wait time.Duration) (*feedtype.Standings, error) {
	query := url.Values{}
	if since != "" {
		query.Set("since", since)
	}
	if wait = min(wait, MaxWait); wait > 0 {
		query.Set("wait", wait.String())
	}
	body, _, err := c.get(ctx, "/_feeds/shards/"+url.PathEscape(c.Feed), query, max(wait, 0))
	if err != nil {
		return nil, err
	}
	now := &feedtype.Standings{}
	if err := json.Unmarshal(body, now); err != nil || now.Digest == "" {
		return nil, c.notRowfeed("the answer has no watermarks of shards", err)
	}
	return now, nil
}
