// Package nats implements the sink that publishes to a JetStream stream, one message per entry.
//
// The body of a message is the entry in the JSON of a fetch. Headers repeat its fields for routing: Rowfeed-Feed,
// Rowfeed-Op, Rowfeed-Generation, Rowfeed-Shard, Rowfeed-Position and Rowfeed-Epoch. Nats-Msg-Id is the entry's
// idempotency key. Within its duplicate window (two minutes by default) the stream stores an entry once, even if it
// is sent several times.
package nats

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Config holds the settings of a Sink. URL and Subject are required.
type Config struct {
	// URL is the server: nats://host:4222, tls:// or ws://, with a user and password or a token if needed. Separate
	// several with commas.
	URL string
	// Subject is the subject to publish to. A stream must exist that has this subject; the sink creates none.
	Subject string
	// CredentialsFile is a file with the JWT and key of a user, or empty.
	CredentialsFile string
	// Timeout is the maximum time until the stream has acknowledged a batch. After it, the rest of the batch is sent
	// again. Default 30 s.
	Timeout time.Duration
	// MaxInFlight is the maximum number of messages that wait for their acknowledgement. Default 256.
	MaxInFlight int
}

const (
	defaultTimeout     = 30 * time.Second
	defaultMaxInFlight = 256
)

// Sink publishes to one subject.
type Sink struct {
	cfg  Config
	conn *nats.Conn
	js   jetstream.JetStream

	life   context.Context
	end    context.CancelFunc
	inWork sync.WaitGroup
}

// New connects, or continues trying in the background.
func New(cfg Config) (*Sink, error) {
	switch {
	case cfg.URL == "":
		return nil, invalid("it names no server", "write it like nats://host:4222/subject")
	case !validSubject(cfg.Subject):
		return nil, invalid(fmt.Sprintf("%q is not a subject to publish to", cfg.Subject),
			"use a subject without wildcards and spaces, like orders.changes")
	case cfg.Timeout < 0 || cfg.MaxInFlight < 0:
		return nil, invalid("its bounds must not be negative", "leave them at 0 for the defaults")
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.MaxInFlight == 0 {
		cfg.MaxInFlight = defaultMaxInFlight
	}
	options := []nats.Option{
		nats.Name("rowfeed"),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1),
		// Do not buffer messages while disconnected: an entry that was given up must not arrive after a later version
		// of its key.
		nats.ReconnectBufSize(-1),
	}
	if cfg.CredentialsFile != "" {
		options = append(options, nats.UserCredentials(cfg.CredentialsFile))
	}
	conn, err := nats.Connect(cfg.URL, options...)
	if err != nil {
		return nil, invalid("no connection can be made with its URL",
			"check its form, its credentials, and the server's certificate")
	}
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncTimeout(cfg.Timeout),
		jetstream.WithPublishAsyncMaxPending(cfg.MaxInFlight))
	if err != nil {
		conn.Close()
		return nil, err
	}
	s := &Sink{cfg: cfg, conn: conn, js: js}
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

func invalid(cause, next string) error {
	return &feedtype.Error{Code: feedtype.InvalidRequest, Param: "to", Object: "nats", Cause: cause, Next: next}
}

func validSubject(s string) bool {
	last := byte('.')
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == '*' || c == '>' || c == '.' && last == '.' {
			return false
		}
		last = s[i]
	}
	return last != '.'
}

var errClosed = errors.New("nats: the sink is closed")

// Deliver publishes the batch in its order, and waits until the stream has acknowledged every message.
func (s *Sink) Deliver(ctx context.Context, batch []sink.Entry) []sink.Result {
	s.inWork.Add(1)
	defer s.inWork.Done()
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()

	results := make([]sink.Result, len(batch))
	acks := make([]jetstream.PubAckFuture, len(batch))
	var halt error
	for i, e := range batch {
		if halt == nil {
			halt = s.unfit(ctx)
		}
		if halt != nil {
			results[i] = sink.Retry(0, halt)
			continue
		}
		var err error
		acks[i], err = s.js.PublishMsgAsync(s.message(ctx, e), jetstream.WithMsgID(e.ID()),
			jetstream.WithStallWait(s.cfg.Timeout),
			jetstream.WithRetryAttempts(0))
		if err != nil {
			if results[i] = outcome(err); results[i].State == sink.Undecided {
				halt = err
			}
		}
	}
	for i, ack := range acks {
		if ack == nil {
			continue
		}
		select {
		case <-ack.Ok():
			results[i] = sink.Accept()
		case err := <-ack.Err():
			results[i] = outcome(err)
		case <-ctx.Done():
			results[i] = sink.Retry(0, fmt.Errorf("wait for the stream: %w", s.why(ctx.Err())))
		}
	}
	return results
}

// unfit returns the reason why nothing can be sent now, or nil.
func (s *Sink) unfit(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return s.why(ctx.Err())
	case !s.conn.IsConnected():
		if err := s.conn.LastError(); err != nil {
			return fmt.Errorf("not connected: %w", err)
		}
		return nats.ErrDisconnected
	}
	return nil
}

func (s *Sink) why(err error) error {
	if s.life.Err() != nil {
		return errClosed
	}
	return err
}

func (s *Sink) message(ctx context.Context, e sink.Entry) *nats.Msg {
	m := nats.NewMsg(s.cfg.Subject)
	m.Data = e.AppendJSON(nil)
	m.Header.Set("Rowfeed-Feed", e.Feed)
	m.Header.Set("Rowfeed-Op", string(e.Op))
	m.Header.Set("Rowfeed-Generation", strconv.FormatInt(e.Generation, 10))
	m.Header.Set("Rowfeed-Shard", strconv.Itoa(e.Shard))
	m.Header.Set("Rowfeed-Position", e.Position)
	m.Header.Set("Rowfeed-Epoch", strconv.FormatInt(e.Epoch, 10))
	feedtype.TraceHeaders(ctx, m.Header.Set)
	return m
}

// outcome returns the result for an error: rejected if no stream would accept the entry, else undecided.
func outcome(err error) sink.Result {
	var refused *jetstream.APIError
	if errors.Is(err, nats.ErrMaxPayload) ||
		errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum {
		return sink.Reject(err)
	}
	if errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) {
		return sink.Retry(0, &feedtype.Error{Code: feedtype.Unavailable, Object: "nats",
			Cause: "no stream stores the subject", Err: err, Next: "create a stream that has this subject"})
	}
	return sink.Retry(0, err)
}

// Close aborts running deliveries and closes the connection.
func (s *Sink) Close() error {
	s.end()
	s.inWork.Wait()
	s.conn.Close()
	return nil
}
