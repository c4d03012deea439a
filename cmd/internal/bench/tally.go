package bench

import (
	"context"
	"time"

	"github.com/rowfeed/rowfeed"
)

// pageSize is the number of entries that a reader asks for.
const pageSize = 1000

// reading is one pass of a reader from the beginning to the head.
type reading struct {
	rows    int // of the table
	entries int
	took    time.Duration
	starts  []rowfeed.Cursor // with which each full page begins
}

func (r *run) read(ctx context.Context, f *rowfeed.Feed) (reading, error) {
	var all reading
	var after rowfeed.Cursor
	for began := time.Now(); ; {
		page, err := f.Fetch(ctx, rowfeed.Request{After: after, Limit: pageSize})
		if err != nil {
			return all, err
		}
		for _, e := range page.Entries {
			if e.Op != rowfeed.Upsert {
				return all, lost("an entry of feed %q is no row of its table: nobody deletes there", f.Name())
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

// complete reads a feed whose writers and publisher have ended: every row must come, and once.
func (r *run) complete(ctx context.Context, f *rowfeed.Feed, table string) (reading, error) {
	rows, err := r.count(ctx, table)
	if err != nil {
		return reading{}, err
	}
	all, err := r.read(ctx, f)
	if err == nil && all.entries != rows {
		err = lost("%d rows were written to %s, and %d entries read from its feed", rows, r.name(table), all.entries)
	}
	all.rows = rows
	return all, err
}

// tally adds what complete finds to the report, once for each table.
func (r *run) tally(ctx context.Context, f *rowfeed.Feed, table string) error {
	all, err := r.complete(ctx, f, table)
	if err == nil {
		rows, read := &r.report.Rows.Written, &r.report.Rows.Read
		*rows, *read = *rows+all.rows, *read+all.entries
	}
	return err
}

func (r *run) count(ctx context.Context, table string) (n int, err error) {
	if err := r.pool.QueryRowContext(ctx, "SELECT count(*) FROM "+r.quoted(table)).Scan(&n); err != nil {
		return 0, r.fail("count the rows of "+r.name(table).String(), err)
	}
	return n, nil
}
