package main

import (
	"testing"

	"github.com/rowfeed/rowfeed/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// TestTotal: each order is counted once.
func TestTotal(t *testing.T) {
	db := testdb.SQLite.New(t).OpenTapped(t, testdb.Hooks{})
	for want := int64(1); want <= 3; want++ {
		if n, err := total(t.Context(), db, "lamp"); n != want || err != nil {
			t.Errorf("%d orders, want %d, %v", n, want, err)
		}
	}
}
