package kafka

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/cmd/sink/sinktest"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// cluster is franz-go's fake of Kafka, in this process. It shows that requests and answers are understood, and
// nothing about what brokers store.
type cluster struct {
	*kfake.Cluster
	t    *testing.T
	down atomic.Bool
}

const partitions = 3

func newCluster(t *testing.T) *cluster {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, "rows"),
		kfake.BrokerConfigs(map[string]string{"message.max.bytes": fmt.Sprint(5 << 20)}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	c := &cluster{Cluster: fake, t: t}
	fake.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		if !c.down.Load() {
			return nil, nil, false
		}
		produce := req.(*kmsg.ProduceRequest)
		resp := produce.ResponseKind().(*kmsg.ProduceResponse)
		for _, topic := range produce.Topics {
			rt := kmsg.NewProduceResponseTopic()
			rt.Topic, rt.TopicID = topic.Topic, topic.TopicID
			for _, p := range topic.Partitions {
				rp := kmsg.NewProduceResponseTopicPartition()
				rp.Partition, rp.ErrorCode = p.Partition, kerr.NotEnoughReplicas.Code
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp, nil, true
	})
	return c
}

func (c *cluster) sink(cfg Config) *Sink {
	c.t.Helper()
	cfg.Brokers, cfg.Topic = c.ListenAddrs(), "rows"
	s, err := New(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { s.Close() })
	return s
}

// records reads the topic to its end.
func (c *cluster) records() (all []*kgo.Record) {
	c.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics("rows"),
		kgo.FetchMaxPartitionBytes(16<<20), kgo.FetchMaxBytes(64<<20))
	if err != nil {
		c.t.Fatal(err)
	}
	defer client.Close()
	var want int64
	for p := range int32(partitions) {
		want += c.PartitionInfo("rows", p).HighWatermark
	}
	for int64(len(all)) < want {
		fetched := client.PollFetches(c.t.Context())
		if err := fetched.Err(); err != nil {
			c.t.Fatal(err)
		}
		all = append(all, fetched.Records()...)
	}
	return all
}

func (c *cluster) received() (all []sinktest.Delivery) {
	for _, r := range c.records() {
		var key struct{ ID int64 }
		if err := json.Unmarshal(r.Key, &key); err != nil {
			c.t.Fatal(err)
		}
		headers := map[string]string{}
		for _, h := range r.Headers {
			headers[h.Key] = string(h.Value)
		}
		if headers["rowfeed-epoch"] != "7" || headers["rowfeed-feed"] != "kv" || headers["rowfeed-generation"] != "1" ||
			headers["rowfeed-id"] != "kv:1:"+headers["rowfeed-shard"]+":"+headers["rowfeed-position"] {
			c.t.Errorf("headers: %v", headers)
		}
		d := sinktest.Delivery{ID: headers["rowfeed-id"], Key: key.ID, Op: feedtype.Op(headers["rowfeed-op"])}
		if (d.Op == feedtype.Delete) != (r.Value == nil) {
			c.t.Errorf("a record of %s has the value %.100s", d.Op, r.Value)
		}
		if r.Value != nil {
			var e struct{ Row struct{ V string } }
			if err := json.Unmarshal(r.Value, &e); err != nil {
				c.t.Fatal(err)
			}
			d.V = e.Row.V
		}
		all = append(all, d)
	}
	return all
}

// TestKafkaSinkPassesSinkSuite (S4) runs the suite of all sinks.
func TestKafkaSinkPassesSinkSuite(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Receiver {
		c := newCluster(t)
		s := c.sink(Config{Timeout: 5 * time.Minute, MaxRecordBytes: 4 << 20})
		return sinktest.Receiver{Sink: s, Received: c.received,
			// While the cluster accepts nothing, every delivery takes the whole timeout.
			Down: func() { c.down.Store(true); s.cfg.Timeout = 100 * time.Millisecond },
			Up:   func() { c.down.Store(false); s.cfg.Timeout = 5 * time.Minute }, Large: 3 << 20, TooLarge: 5 << 20}
	})
}

// TestVersionsOfAKeyShareAPartition (S4): all versions of a row are in one partition, and the receiver of a record can
// continue the trace of its delivery.
func TestVersionsOfAKeyShareAPartition(t *testing.T) {
	c := newCluster(t)
	s := c.sink(Config{})
	for version := range int64(3) {
		var batch []sink.Entry
		for id := range int64(20) {
			batch = append(batch, sinktest.Upsert(t, version*20+id+1, id, "x"))
		}
		for _, r := range s.Deliver(sinktest.Traced(t.Context()), batch) {
			if r.State != sink.Accepted {
				t.Fatal(r.Err)
			}
		}
	}
	at, used := map[string]int32{}, map[int32]bool{}
	for _, r := range c.records() {
		if p, seen := at[string(r.Key)]; seen && p != r.Partition {
			t.Errorf("key %s is in partitions %d and %d", r.Key, p, r.Partition)
		}
		if !slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool {
			return h.Key == "traceparent" && string(h.Value) == sinktest.TraceParent
		}) {
			t.Errorf("headers without a trace: %v", r.Headers)
		}
		at[string(r.Key)] = r.Partition
		used[r.Partition] = true
	}
	if len(at) != 20 || len(used) != partitions {
		t.Errorf("%d keys in %d partitions", len(at), len(used))
	}
}

// TestInvalidSettingsAreRefused: invalid settings are refused.
func TestInvalidSettingsAreRefused(t *testing.T) {
	for _, cfg := range []Config{{}, {Brokers: []string{"a:1"}}, {Topic: "a"}, {Brokers: []string{"a:1"}, Topic: "a",
		Timeout: -1},
		{Brokers: []string{"a:1"}, Topic: "a", User: "u", Password: "hunter2", Mechanism: "guess"}} {
		_, err := New(cfg)
		if !errors.Is(err, feedtype.InvalidRequest) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
