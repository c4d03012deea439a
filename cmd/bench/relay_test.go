package bench

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/relay"
	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/cmd/sink/kafka"
	natssink "github.com/rowfeed/rowfeed/cmd/sink/nats"
	"github.com/rowfeed/rowfeed/cmd/sink/sqlmirror"
	"github.com/rowfeed/rowfeed/cmd/sink/stdout"
	"github.com/rowfeed/rowfeed/cmd/sink/webhook"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestRelay delivers a feed from its beginning to every kind of receiver, in batches of several sizes. Receivers are on
// this machine, and only accept the entries. So the figures are those of the relay, its sink, and their statements.
func TestRelay(t *testing.T) {
	rows := scaled(50_000)
	out := table{Title: fmt.Sprintf("Relaying %s entries of 200 bytes, entries/s", count(float64(rows))),
		Head: []string{"from", "to", "batch of 100", "1000", "5000"}}
	measured := func(name string) bool {
		for _, e := range testdb.Engines() {
			if e.Name == name {
				return true
			}
		}
		return false
	}
	for _, c := range []struct {
		from, to string
		on       testdb.Engine // the engine of the feed
		mirror   testdb.Engine
		open     func(b *bed) sink.Sink
	}{
		{"postgres15", "stdout (a file)", testdb.Postgres15, testdb.Engine{}, (*bed).toFile},
		{"postgres15", "webhook, 100 entries a request", testdb.Postgres15, testdb.Engine{}, (*bed).toWebhook},
		{"postgres15", "NATS JetStream, file store", testdb.Postgres15, testdb.Engine{}, (*bed).toNATS},
		{"postgres15", "Kafka (a fake)", testdb.Postgres15, testdb.Engine{}, (*bed).toKafka},
		{"postgres15", "mirror on sqlite", testdb.Postgres15, testdb.SQLite, nil},
		{"mariadb", "mirror on postgres15", testdb.MariaDB, testdb.Postgres15, nil},
	} {
		if !measured(c.from) || c.mirror.Name != "" && !measured(c.mirror.Name) {
			continue
		}
		t.Run(c.from+" to "+c.to, func(t *testing.T) {
			c.on.Require(t)
			b := newBed(t, c.on)
			b.fill("items", rows)
			db := b.Rowfeed(b.Pool, nil)
			f := b.Feed(db, rowfeed.FeedSpec{Name: "items", Table: "items"})
			_, err := f.Publish(b.Context())
			b.Must(err)
			var to *bed
			if c.mirror.Name != "" {
				to = newBed(t, c.mirror)
			}
			speed := figures[int]{}
			for rep := range *reps {
				for _, size := range []int{100, 1000, 5000} {
					r := &relay.Relay{Name: fmt.Sprint("r", rep, "-", size), Source: f, DB: db, Limit: size}
					if to != nil {
						r.Sink = to.mirror(fmt.Sprintf("items_%d_%d", rep, size))
					} else {
						r.Sink = c.open(b)
					}
					started := time.Now()
					b.Must(r.RunOnce(b.Context()))
					took := time.Since(started)
					b.Must(r.Sink.Close())
					speed.Add(size, float64(rows)/took.Seconds())
				}
			}
			out.Row(c.from, c.to, count(speed[100].Median()), count(speed[1000].Median()), count(speed[5000].Median()))
		})
	}
	out.Print()
}

func (b *bed) toFile() sink.Sink {
	b.Helper()
	file, err := os.Create(filepath.Join(b.TempDir(), "entries"))
	b.Must(err)
	b.Cleanup(func() { _ = file.Close() })
	return stdout.New(file)
}

func (b *bed) toWebhook() sink.Sink {
	b.Helper()
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	b.Cleanup(hook.Close)
	s, err := webhook.New(webhook.Config{URL: hook.URL, AllowPrivate: true})
	b.Must(err)
	return s
}

// toNATS starts a server that writes to the disk, without flushing each message, as is its default.
func (b *bed) toNATS() sink.Sink {
	b.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: b.TempDir(),
		NoLog: true, NoSigs: true})
	b.Must(err)
	s.Start()
	b.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(time.Minute) {
		b.Fatal("the NATS server does not start")
	}
	conn, err := nats.Connect(s.ClientURL())
	b.Must(err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	b.Must(err)
	_, err = js.CreateStream(b.Context(),
		jetstream.StreamConfig{Name: "items", Subjects: []string{"items"}, Storage: jetstream.FileStorage})
	b.Must(err)
	to, err := natssink.New(natssink.Config{URL: s.ClientURL(), Subject: "items"})
	b.Must(err)
	return to
}

func (b *bed) toKafka() sink.Sink {
	b.Helper()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "items"))
	b.Must(err)
	b.Cleanup(fake.Close)
	s, err := kafka.New(kafka.Config{Brokers: fake.ListenAddrs(), Topic: "items"})
	b.Must(err)
	return s
}

// mirror makes a table on the bed, to follow a feed. Closing the sink leaves the pool open.
func (b *bed) mirror(table string) sink.Sink {
	b.Helper()
	key := "bigint"
	if b.Family == "sqlite" {
		key = "INTEGER"
	}
	b.SQL("CREATE TABLE " + table + " (id " + key + " NOT NULL PRIMARY KEY, payload varchar(200) NOT NULL)")
	s, err := sqlmirror.New(b.Context(),
		sqlmirror.Config{Pool: b.Pool, Dialect: b.Dialect, DB: b.Rowfeed(b.Pool, nil), Table: table})
	b.Must(err)
	return s
}
