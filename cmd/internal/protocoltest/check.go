package protocoltest

import (
	"context"
	"net/http"
	"strings"
	"time"
)

const (
	defaultEntries  = 2000
	defaultTries    = 3
	defaultPatience = 5 * time.Second
	defaultHold     = 600 * time.Millisecond
)

// Options say which server is tested.
type Options struct {
	URL   string // without /_feeds
	Feed  string // default: the first that the server lists
	Token string // sent as bearer token, if it is not empty
	// MaxEntries bounds how much of the feed is read. Default 2000.
	MaxEntries int
	// Only are the numbers of the checks to run. Default: all.
	Only []string
	// Patience is how long a response may take if it does not have to wait for entries. Default 5 s.
	Patience time.Duration
	// Hold is the wait parameter of requests at the head, a minute at most. Default 600 ms.
	Hold time.Duration
	// Tries is how often a check runs before it fails: a writer may have changed the feed between two of its
	// requests. Default 3.
	Tries int
	// HTTP sends the requests. Default: a client of its own.
	HTTP *http.Client
}

// The results of a check.
const (
	Passed  = "passed"
	Failed  = "failed"  // a MUST does not hold
	Differs = "differs" // a SHOULD does not hold
	Untried = "untried" // the feed lacks what the check needs
)

// Result is the result of a check.
type Result struct {
	Check    string `json:"check"` // the number of the sentence
	Level    string `json:"level"` // MUST or SHOULD
	Sentence string `json:"sentence"`
	Result   string `json:"result"`
	Detail   string `json:"detail,omitempty"`
}

// check tests a sentence of the protocol.
type check struct {
	number, sentence string
	test             func(context.Context, *feed) error
}

// level returns MUST or SHOULD, as the sentence says.
func (c check) level() string {
	if strings.Contains(c.sentence, "SHOULD") {
		return "SHOULD"
	}
	return "MUST"
}

// untried is why this feed cannot show whether a sentence holds.
type untried string

func (u untried) Error() string { return string(u) }
