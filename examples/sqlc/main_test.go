package main

import (
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// TestChangedOrderCountsOnce: each order is counted once, with its latest state.
func TestChangedOrderCountsOnce(t *testing.T) {
	db := testdb.SQLite.New(t).OpenTapped(t, testdb.Hooks{})
	for _, step := range []struct {
		write string // before another order
		want  int64
	}{
		{"", 1},
		{"", 2},
		{"UPDATE orders SET item = 'lamp' WHERE id = 1", 3},
		{"UPDATE orders SET item = 'chair' WHERE id = 1", 3},
		{"DELETE FROM orders WHERE id = 2", 3},
	} {
		if _, err := db.ExecContext(t.Context(), step.write); err != nil {
			t.Fatal(err)
		}
		if n, err := total(t.Context(), db, "lamp"); n != step.want || err != nil {
			t.Errorf("%s: %d orders, want %d, %v", step.write, n, step.want, err)
		}
	}
}
