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

// TestErrorsOfWebhooksHaveNoPath (M72): a receiver may repeat the path or the query of a request in its answer.
func TestErrorsOfWebhooksHaveNoPath(t *testing.T) {
	const to = "https://me:hunter2secret@host/services/T000/pathsecret?code=codesecret&sig=a%2Bsignature"
	for _, text := range []string{to, "Cannot POST /services/T000/pathsecret?code=codesecret&sig=a%2Bsignature",
		"no route /services/T000/pathsecret", "the code codesecret is unknown", "wrong: a+signature"} {
		s := scrubbing{failingWith{err: errors.New("refused: " + text)}, to}
		got := s.Deliver(t.Context(), make([]sink.Entry, 1))[0].Err.Error()
		if strings.Contains(got, "secret") || strings.Contains(got, "signature") || !strings.Contains(got, "refused") {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// failingWith is a sink that fails with an error.
type failingWith struct {
	sink.Sink
	err error
}

func (s failingWith) Deliver(_ context.Context, batch []sink.Entry) []sink.Result {
	return sink.All(batch, sink.Reject(s.err))
}

// TestTargetHasNoSecrets (M72): what is shown of a receiver's URL has no user and no query, and of a webhook no path.
func TestTargetHasNoSecrets(t *testing.T) {
	for to, want := range map[string]string{
		"https://hooks.example/services/T000/secret":       "https://hooks.example",
		"https://me:pw@host:8443/hook?code=secret&sig=x#y": "https://host:8443",
		"HTTP://host?api_key=secret":                       "http://host",
		"nats://me:pw@host:4222/subject?creds=secret":      "nats://host:4222/subject",
		"kafka://me:pw@a:9092,b:9092/topic?tls=true":       "kafka://a:9092,b:9092/topic",
		"postgres://me:pw@host/d?password=secret&table=t":  "postgres://host/d",
		"sqlite:x.db?table=t":                              "sqlite:x.db",
		"stdout:":                                          "stdout:",
		"nats://me:p%@host/subject":                        "nats:",
	} {
		if got := Target(to); got != want {
			t.Errorf("%s: %s, want %s", to, got, want)
		}
	}
}
