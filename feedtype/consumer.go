package feedtype

import (
	"fmt"
	"regexp"
	"time"
)

// Retry is how often and how fast a failed page is retried.
type Retry struct {
	// MaxAttempts is the maximum number of attempts with a page. After them its entries are tried one by one, so that
	// the failing key is found and the other entries succeed. Default 5.
	MaxAttempts int
	// Backoff is the pause after the first failure. It doubles up to MaxBackoff, with jitter. Defaults: 100 ms and 30
	// s.
	Backoff, MaxBackoff time.Duration
}

// OnFailure is what a consumer does with an entry whose attempts are used up.
type OnFailure int

const (
	// Stop ends Run with the handler's error. No entry is skipped. If the consumer has several shards, or reads a
	// ULID feed, Run continues with the other shards. The shard of the entry rests and reports the failure
	// (Observer.Trouble, ConsumerStatus.Failure). It is retried after Retry.MaxBackoff, or when an operator has moved
	// its cursor, by this worker or by the worker that takes the shard over. The same holds for a shard that is
	// refused with TombstonesExpired or EntriesExpired.
	Stop OnFailure = iota
	// SetAside stores the key as a dead letter, and continues with the other keys. Later versions of the key join the
	// dead letter, so that none overtakes it, until an operator retries or drops it.
	SetAside
)

// Later wraps an error of Handle that is not caused by the entries, such as a service that is temporarily
// unavailable. The page is then retried with backoff, without a limit on the attempts, and no key is set aside for
// it.
func Later(err error) error {
	if err == nil {
		return nil
	}
	return &LaterError{err}
}

// LaterError is an error that [Later] has wrapped.
type LaterError struct{ err error }

func (e *LaterError) Error() string { return e.err.Error() }

func (e *LaterError) Unwrap() error { return e.err }

// ConsumerID selects cursors of a consumer: those of one feed if Feed is set, and of one shard if Shard is set.
type ConsumerID struct {
	Consumer string
	Feed     string // empty: all feeds
	Shard    *int   // nil: all shards
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

// Refusal is an entry that the receiver of a Consumer's Deliver rejected.
type Refusal struct {
	Entry int // index in the entries that Deliver was called with
	Err   error
}

var consumerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$`)

// ValidConsumer tells whether a name is valid for a consumer: a letter or digit, then up to 99 of letters, digits,
// '_', '-', '.' and ':'.
func ValidConsumer(name string) bool { return consumerName.MatchString(name) }
