package feedhttp

import (
	"net/http"
	"strings"
)

// route is a path of the protocol, as in the OpenAPI description.
type route struct {
	path       string // may end with {feed}, for the name of a feed
	does       string // its purpose, for the answer 404
	parameters []string
	formats    []string // media types; the first is the default
	answer     func(w http.ResponseWriter, r *http.Request, c call) error
}

type routes []route

// newRoutes returns all paths. A path that no feed's name can have is before /_feeds/{feed}.
func newRoutes(cfg Config, sources *sources, out *responder) routes {
	tags := &columnTags{}
	feeds := feedsEndpoint{sources, out, tags}
	return routes{
		{"/_feeds", "lists the feeds", nil, []string{jsonMediaType}, feeds.list},
		{"/_feeds/openapi.json", "is the OpenAPI description", nil, []string{jsonMediaType}, openAPIEndpoint{out}.answer},
		{"/_feeds/{feed}", "describes one", nil, []string{jsonMediaType}, feeds.info},
		{"/_feeds/fetch/{feed}", "reads it", []string{"after", "limit", "shard", "shard_count", "wait", "consistent"},
			[]string{jsonMediaType, ndjsonMediaType, eventsMediaType}, fetchEndpoint{sources, out, tags, cfg.NoPublish}.answer},
		{"/_feeds/stream/{feed}", "follows it", []string{"after", "shard", "shard_count"}, []string{streamMediaType},
			streamEndpoint{sources, out, cfg.Heartbeat}.answer},
		{"/_feeds/shards/{feed}", "tells how far its shards are", []string{"since", "wait"}, []string{jsonMediaType},
			standingsEndpoint{sources, out}.answer},
		{"/_feeds/http-feeds/{feed}", "reads it as http-feeds.org has it",
			[]string{"lastEventId", "timeout", "limit", "shard", "shard_count"},
			[]string{eventsMediaType}, httpFeedsEndpoint{sources, out, tags}.answer},
	}
}

// match returns the route of a path, and the feed in the path.
func (rs routes) match(path string) (found *route, feed string) {
	if path == "/_feeds/" { // a ServeMux with the pattern /_feeds/ redirects /_feeds to it
		path = "/_feeds"
	}
	for i := range rs {
		prefix, named := strings.CutSuffix(rs[i].path, "{feed}")
		if !named && path == prefix {
			return &rs[i], ""
		}
		if feed, ok := strings.CutPrefix(path, prefix); named && ok && feed != "" && !strings.Contains(feed, "/") {
			return &rs[i], feed
		}
	}
	return nil, ""
}

// directions returns a list of all paths and their purposes.
func (rs routes) directions() string {
	var said []string
	for _, r := range rs {
		said = append(said, r.path+" "+r.does)
	}
	return "GET " + strings.Join(said, ", ")
}
