package peers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	wsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// watermillPeer is watermill-sql. A message is published in the user's transaction. Each message is handled in a
// goroutine, as Watermill's router does. The next message is delivered when the previous one was acknowledged.
var watermillPeer = contestant{name: "watermill-sql", families: []string{
	"postgres", "mysql",
}, message: true, configurations: []configuration{
	{"default", "nothing is set: batches of 100, a poll every second, JSON", watermillWith(watermillSettings{})},
	{"tuned-1", "batches of 1,000, a poll every 10 ms, bytes in place of JSON",
		watermillWith(watermillSettings{batch: 1000, poll: 10 * time.Millisecond, bytes: true})},
	{"tuned-2", "as tuned-1, a poll every millisecond",
		watermillWith(watermillSettings{batch: 1000, poll: time.Millisecond, bytes: true})},
	{"tuned-3", "as tuned-1, and no deadline for acks, which costs a timer each",
		watermillWith(watermillSettings{batch: 1000, poll: 10 * time.Millisecond, bytes: true,
			deadline: new(time.Duration)})},
	{"large", "as tuned-3, batches of 5,000", watermillWith(watermillSettings{batch: 5000, poll: 10 * time.Millisecond,
		bytes: true, deadline: new(time.Duration)})},
	{"queue", "the queue's adapters, which delete what was acked and need no order of transactions",
		watermillWith(watermillSettings{batch: 1000, poll: 10 * time.Millisecond, bytes: true, queue: true})},
	{"queue-1ms", "as queue, a poll every millisecond",
		watermillWith(watermillSettings{batch: 1000, poll: time.Millisecond, bytes: true, queue: true})},
	{"queue-large", "as queue, batches of 5,000 and no deadline", watermillWith(watermillSettings{batch: 5000,
		poll: 10 * time.Millisecond, bytes: true, queue: true, deadline: new(time.Duration)})},
	{
		"queue-topics-8", "as queue, eight topics as with topics-8",
		watermillWith(watermillSettings{batch: 1000, poll: 10 * time.Millisecond, bytes: true, queue: true, topics: 8}),
	},
	{"deadline-1s", "as tuned-1, and a message that is not acked within a second is handed over again",
		watermillWith(watermillSettings{batch: 1000, poll: 10 * time.Millisecond, bytes: true,
			deadline: ptr(time.Second)})},
	{"queue-deadline", "as queue, and a message that is not acked within a second is handed over again",
		watermillWith(watermillSettings{batch: 1000, poll: 10 * time.Millisecond, bytes: true, queue: true,
			deadline: ptr(time.Second)})},
	{"topics-8-deadline", "as topics-8 and deadline-1s", watermillWith(watermillSettings{batch: 1000,
		poll: 10 * time.Millisecond, bytes: true, topics: 8, deadline: ptr(time.Second)})},
	{"topics-8", "as tuned-1, eight topics, among which the writers are divided, handled at the same time",
		watermillWith(watermillSettings{batch: 1000, poll: 10 * time.Millisecond, bytes: true, topics: 8})},
}}

// watermillSettings are the settings that differ from the defaults.
type watermillSettings struct {
	batch    int            // SubscribeBatchSize
	poll     time.Duration  // SubscriberConfig.PollInterval
	deadline *time.Duration // SubscriberConfig.AckDeadline
	bytes    bool           // GeneratePayloadType: BYTEA or BLOB
	queue    bool           // the queue's schema and offsets adapters, with DeleteOnAck
	topics   int
}

func ptr[T any](v T) *T { return &v }

func watermillWith(s watermillSettings) func() peer {
	s.topics = max(s.topics, 1)
	return func() peer { return &watermillRun{watermillSettings: s} }
}

type watermillRun struct {
	watermillSettings
	schema  wsql.SchemaAdapter
	offsets wsql.OffsetsAdapter
	db      wsql.Beginner
	trouble func(format string, args ...any)
}

func (w *watermillRun) begin(c *cell) {
	w.trouble = c.Logf
	payloadType := func(of string) func(string) string {
		if !w.bytes {
			return nil
		}
		return func(string) string { return of }
	}
	switch {
	case c.Family == "postgres" && w.queue:
		w.schema = wsql.PostgreSQLQueueSchema{SubscribeBatchSize: w.batch, GeneratePayloadType: payloadType("BYTEA")}
		w.offsets = wsql.PostgreSQLQueueOffsetsAdapter{DeleteOnAck: true}
	case c.Family == "postgres":
		w.schema = wsql.DefaultPostgreSQLSchema{SubscribeBatchSize: w.batch, GeneratePayloadType: payloadType("BYTEA")}
		w.offsets = wsql.DefaultPostgreSQLOffsetsAdapter{}
	case w.queue:
		w.schema = wsql.MySQLQueueSchema{SubscribeBatchSize: w.batch, GeneratePayloadType: payloadType("BLOB")}
		w.offsets = wsql.MySQLQueueOffsetsAdapter{DeleteOnAck: true}
	default:
		w.schema = wsql.DefaultMySQLSchema{SubscribeBatchSize: w.batch, GeneratePayloadType: payloadType("BLOB")}
		w.offsets = wsql.DefaultMySQLOffsetsAdapter{}
	}
	if c.users.postgres != nil {
		w.db = wsql.BeginnerFromPgx(c.users.postgres)
	} else {
		w.db = wsql.BeginnerFromStdSQL(c.users.mysql)
	}
	s, err := w.subscriber()
	c.Must(err)
	for topic := range w.topics {
		c.Must(s.SubscribeInitialize(w.topic(topic)))
	}
	c.Must(s.Close())
}

// prepares: MySQL does not accept bytes in the text of a statement as JSON, and Watermill's metadata are bytes.
func (w *watermillRun) prepares(e testdb.Engine) bool { return e == testdb.MySQL }

func (w *watermillRun) topic(n int) string { return fmt.Sprintf("items_%d", n) }

func (w *watermillRun) subscriber() (*wsql.Subscriber, error) {
	return wsql.NewSubscriber(w.db, wsql.SubscriberConfig{AckDeadline: w.deadline, PollInterval: w.poll,
		SchemaAdapter: w.schema, OffsetsAdapter: w.offsets}, watermillLog{w.trouble})
}

func (w *watermillRun) record(ctx context.Context, tx userTx, payloads []string) error {
	var executor wsql.ContextExecutor
	switch tx := tx.(type) {
	case pgxTx:
		executor = wsql.TxFromPgx(tx.Tx)
	case sqlTx:
		executor = wsql.TxFromStdSQL(tx.Tx)
	}
	p, err := wsql.NewPublisher(executor, wsql.PublisherConfig{SchemaAdapter: w.schema}, nil)
	if err != nil {
		return err
	}
	byTopic := make([][]*message.Message, w.topics)
	for _, text := range payloads {
		topic := 0
		if w.topics > 1 {
			writer, _ := rowOf(text) // the rows of a writer stay in order
			topic = writer % w.topics
		}
		if !w.bytes {
			text = `"` + text + `"` // the text has no characters that JSON would escape
		}
		m := message.NewMessage(watermill.NewUUID(), message.Payload(text))
		m.SetContext(ctx)
		byTopic[topic] = append(byTopic[topic], m)
	}
	for topic, messages := range byTopic {
		if len(messages) > 0 {
			if err := p.Publish(w.topic(topic), messages...); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *watermillRun) run(ctx context.Context, handle handler) error {
	var all sync.WaitGroup
	defer all.Wait()
	for topic := range w.topics {
		s, err := w.subscriber()
		if err != nil {
			return err
		}
		messages, err := s.Subscribe(ctx, w.topic(topic))
		if err != nil {
			return unlessEnded(ctx, err)
		}
		all.Go(func() {
			var handling sync.WaitGroup
			for m := range messages {
				handling.Go(func() {
					text := string(m.Payload)
					if !w.bytes {
						text = text[1 : len(text)-1]
					}
					handle(text)
					m.Ack()
				})
			}
			handling.Wait()
			_ = s.Close()
		})
	}
	return nil
}

func (w *watermillRun) end(context.Context) error { return nil }

// watermillLog shows what Watermill logs as errors.
type watermillLog struct {
	trouble func(format string, args ...any)
}

func (l watermillLog) Error(text string, err error, _ watermill.LogFields) {
	if !errors.Is(err, context.Canceled) { // the end of a run
		l.trouble("watermill: %s: %v", text, err)
	}
}

func (watermillLog) Info(string, watermill.LogFields)                   {}
func (watermillLog) Debug(string, watermill.LogFields)                  {}
func (watermillLog) Trace(string, watermill.LogFields)                  {}
func (l watermillLog) With(watermill.LogFields) watermill.LoggerAdapter { return l }
