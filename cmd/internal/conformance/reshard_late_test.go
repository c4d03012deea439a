package conformance

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// lateEnd is an upgrade of kv that has given all keys their shards, and is held before it
// ends the walk.
func (x *env) lateEnd(shards int) (held *testdb.Held, end chan error) {
	x.Helper()
	walked := false
	lock := x.by(map[string]string{"sqlite": "BEGIN IMMEDIATE", "postgres": "pg_advisory_xact_lock", "mysql": "GET_LOCK"})
	held = testdb.Hold(func(ev testdb.TapEvent) bool { return walked && strings.Contains(ev.SQL, lock) })
	f := x.tapped(testdb.Hooks{
		Before: held.Before,
		After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			walked = walked || ev.Kind == testdb.Commit && x.scalar("SELECT count(*) FROM rowfeed_feeds WHERE state = 'sharding' AND fill_after LIKE '[2%'") == 1
			return err
		},
	}, nil)
	return held, x.reshardUntil(f, shards, held)
}

// TestReshardEndedLate (H24): who has walked along all keys and comes late to the end does not
// end another's walk to the same number, which has only begun, but helps it; nor does it
// end its own where the database was set back into the walk. No part is served before each
// key has its shard.
func TestReshardEndedLate(t *testing.T) {
	eachCapture(t, func(x *env) {
		f := x.addKV()
		x.fill(20)
		x.publish(f)

		held, end := x.lateEnd(8)
		x.reshard(f, 8) // joins, and is done first
		x.reshard(f, 3)
		begun, other := x.heldReshard(8, testdb.Begin, "")
		held.Release()
		if err := <-end; err != nil {
			x.Error(err)
		}
		x.wantParts(f, 8)
		begun.Release()
		if err := <-other; err != nil {
			x.Error(err)
		}
		x.wantParts(f, 8)

		held, end = x.lateEnd(5)
		x.exec("UPDATE rowfeed_feeds SET fill_after = NULL", "UPDATE rowfeed_positions_kv SET shard = 4, bucket = 4")
		held.Release()
		if err := <-end; err != nil {
			x.Error(err)
		}
		x.wantParts(f, 5)

		// The index by bucket of the division that is there now is not taken away.
		held, end = x.lateEnd(1)
		x.reshard(f, 1)
		x.reshard(f, 6)
		held.Release()
		x.wantCode(<-end, rowfeed.Conflict)
		x.wantParts(f, 6)

		// A batch is not of a walk to another number that stands at the same mark.
		held, end = x.heldReshard(2, testdb.Begin, "")
		x.reshard(f, 2)
		begun, other = x.heldReshard(5, testdb.Begin, "")
		held.Release()
		x.wantCode(<-end, rowfeed.Conflict)
		begun.Release()
		if err := <-other; err != nil {
			x.Error(err)
		}
		x.wantParts(f, 5)

		held, end = x.lateEnd(2)
		if _, err := f.Admin().Bump(x.ctx); err != nil {
			x.Fatal(err)
		}
		held.Release()
		if err := <-end; err != nil {
			x.Error(err)
		}
		x.wantParts(f, 2)
		x.wantSound(f)
	})
}

// TestReshardUnderAReader (H24): a process that has read parts, and then nothing until the feed
// was divided anew, reads on: cursors of before are refused, and from the beginning its
// part is whole. Among one data shard, too, where parts have no index.
func TestReshardUnderAReader(t *testing.T) {
	eachCapture(t, func(x *env) {
		x.shards = 8
		f := x.addKV()
		x.fill(40)
		x.publish(f)
		for _, shards := range []int{1, 3, 1} {
			reader := x.tapped(testdb.Hooks{}, nil)
			before := f.DataShards()
			_, cursor := x.part(reader, rowfeed.Part(1, 2), "", 100)
			another := x.tapped(testdb.Hooks{}, nil)
			x.part(another, rowfeed.Part(0, 2), "", 100)
			x.reshard(f, shards)
			_, err := reader.Fetch(x.ctx, rowfeed.Request{After: cursor, Shards: rowfeed.Part(1, 2)})
			x.wantCode(err, rowfeed.GenerationChanged)
			for i := range 2 {
				got, _ := x.part(another, rowfeed.Part(i, 2), "", 100)
				want, _ := x.part(f, rowfeed.Part(i, 2), "", 100)
				x.wantSame(fmt.Sprintf("part %d, from %d to %d data shards", i, before, shards), got, want)
			}
		}
	})
}

// TestReshardHeldRowsOfAnother (H24): rows that others hold are no reason to try a batch again
// whose feed has been divided by another number meanwhile.
func TestReshardHeldRowsOfAnother(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer
	eachColumn(t, func(x *env) {
		f := x.addKV()
		x.fill(20)
		x.publish(f)
		x.reshard(f, 3)
		// In its second batch a walk is among the rows.
		held := testdb.Hold(func(ev testdb.TapEvent) bool {
			return ev.Kind == testdb.Begin && x.scalar("SELECT count(*) FROM rowfeed_feeds WHERE fill_after LIKE '[1%'") == 1
		})
		upgrade := x.tapped(testdb.Hooks{Before: held.Before}, nil)
		end := make(chan error, 1)
		go func() {
			_, err := upgrade.Admin().Reshard(x.ctx, 2, nil)
			end <- err
		}()
		select {
		case <-held.Reached:
		case err := <-end:
			x.Fatalf("the upgrade ended before it was held: %v", err)
		}
		x.reshard(f, 2)
		x.reshard(f, 5)
		writer := x.begin(sql.LevelReadCommitted)
		if _, err := writer.ExecContext(x.ctx, "UPDATE kv SET v = v + 1"); err != nil {
			x.Fatal(err)
		}
		held.Release()
		x.wantCode(<-end, rowfeed.Conflict)
		if err := writer.Rollback(); err != nil {
			x.Fatal(err)
		}
		x.wantParts(f, 5)
	})
}

// TestPartsOfTheirSnapshot (H1, H24): whether a part may be served is for the
// page's own snapshot to say. A database that is set back into the walk, or a pool with a
// server that is still amid it, has the generation and the head that the reader knows.
func TestPartsOfTheirSnapshot(t *testing.T) {
	eachCapture(t, func(x *env) {
		x.shards = 8
		f := x.addKV()
		x.fill(20)
		x.publish(f)
		part := rowfeed.Request{Shards: rowfeed.Part(1, 2)}
		amid := func(walk bool) {
			state := map[bool]string{false: "active", true: "sharding"}[walk]
			x.exec("UPDATE rowfeed_feeds SET state = '" + state + "', fill_after = NULL WHERE state <> '" + state + "'")
		}
		reader := x.tapped(testdb.Hooks{}, nil)
		x.part(reader, part.Shards, "", 100)
		amid(true)
		_, err := reader.Fetch(x.ctx, part)
		x.wantCode(err, rowfeed.Sharding)
		amid(false)
		whole, _ := x.part(reader, part.Shards, "", 100)

		pooled := false
		servers := x.tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if pooled && ev.Kind == testdb.Query {
				amid(!strings.Contains(ev.SQL, "delivered_columns")) // the record is of the other server
			}
			return nil
		}}, nil)
		x.part(servers, part.Shards, "", 100)
		pooled = true
		_, err = servers.Fetch(x.ctx, part)
		x.wantCode(err, rowfeed.Sharding)
		pooled = false
		amid(false)
		again, _ := x.part(servers, part.Shards, "", 100)
		x.wantSame("parts after the walk", again, whole)
	})
}
