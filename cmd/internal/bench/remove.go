package bench

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed"
)

const (
	// removalTimeout bounds the removal of all tables. dropTimeout bounds the drop of one table, which waits for
	// transactions that read it, a backup for example.
	removalTimeout = 2 * time.Minute
	dropTimeout    = 10 * time.Second
	removalPause   = 300 * time.Millisecond
)

// remove drops everything with the prefix, until the database shows that nothing is left.
func (t *tables) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removalTimeout)
	defer cancel()
	var failed error
	for tries := 5; ; {
		busy := t.busy(ctx) // before the list: a statement that runs now may still create a table
		all, err := t.db.objects(ctx, t.prefix)
		if err == nil && busy == nil && len(all) == 0 {
			return nil
		}
		if tries == 0 || ctx.Err() != nil {
			return t.leftError(all, err, cmp.Or(failed, err, busy))
		}
		failed = err
		for _, o := range all {
			if o.name == t.prefix+marker && (failed != nil || busy != nil) {
				break // the marker says to which run the rest belongs
			}
			failed = cmp.Or(t.db.drop(ctx, o), failed)
		}
		if failed != nil {
			tries--
		}
		if failed != nil || busy != nil {
			_ = pause(ctx, removalPause) // the next pass checks ctx
		}
	}
}

// busy returns an error while the server runs a statement about the run's tables.
func (t *tables) busy(ctx context.Context) error {
	if t.db.flavour.busy == "" {
		return nil
	}
	var n int
	if err := t.db.pool.QueryRowContext(ctx, t.db.flavour.busy, t.prefix).Scan(&n); err != nil {
		return t.db.explain("ask which statements are at work", err)
	}
	if n > 0 {
		return fmt.Errorf("the server still runs %d statements about the tables of the bench", n)
	}
	return nil
}

// LeftError is the error of a run that could not remove what it made.
type LeftError struct{ reason *rowfeed.Error }

func (e *LeftError) Error() string { return e.reason.Error() }

// Unwrap returns the error with its code.
func (e *LeftError) Unwrap() error { return e.reason }

// leftError names what is left. A listError means that the objects could not be listed.
func (t *tables) leftError(left []object, listError, reason error) error {
	what := "everything whose name begins with " + t.prefix
	if listError == nil {
		names := make([]string, len(left))
		for i, o := range left {
			names[i] = strings.ToLower(o.kind) + " " + o.name
		}
		what = strings.Join(names, ", ")
	}
	return &LeftError{&rowfeed.Error{Code: rowfeed.Failed, Object: t.db.object(),
		Cause: "the bench could not remove its tables; these still exist: " + what, Err: reason,
		Next: "run `rowfeed bench --clean` with the same --db and --schema when no other session uses these tables"}}
}
