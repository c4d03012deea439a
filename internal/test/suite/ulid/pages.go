package ulid

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestPagesAreInULIDOrder (M17, M32, M42, M46, M61): five rows of two transactions are read as pages of three and two
// entries, in the order of their ULIDs. A page that is read again is the same.
func TestPagesAreInULIDOrder(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		if page := x.Page(x.Feed, 0, "", 10); len(page.Entries) != 0 || page.Cursor != "" || page.More {
			t.Fatalf("an empty shard has the page %+v", page)
		}
		x.Write(0, 1, 4)
		x.Write(0, 5, 5)
		first := x.Page(x.Feed, 0, "", 3)
		x.WantIDs(first, true, 1, 2, 3)
		second := x.Page(x.Feed, 0, first.Cursor, 3)
		x.WantIDs(second, false, 4, 5)
		if got := second.Entries[1].Position; rowfeed.Cursor(got) != second.Cursor {
			t.Errorf("the cursor at the head is %q, and the last position %q", second.Cursor, got)
		}
		if row := second.Entries[1]; row.Shard != 0 || !strings.HasSuffix(suite.Line(row), `,"data":""}`) {
			t.Errorf("the last entry is of shard %d: %s", row.Shard, suite.Line(row))
		}
		if again := x.Page(x.Feed, 0, "", 3); suite.Lines(again) != suite.Lines(first) || again.Cursor != first.Cursor {
			t.Errorf("the page is\n%s\nand before it was\n%s", suite.Lines(again), suite.Lines(first))
		}
		for _, after := range []rowfeed.Cursor{second.Cursor, rowfeed.Now} {
			page := x.Page(x.Feed, 0, after, 3)
			if len(page.Entries) != 0 || page.Cursor != second.Cursor || page.More {
				t.Errorf("the page after %q is %+v, want an empty one", after, page)
			}
		}
		// A consistent request shows what was committed before.
		x.Write(0, 6, 6)
		request := rowfeed.Request{After: second.Cursor, Shards: rowfeed.One(0), Consistent: true}
		page, err := x.Feed.Fetch(x.Ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		x.WantIDs(page, false, 6)
	})
}

// TestAnyNumberIsShard (M30): shards have any numbers, also negative ones, and each is read by itself. If a feed has
// several shards, a reader that names none gets an error that lists them.
func TestAnyNumberIsShard(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(77, 1, 2)
		page := x.Fetch(x.Feed, "", 10) // the only one
		x.WantIDs(page, false, 1, 2)
		x.Write(-5, 3, 3)
		x.WantIDs(x.Page(x.Feed, 77, "", 10), false, 1, 2)
		x.WantIDs(x.Page(x.Feed, -5, "", 10), false, 3)
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false)
		for _, shards := range []rowfeed.Shards{{}, rowfeed.Part(0, 2), rowfeed.Part(1, 2)} {
			_, err := x.Feed.Fetch(x.Ctx, rowfeed.Request{Shards: shards})
			x.WantCode(err, rowfeed.InvalidRequest)
			if !strings.Contains(err.Error(), "-5, 77") {
				t.Errorf("%s: error %v, want one that names the shards", shards, err)
			}
		}
		info := x.Info(x.Feed)
		if len(info.ShardIDs) != 2 || info.ShardIDs[0] != -5 || info.Head != "" || info.Mode != rowfeed.ModeBlocking {
			t.Errorf("info: %+v", info)
		}
		x.WantSound(x.Feed)
	})
}

// TestForeignCursorIsRefused (M46): a cursor of another kind of feed, of another generation, or ahead of the shard is
// refused. The shard's state decides, so the cursor of a deleted row is accepted.
func TestForeignCursorIsRefused(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(0, 1, 3)
		head := x.Page(x.Feed, 0, "", 10).Cursor
		refused := func(after rowfeed.Cursor, code rowfeed.Code) {
			x.Helper()
			_, err := x.Feed.Fetch(x.Ctx, rowfeed.Request{After: after, Shards: rowfeed.One(0)})
			x.WantCode(err, code)
		}
		refused("3", rowfeed.InvalidRequest)
		refused("0@3", rowfeed.InvalidRequest)
		refused("7:"+head, rowfeed.GenerationChanged)
		refused("7ZZZZZZZZZZZZZZZZZZZZZZZZZ", rowfeed.CursorAhead)
		kv := x.AddKV()
		_, err := kv.Fetch(x.Ctx, rowfeed.Request{After: head})
		x.WantCode(err, rowfeed.InvalidRequest)
		x.Exec("DELETE FROM events WHERE id > 1")
		if page := x.Page(x.Feed, 0, head, 10); page.Cursor != head || page.More || len(page.Entries) != 0 {
			t.Errorf("after the rows were deleted, the page is %+v", page)
		}
		x.Write(0, 4, 4)
		x.WantIDs(x.Page(x.Feed, 0, head, 10), false, 4)
		if _, err := x.Feed.Admin().Bump(x.Ctx); err != nil {
			t.Fatal(err)
		}
		refused(head, rowfeed.GenerationChanged)
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false, 1, 4)
	})
}

// TestRowAboveStateIsReadAndReported (H8): a row has a ULID above its shard's state, which rowfeed did not assign.
// Readers get the row, its cursor is accepted while the row exists, and check reports the row.
func TestRowAboveStateIsReadAndReported(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(0, 1, 1)
		x.Exec("INSERT INTO events VALUES (2, 0, " + x.ULIDLiteral("7f000000000000000000000000000000") + ", '')")
		page := x.Page(x.Feed, 0, "", 10)
		x.WantIDs(page, false, 1, 2)
		if again := x.Page(x.Feed, 0, page.Cursor, 10); len(again.Entries) != 0 || again.Cursor != page.Cursor {
			t.Errorf("the page after the row is %+v, want an empty one", again)
		}
		findings, err := x.Feed.Admin().Check(x.Ctx)
		if err != nil || len(findings) != 1 || !strings.Contains(findings[0].Problem, "shard 0") {
			t.Errorf("check: %+v, %v", findings, err)
		}
		x.Exec("DELETE FROM events WHERE id = 2")
		x.WantSound(x.Feed)
		_, err = x.Feed.Fetch(x.Ctx, rowfeed.Request{After: page.Cursor, Shards: rowfeed.One(0)})
		x.WantCode(err, rowfeed.CursorAhead)
	})
}
