package console

import (
	"net/http"
	"strings"
)

// base returns the relative URL of the root from a path. Pages link to each other by relative URLs, so that they work
// behind a proxy that adds a path prefix.
func base(urlPath string) string {
	deep := strings.Count(urlPath, "/") - 1
	if deep <= 0 {
		return "./"
	}
	return strings.Repeat("../", deep)
}

// serverURL returns the URL by which the browser reached this server. The commands that pages show contain it.
func serverURL(r *http.Request) string {
	scheme := "http"
	if secure(r) {
		scheme = "https"
	}
	host := r.Host
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]"
	if host == "" || strings.Trim(host, plain) != "" {
		host = "127.0.0.1:8080" // other characters could have a meaning in a shell
	}
	return scheme + "://" + host
}

// secure tells whether the browser uses TLS, to this server or to a proxy in front of it.
func secure(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}
