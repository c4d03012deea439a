package original

import (
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestReadersOfOriginalMoveRecords: the SQL of writers and readers for mssql-changefeed runs unchanged. The
// first reader gives the records ULIDs in the order of the records, whatever their hints, and all readers get the same
// ones, as readers by rowfeed do.
func TestReadersOfOriginalMoveRecords(t *testing.T) {
	each(t, "original.outbox_table", func(x *suite.Env) {
		f := x.Add(outbox())
		run(x, "original.set_up_outbox")
		run(x, "original.append_records")
		if n := count(x, "original.count_outbox"); n != 3 {
			x.Errorf("the outbox has %d records, want 3", n)
		}
		first := rowsOf(x, "original.read_page", "0x00", 2)
		wantRows(x, first, [2]int{7, 1}, [2]int{8, 1})
		second := rowsOf(x, "original.read_page", number(first[1].ulid), 100)
		wantRows(x, second, [2]int{7, 2})
		at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
		for i, r := range append(first, second...) {
			want := at.Add([]time.Duration{0, 5 * time.Minute, 5 * time.Minute}[i])
			if got := time.UnixMilli(millis(r.ulid)).UTC(); !got.Equal(want) {
				x.Errorf("entry %d has the time %s, want %s", i, got, want)
			}
		}
		wantRows(x, rowsOf(x, "original.read_page", number(second[0].ulid), 100))
		wantRows(x, rowsOf(x, "original.read_by_type"), [2]int{7, 1}, [2]int{8, 1}, [2]int{7, 2})
		if n, m := count(x, "original.count_outbox"), count(x, "original.count_feed"); n != 0 || m != 3 {
			x.Errorf("%d records are in the outbox and %d in the feed, want 0 and 3", n, m)
		}
		wantNumber(x, "read_feed in a transaction", try(x, "original.read_in_transaction"), notOutside)

		run(x, "original.append_record", 9, 1)
		if n := entries(x, f, 0); n != 4 {
			x.Fatalf("rowfeed reads %d entries, want 4", n)
		}
		all := rowsOf(x, "original.read_page", "0x00", 100)
		wantRows(x, all, [2]int{7, 1}, [2]int{8, 1}, [2]int{7, 2}, [2]int{9, 1})
		run(x, "original.append_record", 9, 2)
		wantRows(x, rowsOf(x, "original.read_page", number(all[3].ulid), 100), [2]int{9, 2})
		x.WantSound(f)
	})
}

// TestFormerULIDsAreKept: a team keeps the ULIDs that mssql-changefeed has given, so its readers keep their
// cursors. New entries are above them.
func TestFormerULIDsAreKept(t *testing.T) {
	each(t, "original.outbox_table", func(x *suite.Env) {
		run(x, "original.former_feed")
		f := x.Add(outbox())
		run(x, "original.set_up_outbox")
		run(x, "original.keep_ulids")
		all := rowsOf(x, "original.read_page", "0x00", 100)
		wantRows(x, all, [2]int{8, 1}, [2]int{7, 1}, [2]int{7, 2})
		if got := number(all[1].ulid); got != "0x019ca9000000000000000000000000a2" {
			x.Errorf("the second entry has the ULID %s", got)
		}
		run(x, "original.append_record", 9, 1)
		wantRows(x, rowsOf(x, "original.read_page", number(all[0].ulid), 100),
			[2]int{7, 1}, [2]int{7, 2}, [2]int{9, 1})
		x.WantSound(f)
	})
}
