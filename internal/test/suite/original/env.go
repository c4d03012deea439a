package original

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// notOutside is the number of the error for a transaction that is open, or not.
const notOutside = 77100

// each runs f on an initialised database with a table of the given text of the fixture.
func each(t *testing.T, table string, f func(x *suite.Env)) {
	t.Helper()
	testdb.Only(t, testdb.SQLServer)
	suite.Each(t, func(x *suite.Env) {
		run(x, table)
		f(x)
	})
}

// blocking and outbox are the specs of the feeds of the fixture's tables.
func blocking() rowfeed.FeedSpec {
	return rowfeed.FeedSpec{Name: "scan", Table: "parcel.Scan", Mode: rowfeed.ModeBlocking,
		Key: []string{"Shard", "Id"}, PositionColumn: "Id", ShardColumn: "Shard"}
}

func outbox() rowfeed.FeedSpec {
	return rowfeed.FeedSpec{Name: "event", Table: "parcel.Event", Mode: rowfeed.ModeOutbox}
}

// run executes the batches of a text as the owner of the database.
func run(x *suite.Env, text string, args ...any) {
	x.Helper()
	if err := try(x, text, args...); err != nil {
		x.Fatalf("%s: %v", text, err)
	}
}

func try(x *suite.Env, text string, args ...any) error {
	x.Helper()
	for _, batch := range x.Statements(text, args...) {
		if _, err := x.DB.Admin().ExecContext(x.Ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// row is a row as a reader in SQL gets it: its ULID, and two numbers that tell it from others.
type row struct {
	ulid   []byte
	of, no int
}

// number is the text of a ULID in SQL.
func number(ulid []byte) string { return fmt.Sprintf("0x%032x", ulid) }

// query runs a batch that answers rows.
func query(x *suite.Env, text string, args ...any) (all []row, err error) {
	rows, err := x.DB.Admin().QueryContext(x.Ctx, x.Text(text, args...))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.ulid, &r.of, &r.no); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

func rowsOf(x *suite.Env, text string, args ...any) []row {
	x.Helper()
	all, err := query(x, text, args...)
	if err != nil {
		x.Fatalf("%s: %v", text, err)
	}
	return all
}

// wantRows asserts the numbers of rows, and that their ULIDs ascend.
func wantRows(x *suite.Env, rows []row, want ...[2]int) {
	x.Helper()
	var got [][2]int
	for i, r := range rows {
		got = append(got, [2]int{r.of, r.no})
		if i > 0 && string(r.ulid) <= string(rows[i-1].ulid) {
			x.Errorf("ULID %x follows %x", r.ulid, rows[i-1].ulid)
		}
	}
	if !slices.Equal(got, want) {
		x.Errorf("got the rows %v, want %v", got, want)
	}
}

// wantNumber asserts the number of the server's error.
func wantNumber(x *suite.Env, what string, err error, want int32) {
	x.Helper()
	var numbered interface{ SQLErrorNumber() int32 }
	if !errors.As(err, &numbered) || numbered.SQLErrorNumber() != want {
		x.Errorf("%s: %v, want error %d", what, err, want)
	}
}

// millis returns the time of a ULID.
func millis(ulid []byte) (ms int64) {
	for _, b := range ulid[:6] {
		ms = ms<<8 | int64(b)
	}
	return ms
}

// count returns the number that a text of the fixture counts.
func count(x *suite.Env, text string) int64 {
	x.Helper()
	var n sql.NullInt64
	if err := x.DB.Admin().QueryRowContext(x.Ctx, x.Text(text)).Scan(&n); err != nil {
		x.Fatalf("%s: %v", text, err)
	}
	return n.Int64
}

// entries returns how many entries a page of a shard has from the beginning, as rowfeed reads it.
func entries(x *suite.Env, f *rowfeed.Feed, shard int) int {
	x.Helper()
	page, err := f.Fetch(x.Ctx, rowfeed.Request{Limit: 100, Shards: rowfeed.One(shard)})
	if err != nil {
		x.Fatal(err)
	}
	return len(page.Entries)
}
