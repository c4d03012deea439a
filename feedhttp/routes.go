package feedhttp

import (
	"net/http"
	"net/url"
	"strings"
)

// call is a request to a route, as far as it was understood.
type call struct {
	feed   string
	values url.Values // the parameters, each at most once
	format string     // of the answer
}

// route is a path of the protocol, as the OpenAPI description has it.
type route struct {
	path       string // {feed} stands for a feed's name, at the end
	does       string // what it is for
	parameters []string
	formats    []string // the first is for who has no wish
	answer     func(h *Handler, w http.ResponseWriter, r *http.Request, c call) error
}

// routes are all paths. Those with a name that no feed can have stand before /_feeds/{feed}.
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

// match finds the route of a path, and the feed that it names.
func (h *Handler) match(path string) (found *route, feed string) {
	if path == "/_feeds/" { // a ServeMux that knows /_feeds/ leads here from /_feeds
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

// directions name all paths.
func (h *Handler) directions() string {
	var said []string
	for _, r := range h.routes {
		said = append(said, r.path+" "+r.does)
	}
	return "GET " + strings.Join(said, ", ")
}
