package feedtype

import (
	"encoding/json"
	"time"
)

// The states of a dead letter.
const (
	// LetterAside is the state of a dead letter that waits for an operator.
	LetterAside = "aside"
	// LetterRetry is the state of a dead letter that its consumer will retry.
	LetterRetry = "retry"
)

// DeadLetter is a key that a consumer has set aside.
type DeadLetter struct {
	Consumer   string          `json:"consumer"`
	Feed       string          `json:"feed"`
	Shard      int             `json:"shard"`      // of the consumer
	DataShard  *int64          `json:"data_shard"` // of the feed; nil for letters from before version 5 of the tables
	Key        json.RawMessage `json:"key"`
	Generation int64           `json:"generation"` // 0: the consumer has restarted, and the key has not come again
	Position   string          `json:"position"`   // of the latest version
	Op         Op              `json:"op"`         // also Delete if a complete new pass came without the key
	State      string          `json:"state"`      // LetterAside or LetterRetry
	Attempts   int64           `json:"attempts"`   // number of attempts so far
	Collapsed  int64           `json:"collapsed"`  // number of later versions that have joined it
	Error      string          `json:"error"`      // of the last attempt
	FirstAt    time.Time       `json:"first_at"`
	LastAt     time.Time       `json:"last_at"`
}

// LetterQuery selects dead letters. An empty field does not restrict the selection.
type LetterQuery struct {
	ConsumerID
	// Key selects one key, as entries show it: a JSON object, or the value of its only column. The columns of a JSON
	// object may be in any order if there are at most five.
	Key string
	// Error selects letters whose error contains this text. Upper and lower case are the same. A "#" stands for itself
	// and for any number within the first 200 characters, as in LetterGroup.Error.
	Error string
	// Group selects letters whose error belongs to the group of this name: LetterGroup.Error.
	Group string
	// After is LetterPage.Next of the page before; empty for the first page.
	After string
	// Limit is the maximum number of letters or groups. Default 100; 1,000 at most.
	Limit int
}

// LetterPage is a page of the list of dead letters, by consumer, feed, shard of the consumer, and age.
type LetterPage struct {
	Letters []DeadLetter `json:"letters"`
	Next    string       `json:"next"` // LetterQuery.After of the next page; empty if this is the last page
}

// LetterGroup counts the dead letters of a consumer of a feed whose errors differ only in numbers.
type LetterGroup struct {
	Consumer string `json:"consumer"`
	Feed     string `json:"feed"`
	// Error is the first 200 characters of the errors, with "#" for each number.
	Error   string    `json:"error"`
	Letters int64     `json:"letters"`
	FirstAt time.Time `json:"first_at"` // when the first of them was set aside
	LastAt  time.Time `json:"last_at"`  // the last DeadLetter.LastAt
}
