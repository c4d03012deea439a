package read

import (
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"
	"weak"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// TestPageOfSharedReadEqualsItsOwnQuery (H26): a page of a shared reading equals the same page read by its own
// statement. A reading that does not hold all of a page answers nothing.
func TestPageOfSharedReadEqualsItsOwnQuery(t *testing.T) {
	f := &Reader{Feed: &catalog.Feed{}}
	f.Pager = func() (Pager, error) { return SequencePager{Reader: f}, nil }
	f.Record.Store(&catalog.FeedRecord{Mode: feedtype.ModeSequence})
	l := &catalog.Layout{Feed: &dialect.Feed{DataShards: 4}}
	parts := []feedtype.Shards{{}, feedtype.One(0), feedtype.One(3), feedtype.Part(0, 2), feedtype.Part(1, 2),
		feedtype.Part(1, 3), feedtype.Part(2, 4), feedtype.Part(0, 1)}
	random := rand.New(rand.NewPCG(1, 2))
	position := func(n int) feedtype.Position { return feedtype.Numbered(int64(n)) }
	taken := 0
	for range 50_000 {
		const head = 12
		var all []dialect.PageRow
		for p := 1; p <= head; p++ {
			if random.IntN(3) > 0 {
				all = append(all, dialect.PageRow{Position: position(p), Shard: random.IntN(4),
					Key: []any{p}, Values: []any{p, "raw"}})
			}
		}
		read := func(ask tailAsk, truncate bool) *dialect.PageRows {
			page := &dialect.PageRows{Generation: 1, Head: position(head), Given: position(head)}
			var q dialect.PageQuery
			if err := f.selectPart(t.Context(), l, &q, ask.shards); err != nil {
				t.Fatal(err)
			}
			for _, row := range all {
				wanted := q.To == 0 || row.Shard >= q.From && row.Shard < q.To
				if wanted && row.Position.Above(ask.after.Max(q.After)) {
					if size(page) > ask.bytes {
						page.Truncated = true
						break
					}
					page.Rows = append(page.Rows, row)
					if len(page.Rows) == ask.limit || truncate && random.IntN(3) == 0 {
						page.Truncated = len(page.Rows) < ask.limit
						break
					}
				}
			}
			return page
		}
		some := func() tailAsk {
			ask := tailAsk{position(random.IntN(head + 1)), 1 + random.IntN(8), parts[random.IntN(len(parts))],
				math.MaxInt, false}
			if random.IntN(3) == 0 {
				ask.bytes = random.IntN(60) // of rows with 19
			}
			if random.IntN(8) == 0 {
				ask.after = feedtype.LastPosition
			}
			return ask
		}
		r := &tailReading{ask: some(), asks: 1 + random.IntN(2), l: l}
		if r.asks > 1 {
			r.ask.shards, r.ask.bytes, r.parts = feedtype.Shards{}, math.MaxInt, true
		}
		r.rows = read(r.ask, random.IntN(2) == 0)
		ask := some()
		if random.IntN(4) == 0 {
			ask = r.ask
		}
		got, shared := r.page(t.Context(), f, ask)
		if got == nil {
			complete := !r.rows.Truncated && len(r.rows.Rows) < r.ask.limit
			if r.asks == 1 && ask == r.ask || r.asks > 1 && complete && !r.ask.after.Above(ask.after) {
				t.Fatalf("%+v does not answer %+v", r, ask)
			}
			continue
		}
		taken++
		want := read(ask, false)
		if ask == r.ask && r.asks == 1 {
			want = r.rows
		}
		gotTo, gotMore := next(ask.after, got, ask.limit)
		wantTo, wantMore := next(ask.after, want, ask.limit)
		if same := reflect.DeepEqual(want.Rows, got.Rows); !same || gotTo != wantTo || gotMore != wantMore ||
			got.Truncated != want.Truncated || shared {
			t.Fatalf("%+v of %+v (%+v): to %v, want %v; more %v, want %v; shared %v; rows %+v, want %+v",
				ask, r.ask, r.rows, gotTo, wantTo, gotMore, wantMore, shared, got.Rows, want.Rows)
		}
		takeAgain(t, f, r, ask, got)
	}
	if taken < 10_000 {
		t.Errorf("only %d were taken", taken)
	}
}

// takeAgain overwrites the values of a page, and checks that the next page of the reading does not show that.
func takeAgain(t *testing.T, f *Reader, r *tailReading, ask tailAsk, got *dialect.PageRows) {
	for _, row := range got.Rows { // as assemble does
		row.Key[0], row.Values[1] = "made", "made"
	}
	again, shared := r.page(t.Context(), f, ask)
	if !shared || len(again.Rows) != len(got.Rows) {
		t.Fatalf("taken again: shared %v, %d rows", shared, len(again.Rows))
	}
	for _, row := range again.Rows {
		if row.Key[0] != int(row.Position.Number()) || row.Values[1] != "raw" {
			t.Fatalf("a reader sees what another reader wrote to a row: %+v", row)
		}
	}
}

// TestTailWithoutPartsAnswersOnlyWholeFeed: a reading without a check that parts are served answers no part.
func TestTailWithoutPartsAnswersOnlyWholeFeed(t *testing.T) {
	f := &Reader{Feed: &catalog.Feed{}}
	f.Pager = func() (Pager, error) { return SequencePager{Reader: f}, nil }
	f.Record.Store(&catalog.FeedRecord{Mode: feedtype.ModeSequence})
	r := &tailReading{ask: tailAsk{limit: 10, bytes: math.MaxInt}, asks: 2,
		l: &catalog.Layout{Feed: &dialect.Feed{DataShards: 4}}, rows: &dialect.PageRows{Head: feedtype.Numbered(1),
			Rows: []dialect.PageRow{{Position: feedtype.Numbered(1), Shard: 1}}}}
	if rows, _ := r.page(t.Context(), f, tailAsk{limit: 5, bytes: math.MaxInt, shards: feedtype.One(1)}); rows != nil {
		t.Errorf("%+v", rows)
	}
	if rows, _ := r.page(t.Context(), f, tailAsk{limit: 5, bytes: math.MaxInt}); rows == nil || len(rows.Rows) != 1 {
		t.Errorf("the whole feed: %+v", rows)
	}
}

// TestTailKeepsOnlyLastReading: the tail keeps only the last reading.
func TestTailKeepsOnlyLastReading(t *testing.T) {
	var kept tail
	replaced := func() weak.Pointer[tailReading] {
		r := &tailReading{rows: &dialect.PageRows{}}
		kept.keep(r)
		return weak.Make(r)
	}()
	kept.keep(&tailReading{})
	for range 3 {
		runtime.GC()
	}
	if replaced.Value() != nil {
		t.Error("the tail keeps a reading that another one replaced")
	}
}

// TestKeptEntryDoesNotKeepItsPageInMemory: an application that keeps an entry keeps a few other rows in memory, and not
// the page.
func TestKeptEntryDoesNotKeepItsPageInMemory(t *testing.T) {
	const n = 2*rowsPerAllocation + 1
	rows := make([]dialect.PageRow, n)
	for i := range rows {
		rows[i].Values = []any{new([1 << 10]byte)}
	}
	first, last := rows[0].Values[0], weak.Make(rows[n-1].Values[0].(*[1 << 10]byte))
	own := copyRows(rows)
	kept := own[0].Values
	rows, own = nil, nil
	runtime.GC()
	if kept[0] != first || last.Value() != nil {
		t.Errorf("the first row keeps the values of row %d in memory", n)
	}
	runtime.KeepAlive(kept)
}
