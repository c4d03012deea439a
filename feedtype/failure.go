package feedtype

import "time"

// Failure is what keeps failing: the work on one shard of a consumer, or the publisher of a feed. It is stored at the
// first failed attempt, then ever more rarely, and removed by the next success.
type Failure struct {
	Error string    `json:"error"` // of the last attempt that was stored, at most 1,000 characters
	Since time.Time `json:"since"` // of the first attempt that failed
	// Attempts is the number of attempts that have failed in a row.
	Attempts int `json:"attempts"`
	// NextTry is when the next attempt was due. It is zero if the process has ended with the error.
	NextTry time.Time `json:"next_try,omitzero"`
}
