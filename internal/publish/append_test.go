package publish

import (
	"context"
	"testing"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/postgres"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/store"
)

// noDatabase is a transaction that runs no statement, so that a benchmark measures only rowfeed.
type noDatabase struct{ dialect.Querier }

func (noDatabase) Exec(context.Context, string, ...any) (int64, error) { return 1, nil }

// BenchmarkAppend measures the cost of recording a key in the writer's process.
func BenchmarkAppend(b *testing.B) {
	key := []dialect.Column{{Name: "tenant", Stored: "tenant"}, {Name: "id", Stored: "id"}}
	feed := func(mode string) *Recorder {
		f := &Recorder{
			Feed: &catalog.Feed{
				Name: "items",
				Store: &store.Store{
					Dialect: postgres.New(),
					Names:   dialect.Names{Schema: "public", Prefix: "rowfeed_"},
				},
			},
		}
		f.Feed.Record.Store(&catalog.FeedRecord{Name: "items", Mode: mode, Key: key})
		return f
	}
	b.Run("change", func(b *testing.B) {
		f := feed(feedtype.ModeSequence)
		b.ReportAllocs()
		for b.Loop() {
			keys := []feedtype.Key{{int64(7), "a"}}
			if err := f.RecordKeys(b.Context(), noDatabase{}, dialect.Changed, keys); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("record", func(b *testing.B) {
		f := feed(feedtype.ModeOutbox)
		b.ReportAllocs()
		for b.Loop() {
			record := feedtype.OutboxRecord{Key: feedtype.Key{int64(7), "a"}}
			if err := f.AppendOutbox(b.Context(), noDatabase{}, record); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestInsertSQLFollowsKeyAndModeOfFeed: the SQL follows the feed's record, because a
// feed that was dropped and added again can have another key or mode.
func TestInsertSQLFollowsKeyAndModeOfFeed(t *testing.T) {
	f := &Recorder{
		Feed: &catalog.Feed{
			Name:  "items",
			Store: &store.Store{Dialect: postgres.New(), Names: dialect.Names{Prefix: "rowfeed_"}},
		},
	}
	for _, c := range []struct{ mode, column, record string }{
		{feedtype.ModeSequence, "code", ""},
		{feedtype.ModeOutbox, "id", `INSERT INTO "rowfeed_outbox_items" (shard, time_hint, "id") VALUES ($1, $2, $3)`},
		{feedtype.ModeOutbox, "code",
			`INSERT INTO "rowfeed_outbox_items" (shard, time_hint, "code") VALUES ($1, $2, $3)`},
	} {
		f.Feed.Record.Store(
			&catalog.FeedRecord{Name: "items", Mode: c.mode, Key: []dialect.Column{{Name: c.column, Stored: c.column}}},
		)
		for range 2 {
			if a := f.insertSQL(); a.record != c.record || a.feed.Outbox != (c.record != "") {
				t.Errorf("%s by %s: %q", c.mode, c.column, a.record)
			}
		}
	}
}
