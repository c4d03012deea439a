package feedhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// get requests JSON, and returns the whole body, or the problem of the answer as an error.
func (c *Client) get(
	ctx context.Context, path string, query url.Values, wait time.Duration,
) (_ []byte, _ http.Header, err error) {
	ctx, end := feedtype.StartSpan(ctx, c.Tracer, feedtype.Span{Op: feedtype.SpanRequest, Feed: c.Feed})
	defer func() { end(feedtype.SpanEnd{Err: err}) }()
	address, err := c.endpoint(path, query)
	if err != nil {
		return nil, nil, err
	}
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	bounded, cancel := context.WithTimeout(ctx, timeout+wait)
	defer cancel()
	req, err := http.NewRequestWithContext(bounded, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, c.failure(feedtype.InvalidRequest, "the request is invalid",
			"write the URL like http://127.0.0.1:8080", nil)
	}
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	req.Header.Set("Accept", jsonMediaType)
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token) // net/http does not send it to another host after a redirect
	}
	feedtype.TraceHeaders(ctx, req.Header.Set)
	req.Header.Set("Accept-Encoding", acceptEncoding(client, req.URL.Hostname()))
	resp, err := client.Do(req)
	if err != nil {
		return nil, nil, c.incomplete(ctx, err)
	}
	defer resp.Body.Close()
	body, err := c.readBody(resp)
	if err != nil {
		var known *feedtype.Error
		if errors.As(err, &known) {
			return nil, nil, err
		}
		return nil, nil, c.incomplete(ctx, err)
	}
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode == http.StatusOK && mediaType == jsonMediaType:
		return body, resp.Header, nil
	case mediaType == problemMediaType:
		return nil, nil, c.problem(resp, body)
	}
	return nil, nil, c.unexpected(resp, mediaType)
}

// incomplete returns the error of a request that got no complete answer.
func (c *Client) incomplete(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: fetch: %w", feedObject(c.Feed), ctx.Err())
	}
	cause := "the server cannot be reached, or closed the connection early"
	if errors.Is(err, context.DeadlineExceeded) {
		cause = "the server did not answer in time"
	}
	// A *url.Error repeats the address, so use the error inside.
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err
	}
	return c.failure(feedtype.Unavailable, cause, "check that `rowfeed serve` runs there, then try again", err)
}

// problem returns the error of the server, with its code.
func (c *Client) problem(resp *http.Response, body []byte) error {
	var p Problem
	code, ok := "", false
	if err := json.Unmarshal(body, &p); err == nil {
		code, ok = strings.CutPrefix(p.Type, problemType)
	}
	if !ok {
		return c.unexpected(resp, problemMediaType)
	}
	e := c.failure(feedtype.Code(code), p.Detail, p.Next, statusError(resp))
	e.Cause = strings.TrimPrefix(e.Cause, feedObject(c.Feed)+": ")
	e.Param = p.Parameter
	return e
}

// unexpected returns the error for an answer that is not from rowfeed, but for example from a proxy.
func (c *Client) unexpected(resp *http.Response, mediaType string) error {
	if mediaType == "" {
		mediaType = "no content type"
	}
	e := c.notRowfeed(fmt.Sprintf("the answer is not from rowfeed: status %d with %s", resp.StatusCode, mediaType),
		statusError(resp))
	switch resp.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests:
		// A proxy reports that the rowfeed behind it is unavailable.
		e.Code, e.Next = feedtype.Unavailable, "check that `rowfeed serve` runs there, then try again"
	}
	return e
}

func statusError(resp *http.Response) *StatusError {
	e := &StatusError{Status: resp.StatusCode}
	text := resp.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		e.RetryAfter = max(time.Until(at), 0)
	}
	return e
}

// StatusError is the HTTP status behind an error of a [Client]. Get it with errors.As.
type StatusError struct {
	Status int
	// RetryAfter is the time that the server asks the client to wait before another attempt, or 0.
	RetryAfter time.Duration
}

func (e *StatusError) Error() string { return fmt.Sprintf("HTTP status %d", e.Status) }

// endpoint returns the URL of a path on the server.
func (c *Client) endpoint(path string, query url.Values) (string, error) {
	bad := func(param, cause, next string) (string, error) {
		return "", &feedtype.Error{Code: feedtype.InvalidRequest, Param: param, Cause: param + ": " + cause, Next: next}
	}
	u, err := url.Parse(c.URL)
	switch {
	case c.Feed == "":
		return bad("feed", "there is no name", "name the feed to read")
	case err != nil: // its text quotes the whole URL, with its password
		return bad("url", "it cannot be parsed", "write it like http://127.0.0.1:8080")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return bad("url", "it does not have the form http://host:port", "write it like http://127.0.0.1:8080")
	}
	u.RawQuery, u.Fragment, u.RawFragment = query.Encode(), "", ""
	base, question, _ := strings.Cut(u.String(), "?")
	if question != "" {
		path += "?" + question
	}
	return strings.TrimRight(base, "/") + path, nil
}
