package conform

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	defaultEntries  = 2000
	defaultTries    = 3
	defaultPatience = 5 * time.Second
	defaultHold     = 600 * time.Millisecond
	timeout         = 90 * time.Second // the longest wait that may be asked for is a minute
	maxBody         = 256 << 20
	jsonType        = "application/json"
	linesType       = "application/x-ndjson"
	batchType       = "application/cloudevents-batch+json"
	streamType      = "text/event-stream"
	problemType     = "application/problem+json"
)

// probe asks one server about one feed.
type probe struct {
	http  *http.Client
	base  string
	token string
	feed  string
	most  int
	// patience is how long a page may take that need not wait.
	patience time.Duration
	hold     time.Duration // for how long the head is waited at
	info     struct {
		Generation int64   `json:"generation"`
		Head       string  `json:"head"`
		DataShards int     `json:"data_shards"`
		ShardIDs   []int64 `json:"shard_ids"`
	}
	scope url.Values // of all pages: a feed of many feeds is read by one of them
}

func newProbe(ctx context.Context, o Options) (*probe, error) {
	p := &probe{http: o.HTTP, base: strings.TrimRight(o.URL, "/"), token: o.Token, feed: o.Feed,
		most: cmp.Or(o.MaxEntries, defaultEntries), patience: cmp.Or(o.Patience, defaultPatience),
		hold: cmp.Or(o.Hold, defaultHold)}
	if p.http == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.DisableCompression = true // what is compressed is asked for, and looked at
		p.http = &http.Client{Transport: transport, Timeout: timeout}
	}
	if p.feed == "" {
		names, err := p.list(ctx)
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("the server lists no feed")
		}
		p.feed = names[0]
	}
	if err := p.json(ctx, "/_feeds/"+url.PathEscape(p.feed), nil, &p.info); err != nil {
		return nil, err
	}
	if len(p.info.ShardIDs) > 1 {
		p.scope = url.Values{"shard": {fmt.Sprint(p.info.ShardIDs[0])}}
	}
	return p, nil
}

// answer is what came, its body read to the end.
type answer struct {
	status int
	header http.Header
	body   []byte
	took   time.Duration // to the header
}

func (a *answer) mediaType() string {
	mediaType, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	return mediaType
}

// request sends a request; the header is in pairs.
func (p *probe) request(
	ctx context.Context, method, path string, query url.Values, header ...string,
) (*http.Response, error) {
	address := p.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, fmt.Errorf("no request can be made to %q", path)
	}
	if p.token != "" {
		req.Header.Set("Authorization", "Bearer "+p.token)
	}
	req.Header.Set("User-Agent", "rowfeed conform")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return p.http.Do(req)
}

func (p *probe) ask(ctx context.Context, method, path string, query url.Values, header ...string) (*answer, error) {
	began := time.Now()
	resp, err := p.request(ctx, method, path, query, header...)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	a := &answer{status: resp.StatusCode, header: resp.Header, took: time.Since(began)}
	if a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody)); err != nil {
		return nil, fmt.Errorf("%s breaks off: %w", path, err)
	}
	return a, nil
}

// json reads an answer of 200 with a JSON object.
func (p *probe) json(ctx context.Context, path string, query url.Values, into any) error {
	a, err := p.ask(ctx, http.MethodGet, path, query, "Accept", jsonType)
	switch {
	case err != nil:
		return err
	case a.status != http.StatusOK:
		return fmt.Errorf("%s: status %d: %.200s", path, a.status, a.body)
	case a.mediaType() != jsonType:
		return fmt.Errorf("%s: Content-Type %q", path, a.header.Get("Content-Type"))
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (p *probe) list(ctx context.Context) (names []string, err error) {
	var list struct {
		Feeds []struct {
			Name string `json:"name"`
		} `json:"feeds"`
	}
	if err := p.json(ctx, "/_feeds", nil, &list); err != nil {
		return nil, err
	}
	if list.Feeds == nil {
		return nil, fmt.Errorf("/_feeds: feeds is no list")
	}
	for _, f := range list.Feeds {
		if f.Name == "" {
			return nil, fmt.Errorf("/_feeds: a feed has no name")
		}
		names = append(names, f.Name)
	}
	return names, nil
}

func (p *probe) fetchPath() string { return "/_feeds/fetch/" + url.PathEscape(p.feed) }
