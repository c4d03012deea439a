package protocoltest

import (
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
	timeout     = 90 * time.Second // the longest wait parameter is a minute
	maxBody     = 256 << 20
	jsonType    = "application/json"
	linesType   = "application/x-ndjson"
	batchType   = "application/cloudevents-batch+json"
	streamType  = "text/event-stream"
	problemType = "application/problem+json"
)

// client sends requests to the server that is tested.
type client struct {
	http  *http.Client
	base  string // the URL without /_feeds
	token string
}

func newClient(o Options) *client {
	c := &client{http: o.HTTP, base: strings.TrimRight(o.URL, "/"), token: o.Token}
	if c.http == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.DisableCompression = true // the checks ask for compression themselves
		c.http = &http.Client{Transport: transport, Timeout: timeout}
	}
	return c
}

// response is a response whose body has been read.
type response struct {
	status int
	header http.Header
	body   []byte
	took   time.Duration // to the header
}

func (r *response) mediaType() string {
	mediaType, _, _ := mime.ParseMediaType(r.header.Get("Content-Type"))
	return mediaType
}

// request sends a request. header has pairs of a name and its value.
func (c *client) request(
	ctx context.Context, method, path string, query url.Values, header ...string,
) (*http.Response, error) {
	address := c.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, fmt.Errorf("no request can be made to %q", path)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	req.Header.Set("User-Agent", "rowfeed conform")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return c.http.Do(req)
}

// ask sends a request and reads the response.
func (c *client) ask(ctx context.Context, method, path string, query url.Values, header ...string) (*response, error) {
	began := time.Now()
	resp, err := c.request(ctx, method, path, query, header...)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	a := &response{status: resp.StatusCode, header: resp.Header, took: time.Since(began)}
	if a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody)); err != nil {
		return nil, fmt.Errorf("the response of %s ends too early: %w", path, err)
	}
	return a, nil
}

// getJSON reads a response of status 200 with a JSON object.
func (c *client) getJSON(ctx context.Context, path string, query url.Values, into any) error {
	a, err := c.ask(ctx, http.MethodGet, path, query, "Accept", jsonType)
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

// feedNames returns the names of the feeds that the server lists.
func (c *client) feedNames(ctx context.Context) (names []string, err error) {
	var list struct {
		Feeds []struct {
			Name string `json:"name"`
		} `json:"feeds"`
	}
	if err := c.getJSON(ctx, "/_feeds", nil, &list); err != nil {
		return nil, err
	}
	if list.Feeds == nil {
		return nil, fmt.Errorf("/_feeds: the member feeds is missing")
	}
	for _, f := range list.Feeds {
		if f.Name == "" {
			return nil, fmt.Errorf("/_feeds: a feed has no name")
		}
		names = append(names, f.Name)
	}
	return names, nil
}
