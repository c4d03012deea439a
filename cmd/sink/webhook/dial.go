package webhook

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// newClient makes a client that asks no proxy and follows no redirection: either would
// lead to addresses that nobody has checked.
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
			DisableCompression:     true, // an answer is an excerpt in a message: nothing to inflate
			MaxResponseHeaderBytes: maxAnswer,
		},
	}
}

// ErrPrivate is an endpoint on this machine or in a private network.
var ErrPrivate = errors.New("the address is not public")

// onlyPublic is called with the address that is about to be connected to, after the
// name was looked up: a name that leads elsewhere the next time does not help.
func onlyPublic(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %q", ErrPrivate, address)
	}
	if !isPublic(at.Addr()) {
		return fmt.Errorf("%w: %s; allow private targets if that is meant (--allow-private)", ErrPrivate, at.Addr())
	}
	return nil
}

// special are blocks of addresses that are not in the public Internet, or carry others
// within them, besides those that net/netip knows.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // this network
	netip.MustParsePrefix("100.64.0.0/10"),   // carriers' own
	netip.MustParsePrefix("192.0.0.0/24"),    // protocols
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("192.88.99.0/24"),  // 6to4 relays
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("240.0.0.0/4"),     // reserved, and broadcast
	netip.MustParsePrefix("::/96"),           // IPv4 within IPv6, of old
	netip.MustParsePrefix("64:ff9b::/96"),    // IPv4 within IPv6: NAT64
	netip.MustParsePrefix("64:ff9b:1::/48"),  // the same, locally
	netip.MustParsePrefix("100::/64"),        // discarded
	netip.MustParsePrefix("2001::/23"),       // protocols, Teredo among them
	netip.MustParsePrefix("2001:db8::/32"),   // documentation
	netip.MustParsePrefix("2002::/16"),       // IPv4 within IPv6: 6to4
	netip.MustParsePrefix("3fff::/20"),       // documentation
	netip.MustParsePrefix("fec0::/10"),       // sites' own, of old
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
