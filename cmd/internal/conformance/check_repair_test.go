package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestRepairBesideWishes (M19): what is done to a key that repair gives its shard holds,
// be it published before the repair's record, with it, or after it: a key that is shown
// again is shown, one that is hidden is hidden, and neither a change nor the repair alone
// shows or hides anything. Each time the readers of its part are told.
func TestRepairBesideWishes(t *testing.T) {
	type step func(x *env, f *rowfeed.Feed, id int)
	wish := func(do func(*rowfeed.Feed, context.Context, rowfeed.Tx, ...rowfeed.Key) error) step {
		return func(x *env, f *rowfeed.Feed, id int) {
			x.Helper()
			if err := f.InOwnTx(x.ctx, func(tx rowfeed.Tx) error { return do(f, x.ctx, tx, rowfeed.Key{id}) }); err != nil {
				x.Fatal(err)
			}
		}
	}
	show, hide := wish((*rowfeed.Feed).Republish), wish((*rowfeed.Feed).Unpublish)
	write := func(x *env, _ *rowfeed.Feed, id int) { x.exec(fmt.Sprintf("UPDATE kv SET v = 2 WHERE id = %d", id)) }
	publish := func(x *env, f *rowfeed.Feed, _ int) { x.publish(f) }
	cases := []struct {
		name          string
		hidden        bool // before
		before, after []step
		v             int // that readers are told; 0: of a delete
	}{
		{"hidden", true, nil, nil, 0},
		{"hidden, shown before", true, []step{show}, nil, 1},
		{"hidden, shown and published before", true, []step{show, publish}, nil, 1},
		{"hidden, shown behind", true, nil, []step{show}, 1},
		{"hidden, shown after it was published", true, nil, []step{publish, show}, 1},
		{"hidden, shown before and hidden behind", true, []step{show}, []step{hide}, 0},
		{"hidden, hidden before and shown behind", true, []step{hide}, []step{show}, 1},
		{"hidden, written before", true, []step{write}, nil, 0},
		{"hidden, written behind", true, nil, []step{write}, 0},
		{"hidden, shown before and written behind", true, []step{show}, []step{write}, 2},
		{"shown", false, nil, nil, 1},
		{"shown, hidden before", false, []step{hide}, nil, 0},
		{"shown, hidden behind", false, nil, []step{hide}, 0},
		{"shown, written before and hidden behind", false, []step{write}, []step{hide}, 0},
		{"shown, hidden before and shown behind", false, []step{hide}, []step{show}, 1},
		{"shown, written behind", false, nil, []step{write}, 2},
	}
	eachCapture(t, func(x *env) {
		x.shards = 8
		f := x.addKV()
		x.insertKV(0, len(cases)+1)
		x.publish(f)
		for i, c := range cases {
			id := i + 1
			if c.hidden {
				hide(x, f, id)
				x.publish(f)
			}
			places := x.placed()
			if c.hidden {
				places = "rowfeed_positions_kv"
			}
			x.db.Exec(x.T, fmt.Sprintf("UPDATE %s SET shard = (shard + 3) %% 8 WHERE id = %d", places, id))
			part := rowfeed.One(shardOfID(int64(id), 8))
			_, cursor := x.part(f, part, "", 1000)
			for _, do := range c.before {
				do(x, f, id)
			}
			if _, err := f.Admin().Repair(x.ctx); err != nil {
				x.Fatal(err)
			}
			for _, do := range c.after {
				do(x, f, id)
			}
			x.publish(f)
			want := gone(id)
			if c.v > 0 {
				want = kv(id, fmt.Sprintf("k%d", id), c.v)
			}
			entries, _ := x.part(f, part, cursor, 1000)
			if len(entries) == 0 || line(entries[len(entries)-1]) != want {
				x.Errorf("%s: the readers of its part are told %v, want %s", c.name, entries, want)
			}
			x.wantSound(f)
		}
	})
}

// TestRepairPassesOverRows (M19): rows that others hold hold up neither repair nor, behind it,
// those who write the rows that it has come to. It says how many it has left; one that has
// had its shard from a publisher meanwhile is not among them.
func TestRepairPassesOverRows(t *testing.T) {
	eachColumn(t, func(x *env) {
		x.shards = 8
		f := x.addKV()
		x.insertKV(0, 12)
		x.publish(f)
		const wrong = "UPDATE kv SET shard = (shard + 3) % 8 WHERE id IN (2, 5, 7, 11)"
		x.db.Exec(x.T, wrong)
		if x.family() != "sqlite" { // whose writers hold everything
			stuck := x.begin(0)
			x.in(stuck, "UPDATE kv SET v = 9 WHERE id IN (2, 7)")
			n, err := f.Admin().Repair(x.bounded())
			x.wantCode(err, rowfeed.Locked)
			if n != 2 || !strings.Contains(err.Error(), "2 rows could not") || !strings.Contains(err.Error(), "rowfeed repair kv") {
				x.Errorf("%d rows were repaired, want 2: %v", n, err)
			}
			if err := stuck.Rollback(); err != nil {
				x.Fatal(err)
			}
			x.publish(f)
			if found := x.wrongShards(f); !slices.Equal(found, []string{`{"id":2}`, `{"id":7}`}) {
				x.Errorf("the rows that were held are not as they were: %v", found)
			}
			if n, err := f.Admin().Repair(x.ctx); n != 2 || err != nil {
				x.Errorf("of the rows that were held %d were repaired: %v", n, err)
			}
			x.publish(f)
			x.wantSound(f)
			x.db.Exec(x.T, wrong)
		}

		looked := false
		hold := testdb.Hold(func(ev testdb.TapEvent) bool {
			match := looked && ev.Kind == testdb.Begin
			looked = looked || strings.HasPrefix(ev.SQL, "SELECT t.feed_sync_id, t.shard, NULL")
			return match
		})
		other := x.tapped(testdb.Hooks{Before: hold.Before}, nil)
		type answer struct {
			n   int64
			err error
		}
		ended := make(chan answer, 1)
		go func() {
			n, err := other.Admin().Repair(x.ctx)
			ended <- answer{n, err}
		}()
		select {
		case <-hold.Reached:
		case a := <-ended:
			x.Fatalf("it ended before: %+v", a)
		}
		x.exec("UPDATE kv SET v = 3 WHERE id = 2")
		x.publish(f)
		hold.Release()
		if a := <-ended; a.n != 3 || a.err != nil {
			x.Errorf("%d rows were repaired, want 3: %v", a.n, a.err)
		}
		x.publish(f)
		x.wantSound(f)
	})
}

// TestShardsLookedAtAgain (M19): a feed that begins a new generation while its shards are looked
// at is looked at again, by check and by repair; while it is being divided anew both say
// that they cannot, instead of that it is in order.
func TestShardsLookedAtAgain(t *testing.T) {
	each(t, func(x *env) {
		const walk = "SELECT t.feed_sync_id, t.shard"
		x.shards = 8
		f := x.addKV()
		x.insertKV(0, 10)
		x.publish(f)
		x.db.Exec(x.T, "UPDATE rowfeed_positions_kv SET shard = (shard + 3) % 8 WHERE id = 7")
		for _, repair := range []bool{false, true} {
			looked := 0
			other := x.tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
				if !strings.HasPrefix(ev.SQL, walk) {
					return nil
				}
				if looked++; looked > 1 {
					return nil
				}
				_, err := f.Admin().Bump(x.ctx)
				return err
			}}, nil)
			if !repair {
				if found := x.wrongShards(other); !slices.Equal(found, []string{`{"id":7}`}) {
					x.Errorf("beside a bump check finds %v", found)
				}
			} else if n, err := other.Admin().Repair(x.ctx); n != 1 || err != nil {
				x.Errorf("beside a bump %d keys were repaired, want 1: %v", n, err)
			}
			if looked < 2 {
				x.Error("nobody looked")
			}
		}
		x.publish(f)
		x.wantSound(f)

		x.exec("UPDATE rowfeed_feeds SET state = 'sharding', fill_after = NULL")
		findings, err := f.Admin().Check(x.ctx)
		if err != nil {
			x.Fatal(err)
		}
		if len(findings) != 1 || findings[0].Key != nil || !strings.Contains(findings[0].Problem, "were not looked at: wait for `rowfeed feed upgrade kv --data-shards 8`") {
			x.Errorf("of a feed that is being divided check says: %v", findings)
		}
		_, err = f.Admin().Repair(x.ctx)
		x.wantCode(err, rowfeed.Sharding)
		x.reshard(f, 8)
		x.wantSound(f)
	})
}
