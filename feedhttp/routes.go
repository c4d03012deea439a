package feedhttp

import (
	_ "embed"
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

// routes are all paths of the protocol.
type routes []route

// newRoutes returns all paths. A path that cannot contain the name of a feed is before /_feeds/{feed}.
func newRoutes(cfg Config, sources *sources, out *responder) routes {
	tags := &columnTags{}
	feeds := feedsEndpoint{sources, out, tags}
	openAPI := openAPIEndpoint{out}
	fetch := fetchEndpoint{sources, out, tags, cfg.NoPublish}
	stream := streamEndpoint{sources, out, cfg.Heartbeat}
	shards := shardsEndpoint{sources, out}
	httpFeeds := httpFeedsEndpoint{sources, out, tags}
	json := []string{jsonMediaType}
	return routes{
		{"/_feeds", "lists the feeds", nil, json, feeds.list},
		{"/_feeds/openapi.json", "is the OpenAPI description", nil, json, openAPI.answer},
		{"/_feeds/{feed}", "describes a feed", nil, json, feeds.info},
		{"/_feeds/fetch/{feed}", "returns a page of its entries",
			[]string{"after", "limit", "shard", "shard_count", "wait", "consistent"},
			[]string{jsonMediaType, ndjsonMediaType, eventsMediaType}, fetch.answer},
		{"/_feeds/stream/{feed}", "streams its entries",
			[]string{"after", "shard", "shard_count"},
			[]string{streamMediaType}, stream.answer},
		{"/_feeds/shards/{feed}", "returns the watermarks of its shards",
			[]string{"since", "wait"},
			json, shards.answer},
		{"/_feeds/http-feeds/{feed}", "returns its entries in the format of http-feeds.org",
			[]string{"lastEventId", "timeout", "limit", "shard", "shard_count"},
			[]string{eventsMediaType}, httpFeeds.answer},
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

// directions returns all paths and their purposes, as the next step after a 404.
func (rs routes) directions() string {
	var all []string
	for _, r := range rs {
		all = append(all, r.path+" "+r.does)
	}
	return "GET " + strings.Join(all, ", ")
}

// openAPI is the description of the protocol. A test compares it with the routes, their parameters and their answers.
//
//go:embed openapi.json
var openAPI []byte

// openAPIEndpoint answers with the OpenAPI description.
type openAPIEndpoint struct{ out *responder }

func (e openAPIEndpoint) answer(w http.ResponseWriter, r *http.Request, c call) error {
	e.out.writeSmall(w, r, c.format, openAPI)
	return nil
}
