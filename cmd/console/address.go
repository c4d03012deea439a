package console

import (
	"net/http"
	"strings"
)

// base leads from a path to the root: pages name each other relatively, so that they
// work behind a proxy that puts them below a path of its own.
func base(urlPath string) string {
	deep := strings.Count(urlPath, "/") - 1
	if deep <= 0 {
		return "./"
	}
	return strings.Repeat("../", deep)
}

// serverURL is where the browser found this server, for the commands to copy.
func serverURL(r *http.Request) string {
	scheme := "http"
	if secure(r) {
		scheme = "https"
	}
	host := r.Host
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]"
	if host == "" || strings.Trim(host, plain) != "" {
		host = "127.0.0.1:8080" // nothing that a shell would read otherwise
	}
	return scheme + "://" + host
}

// secure tells whether the browser speaks TLS, to this server or to a proxy before it.
func secure(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}
