package webhook

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// newClient returns a client that uses no proxy and follows no redirect, because both lead to addresses that are not
// checked.
func newClient(cfg Config) *http.Client {
	dialer := &net.Dialer{Timeout: cfg.Timeout, KeepAlive: 30 * time.Second}
	if !cfg.AllowPrivate {
		dialer.Control = onlyPublic
	}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    cfg.MaxInFlight,
			IdleConnTimeout:        90 * time.Second,
			TLSHandshakeTimeout:    cfg.Timeout,
			DisableCompression:     true, // answers are only quoted in messages
			MaxResponseHeaderBytes: maxAnswer,
		},
	}
}

// ErrPrivate is the error for an endpoint on this machine or in a private network.
var ErrPrivate = errors.New("the address is not public")

// onlyPublic is called with the address to connect to, after the name was resolved. So a name that resolves to
// another address the next time is checked again.
func onlyPublic(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %q", ErrPrivate, address)
	}
	if !isPublic(at.Addr()) {
		return &feedtype.Error{Code: feedtype.Refused, Cause: "this target is refused", Err: ErrPrivate,
			Next: "if it is meant, allow private targets (--allow-private)"}
	}
	return nil
}

// special has the address blocks that are not in the public Internet, or that embed other addresses, besides those
// that net/netip knows.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // this network
	netip.MustParsePrefix("100.64.0.0/10"),   // shared address space of carriers
	netip.MustParsePrefix("192.0.0.0/24"),    // protocols
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("192.88.99.0/24"),  // 6to4 relays
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("240.0.0.0/4"),     // reserved, and broadcast
	netip.MustParsePrefix("::/96"),           // IPv4 in IPv6, deprecated
	netip.MustParsePrefix("64:ff9b::/96"),    // IPv4 in IPv6: NAT64
	netip.MustParsePrefix("64:ff9b:1::/48"),  // the same, for local use
	netip.MustParsePrefix("100::/64"),        // discarded
	netip.MustParsePrefix("2001::/23"),       // protocols, including Teredo
	netip.MustParsePrefix("2001:db8::/32"),   // documentation
	netip.MustParsePrefix("2002::/16"),       // IPv4 in IPv6: 6to4
	netip.MustParsePrefix("3fff::/20"),       // documentation
	netip.MustParsePrefix("fec0::/10"),       // site-local, deprecated
}

func isPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, block := range special {
		if block.Contains(a) {
			return false
		}
	}
	return true
}
