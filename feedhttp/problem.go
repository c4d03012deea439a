package feedhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

const (
	problemType      = "urn:rowfeed:problem:"
	problemMediaType = "application/problem+json"
)

// The codes of problems that only HTTP has. Servers in front of a Handler use them.
const (
	// TooManyRequests means that the client sends too many requests. Retry-After says when to try again.
	TooManyRequests feedtype.Code = "too-many-requests"
	// Overloaded means that all clients together use more than the server's limits allow.
	Overloaded feedtype.Code = "overloaded"
	// Misdirected means that the request is for a host that this server does not serve.
	Misdirected feedtype.Code = "misdirected"
	// TooLarge means that the body of the request is larger than the server accepts.
	TooLarge feedtype.Code = "too-large"
	// URITooLong means that the URI of the request is longer than the server accepts.
	URITooLong feedtype.Code = "uri-too-long"
)

// Challenge is the default WWW-Authenticate header of an answer with the status 401.
const Challenge = `Bearer realm="rowfeed"`

const (
	notFound         feedtype.Code = "not-found"          // no such path
	methodNotAllowed feedtype.Code = "method-not-allowed" // neither GET nor HEAD
	notAcceptable    feedtype.Code = "not-acceptable"     // Accept allows no available format
)

// Problem is an RFC 9457 problem, as it is sent.
type Problem struct {
	Type      string `json:"type"` // "urn:rowfeed:problem:" and the code
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Feed      string `json:"feed,omitempty"`
	Parameter string `json:"parameter,omitempty"` // the invalid query parameter
	Next      string `json:"next,omitempty"`      // what to do about it

	// RetryAfter is the time after which the client may try again, for the header Retry-After. 0 means none.
	RetryAfter time.Duration `json:"-"`
}

// kinds maps codes to HTTP. A retry of 0 sends no Retry-After.
var kinds = map[feedtype.Code]struct {
	status int
	title  string
	retry  time.Duration
}{
	feedtype.InvalidRequest:    {http.StatusBadRequest, "Invalid request", 0},
	feedtype.UnknownFeed:       {http.StatusNotFound, "Unknown feed", 0},
	feedtype.CursorAhead:       {http.StatusConflict, "Cursor is ahead of the feed", 0},
	feedtype.HistoryLost:       {http.StatusConflict, "Reader has seen what the database has lost", 0},
	feedtype.GenerationChanged: {http.StatusConflict, "Cursor is of another generation", 0},
	feedtype.OtherPart:         {http.StatusConflict, "Cursor is of another part of the feed", 0},
	feedtype.Conflict:          {http.StatusConflict, "Conflict", 0},
	feedtype.TombstonesExpired: {http.StatusGone, "Cursor is older than the oldest kept delete", 0},
	feedtype.EntriesExpired:    {http.StatusGone, "Cursor is older than the oldest kept entry", 0},
	feedtype.NotInitialized:    {http.StatusServiceUnavailable, "Not initialized", 10 * time.Second},
	feedtype.SchemaVersion:     {http.StatusServiceUnavailable, "Tables have another version", 10 * time.Second},
	feedtype.DatabaseChanged:   {http.StatusServiceUnavailable, "Database changed", 30 * time.Second},
	feedtype.ReadOnly:          {http.StatusServiceUnavailable, "Database is read-only", 5 * time.Second},
	feedtype.Unavailable:       {http.StatusServiceUnavailable, "Database unavailable", time.Second},
	feedtype.Locked:            {http.StatusServiceUnavailable, "Database busy", time.Second},
	feedtype.NotConsistent: {http.StatusServiceUnavailable, "Not everything could be published in time",
		time.Second},
	feedtype.Sharding: {http.StatusServiceUnavailable, "Number of data shards is being changed",
		5 * time.Second},
	feedtype.Filling: {http.StatusServiceUnavailable, "Existing rows are still being recorded",
		5 * time.Second},
	feedtype.Refused:          {http.StatusInternalServerError, "Feed cannot be served", 0},
	feedtype.UnsafeDurability: {http.StatusInternalServerError, "Unsafe durability", 0},
	feedtype.Failed:           {http.StatusInternalServerError, "Internal error", 0},
	feedtype.Unauthorized:     {http.StatusUnauthorized, "Unauthorized", 0},
	feedtype.Forbidden:        {http.StatusForbidden, "Forbidden", 0},
	TooManyRequests:           {http.StatusTooManyRequests, "Too many requests", time.Second},
	notFound:                  {http.StatusNotFound, "Not found", 0},
	methodNotAllowed:          {http.StatusMethodNotAllowed, "Method not allowed", 0},
	notAcceptable:             {http.StatusNotAcceptable, "Not acceptable", 0},
	Overloaded:                {http.StatusServiceUnavailable, "Server is at its limits", 5 * time.Second},
	Misdirected:               {http.StatusMisdirectedRequest, "Host is not served here", 0},
	TooLarge:                  {http.StatusRequestEntityTooLarge, "Body too large", 0},
	URITooLong:                {http.StatusRequestURITooLong, "URI too long", 0},
}

// ProblemOf returns the part of an error that any client may see: what failed, on which feed, the cause in rowfeed's
// own words, and the next step. It omits the text of the database driver, which may name hosts and users and belongs
// in the log.
func ProblemOf(err error, feed string) Problem {
	var e *feedtype.Error
	if !errors.As(err, &e) {
		e = &feedtype.Error{Code: feedtype.Failed, Cause: "the request failed"}
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			e = &feedtype.Error{Code: feedtype.Unavailable, Cause: "the database did not answer in time",
				Next: "try again"}
		}
	}
	kind, ok := kinds[e.Code]
	if !ok {
		kind = kinds[feedtype.Failed]
	}
	p := Problem{Type: problemType + string(e.Code), Title: kind.title, Status: kind.status, Detail: e.Cause,
		Feed: feed, Parameter: e.Param, Next: e.Next, RetryAfter: kind.retry}
	if e.Object != "" {
		p.Detail = e.Object + ": " + p.Detail
	}
	if kind.status >= 500 && e.Err != nil {
		p.Detail += " (the server's log has the cause)"
	}
	return p
}

// Withheld tells whether ProblemOf omits a part of the error. The error then belongs in a log.
func Withheld(err error) bool {
	var e *feedtype.Error
	return !errors.As(err, &e) || e.Err != nil
}

// String returns the detail and the next step as one line.
func (p Problem) String() string {
	if p.Next == "" {
		return p.Detail
	}
	return p.Detail + ". Next: " + p.Next
}

// Refuse answers a request with a problem. Servers in front of a Handler use it.
func Refuse(w http.ResponseWriter, r *http.Request, p Problem) {
	body := p.prepare(w.Header())
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	writeHeader(w, p.Status, problemMediaType)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // an error means that the client has disconnected
	}
}

// prepare sets the headers of a problem, and returns its body.
func (p Problem) prepare(header http.Header) []byte {
	if p.RetryAfter > 0 {
		header.Set("Retry-After", strconv.FormatInt(int64((p.RetryAfter+time.Second-1)/time.Second), 10))
	}
	if p.Status == http.StatusUnauthorized && header.Get("WWW-Authenticate") == "" {
		header.Set("WWW-Authenticate", Challenge)
	}
	body, _ := marshal(p) // strings and an int cannot fail
	return append(body, '\n')
}

// marshal is json.Marshal without HTML escapes.
func marshal(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return []byte(strings.TrimSuffix(b.String(), "\n")), err
}

// problem returns an error for a Problem of the handler itself.
func problem(code feedtype.Code, next, format string, args ...any) error {
	return &feedtype.Error{Code: code, Cause: fmt.Sprintf(format, args...), Next: next}
}

func badParameter(name, next, format string, args ...any) error {
	return &feedtype.Error{Code: feedtype.InvalidRequest, Param: name,
		Cause: name + ": " + fmt.Sprintf(format, args...), Next: next}
}

func feedObject(name string) string { return fmt.Sprintf("feed %q", name) }
