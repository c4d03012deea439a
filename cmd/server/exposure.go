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

// IsLoopback tells whether only this machine can reach an address to listen on, host:port. It is true for an invalid
// address, which no client can reach, and false for host names other than localhost.
func IsLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil || host == "localhost" {
		return true
	}
	at, err := netip.ParseAddr(host)
	return err == nil && at.Unmap().IsLoopback()
}

// exposed returns an error if other machines can reach the server, and it authenticates no client, unless Everyone is
// set.
func (c Config) exposed(at net.Addr) error {
	if isLoopback(at) || c.Access != nil || c.Everyone {
		return nil
	}
	return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "listen", Object: "address " + at.String(),
		Cause: "other machines can reach it, and it authenticates no client: " +
			"every client could read every feed",
		Next: "listen on 127.0.0.1, or ask for tokens (--auth tokens), or allow every client (--auth none)"}
}

// everyone lets all requests through as access.Everyone, without authentication.
func everyone(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(access.With(r.Context(), access.Everyone())))
	})
}

// onlyHosts refuses requests for other hosts. A page of an attacker, open in a browser on this machine, can make its
// own host name resolve to this machine (DNS rebinding), and would see what only this machine may see. But the
// browser sends that name in the header Host.
func (c Config) onlyHosts(at net.Addr, next http.Handler) http.Handler {
	if len(c.Hosts) == 0 && !isLoopback(at) {
		return next
	}
	named := slices.Clone(c.Hosts)
	if host, _, err := net.SplitHostPort(c.Listen); err == nil && host != "" {
		named = append(named, host)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Only HTTP/1.0 allows a request without a host. Browsers do not send it.
		if host := hostOf(r.Host); host != "" && !isOwn(host) &&
			!slices.ContainsFunc(named, func(n string) bool { return strings.EqualFold(n, host) }) {
			refuse(w, r, &rowfeed.Error{Code: feedhttp.Misdirected, Cause: fmt.Sprintf("this server is not %q", host),
				Next: "use its address; " +
					"or start it with --allow-host and the name, if a proxy forwards requests"}, 0)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostOf returns the host of a Host header, without the port and the brackets of IPv6.
func hostOf(header string) string {
	if host, _, err := net.SplitHostPort(header); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(header, "["), "]")
}

// isOwn tells whether a name means this machine wherever it is resolved.
func isOwn(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}
