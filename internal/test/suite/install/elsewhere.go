package install

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// elsewhere is a feed of createPositioned whose positions the team's own publisher goes on to give.
var elsewhere = rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn, PublishedElsewhere: true,
	AdoptSequence: "sequences"}

// ownPublisher are the statements of the team's own publisher for one row. It locks its sequence first.
func ownPublisher(id int) []string {
	return []string{
		"UPDATE sequences SET value = value + 1, version = version + 1 WHERE name = 'kv'",
		fmt.Sprintf("UPDATE kv SET feed_sync_id = (SELECT value FROM sequences WHERE name = 'kv')"+
			" WHERE id = %d AND feed_sync_id IS NULL", id),
	}
}

// run runs statements as they are.
func run(x *suite.Env, tx *sql.Tx, statements ...string) {
	x.Helper()
	for _, s := range statements {
		if _, err := tx.ExecContext(x.Bounded(), s); err != nil {
			x.Fatalf("%s: %v", s, err)
		}
	}
}

// ownPass is a transaction of the team's own publisher.
func ownPass(x *suite.Env, id int) {
	x.Helper()
	tx := x.Begin(sql.LevelReadCommitted)
	run(x, tx, ownPublisher(id)...)
	x.Commit(tx)
}

// oldReader is the query of the team's former readers.
func oldReader(x *suite.Env, after int64) []string {
	return x.List(fmt.Sprintf("SELECT k FROM kv WHERE feed_sync_id > %d ORDER BY feed_sync_id", after))
}

// write runs statements of the team's writers as they are.
func write(x *suite.Env, statements ...string) {
	x.Helper()
	for _, s := range statements {
		x.DB.Exec(x.T, s)
	}
}

// TestPublishedElsewhereServesPositions (M28): rowfeed serves a table whose positions the team's own publisher gives,
// and gives none itself. Former readers and writers continue. What needs rowfeed's publisher is refused. Dropping the
// feed leaves the table as it was, and adding it again keeps cursors.
func TestPublishedElsewhereServesPositions(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		before := x.DB.Dump(x.T)
		f := x.Add(elsewhere)
		x.Add(elsewhere) // again
		if f.State() != "elsewhere" {
			x.Errorf("the feed is %s", f.State())
		}
		own := elsewhere
		own.PublishedElsewhere, own.Adopt = false, true
		_, err := x.RF.AddFeed(x.Ctx, own, nil)
		x.WantCode(err, rowfeed.Conflict)
		if n := x.Publish(f); n != 0 {
			x.Errorf("%d rows were published", n)
		}
		cursor := x.WantPage(f, "", 5, "3 "+suite.KV(2, "b", 2), "7 "+suite.KV(1, "a", 1), "> 9")
		x.WantSound(f)

		// A reader that waits gets the row when the own publisher has committed it, and not before.
		tx := x.Begin(sql.LevelReadCommitted)
		run(x, tx, ownPublisher(3)...)
		x.WantPage(f, cursor, 5, "> 9")
		result := make(chan suite.Fetched, 1)
		go func() {
			page, err := f.Fetch(x.Ctx, rowfeed.Request{After: cursor, Limit: 5, Wait: time.Minute})
			result <- suite.Fetched{Page: page, Err: err}
		}()
		x.Commit(tx)
		x.WantWoken(result, "10", suite.KV(3, "c", 3))

		// A writer changes a row, another one is inserted and a third one deleted, which the own publisher ignores.
		write(x, "UPDATE kv SET v = 5, feed_sync_id = NULL WHERE id = 1",
			"INSERT INTO kv (id, k, v) VALUES (4, 'd', 4)", "DELETE FROM kv WHERE id = 2")
		x.WantPage(f, "10", 5, "> 10")
		ownPass(x, 4)
		ownPass(x, 1)
		cursor = x.WantPage(f, "10", 5, "11 "+suite.KV(4, "d", 4), "12 "+suite.KV(1, "a", 5), "> 12")
		if got := strings.Join(oldReader(x, 10), ""); got != "da" {
			x.Errorf("a former reader gets %q", got)
		}
		x.WantSound(f)

		refused := func(err error, code rowfeed.Code) {
			x.Helper()
			x.WantCode(err, code)
			if err != nil && !strings.Contains(err.Error(), "another publisher gives") {
				x.Errorf("the refusal does not say why: %v", err)
			}
		}
		_, err = f.Fetch(x.Bounded(), rowfeed.Request{Consistent: true})
		refused(err, rowfeed.InvalidRequest)
		_, err = f.Admin().Repair(x.Ctx)
		refused(err, rowfeed.Refused)
		_, err = f.Admin().Reshard(x.Ctx, 4, nil)
		refused(err, rowfeed.Conflict)
		refused(f.Admin().AddFence(x.Ctx), rowfeed.Refused)
		_, err = f.Admin().RepublishWhere(x.Ctx, "", 100, nil)
		refused(err, rowfeed.Refused)
		refused(f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error {
			return f.Delete(x.Ctx, tx, rowfeed.Key{int64(1)})
		}), rowfeed.Refused)
		if x.Scalar("SELECT count(*) FROM kv WHERE feed_sync_id IS NOT NULL") != 3 ||
			x.Scalar("SELECT value + version FROM sequences WHERE name = 'kv'") != 12+126 {
			x.Error("rowfeed has written to the team's tables")
		}
		if plan := previewDrop(x, false); !plan.Keeps || plan.Restart != "" || plan.Head != 12 {
			x.Errorf("the preview of a drop is %+v", plan)
		}
		dropFeed(x)
		if after := x.DB.Dump(x.T); after != before {
			x.Errorf("drop left\n%s\nwant\n%s", after, before)
		}
		write(x, "UPDATE kv SET v = 6, feed_sync_id = NULL WHERE id = 4")
		ownPass(x, 4)
		f = x.Add(elsewhere)
		x.WantPage(f, cursor, 5, "13 "+suite.KV(4, "d", 6), "> 13")
	})
}

// TestPublishedElsewhereShowsNothingAboveSequence (M28): a page shows no position above the committed sequence of the
// team's publisher, so that no lower one can follow: neither while two publishers race, nor if one is rolled back, nor
// if a row is above the sequence. status and check report such a row.
func TestPublishedElsewhereShowsNothingAboveSequence(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		f := x.Add(elsewhere)
		cursor := x.WantPage(f, "", 5, "3 "+suite.KV(2, "b", 2), "7 "+suite.KV(1, "a", 1), "> 9")
		write(x, "INSERT INTO kv (id, k, v) VALUES (4, 'd', 4)")
		tx := x.Begin(sql.LevelReadCommitted)
		run(x, tx, ownPublisher(3)...)
		if err := tx.Rollback(); err != nil {
			x.Fatal(err)
		}
		x.WantPage(f, cursor, 5, "> 9")
		ownPass(x, 4)
		cursor = x.WantPage(f, cursor, 5, "10 "+suite.KV(4, "d", 4), "> 10")

		if x.DB.Family != "sqlite" { // one writer at a time
			// The second publisher waits for the first one's sequence, also if that began later.
			first, second := x.Begin(sql.LevelReadCommitted), x.Begin(sql.LevelReadCommitted)
			write(x, "INSERT INTO kv (id, k, v) VALUES (5, 'e', 5)")
			run(x, first, ownPublisher(3)...)
			done := make(chan error, 1)
			go func() {
				var err error
				for _, s := range ownPublisher(5) {
					_, failed := second.ExecContext(x.Bounded(), s)
					err = errors.Join(err, failed)
				}
				done <- errors.Join(err, second.Commit())
			}()
			x.WantPage(f, cursor, 5, "> 10")
			x.Commit(first)
			if err := <-done; err != nil {
				x.Fatal(err)
			}
			cursor = x.WantPage(f, cursor, 5, "11 "+suite.KV(3, "c", 3), "12 "+suite.KV(5, "e", 5), "> 12")
		}

		// Two optimistic publishers give positions to rows first. The second one finds another version.
		base := x.Scalar("SELECT value FROM sequences WHERE name = 'kv'")
		version := x.Scalar("SELECT version FROM sequences WHERE name = 'kv'")
		write(x, "UPDATE kv SET feed_sync_id = NULL, v = 7 WHERE id IN (1, 2)")
		var shown []string
		for _, id := range []int64{1, 2} {
			tx := x.Begin(sql.LevelReadCommitted)
			run(x, tx, fmt.Sprintf("UPDATE kv SET feed_sync_id = %d WHERE id = %d", base+1, id))
			x.WantDrain(f, cursor, shown...)
			result, err := tx.ExecContext(x.Ctx, fmt.Sprintf("UPDATE sequences SET value = %d, version = version + 1"+
				" WHERE name = 'kv' AND version = %d", base+1, version))
			if err != nil {
				x.Fatal(err)
			}
			if n, _ := result.RowsAffected(); n == 1 {
				x.Commit(tx)
				shown = []string{suite.KV(1, "a", 7)}
			} else if err := tx.Rollback(); err != nil {
				x.Fatal(err)
			}
		}
		cursor = x.WantDrain(f, cursor, shown...)

		// A publisher that does not advance the sequence.
		write(x, fmt.Sprintf("UPDATE kv SET feed_sync_id = %d WHERE id = 2", base+9))
		x.WantDrain(f, cursor)
		status, err := f.Admin().Status(x.Ctx)
		if err != nil || !strings.Contains(strings.Join(status.Problems, ""), "above the sequence sequences at") {
			x.Errorf("status: %+v, %v", status, err)
		}
		if findings, err := f.Admin().Check(x.Ctx); err != nil || len(findings) != 1 {
			x.Errorf("check: %+v, %v", findings, err)
		}
		x.PublisherSays(f, "above the sequence sequences")
		write(x, fmt.Sprintf("UPDATE sequences SET value = %d WHERE name = 'kv'", base+9))
		x.WantDrain(f, cursor, suite.KV(2, "b", 7))
		x.WantSound(f)
	})
}

// TestPublishedElsewhereIsRefused (M28): a feed is refused with the next step, and leaves nothing, if rowfeed cannot
// tell up to which position all rows are committed, or if an option needs rowfeed's own publisher.
func TestPublishedElsewhereIsRefused(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		before := x.DB.Dump(x.T)
		for _, c := range []struct {
			change func(*rowfeed.FeedSpec)
			code   rowfeed.Code
			says   string
		}{
			{func(s *rowfeed.FeedSpec) { s.AdoptSequence = "" }, rowfeed.InvalidRequest, "--adopt-sequence TABLE:NAME"},
			{func(s *rowfeed.FeedSpec) { s.Fence = true }, rowfeed.InvalidRequest, "--published-here --fence"},
			{func(s *rowfeed.FeedSpec) { s.DataShards = 8 }, rowfeed.InvalidRequest, "omit --data-shards"},
			{func(s *rowfeed.FeedSpec) { s.Capture = feedtype.CaptureApp }, rowfeed.InvalidRequest, "capture column"},
			{func(s *rowfeed.FeedSpec) { s.AdoptSequence = "sequences:none" }, rowfeed.Refused, "no row with name"},
			{func(*rowfeed.FeedSpec) { write(x, "UPDATE kv SET feed_sync_id = 12 WHERE id = 3") }, rowfeed.Refused,
				"a row has position 12, which is above the sequence sequences at 9"},
		} {
			spec := elsewhere
			c.change(&spec)
			_, err := x.RF.AddFeed(x.Ctx, spec, nil)
			x.WantCode(err, c.code)
			if err != nil && !strings.Contains(err.Error(), c.says) {
				x.Errorf("the refusal does not say %q: %v", c.says, err)
			}
		}
		if after := x.DB.Dump(x.T); after != before {
			x.Errorf("refusals left\n%s\nwant\n%s", after, before)
		}
	})
}

// TestFeedReturnsFromFormerPublisher (M28): a team that hands a feed back to its own publisher, and serves it by
// rowfeed, keeps the cursors that rowfeed's publisher has given, and also when rowfeed takes over again.
func TestFeedReturnsFromFormerPublisher(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		f := x.Add(adopting)
		x.Publish(f)
		middle := x.Fetch(f, "", 1).Cursor
		head := x.WantPage(f, "7", 5, "10 "+suite.KV(3, "c", 3), "> 10")
		if _, err := x.RF.HandBackFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		write(x, "UPDATE kv SET v = 5, feed_sync_id = NULL WHERE id = 1")
		f = x.Add(elsewhere)
		ownPass(x, 1)
		x.WantPage(f, middle, 5, "10 "+suite.KV(3, "c", 3), "11 "+suite.KV(1, "a", 5), "> 11")
		latest := x.WantPage(f, head, 5, "11 "+suite.KV(1, "a", 5), "> 11")
		if _, err := f.Admin().TakeOver(x.Ctx, true); err != nil {
			x.Fatal(err)
		}
		x.Exec("UPDATE kv SET v = 6 WHERE id = 2")
		x.Publish(f)
		for _, cursor := range []rowfeed.Cursor{head, latest} {
			lines, _ := x.Drain(f, cursor)
			if len(lines) == 0 || lines[len(lines)-1] != suite.KV(2, "b", 6) {
				x.Errorf("after %s: %q", cursor, lines)
			}
		}
	})
}

// TestPublishedElsewhereHasOwnShards (M18, M28): a table whose positions another publisher gives has its data shards
// in a column of its own. Cursors of one data shard stay valid when rowfeed takes the feed over. A column of the key
// is refused, because its data shards would have to be written.
func TestPublishedElsewhereHasOwnShards(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		write(x, "ALTER TABLE kv ADD COLUMN part INTEGER NOT NULL DEFAULT 3", "UPDATE kv SET part = 5 WHERE id = 2")
		spec := elsewhere
		spec.DataShards, spec.ShardColumn = 8, "id"
		_, err := x.RF.AddFeed(x.Ctx, spec, nil)
		x.WantCode(err, rowfeed.Refused)
		spec.ShardColumn = "part"
		f := x.Add(spec)
		positions := func(after rowfeed.Cursor) (all []string, cursor rowfeed.Cursor) {
			x.Helper()
			page, err := f.Fetch(x.Ctx, rowfeed.Request{After: after, Shards: rowfeed.One(3)})
			if err != nil {
				x.Fatal(err)
			}
			for _, e := range page.Entries {
				all = append(all, e.Position)
			}
			return all, page.Cursor
		}
		got, cursor := positions("")
		if strings.Join(got, " ") != "7" {
			x.Errorf("data shard 3 has the positions %q", got)
		}
		if _, err := f.Admin().TakeOver(x.Ctx, true); err != nil {
			x.Fatal(err)
		}
		write(x, "UPDATE kv SET v = 9, feed_sync_id = NULL WHERE id IN (1, 2)")
		x.Publish(f)
		if got, _ := positions(cursor); len(got) != 2 { // the rows 1 and 3, which had no position
			x.Errorf("then data shard 3 has the positions %q", got)
		}
		x.WantSound(f)
	})
}
