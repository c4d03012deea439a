package shard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// second returns the cursor of a generation behind its first position. A reader that starts at the beginning would not
// get the deletes.
func second(generation int64) rowfeed.Cursor {
	if generation == 1 {
		return "1"
	}
	return rowfeed.Cursor(fmt.Sprintf("%d:1", generation))
}

// wantParts asserts that the feed has this number of data shards, that each key is in its own, and that the parts of
// every number of readers are the whole feed together.
func wantParts(x *suite.Env, f *rowfeed.Feed, dataShards int) {
	x.Helper()
	info, err := f.Info(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	if info.State != "active" || info.DataShards != dataShards {
		x.Fatalf("the feed is %s with %d data shards, want %d", info.State, info.DataShards, dataShards)
	}
	above := second(info.Generation)
	whole, head := x.Part(f, rowfeed.Shards{}, above, 1000)
	for _, e := range whole {
		if e.Shard != feedtype.ShardOf(e.Key, dataShards) {
			x.Fatalf("of %d data shards: %s", dataShards, placed(e))
		}
	}
	for _, readers := range []int{1, 3, dataShards} {
		if readers > 32 || readers > feedtype.MaxParts(dataShards) {
			continue
		}
		var all []rowfeed.Entry
		for i := range readers {
			part := rowfeed.Part(i, readers)
			entries, cursor := x.Part(f, part, above, 500)
			if cursor != head {
				x.Fatalf("%s ends at %q, the feed at %q", part, cursor, head)
			}
			division := feedtype.MaxParts(dataShards)
			from, to, err := part.Range(division)
			if err != nil {
				x.Fatal(err)
			}
			for _, e := range entries {
				if shard := feedtype.ShardOf(e.Key, division); shard < from || shard >= to {
					x.Fatalf("%s of %d data shards has %s", part, dataShards, placed(e))
				}
			}
			all = append(all, entries...)
		}
		wantSame(x, fmt.Sprintf("%d parts of %d data shards", readers, dataShards), all, whole)
	}
	wrong := "bucket <> 0"
	if dataShards > 1 && dataShards <= 32 {
		wrong = "bucket <> shard"
	}
	if n := x.Scalar("SELECT count(*) FROM rowfeed_positions_" + f.Name() + " WHERE " + wrong); dataShards <= 32 &&
		n > 0 {
		x.Errorf("%d positions are in another bucket than their shard's", n)
	}
}

// TestReshardKeepsPositions (M18, H24): a feed is resharded, up and down. Positions and contents stay, and a reader
// of the whole feed keeps its cursor, after which nothing comes. The schema is that of a feed created with this
// number. The same number again changes nothing.
func TestReshardKeepsPositions(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
		spec := rowfeed.FeedSpec{Name: "kv", Table: "kv"}
		schema := map[bool]string{}
		for _, shards := range []int{5, 1} {
			spec.DataShards = shards
			x.Add(spec)
			schema[shards > 1] = x.DB.Dump(x.T)
			if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
				x.Fatal(err)
			}
		}
		f := x.Add(spec)
		x.Fill(1100) // three batches
		x.Publish(f)
		x.Exec("DELETE FROM kv WHERE id % 10 = 0", "UPDATE kv SET v = 2 WHERE id % 10 = 3")
		x.Publish(f)
		err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error {
			return f.Unpublish(x.Ctx, tx, rowfeed.Key{1}, rowfeed.Key{2}, rowfeed.Key{10})
		})
		if err != nil {
			x.Fatal(err)
		}
		x.Publish(f)
		x.Exec("INSERT INTO kv VALUES (5000, 'waits', 0)")
		whole := func() (lines []string, cursor rowfeed.Cursor) {
			x.Helper()
			entries, cursor := x.Part(f, rowfeed.Shards{}, second(f.Generation()), 1000)
			for _, e := range entries {
				lines = append(lines, e.Position+" "+suite.Line(e))
			}
			return lines, cursor
		}
		before, cursor := whole()
		for _, shards := range []int{7, 1024, 3, 1, 2, 1} {
			generation := f.Generation()
			var looked int64
			changed, err := f.Admin().Reshard(x.Ctx, shards, func(n int64) { looked = n })
			if err != nil || !changed {
				x.Fatalf("%d data shards: changed %v, %v", shards, changed, err)
			}
			if looked < 1100 {
				x.Errorf("%d keys were looked at", looked)
			}
			if f.Generation() != generation {
				x.Errorf("generation %d follows %d", f.Generation(), generation)
			}
			if again, _ := x.Part(f, rowfeed.Shards{}, cursor, 1000); len(again) > 0 {
				x.Errorf("%d data shards: the reader of the whole feed gets %d entries again", shards, len(again))
			}
			wantParts(x, f, shards)
			after, next := whole()
			if !slices.Equal(after, before) {
				x.Fatalf("%d data shards: entries\n%s\nwant\n%s", shards, strings.Join(after, "\n"),
					strings.Join(before, "\n"))
			}
			if got := x.DB.Dump(x.T); got != schema[shards > 1] {
				x.Errorf("%d data shards: the schema is\n%s\nwant\n%s", shards, got, schema[shards > 1])
			}
			generation = f.Generation()
			if changed, err := f.Admin().Reshard(x.Ctx, shards, nil); changed || err != nil ||
				f.Generation() != generation {
				x.Errorf("again: changed %v, generation %d, was %d: %v", changed, f.Generation(), generation, err)
			}
			x.WantSound(f)
			cursor = next
		}
		x.Publish(f)
		x.Reshard(f, 4)
		wantParts(x, f, 4)
		for _, shards := range []int{0, -1, rowfeed.MaxDataShards + 1} {
			_, err := f.Admin().Reshard(x.Ctx, shards, nil)
			x.WantCode(err, rowfeed.InvalidRequest)
		}
	})
}

// TestPartsDuringReshardAreWholeOrRefused (M18, H24): before every statement of an upgrade every part is read, by a
// process that knows the feed and by a new one. Either the parts are refused with the code Sharding, or together they
// are the whole feed. The whole feed is always readable. A page that is read while the upgrade commits is not mixed.
func TestPartsDuringReshardAreWholeOrRefused(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(520) // two batches
		x.Publish(f)
		knowing := x.Tapped(testdb.Hooks{}, nil)
		fresh := func() *rowfeed.Feed { return x.Tapped(testdb.Hooks{}, nil) }
		refused, served := 0, 0
		look := func(when string, reader *rowfeed.Feed) {
			all := map[int64]bool{}
			entries, _ := x.Part(reader, rowfeed.Shards{}, "", 1000)
			if len(entries) != 520 {
				x.Errorf("%s: the whole feed has %d entries", when, len(entries))
			}
			denied := 0
			for i := range 3 {
				page, err := reader.Fetch(x.Ctx, rowfeed.Request{Limit: 1000, Shards: rowfeed.Part(i, 3)})
				if suite.IsCode(err, rowfeed.Sharding) {
					denied++
					continue
				}
				if err != nil {
					x.Errorf("%s: %v", when, err)
				}
				for _, e := range page.Entries {
					if all[suite.PositionOf(e)] {
						x.Errorf("%s: position %s is in two parts", when, e.Position)
					}
					all[suite.PositionOf(e)] = true
				}
				for page.More {
					next := rowfeed.Request{After: page.Cursor, Limit: 1000, Shards: rowfeed.Part(i, 3)}
					if page, err = reader.Fetch(x.Ctx, next); err != nil {
						x.Fatal(err)
					}
					for _, e := range page.Entries {
						all[suite.PositionOf(e)] = true
					}
				}
			}
			switch {
			case denied == 3:
				refused++
			case denied > 0 || len(all) != 520:
				x.Errorf("%s: %d of 3 parts were refused, the others have %d of 520 entries", when, denied, len(all))
			default:
				served++
			}
		}
		for _, shards := range []int{8, 3, 1} {
			refused, served = 0, 0
			// If DDL keeps its locks until the COMMIT, a drop of the index locks out all readers.
			last, dropped := "", false
			upgrade := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
				if dropped || ev.SQL == last { // the same statement for the next key of a batch
					return nil
				}
				last = ev.SQL
				dropped = x.Has.LockingDDL && strings.HasPrefix(ev.SQL, "DROP INDEX")
				when := fmt.Sprintf("to %d shards, before %s %.80s", shards, ev.Kind, ev.SQL)
				look(when, knowing)
				look(when, fresh())
				return nil
			}}, nil)
			x.Reshard(upgrade, shards)
			if refused < 10 || served < 4 {
				x.Errorf("to %d shards: parts were refused %d times and served %d times", shards, refused, served)
			}
			served = 0
			if look(fmt.Sprintf("with %d shards", shards), knowing); served == 0 {
				x.Errorf("with %d shards: parts are still refused", shards)
			}
			wantParts(x, f, shards)
		}
		// The upgrade commits before each statement of a reader.
		for n, shards := int64(1), 1; ; n++ {
			shards = map[int]int{1: 8, 8: 3, 3: 8}[shards]
			held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.N == n })
			reader := tappedLate(x, held)
			type result struct {
				page rowfeed.Page
				err  error
			}
			results := make(chan result, 1)
			go func() {
				page, err := reader.Fetch(x.Ctx, rowfeed.Request{Limit: 1000, Shards: rowfeed.Part(1, 3)})
				results <- result{page, err}
			}()
			ended := false
			var r result
			select {
			case <-held.Reached:
				x.Reshard(f, shards)
				held.Release()
				r = <-results
			case r = <-results:
				ended = true
			}
			if r.err != nil {
				x.Fatalf("overtaken at statement %d: %v", n, r.err)
			}
			entries := r.page.Entries
			if r.page.More {
				rest, _ := x.Part(reader, rowfeed.Part(1, 3), r.page.Cursor, 1000)
				entries = append(entries, rest...)
			}
			state, err := r.page.Cursor.State()
			if err != nil {
				x.Fatal(err)
			}
			for _, e := range entries {
				shard := feedtype.ShardOf(e.Key, state.Part.Of)
				if shard < state.Part.From || shard >= state.Part.To {
					x.Fatalf("overtaken at statement %d: %s of cursor %q", n, placed(e), r.page.Cursor)
				}
			}
			if state.Part.Of == feedtype.MaxParts(x.Info(f).DataShards) {
				mine, _ := x.Part(f, rowfeed.Part(1, 3), "", 1000)
				wantSame(x, fmt.Sprintf("overtaken at statement %d", n), entries, mine)
			} else {
				_, err := f.Fetch(x.Ctx, rowfeed.Request{After: r.page.Cursor, Shards: rowfeed.Part(1, 3)})
				x.WantCode(err, rowfeed.OtherPart)
			}
			if ended {
				break
			}
		}
	})
}

// tappedLate returns the feed kv, which was read once, on a pool whose next statements are held.
func tappedLate(x *suite.Env, held *testdb.Held) *rowfeed.Feed {
	x.Helper()
	var before int64
	counting := true
	f := x.Tapped(testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
		if counting {
			before = ev.N
			return nil
		}
		ev.N -= before
		return held.Before(ctx, ev)
	}}, nil)
	x.Fetch(f, "", 1)
	counting = false
	return f
}

// TestReshardKilledAtEveryStatement (M18): an upgrade is killed before each of its statements in turn and run again, up
// and down. Writers and publishers continue meanwhile, and the whole feed is readable. In the end every key has its
// shard.
func TestReshardKilledAtEveryStatement(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(510) // two batches
		x.Publish(f)
		id := 1000
		for _, target := range []int{6, 1} {
			n, step := x.Kills()
			last := ""
			for ; ; n += step {
				x.Reshard(f, 7-target)
				before := x.Killed("reshard", n, fmt.Sprintf("SHARDS=%d", target))
				if step > 1 && before == last {
					n += 25 * step // if each key of a batch has a statement, a few of them are enough
				}
				last = before
				id++
				x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'live', %d)", id, n),
					fmt.Sprintf("UPDATE kv SET v = v + 1 WHERE id IN (1, 505, %d)", id-1),
					fmt.Sprintf("DELETE FROM kv WHERE id = %d", id-2))
				other := x.Tapped(testdb.Hooks{}, nil)
				x.Publish(other)
				if entries, _ := x.Part(other, rowfeed.Shards{}, "", 1000); len(entries) != 510+min(id-1000, 2) {
					x.Fatalf("killed at n=%d (%s): the whole feed has %d entries", n, before, len(entries))
				}
				if before == "" {
					wantParts(x, f, target)
					break
				}
				x.Reshard(f, target)
				wantParts(x, f, target)
				x.WantSound(f)
				if x.Failed() {
					x.Fatalf("killed at n=%d (%s)", n, before)
				}
			}
			if n < 15 {
				x.Errorf("it ended before statement %d", n)
			}
		}
	})
}
