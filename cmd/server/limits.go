package server

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/feedhttp"
)

// Limits limit what clients may use of a server. 0 means the default, a negative number means no limit.
//
// A client is an authenticated identity. Without one it is an IPv4 address or an IPv6 network of 64 bits.
// Unauthenticated requests from this machine have no limits per client: they may come from a proxy, which hides the
// clients.
type Limits struct {
	// Rate is the maximum number of requests per second of a client. Default 1000. A request that fails
	// authentication counts for its address.
	Rate float64
	// Burst is the maximum number of requests of a client at once. Default 20 times Rate.
	Burst int
	// Connections is the maximum number of open connections. Default 32,768.
	Connections int
	// ConnectionsPerAddress is the maximum number of connections of one address. Default: half of Connections.
	ConnectionsPerAddress int
	// Waiting is the maximum number of requests that wait for an entry or stream at the same time. Default 32,768.
	Waiting int
	// WaitingPerClient is the maximum number of waiting requests of one client. Default: half of Waiting.
	WaitingPerClient int
	// HeaderBytes is the maximum size of a request's line and header. Default 32 KiB. A negative value means
	// the default of Go's net/http, 1 MiB.
	HeaderBytes int
	// HeaderTimeout is the maximum time for a request's header, including the TLS handshake before it. Default 10 s.
	HeaderTimeout time.Duration
	// BodyBytes is the maximum size of a body. Only the forms of the console have bodies. Default 64 KiB.
	BodyBytes int64
	// BodyTimeout is the maximum time for header and body together. Default 30 s.
	BodyTimeout time.Duration
}

const (
	defaultRate        = 1000
	defaultBurstRates  = 20
	defaultConnections = 32 << 10
	defaultWaiting     = 32 << 10
	defaultHeaderBytes = 32 << 10
	defaultBodyBytes   = 64 << 10
	// maxURI is the maximum length of a URI. The longest query has 2 KiB, and a feed's name less than 100 bytes.
	maxURI = 8 << 10
	// maxClients is the maximum number of clients whose requests are counted.
	maxClients = 10_000
)

func (l Limits) withDefaults() Limits {
	l.Rate = cmp.Or(l.Rate, defaultRate)
	l.Burst = cmp.Or(l.Burst, int(max(l.Rate*defaultBurstRates, 1)))
	l.Connections = cmp.Or(l.Connections, defaultConnections)
	l.ConnectionsPerAddress = cmp.Or(l.ConnectionsPerAddress, half(l.Connections))
	l.Waiting = cmp.Or(l.Waiting, defaultWaiting)
	l.WaitingPerClient = cmp.Or(l.WaitingPerClient, half(l.Waiting))
	l.HeaderBytes = cmp.Or(l.HeaderBytes, defaultHeaderBytes)
	l.HeaderTimeout = cmp.Or(l.HeaderTimeout, 10*time.Second)
	l.BodyBytes = cmp.Or(l.BodyBytes, defaultBodyBytes)
	l.BodyTimeout = cmp.Or(l.BodyTimeout, 30*time.Second)
	return l
}

// check refuses a Rate that is not a usable number.
func (l Limits) check() error {
	if math.IsNaN(l.Rate) || math.IsInf(l.Rate, 0) || l.Rate > 1e9 {
		return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "rate",
			Cause: fmt.Sprintf("rate: %g is not a number of requests per second", l.Rate),
			Next:  "give a number up to 1e9, or a negative one for no limit"}
	}
	return nil
}

// half returns the default limit for one client. Half of no limit is no limit.
func half(n int) int {
	if n < 0 {
		return n
	}
	return max(n/2, 1)
}

// limiter enforces Limits.
type limiter struct {
	Limits
	asked   clients // requests, by client
	unknown clients // requests that failed authentication, by address

	mu      sync.Mutex
	waiting int
	waits   map[string]int // by client; a client without waiting requests has no entry
}

func newLimiter(l Limits) *limiter {
	return &limiter{Limits: l, asked: newClients(l), unknown: newClients(l), waits: make(map[string]int)}
}

type addressKey struct{}

// arrival is what is known of a request before authentication.
type arrival struct {
	address string // empty for this machine
	known   bool   // authentication was successful
}

// first runs before authentication. It limits the size of requests, and the failed authentications of an address.
func (l *limiter) first(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.RequestURI) > maxURI {
			refuse(w, r, &rowfeed.Error{Code: feedhttp.URITooLong,
				Cause: fmt.Sprintf("the URI has %d bytes, the maximum is %d", len(r.RequestURI), maxURI)}, 0)
			return
		}
		most := l.BodyBytes
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			most = 0 // a body has no meaning there
		}
		if l.BodyBytes >= 0 && r.ContentLength != 0 {
			if r.ContentLength > most || r.ContentLength < 0 && most == 0 {
				w.Header().Set("Connection", "close") // otherwise net/http reads the rest of the body
				refuse(w, r, &rowfeed.Error{Code: feedhttp.TooLarge,
					Cause: fmt.Sprintf("the request has a body of more than %d bytes", most),
					Next:  "leave the body out"}, 0)
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, most)
		}
		a := &arrival{address: clientAddress(r.RemoteAddr)}
		if after := l.unknown.wouldWait(a.address); after > 0 {
			refuse(w, r, tooMany("this address has been refused too often"), after)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), addressKey{}, a)))
		if !a.known {
			l.unknown.count(a.address)
		}
	})
}

// second runs after authentication. It limits the requests of a client.
func (l *limiter) second(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a, ok := r.Context().Value(addressKey{}).(*arrival); ok {
			a.known = true
		}
		if after := l.asked.count(client(r.Context())); after > 0 {
			refuse(w, r, tooMany("more requests than one client may send"), after)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func tooMany(cause string) error {
	return &rowfeed.Error{Code: feedhttp.TooManyRequests, Cause: cause, Next: "wait for as long as Retry-After says; " +
		"ask for more entries at a time, or wait for them (wait, or a stream) instead of asking again and again"}
}

// refuse answers a request with an error. after, unless 0, is the time for Retry-After.
func refuse(w http.ResponseWriter, r *http.Request, err error, after time.Duration) {
	p := feedhttp.ProblemOf(err, "")
	p.RetryAfter = cmp.Or(after, p.RetryAfter)
	feedhttp.Refuse(w, r, p)
}

// client returns the client that a request counts for, or "" for none.
func client(ctx context.Context) string {
	if name := access.From(ctx).Name; name != "" && name != access.Everyone().Name {
		return "token " + name
	}
	if a, ok := ctx.Value(addressKey{}).(*arrival); ok {
		return a.address
	}
	return ""
}

// clientAddress returns the address or network that counts as one client, or "" for this machine.
func clientAddress(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	ip := at.Addr().Unmap().WithZone("")
	switch {
	case ip.IsLoopback():
		return ""
	case ip.Is6():
		network, _ := ip.Prefix(64) // cannot fail for an address of 128 bits
		return network.String()
	}
	return ip.String()
}

// wait is Config.Wait of package feedhttp: it counts waiting requests.
func (l *limiter) wait(ctx context.Context) (leave func(), err error) {
	who := client(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.Waiting >= 0 && l.waiting >= l.Waiting:
		return nil, &rowfeed.Error{Code: feedhttp.Overloaded,
			Cause: "the maximum number of requests already wait for entries",
			Next:  "send the request without wait, or to another server; --max-waiting raises the limit"}
	case who != "" && l.WaitingPerClient >= 0 && l.waits[who] >= l.WaitingPerClient:
		return nil, tooMany("more requests that wait for entries than one client may have")
	}
	l.waiting++
	l.waits[who]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waiting--
		if l.waits[who]--; l.waits[who] == 0 {
			delete(l.waits, who)
		}
	}, nil
}
