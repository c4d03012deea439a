package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/feedtype"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// post sends one request, and returns the result of all its entries.
func (s *Sink) post(ctx context.Context, batch []sink.Entry) sink.Result {
	if err := s.limit.Wait(ctx); err != nil {
		return sink.Retry(0, err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	body := payload(batch)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return sink.Retry(0, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "rowfeed")
	feedtype.TraceHeaders(ctx, req.Header.Set)
	if s.user != nil {
		password, _ := s.user.Password()
		req.SetBasicAuth(s.user.Username(), password)
	}
	if err := s.sign(req.Header, batch, body); err != nil {
		return sink.Retry(0, err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		var full *url.Error
		if errors.As(err, &full) { // its text contains the URL, whose path may be secret
			err = fmt.Errorf("%s: %w", req.URL.Host, full.Err)
		}
		return sink.Retry(0, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return sink.Accept() // the status counts even if the body was cut off
	}
	if err != nil {
		return sink.Retry(0, fmt.Errorf("read the answer (%s): %w", resp.Status, err))
	}
	refused := &refusal{resp.StatusCode, excerpt(answer)}
	if aboutEntries(resp.StatusCode) {
		return sink.Reject(refused)
	}
	return sink.Retry(parseRetryAfter(resp.Header.Get("Retry-After"), s.now()), refused)
}

// sign sets the three headers of Standard Webhooks. Without a secret there is no signature.
func (s *Sink) sign(h http.Header, batch []sink.Entry, body []byte) error {
	id, at := messageID(batch), s.now()
	h.Set(webhooks.HeaderWebhookID, id)
	h.Set(webhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	var signatures []string
	for _, key := range s.keys {
		signature, err := key.Sign(id, at, body)
		if err != nil {
			return err
		}
		signatures = append(signatures, signature)
	}
	if len(signatures) > 0 {
		h.Set(webhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	}
	return nil
}

// messageID returns the idempotency key of a request. It is the same whenever the same entries are sent.
func messageID(batch []sink.Entry) string {
	h := sha256.New()
	for _, e := range batch {
		io.WriteString(h, e.ID()+"\n")
	}
	return "msg_" + hex.EncodeToString(h.Sum(nil)[:16])
}

// payload returns the body of a request. The entries of a batch are of one feed and generation.
func payload(batch []sink.Entry) []byte {
	first := batch[0]
	b := fmt.Appendf(nil, `{"type":"rowfeed.entries","data":{"feed":%q,"generation":%d,"epoch":%d,"entries":[`,
		first.Feed, first.Generation, first.Epoch)
	binary := []string{}
	for i, e := range batch {
		if i > 0 {
			b = append(b, ',')
		}
		b = e.AppendJSON(b)
		for j := range e.Row.Len() {
			if c := e.Row.Column(j); c.Kind == feedtype.Binary && !slices.Contains(binary, c.Name) {
				binary = append(binary, c.Name)
			}
		}
		for j := range e.Key.Len() {
			if c := e.Key.Column(j); c.Kind == feedtype.Binary && !slices.Contains(binary, c.Name) {
				binary = append(binary, c.Name)
			}
		}
	}
	names, err := json.Marshal(binary)
	if err != nil {
		panic(err) // a list of strings cannot fail
	}
	return append(append(append(b, `],"base64":`...), names...), `}}`...)
}

// aboutEntries tells whether the status refuses the entries of a request. A wrong path or password is a problem of
// the endpoint or the client: setting every entry aside would not solve it.
func aboutEntries(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound,
		http.StatusMethodNotAllowed,
		http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusGone, http.StatusMisdirectedRequest,
		http.StatusTooEarly,
		http.StatusUpgradeRequired, http.StatusTooManyRequests:
		return false
	}
	return status >= 400 && status < 500
}

// parseRetryAfter parses Retry-After: seconds, or a date.
func parseRetryAfter(header string, now time.Time) time.Duration {
	header = strings.TrimSpace(header)
	if seconds, err := strconv.ParseInt(header, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), int64(maxRest/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(at.Sub(now), 0), maxRest)
	}
	return 0
}

// excerpt returns the beginning of an answer on one line.
func excerpt(answer []byte) string {
	const most = 200
	text := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(string(answer), "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " …"
	}
	return text
}
