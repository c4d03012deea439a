// Package webhook implements the sink that sends batches of entries to an HTTP endpoint, signed according to Standard
// Webhooks (standardwebhooks.com).
//
// A request is a POST of
//
//	{"type":"rowfeed.entries","data":{"feed":"kv","generation":1,"epoch":3,"entries":[…],"base64":[]}}
//
// with entries in the JSON of a fetch. webhook-id is the same whenever the same entries are sent again. Any status
// 2xx accepts all entries of a request.
package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/feedtype"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"golang.org/x/time/rate"
)

// Config holds the settings of a Sink. Only URL is required.
type Config struct {
	// URL is the endpoint, http or https. A user and password in it are sent as basic authentication.
	URL string
	// Secrets sign each request, with one signature per secret. To change the secret, give the new and the old one
	// for a while. They are base64, with or without the prefix "whsec_". Without secrets, requests are not signed.
	Secrets []string
	// Timeout is the maximum time of a request, from dialling to the end of the answer. Default 30 s.
	Timeout time.Duration
	// MaxEntries and MaxBytes are the maximum number of entries of a request, and the size of their JSON in bytes. A
	// single entry may be larger. Defaults: 100 and 1 MiB.
	MaxEntries, MaxBytes int
	// MaxInFlight is the maximum number of concurrent requests of a batch. With 1, the default, the entries of a
	// relay's shard arrive in the order of their positions. With more, only the entries of the same key do.
	MaxInFlight int
	// Rate is the maximum number of requests per second. 0 means no limit.
	Rate float64
	// AllowPrivate accepts endpoints on this machine or in a private network. Without it such addresses are refused
	// when they are dialled, whatever the name in the URL.
	AllowPrivate bool
}

const (
	defaultTimeout    = 30 * time.Second
	defaultMaxEntries = 100
	defaultMaxBytes   = 1 << 20
	// maxAnswer is how many bytes of an answer are read, so that its connection can be reused.
	maxAnswer = 64 << 10
	// maxRest is the maximum pause that an endpoint may request with Retry-After.
	maxRest = time.Hour
)

// Sink sends to one endpoint.
type Sink struct {
	cfg    Config
	url    string // without user and password
	user   *url.Userinfo
	keys   []*webhooks.Webhook
	client *http.Client
	limit  *rate.Limiter
	now    func() time.Time

	life   context.Context
	end    context.CancelFunc
	inWork sync.WaitGroup
}

// New validates the configuration. It does not connect.
func New(cfg Config) (*Sink, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" {
		return nil, invalid("its URL cannot be used", "write it like https://example.com/hook")
	}
	s := &Sink{user: u.User, limit: rate.NewLimiter(rate.Inf, 1), now: time.Now}
	u.User = nil
	s.url = u.String()
	for _, secret := range cfg.Secrets {
		key, err := webhooks.NewWebhook(secret)
		if err != nil || secret == "" { // the library's error may contain a part of the secret
			return nil, invalid("a secret is not base64", "give it as the receiver has it, like whsec_MfKQ…")
		}
		s.keys = append(s.keys, key)
	}
	if cfg.Timeout < 0 || cfg.MaxEntries < 0 || cfg.MaxBytes < 0 || cfg.MaxInFlight < 0 || cfg.Rate < 0 {
		return nil, invalid("its bounds must not be negative", "leave them at 0 for the defaults")
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.MaxEntries == 0 {
		cfg.MaxEntries = defaultMaxEntries
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = defaultMaxBytes
	}
	if cfg.MaxInFlight == 0 {
		cfg.MaxInFlight = 1
	}
	if cfg.Rate > 0 {
		s.limit = rate.NewLimiter(rate.Limit(cfg.Rate), 1)
	}
	s.cfg = cfg
	s.client = newClient(cfg)
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

func invalid(cause, next string) error {
	return &feedtype.Error{Code: feedtype.InvalidRequest, Param: "to", Object: "webhook", Cause: cause, Next: next}
}

var errClosed = errors.New("webhook: the sink is closed")

// Deliver sends the batch in requests of limited size.
func (s *Sink) Deliver(ctx context.Context, batch []sink.Entry) []sink.Result {
	results := make([]sink.Result, len(batch))
	s.inWork.Add(1)
	defer s.inWork.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()

	slots := make(chan struct{}, s.cfg.MaxInFlight)
	var sending sync.WaitGroup
	var halt atomic.Pointer[sink.Result]
	for from := 0; from < len(batch); {
		to := from + s.fits(batch[from:])
		part, answer := batch[from:to], results[from:to]
		slots <- struct{}{}
		if enough := halt.Load(); enough != nil { // the endpoint is unavailable, or has asked for a pause
			copy(results[from:], sink.All(batch[from:], *enough))
			break
		}
		sending.Go(func() {
			defer func() { <-slots }()
			s.send(ctx, part, answer)
			if last := answer[len(answer)-1]; last.State == sink.Undecided {
				halt.Store(&last)
			}
		})
		from = to
	}
	sending.Wait()
	if s.life.Err() != nil {
		for i, r := range results {
			if r.State != sink.Accepted {
				results[i] = sink.Retry(0, errClosed)
			}
		}
	}
	return results
}

// fits returns the number of entries of the next request, at least one.
func (s *Sink) fits(batch []sink.Entry) int {
	size := 0
	for i, e := range batch {
		if size += len(e.AppendJSON(nil)); i > 0 && size > s.cfg.MaxBytes || i == s.cfg.MaxEntries {
			return i
		}
	}
	return len(batch)
}

// send delivers entries in one request. If the endpoint refuses the request, a single entry may be the cause, so each
// half is sent separately.
func (s *Sink) send(ctx context.Context, batch []sink.Entry, results []sink.Result) {
	r := s.post(ctx, batch)
	if r.State != sink.Rejected || len(batch) == 1 {
		copy(results, sink.All(batch, r))
		return
	}
	half := len(batch) / 2
	s.send(ctx, batch[:half], results[:half])
	if last := results[half-1]; last.State == sink.Undecided {
		copy(results[half:], sink.All(batch[half:], last)) // the endpoint is unavailable, or has asked for a pause
		return
	}
	s.send(ctx, batch[half:], results[half:])
}

// Close aborts running requests and waits for their end.
func (s *Sink) Close() error {
	s.end()
	s.inWork.Wait()
	s.client.CloseIdleConnections()
	return nil
}

// refusal is the answer of an endpoint that did not accept a request.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string {
	if r.text == "" {
		return fmt.Sprintf("the endpoint answered %d %s", r.status, http.StatusText(r.status))
	}
	return fmt.Sprintf("the endpoint answered %d %s: %s", r.status, http.StatusText(r.status), r.text)
}
