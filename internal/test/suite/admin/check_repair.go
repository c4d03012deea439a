package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestRepairKeepsRepublishAndUnpublish (M19): republishing and unpublishing a key works before, with and after its
// repair. A republished key is visible, an unpublished one is hidden, and neither a change nor the repair alone changes
// that. Each time the readers of the key's part get an entry.
func TestRepairKeepsRepublishAndUnpublish(t *testing.T) {
	type step func(x *suite.Env, f *rowfeed.Feed, id int)
	change := func(do func(*rowfeed.Feed, context.Context, rowfeed.Tx, ...rowfeed.Key) error) step {
		return func(x *suite.Env, f *rowfeed.Feed, id int) {
			x.Helper()
			in := func(tx rowfeed.Tx) error { return do(f, x.Ctx, tx, rowfeed.Key{id}) }
			if err := f.InOwnTx(x.Ctx, in); err != nil {
				x.Fatal(err)
			}
		}
	}
	show, hide := change((*rowfeed.Feed).Republish), change((*rowfeed.Feed).Unpublish)
	write := func(x *suite.Env, _ *rowfeed.Feed, id int) {
		x.Exec(fmt.Sprintf("UPDATE kv SET v = 2 WHERE id = %d", id))
	}
	publish := func(x *suite.Env, f *rowfeed.Feed, _ int) { x.Publish(f) }
	cases := []struct {
		name          string
		hidden        bool // before the repair
		before, after []step
		v             int // the value that readers get; 0: a delete
	}{
		{"hidden", true, nil, nil, 0},
		{"hidden, shown before", true, []step{show}, nil, 1},
		{"hidden, shown and published before", true, []step{show, publish}, nil, 1},
		{"hidden, shown afterwards", true, nil, []step{show}, 1},
		{"hidden, shown after it was published", true, nil, []step{publish, show}, 1},
		{"hidden, shown before and hidden afterwards", true, []step{show}, []step{hide}, 0},
		{"hidden, hidden before and shown afterwards", true, []step{hide}, []step{show}, 1},
		{"hidden, written before", true, []step{write}, nil, 0},
		{"hidden, written afterwards", true, nil, []step{write}, 0},
		{"hidden, shown before and written afterwards", true, []step{show}, []step{write}, 2},
		{"shown", false, nil, nil, 1},
		{"shown, hidden before", false, []step{hide}, nil, 0},
		{"shown, hidden afterwards", false, nil, []step{hide}, 0},
		{"shown, written before and hidden afterwards", false, []step{write}, []step{hide}, 0},
		{"shown, hidden before and shown afterwards", false, []step{hide}, []step{show}, 1},
		{"shown, written afterwards", false, nil, []step{write}, 2},
	}
	suite.EachCapture(t, func(x *suite.Env) {
		x.Shards = 8
		f := x.AddKV()
		x.InsertKV(0, len(cases)+1)
		x.Publish(f)
		for i, c := range cases {
			id := i + 1
			if c.hidden {
				hide(x, f, id)
				x.Publish(f)
			}
			places := x.Placed()
			if c.hidden {
				places = "rowfeed_positions_kv"
			}
			x.DB.Exec(x.T, fmt.Sprintf("UPDATE %s SET shard = (shard + 3) %% 8 WHERE id = %d", places, id))
			part := rowfeed.One(suite.ShardOfID(int64(id), 8))
			_, cursor := x.Part(f, part, "", 1000)
			for _, do := range c.before {
				do(x, f, id)
			}
			if _, err := f.Admin().Repair(x.Ctx); err != nil {
				x.Fatal(err)
			}
			for _, do := range c.after {
				do(x, f, id)
			}
			x.Publish(f)
			want := suite.Gone(id)
			if c.v > 0 {
				want = suite.KV(id, fmt.Sprintf("k%d", id), c.v)
			}
			entries, _ := x.Part(f, part, cursor, 1000)
			if len(entries) == 0 || suite.Line(entries[len(entries)-1]) != want {
				x.Errorf("%s: the readers of its part get %v, want %s", c.name, entries, want)
			}
			x.WantSound(f)
		}
	})
}

// TestRepairSkipsLockedRows (M19): rows that other transactions have locked delay neither repair nor, behind it, the
// writers of rows that repair has reached. Repair returns how many rows it has skipped. A row that has got its shard
// from a publisher meanwhile is not among them.
func TestRepairSkipsLockedRows(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		x.Shards = 8
		f := x.AddKV()
		x.InsertKV(0, 12)
		x.Publish(f)
		const wrong = "UPDATE kv SET shard = (shard + 3) % 8 WHERE id IN (2, 5, 7, 11)"
		x.DB.Exec(x.T, wrong)
		if !x.Has.OneWriter {
			stuck := x.Begin(0)
			x.In(stuck, "UPDATE kv SET v = 9 WHERE id IN (2, 7)")
			n, err := f.Admin().Repair(x.Bounded())
			x.WantCode(err, rowfeed.Locked)
			if n != 2 || !strings.Contains(err.Error(), "2 rows could not") ||
				!strings.Contains(err.Error(), "rowfeed repair kv") {
				x.Errorf("%d rows were repaired, want 2: %v", n, err)
			}
			if err := stuck.Rollback(); err != nil {
				x.Fatal(err)
			}
			x.Publish(f)
			if found := x.WrongShards(f); !slices.Equal(found, []string{`{"id":2}`, `{"id":7}`}) {
				x.Errorf("the locked rows have changed: %v", found)
			}
			if n, err := f.Admin().Repair(x.Ctx); n != 2 || err != nil {
				x.Errorf("%d of the locked rows were repaired: %v", n, err)
			}
			x.Publish(f)
			x.WantSound(f)
			x.DB.Exec(x.T, wrong)
		}

		looked := false
		hold := testdb.Hold(func(ev testdb.TapEvent) bool {
			match := looked && ev.Kind == testdb.Begin
			looked = looked || strings.HasPrefix(ev.SQL, "SELECT t.feed_sync_id, t.shard, NULL")
			return match
		})
		other := x.Tapped(testdb.Hooks{Before: hold.Before}, nil)
		type answer struct {
			n   int64
			err error
		}
		ended := make(chan answer, 1)
		go func() {
			n, err := other.Admin().Repair(x.Ctx)
			ended <- answer{n, err}
		}()
		select {
		case <-hold.Reached:
		case a := <-ended:
			x.Fatalf("repair ended before: %+v", a)
		}
		x.Exec("UPDATE kv SET v = 3 WHERE id = 2")
		x.Publish(f)
		hold.Release()
		if a := <-ended; a.n != 3 || a.err != nil {
			x.Errorf("%d rows were repaired, want 3: %v", a.n, a.err)
		}
		x.Publish(f)
		x.WantSound(f)
	})
}

// TestCheckRepeatsAfterNewGeneration (M19): if a feed begins a new generation while its shards are checked, check and
// repair begin again. While the feed is resharded, both report that they cannot check it.
func TestCheckRepeatsAfterNewGeneration(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		const walk = "SELECT t.feed_sync_id, t.shard"
		x.Shards = 8
		f := x.AddKV()
		x.InsertKV(0, 10)
		x.Publish(f)
		x.DB.Exec(x.T, "UPDATE rowfeed_positions_kv SET shard = (shard + 3) % 8 WHERE id = 7")
		for _, repair := range []bool{false, true} {
			looked := 0
			other := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
				if !strings.HasPrefix(ev.SQL, walk) {
					return nil
				}
				if looked++; looked > 1 {
					return nil
				}
				_, err := f.Admin().Bump(x.Ctx)
				return err
			}}, nil)
			if !repair {
				if found := x.WrongShards(other); !slices.Equal(found, []string{`{"id":7}`}) {
					x.Errorf("during a bump check finds %v", found)
				}
			} else if n, err := other.Admin().Repair(x.Ctx); n != 1 || err != nil {
				x.Errorf("during a bump %d keys were repaired, want 1: %v", n, err)
			}
			if looked < 2 {
				x.Error("the shards were not checked again")
			}
		}
		x.Publish(f)
		x.WantSound(f)

		x.Exec("UPDATE rowfeed_feeds SET state = 'sharding', fill_after = NULL")
		findings, err := f.Admin().Check(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		const wait = "were not checked: wait for `rowfeed feed upgrade kv --data-shards 8`"
		if len(findings) != 1 || findings[0].Key != nil || !strings.Contains(findings[0].Problem, wait) {
			x.Errorf("check of a feed that is being resharded: %v", findings)
		}
		_, err = f.Admin().Repair(x.Ctx)
		x.WantCode(err, rowfeed.Sharding)
		x.Reshard(f, 8)
		x.WantSound(f)
	})
}
