package install

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// byScript makes a feed by the script that is printed without a server.
func byScript(x *suite.Events, spec rowfeed.FeedSpec) {
	x.Helper()
	steps, err := rowfeed.PrintFeed(x.Dialect, nil, spec)
	if err != nil {
		x.Fatal(err)
	}
	x.RunScript(steps)
	if x.Feed, err = x.RF.Feed(x.Ctx, spec.Name); err != nil {
		x.Fatal(err)
	}
}

// linesThatDiffer are those of one text that the other has not, and the other way round.
func linesThatDiffer(have, want string) string {
	haves, wants := strings.Split(have, "\n"), strings.Split(want, "\n")
	var out strings.Builder
	for _, line := range haves {
		if !slices.Contains(wants, line) {
			fmt.Fprintf(&out, "\n+ %s", line)
		}
	}
	for _, line := range wants {
		if !slices.Contains(haves, line) {
			fmt.Fprintf(&out, "\n- %s", line)
		}
	}
	return out.String()
}

// records are the records that a new feed has in rowfeed's tables, except for what a script cannot know.
func records(x *suite.Env) string {
	x.Helper()
	return strings.Join(slices.Concat(
		x.List("SELECT mode, capture, state, generation, source_table, data_shards, shard_column, tombstones_seconds,"+
			" database_identity FROM rowfeed_feeds"),
		x.List("SELECT name, value, version FROM rowfeed_sequences"),
		x.List("SELECT feed, shard, time_ms, ulid_high, ulid_low, below_high, below_low, witness, live_from, filled_by"+
			" FROM rowfeed_shards ORDER BY shard"),
	), "\n")
}

// forget drops the feed, and what is kept of it.
func forget(x *suite.Events, before string) {
	x.Helper()
	if err := x.RF.DropFeed(x.Ctx, "events"); err != nil {
		x.Fatal(err)
	}
	x.Exec("DELETE FROM rowfeed_feeds")
	if after := x.DB.Dump(x.T); after != before {
		x.Errorf("the drop leaves\n%s\nof\n%s", after, before)
	}
}

// schema is the dump without the database's name. MariaDB keeps the text of the statements that make triggers, and a
// script does not know the name.
func schema(x *suite.Events) string {
	return strings.ReplaceAll(x.DB.Dump(x.T), x.Dialect.Quote(x.DB.Name)+".", "")
}

// TestPrintedScriptMakesBlockingFeed (M28, M62): the script that is printed without a server makes the same feed as
// feed add: the same schema, the same record, and shards whose ULIDs are above those of their rows.
func TestPrintedScriptMakesBlockingFeed(t *testing.T) {
	for _, bytes := range []bool{false, true} {
		t.Run(fmt.Sprintf("bytes=%v", bytes), func(t *testing.T) {
			suite.Each(t, func(e *suite.Env) {
				ulidType, literal := e.ULIDType(), "install.ulid"
				if bytes {
					if ulidType, literal = e.Text("install.byte_ulid_type"), "install.byte_ulid"; ulidType == "" {
						return // the database has only one type for ULIDs
					}
				}
				x := &suite.Events{Env: e}
				x.Exec(strings.Replace(x.EventsTable("events"), x.ULIDType(), ulidType, 1),
					"CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
				for i, row := range []struct {
					shard int
					hex   string
				}{
					{4, "01857302da88ffffbfffffffffffffff"}, {4, "01857302da87ffff3fffffffffffffff"},
					{5, "018abcdef9f0ffffffffffffffffffff"}, {-6, "00000000000100000000000000000001"},
					{8, "019abcdef0123456ff00ff00ff00ff00"},
				} {
					x.Exec(fmt.Sprintf("INSERT INTO events VALUES (%d, %d, %s, '')", i+1, row.shard,
						x.Text(literal, row.hex)))
				}
				before := x.DB.Dump(x.T)
				spec := suite.EventsSpec()
				spec.Key, spec.PositionColumn, spec.ShardColumn = []string{"id:BIGINT"}, "ulid:"+ulidType, "shard:int"
				x.Add(spec)
				added, record := schema(x), records(x.Env)
				forget(x, before)

				byScript(x, spec)
				if printed := schema(x); printed != added {
					x.Errorf("the schema is other than feed add's: %s", linesThatDiffer(printed, added))
				}
				if printed := records(x.Env); printed != record {
					x.Errorf("by script there is\n%s\nby feed add\n%s", printed, record)
				}
				x.WantVerified()
				x.WantSound(x.Feed)
				if again := x.Add(spec); again != x.Feed || records(x.Env) != record {
					x.Errorf("feed add changes\n%s\nto\n%s", record, records(x.Env))
				}
				cursor := x.Page(x.Feed, 4, "", 10).Cursor
				x.Write(4, 20, 21)
				x.WantIDs(x.Page(x.Feed, 4, cursor, 10), false, 20, 21)
				x.Write(11, 22, 22)
				x.WantIDs(x.Page(x.Feed, 11, "", 10), false, 22)
				x.WantSound(x.Feed)
				forget(x, before)
			})
		})
	}
}

// TestPrintedScriptMakesOutboxFeed (M28, M62): the script leaves the feed for back-fill, which feed add with the same
// arguments or feed backfill completes. Until then, new readers are refused, so that they miss no row.
func TestPrintedScriptMakesOutboxFeed(t *testing.T) {
	for _, capture := range []feedtype.Capture{feedtype.CaptureApp, feedtype.CaptureTrigger} {
		t.Run(string(capture), func(t *testing.T) {
			suite.Each(t, func(e *suite.Env) {
				x := &suite.Events{Env: e}
				x.Exec(
					"CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL, made TIMESTAMP NULL)",
					"INSERT INTO events VALUES (1, 3, '2024-01-02 03:04:06'), (2, 3, '2024-01-02 03:04:05')",
					"INSERT INTO events VALUES (3, 4, NULL)",
				)
				before := x.DB.Dump(x.T)
				spec := rowfeed.FeedSpec{
					Name:        "events",
					Table:       "events",
					Mode:        rowfeed.ModeOutbox,
					Capture:     capture,
					Key:         []string{"id:BIGINT"},
					ShardColumn: "shard:int",
					TimeColumn:  "made:timestamp",
				}
				x.Add(spec)
				added := schema(x)
				forget(x, before)
				for _, complete := range []func() error{
					func() error { _, err := x.RF.AddFeed(x.Ctx, spec, nil); return err },
					func() error { _, err := x.Feed.Admin().BackFill(x.Ctx, nil); return err },
				} {
					byScript(x, spec)
					if printed := schema(x); printed != added {
						x.Errorf("the schema is other than feed add's: %s", linesThatDiffer(printed, added))
					}
					x.WantVerified()
					_, err := x.Feed.Fetch(x.Ctx, rowfeed.Request{Limit: 10, Shards: rowfeed.One(3)})
					x.WantCode(err, rowfeed.Filling)
					x.Exec("INSERT INTO events VALUES (9, 3, NULL)")
					if capture == feedtype.CaptureApp {
						tx := x.Begin(sql.LevelReadCommitted)
						record := rowfeed.OutboxRecord{Shard: 3, Key: rowfeed.Key{int64(9)}}
						must(x.Env, x.Feed.AppendOutbox(x.Ctx, rowfeed.InTx(tx), record))
						x.Commit(tx)
					}
					if err := complete(); err != nil {
						x.Fatal(err)
					}
					if state := x.Feed.State(); state != "active" {
						x.Errorf("the feed is %s", state)
					}
					x.WantShard(3, 2, 1, 9)
					x.WantShard(4, 3)
					x.WantVerified()
					x.WantSound(x.Feed)
					x.Exec("DELETE FROM events WHERE id = 9")
					forget(x, before)
				}
			})
		})
	}
}
