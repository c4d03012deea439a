package page

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestUnreadableFeedIsListedAndRefused (M63): a feed that has a mode which this version does not know, or a damaged
// record, is listed. Its operations are refused with the reason and change nothing, while other feeds work. When the
// record is correct again, the feed works.
func TestUnreadableFeedIsListedAndRefused(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		x.Add(rowfeed.FeedSpec{Name: "late", Table: "kv"})
		seen := 0
		consumer := &rowfeed.Consumer{Name: "c", DB: x.RF}
		consumer.Handle = func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
			seen += len(entries)
			return nil
		}
		var err error
		if consumer.Source, err = x.RF.Feed(x.Ctx, "late"); err != nil {
			t.Fatal(err)
		}
		x.Exec("INSERT INTO kv VALUES (1, 'a', 1)")
		x.Publish(consumer.Source.(*rowfeed.Feed))
		if err := consumer.RunOnce(x.Ctx); err != nil {
			t.Fatal(err)
		}
		for i, broken := range []struct {
			set, undo string
			code      rowfeed.Code
			words     string
		}{
			{
				"mode = 'later'", "mode = 'sequence'", rowfeed.SchemaVersion,
				`feed "late": its mode is "later": this rowfeed cannot read its record. Next: use a newer rowfeed`,
			},
			{
				"delivered_columns = '{'", "delivered_columns = NULL", rowfeed.Failed,
				"is damaged: this rowfeed cannot read its record",
			},
		} {
			x.Exec("UPDATE rowfeed_feeds SET " + broken.set + " WHERE name = 'late'")
			refused := func(err error) {
				x.Helper()
				if x.WantCode(err, broken.code); !strings.Contains(err.Error(), broken.words) {
					t.Errorf("%v, want %q", err, broken.words)
				}
			}
			before := x.DB.Dump(x.T)
			rf := x.TappedDB(testdb.Hooks{}, nil)
			feeds, err := rf.Feeds(x.Ctx)
			if err != nil || len(feeds) != 2 {
				t.Fatalf("%v, %v", feeds, err)
			}
			kv, late := feeds[0], feeds[1]
			if kv.Name() != "kv" || late.Name() != "late" || late.Source().Name != "kv" {
				t.Fatalf("%v", feeds)
			}
			_, err = rf.Feed(x.Ctx, "late")
			refused(err)
			_, err = late.Publish(x.Ctx)
			refused(err)
			_, err = late.Fetch(x.Ctx, rowfeed.Request{})
			refused(err)
			_, err = late.Info(x.Ctx)
			refused(err)
			_, err = late.Admin().Verify(x.Ctx)
			refused(err)
			_, err = late.Admin().Check(x.Ctx)
			refused(err)
			_, err = late.Admin().Repair(x.Ctx)
			refused(err)
			_, err = late.Admin().Upgrade(x.Ctx)
			refused(err)
			_, err = late.Admin().Reshard(x.Ctx, 4, nil)
			refused(err)
			refused(rf.DropFeed(x.Ctx, "late"))
			_, err = rf.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "late", Table: "kv"}, nil)
			refused(err)
			s, err := late.Admin().Status(x.Ctx)
			if err != nil || len(s.Problems) != 1 || !strings.Contains(s.Problems[0], broken.words) {
				t.Errorf("%+v, %v", s, err)
			}
			if err := rf.MigrateDown(x.Ctx); err == nil || !strings.Contains(err.Error(), "there are feeds: kv, late") {
				t.Error(err)
			}
			if all, err := rf.Admin().Consumers(x.Ctx, rowfeed.ConsumerID{}); err != nil || len(all) != 1 {
				t.Errorf("%+v, %v", all, err)
			}
			x.SameDump(before, broken.set)

			x.Exec("UPDATE kv SET v = v + 1")
			x.Publish(kv)
			if page := x.Fetch(kv, "", 10); len(page.Entries) != 1 {
				t.Errorf("%+v", page)
			}
			if _, err := rf.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "more", Table: "kv"}, nil); err != nil {
				t.Error(err)
			}
			if err := rf.DropFeed(x.Ctx, "more"); err != nil {
				t.Error(err)
			}

			x.Exec("UPDATE rowfeed_feeds SET " + broken.undo + " WHERE name = 'late'")
			x.Publish(late)
			if page := x.Fetch(late, "", 10); len(page.Entries) != 1 || late.Mode() != rowfeed.ModeSequence {
				t.Errorf("%+v", page)
			}
			if err := consumer.RunOnce(x.Ctx); err != nil || seen != i+2 {
				t.Errorf("%d entries, %v", seen, err)
			}
		}
	})
}
