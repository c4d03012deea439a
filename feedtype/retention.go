package feedtype

import (
	"fmt"
	"time"
)

// Retention is how long the entries of a feed with ModeOutbox are kept. It applies to each shard separately. The zero
// value keeps them for ever. Purging removes the positions only. It does not change the rows of the source table.
type Retention struct {
	// Age is how long an entry is kept, counted from the time in its ULID; at least a second.
	Age time.Duration
	// Count is the number of entries that are kept, the newest. Set either Age or Count.
	Count int64
}

// ForEver tells whether no entry is purged.
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
