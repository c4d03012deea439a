package ulid

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestPagesAreInULIDOrder (M17, M32, M42, M46, M61): five rows of two transactions are read as pages of 3 and 2, in the
// order of their ULIDs, as they stand in the table; read again they are the same (M32, M46).
func TestPagesAreInULIDOrder(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		if page := x.Page(x.Feed, 0, "", 10); len(page.Entries) != 0 || page.Cursor != "" || page.More {
			t.Fatalf("an empty shard: %+v", page)
		}
		x.Write(0, 1, 4)
		x.Write(0, 5, 5)
		first := x.Page(x.Feed, 0, "", 3)
		x.WantIDs(first, true, 1, 2, 3)
		second := x.Page(x.Feed, 0, first.Cursor, 3)
		x.WantIDs(second, false, 4, 5)
		if got := second.Entries[1].Position; rowfeed.Cursor(got) != second.Cursor {
			t.Errorf("the cursor of a whole pass is %q, and the last position %q", second.Cursor, got)
		}
		if row := second.Entries[1]; row.Shard != 0 || !strings.HasSuffix(suite.Line(row), `,"data":""}`) {
			t.Errorf("shard %d, %s", row.Shard, suite.Line(row))
		}
		if again := x.Page(x.Feed, 0, "", 3); suite.Lines(again) != suite.Lines(first) || again.Cursor != first.Cursor {
			t.Errorf("read again:\n%s\nfirst:\n%s", suite.Lines(again), suite.Lines(first))
		}
		for _, after := range []rowfeed.Cursor{second.Cursor, rowfeed.Now} {
			if page := x.Page(x.Feed, 0, after, 3); len(page.Entries) != 0 || page.Cursor != second.Cursor || page.More {
				t.Errorf("after %q: %+v", after, page)
			}
		}
		// What is committed before a consistent request is there.
		x.Write(0, 6, 6)
		page, err := x.Feed.Fetch(x.Ctx, rowfeed.Request{After: second.Cursor, Shards: rowfeed.One(0), Consistent: true})
		if err != nil {
			t.Fatal(err)
		}
		x.WantIDs(page, false, 6)
	})
}

// TestAnyNumberIsShard (M30): any number is a shard, each by itself, and whoever asks for all of
// several is told to name one (M30).
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
				t.Errorf("%s: %v", shards, err)
			}
		}
		if info := x.Info(x.Feed); len(info.ShardIDs) != 2 || info.ShardIDs[0] != -5 || info.Head != "" || info.Mode != rowfeed.ModeBlocking {
			t.Errorf("%+v", info)
		}
		x.WantSound(x.Feed)
	})
}

// TestForeignCursorIsRefused (M46): a cursor of another kind of feed, of another generation, or ahead of the
// shard is refused; the state of the shard judges, not the rows that are left (guarantee 4).
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
			t.Errorf("after rows were deleted: %+v", page)
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

// TestRowAboveStateIsReadAndReported (H8): a row with a ULID above its shard's state, which rowfeed did not assign, is read. Its
// cursor is accepted while the row exists, and check reports the row.
func TestRowAboveStateIsReadAndReported(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(0, 1, 1)
		hex := "7f000000000000000000000000000000"
		x.Exec("INSERT INTO events VALUES (2, 0, " + x.By(map[string]string{"sqlite": "x'" + hex + "'", "postgres": "'" + hex + "'", "mysql": "x'" + hex + "'"}) + ", '')")
		page := x.Page(x.Feed, 0, "", 10)
		x.WantIDs(page, false, 1, 2)
		if again := x.Page(x.Feed, 0, page.Cursor, 10); len(again.Entries) != 0 || again.Cursor != page.Cursor {
			t.Errorf("%+v", again)
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
