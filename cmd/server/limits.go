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

// Limits bound what clients may take of a server. A field of 0 has its default, a negative
// one bounds nothing.
//
// A client is who has said who they are; of all others it is an address, or, of IPv6, the
// network of 64 bits that it is in. What comes from this machine without saying who it is
// has no bound of its own: it may be a proxy, behind which all look alike.
type Limits struct {
	// Rate is how many requests a second a client may send. Default 1000. What is refused
	// because nobody knows who asks counts on the address.
	Rate float64
	// Burst is how many it may send at once. Default 20 times the rate.
	Burst int
	// Connections is how many may be open. Default 32,768.
	Connections int
	// ConnectionsPerAddress is how many of them one address may have. Default half of them.
	ConnectionsPerAddress int
	// Waiting is how many requests may wait for an entry, or stream, at a time. Default
	// 32,768.
	Waiting int
	// WaitingPerClient is how many of them may be one client's. Default half of them.
	WaitingPerClient int
	// HeaderBytes bounds a request's line and header. Default 32 KiB; unbounded is 1 MiB.
	HeaderBytes int
	// HeaderTimeout is how long they may take, and a TLS handshake before them. Default 10 s.
	HeaderTimeout time.Duration
	// BodyBytes bounds a body, which only the console's forms have. Default 64 KiB.
	BodyBytes int64
	// BodyTimeout is how long header and body together may take. Default 30 s.
	BodyTimeout time.Duration
}

const (
	defaultRate        = 1000
	defaultBurstRates  = 20
	defaultConnections = 32 << 10
	defaultWaiting     = 32 << 10
	defaultHeaderBytes = 32 << 10
	defaultBodyBytes   = 64 << 10
	// maxURI bounds an address: the longest query has 2 KiB, and a feed's name fewer than 100 bytes.
	maxURI = 8 << 10
	// maxClients bounds for how many clients it is remembered how much they have asked.
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

// check refuses what is no number.
func (l Limits) check() error {
	if math.IsNaN(l.Rate) || math.IsInf(l.Rate, 0) || l.Rate > 1e9 {
		return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "rate",
			Cause: fmt.Sprintf("rate: %g is no number of requests a second", l.Rate),
			Next:  "give one up to 1e9, or a negative one for no bound"}
	}
	return nil
}

// half is the share that one may have; of what is unbounded it is unbounded.
func half(n int) int {
	if n < 0 {
		return n
	}
	return max(n/2, 1)
}

// limiter holds clients to Limits.
type limiter struct {
	Limits
	asked   clients // requests, by who sends them
	unknown clients // requests that authentication has refused, by address

	mu      sync.Mutex
	waiting int
	waits   map[string]int // by client; who has none is not in it
}

func newLimiter(l Limits) *limiter {
	return &limiter{Limits: l, asked: newClients(l), unknown: newClients(l), waits: make(map[string]int)}
}

type addressKey struct{}

// arrival is what is known of a request before anybody has asked who sends it.
type arrival struct {
	address string // "" on this machine
	known   bool   // authentication has let it through
}

// first stands before authentication: it bounds what a request may look like, and how often
// an address may be refused.
func (l *limiter) first(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.RequestURI) > maxURI {
			refuse(w, r, &rowfeed.Error{Code: feedhttp.URITooLong,
				Cause: fmt.Sprintf("the address has %d bytes, at most %d are taken", len(r.RequestURI), maxURI)}, 0)
			return
		}
		most := l.BodyBytes
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			most = 0 // means nothing there, and would only be taken in
		}
		if l.BodyBytes >= 0 && r.ContentLength != 0 {
			if r.ContentLength > most || r.ContentLength < 0 && most == 0 {
				w.Header().Set("Connection", "close") // lest the body be read to its end
				refuse(w, r, &rowfeed.Error{Code: feedhttp.TooLarge,
					Cause: fmt.Sprintf("the request has a body of more than %d bytes", most),
					Next:  "leave the body out"}, 0)
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, most)
		}
		a := &arrival{address: clientAddress(r.RemoteAddr)}
		if after := l.unknown.dry(a.address); after > 0 {
			refuse(w, r, tooMany("this address has been refused too often"), after)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), addressKey{}, a)))
		if !a.known {
			l.unknown.take(a.address)
		}
	})
}

// second stands behind authentication: it bounds how often a client may ask.
func (l *limiter) second(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a, ok := r.Context().Value(addressKey{}).(*arrival); ok {
			a.known = true
		}
		if after := l.asked.take(client(r.Context())); after > 0 {
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

// refuse answers a request with an error; after, where it is not 0, is when to ask again.
func refuse(w http.ResponseWriter, r *http.Request, err error, after time.Duration) {
	p := feedhttp.ProblemOf(err, "")
	p.RetryAfter = cmp.Or(after, p.RetryAfter)
	feedhttp.Refuse(w, r, p)
}

// client is whom a request counts on; "" is nobody.
func client(ctx context.Context) string {
	if name := access.From(ctx).Name; name != "" && name != access.Everyone().Name {
		return "token " + name
	}
	if a, ok := ctx.Value(addressKey{}).(*arrival); ok {
		return a.address
	}
	return ""
}

// clientAddress is the address, or network, that counts as one client; "" on this machine.
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
		network, _ := ip.Prefix(64) // of an address of 128 bits
		return network.String()
	}
	return ip.String()
}

// wait is feedhttp's Config.Wait: it counts who waits.
func (l *limiter) wait(ctx context.Context) (leave func(), err error) {
	who := client(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.Waiting >= 0 && l.waiting >= l.Waiting:
		return nil, &rowfeed.Error{Code: feedhttp.Overloaded,
			Cause: "as many requests wait for entries as this server carries",
			Next:  "ask without wait, or another server; servers carry more with --max-waiting"}
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
