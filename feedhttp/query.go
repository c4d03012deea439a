package feedhttp

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

const (
	// MaxWait is the maximum wait of a request.
	MaxWait = time.Minute
	// maxQuery is the maximum length of the query string. The longest cursor has 60 bytes.
	maxQuery = 2048
)

// parseQuery parses a query string. Each known parameter may occur once, others are refused.
func parseQuery(raw string, known ...string) (url.Values, error) {
	if len(raw) > maxQuery {
		return nil, problem(URITooLong, "", "the query string has %d bytes, at most %d are accepted", len(raw),
			maxQuery)
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, problem(feedtype.InvalidRequest, "percent-encode the parameters",
			"the query string is malformed: %v", err)
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch {
		case slices.Contains(known, name):
			if n := len(values[name]); n > 1 {
				return nil, badParameter(name, "send it once", "it was sent %d times", n)
			}
		default:
			next := "remove it: this path has no parameters"
			if len(known) > 0 {
				next = "the parameters are " + strings.Join(known, ", ")
			}
			return nil, badParameter(name, next, "there is no such parameter")
		}
	}
	return values, nil
}

// parseRequest parses the parameters of a fetch. The feed validates the cursor.
func parseRequest(values url.Values) (req feedtype.Request, err error) {
	req.After = feedtype.Cursor(values.Get("after"))
	if req.Shards, err = parseShards(values); err != nil {
		return feedtype.Request{}, err
	}
	if req.Limit, err = parseLimit(values); err != nil {
		return feedtype.Request{}, err
	}
	if req.Wait, err = parseWait(values); err != nil {
		return feedtype.Request{}, err
	}
	if values.Has("consistent") {
		switch text := values.Get("consistent"); text {
		case "true":
			req.Consistent = true
		case "false":
		default:
			return feedtype.Request{}, badParameter("consistent", "", "%q is neither true nor false", text)
		}
	}
	return req, nil
}

// parseLimit parses the maximum number of entries of a page.
func parseLimit(values url.Values) (int, error) {
	if !values.Has("limit") {
		return feedtype.DefaultLimit, nil
	}
	text := values.Get("limit")
	// Unsigned, so that neither "+5" nor "-5" is a number.
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n < 1 || n > feedtype.MaxLimit {
		return 0, badParameter("limit", "", "%q is not a whole number between 1 and %d", text, feedtype.MaxLimit)
	}
	return int(n), nil
}

// parseWait parses how long a request may wait.
func parseWait(values url.Values) (time.Duration, error) {
	if !values.Has("wait") {
		return 0, nil
	}
	text := values.Get("wait")
	wait, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, badParameter("wait", "write it with a unit, like 30s or 500ms", "%q is not a duration", text)
	case wait < 0 || wait > MaxWait:
		return 0, badParameter("wait", "", "%s must be between 0s and %s", text, MaxWait)
	}
	return wait, nil
}

// parseShards parses which shards are read. The parameter shard alone is the number of a shard. With shard_count it
// selects part shard of shard_count parts. The feed checks whether the shard exists.
func parseShards(values url.Values) (feedtype.Shards, error) {
	if values.Has("shard") && !values.Has("shard_count") {
		text := values.Get("shard")
		n, err := strconv.Atoi(text)
		if err != nil || strings.HasPrefix(text, "+") {
			return feedtype.Shards{}, badParameter("shard", "", "%q is not a whole number", text)
		}
		return feedtype.One(n), nil
	}
	var numbers [2]int
	for i, p := range []struct {
		name      string
		low, high int
	}{{"shard", 0, feedtype.MaxDataShards - 1}, {"shard_count", 1, feedtype.MaxDataShards}} {
		if !values.Has(p.name) {
			continue
		}
		// Unsigned, so that neither "+5" nor "-5" is a number.
		n, err := strconv.ParseUint(values.Get(p.name), 10, 31)
		if err != nil || int(n) < p.low || int(n) > p.high {
			return feedtype.Shards{}, badParameter(p.name, "", "%q is not a whole number between %d and %d",
				values.Get(p.name), p.low, p.high)
		}
		numbers[i] = int(n)
	}
	switch {
	case !values.Has("shard_count") && !values.Has("shard"):
		return feedtype.Shards{}, nil
	case !values.Has("shard"):
		return feedtype.Shards{}, badParameter("shard_count",
			"also send shard, from 0 to shard_count - 1", "it needs the parameter shard")
	}
	return feedtype.Part(numbers[0], numbers[1]), nil
}

// call is a request whose path, parameters and Accept header are valid.
type call struct {
	feed   string
	values url.Values // the parameters, each at most once
	format string     // media type of the answer
}
