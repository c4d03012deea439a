package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/feedhttp"
)

// isLoopback tells whether only this machine can reach the address.
func isLoopback(a net.Addr) bool {
	at, err := netip.ParseAddrPort(a.String())
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// IsLoopback tells of an address to listen on, host:port, whether only this machine can reach
// it: nobody can where it is no address. Of a name that is not localhost it does not know.
func IsLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil || host == "localhost" {
		return true
	}
	at, err := netip.ParseAddr(host)
	return err == nil && at.Unmap().IsLoopback()
}

// exposed is the error of a server that others than this machine can reach, and that asks
// nobody who they are, though nobody has said that this is meant.
func (c Config) exposed(at net.Addr) error {
	if isLoopback(at) || c.Access != nil || c.Everyone {
		return nil
	}
	return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "listen", Object: "address " + at.String(),
		Cause: "others than this machine can reach it, and nobody is asked who they are: " +
			"everyone could read every feed",
		Next: "listen on 127.0.0.1, or ask for tokens (--auth tokens), or say that this is meant (--auth none)"}
}

// everyone lets all requests through as everyone's: nobody is asked who they are.
func everyone(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(access.With(r.Context(), access.Everyone())))
	})
}

// onlyHosts refuses requests that are meant for another host, in front of next. A page of a
// stranger, open in a browser on this machine, can have its own name lead here (DNS
// rebinding) and would be shown what only this machine may see; but the browser says the
// name.
func (c Config) onlyHosts(at net.Addr, next http.Handler) http.Handler {
	if len(c.Hosts) == 0 && !isLoopback(at) {
		return next
	}
	named := slices.Clone(c.Hosts)
	if host, _, err := net.SplitHostPort(c.Listen); err == nil && host != "" {
		named = append(named, host)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Without any host, as only HTTP/1.0 allows it, no browser asks.
		if host := hostOf(r.Host); host != "" && !isOwn(host) &&
			!slices.ContainsFunc(named, func(n string) bool { return strings.EqualFold(n, host) }) {
			refuse(w, r, &rowfeed.Error{Code: feedhttp.Misdirected, Cause: fmt.Sprintf("this server is not %q", host),
				Next: "ask for it by its address; " +
					"or start it with --allow-host and the name, where a proxy hands requests on"}, 0)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostOf is a Host header without its port, and without the brackets of IPv6.
func hostOf(header string) string {
	if host, _, err := net.SplitHostPort(header); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(header, "["), "]")
}

// isOwn tells of a name that leads to this machine wherever it is looked up.
func isOwn(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}
