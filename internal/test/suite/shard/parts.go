package shard

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestReadersContinueWhileShardsIncrease (M18, M21, H24): a feed that was added without options is read by one reader
// of the whole feed and by four readers of parts, and resharded while they read. The reader of the whole feed gets no
// entry again. From 1 to 1024 data shards the readers of parts get none again either. After another change their
// cursors are refused with the code other-part, and from the lowest of them, without its end, they get every key that
// was changed.
func TestReadersContinueWhileShardsIncrease(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(200)
		x.Publish(f)
		whole, parts := readersOf(1)[0], readersOf(4)
		again := 0
		newest, lines := map[string]int64{}, map[string]string{} // of the readers of parts, by key
		read := func(r *reader) {
			for r.more = true; r.more; {
				page(x, f, r, 40)
			}
			again += len(r.seen)
			for _, e := range r.seen {
				key := string(e.Key.AppendJSON(nil))
				if p := suite.PositionOf(e); r != whole && p >= newest[key] {
					newest[key], lines[key] = p, suite.Line(e)
				}
			}
			r.seen = nil
		}
		everybody := func() {
			x.Helper()
			for _, r := range parts {
				read(r)
			}
			again = 0
			read(whole)
			if !maps.Equal(lines, whole.keys) {
				x.Errorf("the readers of parts have %v, the reader of the whole feed %v", lines, whole.keys)
			}
		}
		everybody()
		if again != 200 {
			x.Fatalf("the whole feed has %d entries", again)
		}
		for i, r := range parts {
			if n := len(r.keys); n < 20 {
				x.Errorf("part %d has %d keys", i, n)
			}
			if _, err := f.Fetch(x.Ctx, rowfeed.Request{After: r.after}); !suite.IsCode(err, rowfeed.OtherPart) {
				x.Errorf("the cursor %q of a part goes on in the whole feed: %v", r.after, err)
			}
			other := rowfeed.Part((i+1)%4, 4)
			_, err := f.Fetch(x.Ctx, rowfeed.Request{After: r.after, Shards: other})
			if !suite.IsCode(err, rowfeed.OtherPart) {
				x.Errorf("the cursor %q of a part goes on in %s: %v", r.after, other, err)
			}
			inside := rowfeed.Request{After: r.after, Shards: rowfeed.Part(2*i+1, 8)}
			if page, err := f.Fetch(x.Ctx, inside); err != nil || len(page.Entries) > 0 {
				x.Errorf("a part of part %d: %v, %v", i, page.Entries, err)
			}
			inside.After = whole.after
			if page, err := f.Fetch(x.Ctx, inside); err != nil || len(page.Entries) > 0 {
				x.Errorf("from the cursor of the whole feed: %v, %v", page.Entries, err)
			}
		}
		for step, shards := range []int{1024, 6, 1} {
			x.Exec(fmt.Sprintf("UPDATE kv SET v = %d WHERE id %% 4 = 0", step+1))
			x.Publish(f)
			read(parts[0]) // the others are behind
			again = 0
			read(whole)
			if again != 50 {
				x.Errorf("%d entries of 50 changes", again)
			}
			x.Reshard(f, shards)
			_, err := f.Fetch(x.Ctx, rowfeed.Request{After: parts[1].after, Shards: parts[1].shards})
			if shards == 1024 {
				if err != nil {
					x.Errorf("from 1 to 1024 data shards: %v", err)
				}
				again = 0
				read(parts[0])
				if again > 0 {
					x.Errorf("from 1 to 1024 data shards: %d entries again", again)
				}
			} else {
				var e *rowfeed.Error
				if !errors.As(err, &e) || e.Code != rowfeed.OtherPart || !strings.Contains(e.Next, "lowest cursor") {
					x.Errorf("to %d data shards: %v", shards, err)
				}
				lowest := slices.MinFunc(parts, func(a, b *reader) int {
					return int(cursorPosition(x, a.after) - cursorPosition(x, b.after))
				}).after
				cut, _, _ := strings.Cut(string(lowest), "_")
				for _, r := range parts {
					r.after, r.last = rowfeed.Cursor(cut), 0
				}
			}
			everybody()
			if again > 0 {
				x.Errorf("to %d data shards: the reader of the whole feed gets %d entries again", shards, again)
			}
		}
		_, err := f.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.Part(0, 1025)})
		var e *rowfeed.Error
		if !errors.As(err, &e) || e.Code != rowfeed.InvalidRequest || e.Param != "shard_count" {
			x.Errorf("1025 readers: %v", err)
		}
	})
}

func cursorPosition(x *suite.Env, c rowfeed.Cursor) int64 {
	x.Helper()
	at, err := c.State()
	if err != nil {
		x.Fatal(err)
	}
	return at.Position.Number()
}
