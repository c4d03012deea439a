package testdb_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func TestMain(m *testing.M) {
	testdb.RegisterChild("insert", insertChild)
	testdb.RegisterChild("fail", func() { panic("the child fails") })
	testdb.RegisterChild("forever", func() {
		e := testdb.Engines()[0]
		d, err := startForever(e)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		hooks := testdb.BlockAt(1)
		_ = hooks.Before(context.Background(), testdb.TapEvent{N: 1, SQL: d})
	})
	testdb.Main(m)
}

// insertChild inserts three rows, each in a transaction of its own, and blocks before statement N.
func insertChild() {
	n, _ := strconv.ParseInt(os.Getenv("N"), 10, 64)
	db, err := testdb.OpenURL(os.Getenv("URL"), testdb.BlockAt(n))
	check(err)
	defer db.Close()
	for i := range 3 {
		tx, err := db.Begin()
		check(err)
		_, err = tx.Exec(fmt.Sprintf("INSERT INTO kv (id) VALUES (%d)", i))
		check(err)
		check(tx.Commit())
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
