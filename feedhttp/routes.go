package feedhttp

import (
	"net/http"
	"net/url"
	"strings"
)

// call is a parsed request.
type call struct {
	feed   string
	values url.Values // the parameters, each at most once
	format string     // media type of the answer
}

// route is a path of the protocol, as in the OpenAPI description.
type route struct {
	path       string // may end with {feed}, for the name of a feed
	does       string // its purpose, for the answer 404
	parameters []string
	formats    []string // media types; the first is the default
	answer     func(h *Handler, w http.ResponseWriter, r *http.Request, c call) error
}

// routes returns all paths. A path that no feed's name can have is before /_feeds/{feed}.
func routes() []route {
	return []route{
		{"/_feeds", "lists the feeds", nil, []string{jsonMediaType}, (*Handler).list},
		{"/_feeds/openapi.json", "is the OpenAPI description", nil, []string{jsonMediaType}, (*Handler).openapi},
		{"/_feeds/{feed}", "describes one", nil, []string{jsonMediaType}, (*Handler).info},
		{"/_feeds/fetch/{feed}", "reads it", []string{"after", "limit", "shard", "shard_count", "wait", "consistent"},
			[]string{jsonMediaType, ndjsonMediaType, eventsMediaType}, (*Handler).fetch},
		{"/_feeds/stream/{feed}", "follows it", []string{"after", "shard", "shard_count"}, []string{streamMediaType},
			(*Handler).stream},
		{"/_feeds/shards/{feed}", "tells how far its shards are", []string{"since", "wait"}, []string{jsonMediaType},
			(*Handler).standings},
		{"/_feeds/http-feeds/{feed}", "reads it as http-feeds.org has it",
			[]string{"lastEventId", "timeout", "limit", "shard", "shard_count"},
			[]string{eventsMediaType}, (*Handler).httpFeeds},
	}
}

// match returns the route of a path, and the feed in the path.
func (h *Handler) match(path string) (found *route, feed string) {
	if path == "/_feeds/" { // a ServeMux with the pattern /_feeds/ redirects /_feeds to it
		path = "/_feeds"
	}
	for i := range h.routes {
		prefix, named := strings.CutSuffix(h.routes[i].path, "{feed}")
		if !named && path == prefix {
			return &h.routes[i], ""
		}
		if feed, ok := strings.CutPrefix(path, prefix); named && ok && feed != "" && !strings.Contains(feed, "/") {
			return &h.routes[i], feed
		}
	}
	return nil, ""
}

// directions returns a list of all paths and their purposes.
func (h *Handler) directions() string {
	var said []string
	for _, r := range h.routes {
		said = append(said, r.path+" "+r.does)
	}
	return "GET " + strings.Join(said, ", ")
}
