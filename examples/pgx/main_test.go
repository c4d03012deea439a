package main

import (
	"testing"

	"github.com/rowfeed/rowfeed/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// TestShop: one order, one line on the bill.
func TestShop(t *testing.T) {
	testdb.Postgres15.Require(t)
	d := testdb.Postgres15.New(t)
	d.Exec(t, "CREATE TABLE orders (id bigint PRIMARY KEY, item text NOT NULL)")
	d.Exec(t, "CREATE TABLE bills (orders bigint NOT NULL)")
	d.Exec(t, "INSERT INTO bills VALUES (0)")
	if err := shop(t.Context(), d.URL); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := d.Admin().QueryRow("SELECT orders FROM bills").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d orders on the bill, want 1, %v", n, err)
	}
}
