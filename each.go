package rowfeed

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Each creates a Consumer's Handle from a function for one entry. The function gets the entry's row as a T, see
// [Entry.Decode]. For a delete, only the fields of the key's columns are set.
func Each[T any](fn func(ctx context.Context, tx *sql.Tx, e feedtype.Entry, row T) error) func(
	context.Context, *sql.Tx, []feedtype.Entry) error {
	return func(ctx context.Context, tx *sql.Tx, entries []feedtype.Entry) error {
		for _, e := range entries {
			var row T
			decode := e.Decode
			if e.Op == feedtype.Delete {
				decode = e.Key.Decode
			}
			err := decode(&row)
			if err == nil {
				err = fn(ctx, tx, e, row)
			}
			if err != nil {
				return fmt.Errorf("entry at position %s with key %s: %w", e.Position, e.Key.AppendJSON(nil), err)
			}
		}
		return nil
	}
}
