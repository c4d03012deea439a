package stdout

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/cmd/sink/sinktest"
	"github.com/rowfeed/rowfeed/feedtype"
)

// pipe is a writer that can be broken.
type pipe struct {
	bytes.Buffer
	broken bool
	room   int // bytes that it still writes while broken
	writes int
}

func (p *pipe) Write(data []byte) (int, error) {
	p.writes++
	if p.broken {
		n, _ := p.Buffer.Write(data[:min(p.room, len(data))])
		p.room -= n
		return n, errors.New("broken pipe")
	}
	return p.Buffer.Write(data)
}

func (p *pipe) log(t *testing.T) (all []sinktest.Delivery) {
	for line := range strings.Lines(p.String()) {
		var e struct {
			Position string
			Op       feedtype.Op
			Key      struct{ ID int64 }
			Row      struct{ V string }
		}
		if json.Unmarshal([]byte(line), &e) == nil { // an incomplete line is not an entry
			all = append(all, sinktest.Delivery{Key: e.Key.ID, V: e.Row.V, Op: e.Op})
		}
	}
	return all
}

// TestStdoutSinkPassesSinkSuite (S1) runs the suite of all sinks.
func TestStdoutSinkPassesSinkSuite(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Receiver {
		p := &pipe{}
		return sinktest.Receiver{Sink: New(p), Received: func() []sinktest.Delivery { return p.log(t) },
			Down: func() { p.broken = true }, Up: func() { p.broken = false }, Large: 5 << 20}
	})
}

// TestIncompleteLineIsNotJoined (S1): lines that were written completely before an error are not written again, and an
// incomplete line is not joined to the next.
func TestIncompleteLineIsNotJoined(t *testing.T) {
	p := &pipe{}
	s := New(p)
	first := sinktest.Upsert(t, 1, 1, "a")
	p.broken, p.room = true, len(first.AppendJSON(nil))+1+10
	batch := []sink.Entry{first, sinktest.Upsert(t, 2, 2, "b"), sinktest.Upsert(t, 3, 3, "c")}
	results := s.Deliver(t.Context(), batch)
	if results[0].State != sink.Accepted || results[1].State != sink.Undecided || results[2].State != sink.Undecided {
		t.Fatalf("results: %v", results)
	}
	p.broken = false
	s.Deliver(t.Context(), batch[1:])
	want := `{"position":"1","shard":0,"op":"upsert","key":{"id":1},"row":{"id":1,"v":"a"}}
{"position
{"position":"2","shard":0,"op":"upsert","key":{"id":2},"row":{"id":2,"v":"b"}}
{"position":"3","shard":0,"op":"upsert","key":{"id":3},"row":{"id":3,"v":"c"}}
`
	if p.String() != want {
		t.Errorf("written:\n%s\nwant:\n%s", p.String(), want)
	}
	if p.writes != 2 {
		t.Errorf("%d writes for 2 batches", p.writes)
	}
}
