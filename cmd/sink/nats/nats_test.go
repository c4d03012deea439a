package nats

import (
	"encoding/json"
	"errors"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/cmd/sink/sinktest"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// broker is a real server in this process, with its files in a folder of the test. It keeps its port while it is
// stopped.
type broker struct {
	t      *testing.T
	folder string
	port   int
	server *server.Server
}

func newBroker(t *testing.T) *broker {
	at, err := netip.ParseAddrPort(testdb.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{t: t, folder: t.TempDir(), port: int(at.Port())}
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *broker) start() {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: b.port, JetStream: true, StoreDir: b.folder,
		SyncAlways: true,
		NoLog:      true, NoSigs: true, MaxPayload: 4 << 20, MaxPending: 64 << 20})
	if err != nil {
		b.t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		b.t.Fatal("the server does not start")
	}
	b.server = s
}

func (b *broker) stop() {
	b.server.Shutdown()
	b.server.WaitForShutdown()
}

// connect returns the test's own connection, which reads the stream.
func (b *broker) connect() jetstream.JetStream {
	b.t.Helper()
	conn, err := nats.Connect(b.server.ClientURL(), nats.Timeout(time.Minute), nats.MaxReconnects(-1),
		nats.ReconnectWait(10*time.Millisecond))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(conn.Close)
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		b.t.Fatal(err)
	}
	return js
}

func (b *broker) stream(maxSize int32) {
	b.t.Helper()
	_, err := b.connect().CreateStream(b.t.Context(), jetstream.StreamConfig{Name: "changes",
		Subjects: []string{"rows.>"}, Storage: jetstream.FileStorage, MaxMsgSize: maxSize})
	if err != nil {
		b.t.Fatal(err)
	}
}

// received reads the stream from its beginning.
func (b *broker) received() (all []sinktest.Delivery) {
	b.t.Helper()
	ctx, js := b.t.Context(), b.connect()
	stream, err := js.Stream(ctx, "changes")
	if err != nil {
		b.t.Fatal(err)
	}
	info, err := stream.Info(ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq && seq > 0; seq++ {
		m, err := stream.GetMsg(ctx, seq)
		if err != nil {
			b.t.Fatal(err)
		}
		var e struct {
			Position string
			Op       feedtype.Op
			Key      struct{ ID int64 }
			Row      struct{ V string }
		}
		if err := json.Unmarshal(m.Data, &e); err != nil {
			b.t.Fatal(err)
		}
		h := m.Header
		if h.Get("Rowfeed-Position") != e.Position || h.Get("Rowfeed-Op") != string(e.Op) ||
			h.Get("Rowfeed-Epoch") != "7" ||
			h.Get("Rowfeed-Generation") != "1" || h.Get("Rowfeed-Feed") != "kv" ||
			h.Get("Nats-Msg-Id") != "kv:1:"+h.Get("Rowfeed-Shard")+":"+h.Get("Rowfeed-Position") {
			b.t.Errorf("headers: %v", h)
		}
		all = append(all, sinktest.Delivery{ID: h.Get("Nats-Msg-Id"), Key: e.Key.ID, V: e.Row.V, Op: e.Op})
	}
	return all
}

func (b *broker) sink(cfg Config) *Sink {
	b.t.Helper()
	cfg.URL, cfg.Subject = b.server.ClientURL(), "rows.kv"
	s, err := New(cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { s.Close() })
	// If the first attempt took too long, the sink continues to connect in the background.
	for give := time.Now().Add(time.Minute); !s.conn.IsConnected(); runtime.Gosched() {
		if time.Now().After(give) {
			b.t.Fatal("it does not connect")
		}
	}
	return s
}

// TestNATSSinkPassesSinkSuite (S3) runs the suite of all sinks.
func TestNATSSinkPassesSinkSuite(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Receiver {
		b := newBroker(t)
		b.stream(-1)
		return sinktest.Receiver{Sink: b.sink(Config{MaxInFlight: 8, Timeout: 5 * time.Minute}), Received: b.received,
			Down: b.stop, Up: b.start,
			Idempotent: true, Large: 3 << 20, TooLarge: 5 << 20}
	})
}

// TestReceiverCanContinueTrace: the receiver of a message can continue the trace of its delivery.
func TestReceiverCanContinueTrace(t *testing.T) {
	b := newBroker(t)
	b.stream(-1)
	if r := b.sink(Config{}).Deliver(sinktest.Traced(t.Context()),
		[]sink.Entry{sinktest.Upsert(t, 1, 1, "a")})[0]; r.State != sink.Accepted {
		t.Fatal(r.Err)
	}
	stream, err := b.connect().Stream(t.Context(), "changes")
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetMsg(t.Context(), 1)
	if err != nil || m.Header.Get("traceparent") != sinktest.TraceParent {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestEntriesWaitForTheirStream (S3): without a stream, entries wait. An entry above the stream's own limit is refused.
// An entry for a full stream waits.
func TestEntriesWaitForTheirStream(t *testing.T) {
	b := newBroker(t)
	s := b.sink(Config{})
	small, large := sinktest.Upsert(t, 1, 1, "a"), sinktest.Upsert(t, 2, 2, strings.Repeat("x", 2000))
	if r := s.Deliver(t.Context(), []sink.Entry{small})[0]; r.State != sink.Undecided ||
		!strings.Contains(r.Err.Error(), "create a stream") {
		t.Errorf("without a stream: %+v", r)
	}
	b.stream(1000)
	r := s.Deliver(t.Context(), []sink.Entry{small, large})
	if r[0].State != sink.Accepted || r[1].State != sink.Rejected {
		t.Errorf("a stream with a limit: %+v", r)
	}
	js := b.connect()
	if _, err := js.UpdateStream(t.Context(), jetstream.StreamConfig{
		Name: "changes", Subjects: []string{"rows.>"}, MaxMsgs: 1, Discard: jetstream.DiscardNew,
	}); err != nil {
		t.Fatal(err)
	}
	if r := s.Deliver(t.Context(), []sink.Entry{sinktest.Upsert(t, 3, 3, "c")})[0]; r.State != sink.Undecided {
		t.Errorf("a full stream: %+v", r)
	}
}

// TestInvalidSettingsAreRefused: invalid settings are refused.
func TestInvalidSettingsAreRefused(t *testing.T) {
	for _, subject := range []string{"", ".", "a.", ".a", "a..b", "a.*", ">", "a b", "a\n"} {
		if _, err := New(Config{URL: "nats://127.0.0.1:1", Subject: subject}); !errors.Is(err,
			feedtype.InvalidRequest) {
			t.Errorf("subject %q: %v", subject, err)
		}
	}
	if _, err := New(Config{URL: "nats://hunter2@%zz", Subject: "a"}); !errors.Is(err, feedtype.InvalidRequest) ||
		strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a bad URL: %v", err)
	}
}
