package feedtype

import (
	"encoding/json"
	"fmt"
	"regexp"
	"time"
)

// Retry is how often and how quickly a failed page is tried again.
type Retry struct {
	// MaxAttempts of a page. After them its entries are tried one by one, so that the
	// key at fault is known and the others get through. Default 5.
	MaxAttempts int
	// Backoff is the pause after the first failure; it doubles up to MaxBackoff, with
	// jitter. Defaults 100 ms and 30 s.
	Backoff, MaxBackoff time.Duration
}

// OnFailure is what a consumer does with an entry that cannot be handled.
type OnFailure int

const (
	// Stop ends Run with the handler's error. Nothing is passed over. If the consumer has several shards, or if each
	// shard is a feed by itself (even if there is only one), Run goes on with the other shards. The shard of the entry
	// rests and reports the failure (Observer.Trouble, ConsumerStatus.Failure). It is tried again after
	// Retry.MaxBackoff, or when an operator has moved its cursor, by this worker or by the one that takes the shard
	// over. The same holds for a shard that is refused with TombstonesExpired or EntriesExpired.
	Stop OnFailure = iota
	// SetAside makes the key a dead letter and goes on with the others. Later versions
	// of the key join it, so that none overtakes it, until it is retried or dropped.
	SetAside
)

// Later wraps an error of Handle that is no fault of the entries: something that they
// need is away. The page is then tried again, with backoff, for as long as it takes,
// and no key is set aside for it.
func Later(err error) error {
	if err == nil {
		return nil
	}
	return &LaterError{err}
}

type LaterError struct{ err error }

func (e *LaterError) Error() string { return e.err.Error() }

func (e *LaterError) Unwrap() error { return e.err }

// ConsumerID names cursors: those of a consumer, of one feed where Feed is given, of
// one shard where Shard is.
type ConsumerID struct {
	Consumer string
	Feed     string // empty: every feed
	Shard    *int   // nil: every shard
}

func (id ConsumerID) String() string {
	s := fmt.Sprintf("consumer %q", id.Consumer)
	if id.Feed != "" {
		s += fmt.Sprintf(" of feed %q", id.Feed)
	}
	if id.Shard != nil {
		s += fmt.Sprintf(", shard %d", *id.Shard)
	}
	return s
}

// The states of a dead letter.
const (
	// LetterAside is a key that waits for an operator.
	LetterAside = "aside"
	// LetterRetry is a key that its consumer will try again.
	LetterRetry = "retry"
)

// DeadLetter is a key that a consumer has set aside.
type DeadLetter struct {
	Consumer   string          `json:"consumer"`
	Feed       string          `json:"feed"`
	Shard      int             `json:"shard"`      // of the consumer
	DataShard  *int64          `json:"data_shard"` // of the feed; nil of one that is older than tables version 5
	Key        json.RawMessage `json:"key"`
	Generation int64           `json:"generation"` // 0: the consumer has begun again since, and the key has not come
	Position   string          `json:"position"`   // of the latest version
	Op         Op              `json:"op"`         // Delete also where a whole new pass came without the key
	State      string          `json:"state"`      // LetterAside or LetterRetry
	Attempts   int64           `json:"attempts"`   // made with it
	Collapsed  int64           `json:"collapsed"`  // later versions that have joined it
	Error      string          `json:"error"`      // of the last attempt
	FirstAt    time.Time       `json:"first_at"`
	LastAt     time.Time       `json:"last_at"`
}

// Refusal is an entry that a Consumer's Deliver could not get rid of, because the
// receiver does not take it.
type Refusal struct {
	Entry int // its index among those handed over
	Err   error
}

var consumerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$`)

// ValidConsumer tells whether a consumer can have this name: a letter or digit, then up to 99 of letters, digits, '_', '-',
// '.' and ':'.
func ValidConsumer(name string) bool { return consumerName.MatchString(name) }
