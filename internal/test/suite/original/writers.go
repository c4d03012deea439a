package original

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestWritersOfOriginalTakeULIDs: the SQL of a writer for mssql-changefeed runs unchanged: one ULID as
// an output, many by the function, halves without the session's context, and parameters by their position. Its set-up
// script accepts the feed in its own mode only. Outside of a transaction there are no ULIDs.
func TestWritersOfOriginalTakeULIDs(t *testing.T) {
	each(t, "original.blocking_table", func(x *suite.Env) {
		f := x.Add(blocking())
		run(x, "original.set_up_blocking")
		if err := try(x, "original.set_up_in_other_mode"); err == nil {
			x.Error("the set-up script accepts a feed of another mode")
		}
		wantNumber(x, "a lock outside of a transaction", try(x, "original.lock_outside"), notOutside)
		run(x, "original.append_one", 1, 1)
		run(x, "original.append_one", 1, 2)
		wantRows(x, rowsOf(x, "original.read_rows", 0, "0x00"), [2]int{1, 1}, [2]int{1, 2})

		run(x, "original.append_by_function")
		first := rowsOf(x, "original.read_rows", 3, "0x00")
		wantRows(x, first, [2]int{0, 1}, [2]int{0, 2}, [2]int{0, 3}, [2]int{0, 4}, [2]int{0, 5}, [2]int{0, 6})
		if at := time.Date(2026, 3, 1, 10, 20, 30, 456e6, time.UTC); millis(first[0].ulid) != at.UnixMilli() {
			x.Errorf("the first ULID is of %s, want the time of the hint", time.UnixMilli(millis(first[0].ulid)).UTC())
		}
		low := func(i int) uint64 { return binary.BigEndian.Uint64(first[i].ulid[8:]) }
		if low(1) != low(0)+1 || low(3) != low(0)+1_000_002 || low(5) != low(0)+100_000_000_000 {
			x.Errorf("the low halves are %d, %d, %d and %d", low(0), low(1), low(3), low(5))
		}
		run(x, "original.append_without_context")
		run(x, "original.lock_by_position")
		wantRows(x, rowsOf(x, "original.read_rows", 3, number(first[5].ulid)),
			[2]int{0, 7}, [2]int{0, 8}, [2]int{0, 9}, [2]int{0, 10}, [2]int{0, 11})

		if n := entries(x, f, 3); n != 11 {
			x.Errorf("rowfeed reads %d entries of shard 3, want 11", n)
		}
		x.WantSound(f)
	})
}

// TestTableKeyedByULIDGetsShardColumn: a table whose key is the ULID alone gets a shard column with a default, as the
// page for users of mssql-changefeed says. The SQL of its writers stays as it is.
func TestTableKeyedByULIDGetsShardColumn(t *testing.T) {
	each(t, "original.table_keyed_by_ulid", func(x *suite.Env) {
		run(x, "original.add_shard_column")
		f := x.Add(rowfeed.FeedSpec{Name: "note", Table: "parcel.Note", Mode: rowfeed.ModeBlocking,
			PositionColumn: "Id", ShardColumn: "Shard"})
		run(x, "original.append_note")
		if n := entries(x, f, 0); n != 2 {
			x.Errorf("rowfeed reads %d entries of shard 0, want 2", n)
		}
		x.WantSound(f)
	})
}

// TestObjectsOfOthersAreKept: feed add refuses names that another program's objects have, and makes nothing.
// Feed drop removes all that feed add has made.
func TestObjectsOfOthersAreKept(t *testing.T) {
	each(t, "original.blocking_table", func(x *suite.Env) {
		fresh := x.DB.Dump(x.T)
		x.Add(blocking())
		if err := x.RF.DropFeed(x.Ctx, "scan"); err != nil {
			x.Fatal(err)
		}
		x.SameDump(fresh, "after feed drop")
		run(x, "original.other_procedure")
		_, err := x.RF.AddFeed(x.Ctx, blocking(), nil)
		wantNumber(x, "feed add", err, 77107)
		if count(x, "original.has_other_procedure") != 1 || count(x, "original.state_left") != 1 {
			x.Error("the other program's procedure is not the only object of its schema any more")
		}
	})
}
