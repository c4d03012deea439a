package feedtype

import (
	"fmt"
	"time"
)

// Retention is how long the places of a feed with an outbox are kept, of every shard for
// itself. The zero value keeps them for ever. Only places go: the rows of the table are their
// owner's.
type Retention struct {
	// Age keeps an entry for so long, at least a second, counted from the time in its ULID.
	Age time.Duration
	// Count keeps so many entries, the newest. It and Age exclude each other.
	Count int64
}

// ForEver tells whether everything is kept.
func (r Retention) ForEver() bool { return r == Retention{} }

func (r Retention) String() string {
	switch {
	case r.Count > 0:
		return fmt.Sprint(r.Count)
	case r.Age > 0:
		return r.Age.String()
	}
	return "for ever"
}
