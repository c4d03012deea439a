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

// nowhere is a transaction that does nothing with statements: what is left is what rowfeed does.
type nowhere struct{ dialect.Querier }

func (nowhere) Exec(context.Context, string, ...any) (int64, error) { return 1, nil }

// BenchmarkAppend is what a writer pays in its own process for recording a key.
func BenchmarkAppend(b *testing.B) {
	key := []dialect.Column{{Name: "tenant", Stored: "tenant"}, {Name: "id", Stored: "id"}}
	feed := func(mode string) *Recorder {
		f := &Recorder{Feed: &catalog.Feed{Name: "items", Store: &store.Store{Dialect: postgres.Dialect{}, Names: dialect.Names{Schema: "public", Prefix: "rowfeed_"}}}}
		f.Feed.Record.Store(&catalog.Record{Name: "items", Mode: mode, Key: key})
		return f
	}
	b.Run("change", func(b *testing.B) {
		f := feed(feedtype.ModeSequence)
		b.ReportAllocs()
		for b.Loop() {
			if err := f.RecordKeys(b.Context(), nowhere{}, dialect.Changed, []feedtype.Key{{int64(7), "a"}}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("record", func(b *testing.B) {
		f := feed(feedtype.ModeOutbox)
		b.ReportAllocs()
		for b.Loop() {
			if err := f.AppendOutbox(b.Context(), nowhere{}, feedtype.OutboxRecord{Key: feedtype.Key{int64(7), "a"}}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestAppendingFollowsTheRecord: a feed that was dropped and added again has another key, or another mode.
func TestAppendingFollowsTheRecord(t *testing.T) {
	f := &Recorder{Feed: &catalog.Feed{Name: "items", Store: &store.Store{Dialect: postgres.Dialect{}, Names: dialect.Names{Prefix: "rowfeed_"}}}}
	for _, c := range []struct{ mode, column, change, record string }{
		{feedtype.ModeSequence, "id", `INSERT INTO "rowfeed_changes_items" ("id", kind) VALUES (`, ""},
		{feedtype.ModeSequence, "code", `INSERT INTO "rowfeed_changes_items" ("code", kind) VALUES (`, ""},
		{feedtype.ModeOutbox, "code", `INSERT INTO "rowfeed_changes_items" ("code", kind) VALUES (`, `INSERT INTO "rowfeed_outbox_items" (shard, time_hint, "code") VALUES ($1, $2, $3)`},
	} {
		f.Feed.Record.Store(&catalog.Record{Name: "items", Mode: c.mode, Key: []dialect.Column{{Name: c.column, Stored: c.column}}})
		for range 2 {
			if a := f.appending(); a.change != c.change || a.record != c.record || a.feed.Outbox != (c.record != "") {
				t.Errorf("%s by %s: %q, %q", c.mode, c.column, a.change, a.record)
			}
		}
	}
}
