// Package kafka implements the sink that produces to a Kafka topic, one record per entry.
//
// The key of a record is the row's key as JSON, so all versions of a row are in one partition, in order. Its value is
// the entry in the JSON of a fetch. The value of a delete is null, which a compacted topic takes as the end of the
// key. Headers have the other fields: rowfeed-id (the idempotency key), rowfeed-feed, rowfeed-op, rowfeed-generation,
// rowfeed-shard, rowfeed-position and rowfeed-epoch.
package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Config holds the settings of a Sink. Brokers and Topic are required.
type Config struct {
	Brokers []string // host:port
	Topic   string   // must exist, unless the brokers create topics automatically
	TLS     bool
	// User and Password log in with SASL. Mechanism is "plain" (the default), "scram-sha-256" or "scram-sha-512".
	User, Password, Mechanism string
	// Timeout is the maximum time until the brokers have acknowledged a batch. After it, the rest of the batch is
	// sent again. Default 30 s.
	Timeout time.Duration
	// MaxRecordBytes is the maximum size of a record, like max.message.bytes of the topic. Default 1,000,012, the
	// default of the topic.
	MaxRecordBytes int32
}

const (
	defaultTimeout = 30 * time.Second
	reachTimeout   = 5 * time.Second
)

// Sink produces to one topic. Its producer is idempotent: a record that it sends again because of a connection error
// is in the topic once. An entry that a relay delivers again, for example after a crash, is in the topic twice.
type Sink struct {
	cfg    Config
	client *kgo.Client

	// left has, by data shard, the channel of an earlier batch that was given up. The channel is closed when the
	// batch's records are decided: the client continues to send them although Deliver has returned.
	mu   sync.Mutex
	left map[int]chan struct{}

	reached atomic.Bool // a broker has answered, and no batch was given up since

	life   context.Context
	end    context.CancelFunc
	inWork sync.WaitGroup
}

// New returns a client that connects with the first batch.
func New(cfg Config) (*Sink, error) {
	switch {
	case len(cfg.Brokers) == 0 || cfg.Topic == "":
		return nil, invalid("brokers or topic are missing", "write it like kafka://host:9092/topic")
	case cfg.Timeout < 0 || cfg.MaxRecordBytes < 0:
		return nil, invalid("its bounds must not be negative", "leave them at 0 for the defaults")
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(cfg.Brokers...), kgo.ClientID("rowfeed"), kgo.DefaultProduceTopic(cfg.Topic),
		kgo.RequiredAcks(kgo.AllISRAcks()), // required by idempotence, the client's default
		kgo.RecordDeliveryTimeout(cfg.Timeout), kgo.ProduceRequestTimeout(cfg.Timeout),
		kgo.AllowAutoTopicCreation(), // only a request: the brokers decide
	}
	if cfg.MaxRecordBytes > 0 {
		options = append(options, kgo.ProducerBatchMaxBytes(cfg.MaxRecordBytes))
	}
	if cfg.TLS {
		options = append(options, kgo.DialTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12}))
	}
	if cfg.User != "" {
		login, err := cfg.login()
		if err != nil {
			return nil, err
		}
		options = append(options, login)
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, invalid("no client can be made with these settings", "check brokers, topic and bounds")
	}
	s := &Sink{cfg: cfg, client: client, left: map[int]chan struct{}{}}
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

func (c Config) login() (kgo.Opt, error) {
	hashed := scram.Auth{User: c.User, Pass: c.Password}
	switch c.Mechanism {
	case "", "plain":
		return kgo.SASL(plain.Auth{User: c.User, Pass: c.Password}.AsMechanism()), nil
	case "scram-sha-256":
		return kgo.SASL(hashed.AsSha256Mechanism()), nil
	case "scram-sha-512":
		return kgo.SASL(hashed.AsSha512Mechanism()), nil
	}
	return nil, invalid(fmt.Sprintf("%q is not a login mechanism", c.Mechanism),
		"use plain, scram-sha-256 or scram-sha-512")
}

func invalid(cause, next string) error {
	return &feedtype.Error{Code: feedtype.InvalidRequest, Param: "to", Object: "kafka", Cause: cause, Next: next}
}

var errClosed = errors.New("kafka: the sink is closed")

// Deliver produces the batch, and waits until the brokers have acknowledged it.
func (s *Sink) Deliver(ctx context.Context, batch []sink.Entry) []sink.Result {
	s.inWork.Add(1)
	defer s.inWork.Done()
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	for _, earlier := range s.leftOf(batch) {
		select {
		case <-earlier:
		case <-ctx.Done():
		}
	}
	if err := s.reach(ctx); err != nil {
		return sink.All(batch, sink.Retry(0, s.why(err)))
	}
	type decision struct {
		i   int
		err error
	}
	decided := make(chan decision, len(batch))
	var producing sync.WaitGroup
	producing.Add(len(batch))
	for i, e := range batch {
		s.client.Produce(ctx, record(ctx, e), func(_ *kgo.Record, err error) {
			decided <- decision{i, err}
			producing.Done()
		})
	}
	results := make([]sink.Result, len(batch))
	for n := range batch {
		select {
		case d := <-decided:
			results[d.i] = s.outcome(d.err)
		case <-ctx.Done():
			s.reached.Store(false)
			s.leave(batch, &producing)
			return s.giveUp(results, n, ctx.Err())
		}
	}
	return results
}

// reach returns an error if no broker answers. Otherwise the client would try to connect for the whole timeout, and
// never say why it cannot.
func (s *Sink) reach(ctx context.Context) error {
	if ctx.Err() != nil || s.reached.Load() {
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	if err := s.client.Ping(ctx); err != nil {
		return fmt.Errorf("no broker of %s answers: %w", strings.Join(s.cfg.Brokers, ", "), err)
	}
	s.reached.Store(true)
	return nil
}

// leftOf returns the earlier batches that a batch has to wait for.
func (s *Sink) leftOf(batch []sink.Entry) (all []chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range batch {
		if earlier := s.left[e.Shard]; earlier != nil && !slices.Contains(all, earlier) {
			all = append(all, earlier)
		}
	}
	return all
}

// leave makes later batches of the same shards wait until the records of this batch are decided.
func (s *Sink) leave(batch []sink.Entry, producing *sync.WaitGroup) {
	decided := make(chan struct{})
	s.mu.Lock()
	for _, e := range batch {
		s.left[e.Shard] = decided
	}
	s.mu.Unlock()
	go func() {
		producing.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		maps.DeleteFunc(s.left, func(_ int, c chan struct{}) bool { return c == decided })
		close(decided)
	}()
}

// giveUp sets the reason of the entries that were not decided in time.
func (s *Sink) giveUp(results []sink.Result, decided int, err error) []sink.Result {
	for i, r := range results {
		if r.State == sink.Undecided && r.Err == nil {
			results[i] = sink.Retry(0,
				fmt.Errorf("%d of %d records were acknowledged in time: %w", decided, len(results), s.why(err)))
		}
	}
	return results
}

func record(ctx context.Context, e sink.Entry) *kgo.Record {
	r := &kgo.Record{Key: e.Key.AppendJSON(nil)}
	if e.Op == feedtype.Upsert {
		r.Value = e.AppendJSON(nil)
	}
	for _, h := range [][2]string{
		{"id", e.ID()},
		{"feed", e.Feed},
		{"op", string(e.Op)},
		{"generation", strconv.FormatInt(e.Generation, 10)},
		{"shard", strconv.Itoa(e.Shard)}, {"position", e.Position}, {"epoch", strconv.FormatInt(e.Epoch, 10)},
	} {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "rowfeed-" + h[0], Value: []byte(h[1])})
	}
	feedtype.TraceHeaders(ctx, func(name, value string) {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	})
	return r
}

// outcome returns the result for an error: rejected if no broker would accept the record, else undecided.
func (s *Sink) outcome(err error) sink.Result {
	switch {
	case err == nil:
		return sink.Accept()
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.InvalidRecord):
		return sink.Reject(err)
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return sink.Retry(0, &feedtype.Error{Code: feedtype.Unavailable, Object: "kafka",
			Cause: "the topic " + s.cfg.Topic + " does not exist", Err: err, Next: "create it"})
	}
	return sink.Retry(0, s.why(err))
}

func (s *Sink) why(err error) error {
	if s.life.Err() != nil {
		return errClosed
	}
	return err
}

// Close aborts running deliveries and closes the connections.
func (s *Sink) Close() error {
	s.end()
	s.inWork.Wait()
	s.client.Close()
	return nil
}
