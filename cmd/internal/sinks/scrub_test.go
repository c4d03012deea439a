package sinks

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/sink"
)

// quoting is a sink whose errors quote its URL.
type quoting struct {
	sink.Sink
	to string
}

func (s quoting) Deliver(_ context.Context, batch []sink.Entry) []sink.Result {
	return sink.All(batch, sink.Reject(errors.New("cannot post to "+s.to)))
}

// TestErrorsOfReceiversHaveNoPassword: errors of deliveries are stored, so the receiver's password is not in them.
func TestErrorsOfReceiversHaveNoPassword(t *testing.T) {
	const to = "nats://me:hunter2secret@host:4222/subject"
	for _, r := range (scrubbing{quoting{to: to}, to}).Deliver(t.Context(), make([]sink.Entry, 2)) {
		if text := r.Err.Error(); strings.Contains(text, "hunter2secret") || !strings.Contains(text, "cannot post to") {
			t.Error(text)
		}
	}
}
