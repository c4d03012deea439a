package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

// lookAgain is how long a process must have the lock to be listed. Shorter locks are those of normal writes.
const lookAgain = 100 * time.Millisecond

// Blockers implements [dialect.Rest]. It returns the processes that have the write lock of the file, for which
// publishers wait like all writers. Only one process can have it at a time. SQLite does not know which; the
// operating system does.
func (Dialect) Blockers(ctx context.Context, q dialect.Querier,
	_ *dialect.Feed) ([]dialect.Blocker, *dialect.Unseen, error) {
	var path string
	if err := dialect.QueryRow(ctx, q, "SELECT file FROM pragma_database_list WHERE name = 'main'", nil,
		&path); err != nil {
		return nil, nil, err
	}
	if path == "" { // in memory
		return nil, nil, nil
	}
	held, told := writers(path)
	if !told {
		return nil, &dialect.Unseen{Cause: "SQLite does not tell who has the lock of the file, " +
			"nor does the operating system tell this process",
			Next: "look outside of the service or container, on Linux, or see which processes have the file open " +
				"(`fuser -v`)"}, nil
	}
	if len(held) == 0 {
		return nil, nil, nil
	}
	select {
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case <-time.After(lookAgain):
	}
	still, _ := writers(path)
	var found []dialect.Blocker
	for _, pid := range held {
		if slices.Contains(still, pid) {
			found = append(found, process(pid))
		}
	}
	return found, nil, nil
}
