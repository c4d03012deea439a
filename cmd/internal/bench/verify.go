package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed"
)

// pageSize is the number of entries that a reader asks for.
const pageSize = 1000

// reading is what a reader got from the beginning of a feed to its head.
type reading struct {
	entries int
	took    time.Duration
	starts  []rowfeed.Cursor // of full pages
}

func readAll(ctx context.Context, f *rowfeed.Feed) (reading, error) {
	var all reading
	var after rowfeed.Cursor
	for began := time.Now(); ; {
		page, err := f.Fetch(ctx, rowfeed.Request{After: after, Limit: pageSize})
		if err != nil {
			return all, err
		}
		for _, e := range page.Entries {
			if e.Op != rowfeed.Upsert {
				return all, wrongFigures("feed %q has an entry of a deleted row, but the bench deletes no rows",
					f.Name())
			}
		}
		if len(page.Entries) == pageSize || len(all.starts) == 0 {
			all.starts = append(all.starts, after)
		}
		all.entries += len(page.Entries)
		after = page.Cursor
		if !page.More {
			all.took = time.Since(began)
			return all, nil
		}
	}
}

// verify reads a feed after its writers and its publisher have ended. Every row must have exactly one entry.
func (t *tables) verify(ctx context.Context, f *rowfeed.Feed, table string) (all reading, rows int, err error) {
	if rows, err = t.count(ctx, table); err != nil {
		return all, 0, err
	}
	all, err = readAll(ctx, f)
	if err == nil && all.entries != rows {
		err = wrongFigures("%d rows were written to %s, and %d entries read from its feed",
			rows, t.name(table), all.entries)
	}
	return all, rows, err
}

// verify adds what the tables' verify finds to the tally. Each table is to be added once.
func (w *workspace) verify(ctx context.Context, f *rowfeed.Feed, table string) error {
	all, rows, err := w.tables.verify(ctx, f, table)
	if err == nil {
		w.tally.Written += rows
		w.tally.Read += all.entries
	}
	return err
}

// wrongFigures is the error of a run whose figures contradict each other.
func wrongFigures(format string, args ...any) error {
	return &rowfeed.Error{Code: rowfeed.Failed, Object: "bench", Cause: fmt.Sprintf(format, args...),
		Next: "check whether another program has written to the tables of the bench; if not, report this as a bug " +
			"of rowfeed"}
}
