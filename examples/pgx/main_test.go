package main

import (
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// TestBillHasEveryOrder: each existing order has one row on the bill.
func TestBillHasEveryOrder(t *testing.T) {
	testdb.Postgres15.Require(t)
	d := testdb.Postgres15.New(t)
	d.Exec(t, "CREATE TABLE orders (id bigint PRIMARY KEY, item text NOT NULL)")
	d.Exec(t, "CREATE TABLE bill (id bigint PRIMARY KEY, item text NOT NULL)")
	for _, step := range []struct {
		id          int64
		write, want string
	}{
		{7, "INSERT INTO orders VALUES ($1, 'lamp')", "7 lamp"},
		{8, "INSERT INTO orders VALUES ($1, 'chair')", "7 lamp, 8 chair"},
		{7, "UPDATE orders SET item = 'desk' WHERE id = $1", "7 desk, 8 chair"},
		{8, "DELETE FROM orders WHERE id = $1", "7 desk"},
	} {
		if err := shop(t.Context(), d.URL, step.id, step.write); err != nil {
			t.Fatal(err)
		}
		var bill string
		if err := d.Admin().QueryRow("SELECT coalesce(string_agg(id || ' ' || item, ', ' ORDER BY id), '') FROM bill").
			Scan(&bill); err != nil || bill != step.want {
			t.Errorf("%s: the bill is %q, want %q, %v", step.write, bill, step.want, err)
		}
	}
}
