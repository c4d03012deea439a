package main

import (
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// TestEachOrderIsPaidOnce: the payment of each order is requested once, and the order continues according to the bank's
// answer.
func TestEachOrderIsPaidOnce(t *testing.T) {
	ctx := t.Context()
	d := testdb.SQLite.New(t)
	db := d.OpenTapped(t, testdb.Hooks{})
	feeds, steps, err := saga(ctx, db)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ write, want string }{
		{"INSERT INTO orders (id, amount) VALUES (1, 30), (2, 40)", "1 new asked, 2 new asked"},
		{"UPDATE payments SET state = 'looked at' WHERE order_id = 2", "1 new asked, 2 new looked at"},
		{"UPDATE payments SET state = 'asked' WHERE order_id = 2", "1 new asked, 2 new asked"},
		{"UPDATE payments SET state = 'paid' WHERE order_id = 1", "1 ship paid, 2 new asked"},
		{"UPDATE payments SET state = 'refused' WHERE order_id = 2", "1 ship paid, 2 cancelled refused"},
		{"INSERT INTO orders (id, amount) VALUES (3, 50)", "1 ship paid, 2 cancelled refused, 3 new asked"},
		{"UPDATE orders SET amount = 60 WHERE id = 3", "1 ship paid, 2 cancelled refused, 3 new asked"},
	} {
		d.Exec(t, step.write)
		for range 2 { // each step reads what the other one writes
			for i, feed := range feeds {
				if _, err := feed.Publish(ctx); err != nil {
					t.Fatal(err)
				}
				if err := steps[i].RunOnce(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
		var got string
		err := db.QueryRow(`SELECT group_concat(id || ' ' || o || ' ' || p, ', ') FROM (
			SELECT id, orders.state AS o, payments.state AS p FROM orders JOIN payments ON order_id = id ORDER BY id)`).
			Scan(&got)
		if err != nil || got != step.want {
			t.Errorf("%s: %q, want %q, %v", step.write, got, step.want, err)
		}
	}
}
