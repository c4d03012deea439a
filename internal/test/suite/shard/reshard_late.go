package shard

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// lateEnd starts an upgrade of kv that gives all keys their shards, and is held before it ends.
func lateEnd(x *suite.Env, shards int) (held *testdb.Held, end chan error) {
	x.Helper()
	walked := false
	lock := x.Text("shard.schema_lock")
	held = testdb.Hold(func(ev testdb.TapEvent) bool { return walked && strings.Contains(ev.SQL, lock) })
	f := x.Tapped(testdb.Hooks{
		Before: held.Before,
		After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			walked = walked || ev.Kind == testdb.Commit && x.Scalar("SELECT count(*) FROM rowfeed_feeds "+
				"WHERE state = 'sharding' AND fill_after LIKE '_2%'") == 1
			return err
		},
	}, nil)
	return held, x.ReshardUntil(f, shards, held)
}

// TestLateEndDoesNotEndNewerReshard (H24): an upgrade that has passed all keys and ends late does not end a newer
// upgrade to the same number, but continues it. It does not end its own if the database was restored meanwhile. No part
// is readable before each key has its shard.
func TestLateEndDoesNotEndNewerReshard(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(20)
		x.Publish(f)

		held, end := lateEnd(x, 8)
		x.Reshard(f, 8) // joins the upgrade, and ends first
		x.Reshard(f, 3)
		begun, other := x.HeldReshard(8, testdb.Begin, "")
		held.Release()
		if err := <-end; err != nil {
			x.Error(err)
		}
		wantParts(x, f, 8)
		begun.Release()
		if err := <-other; err != nil {
			x.Error(err)
		}
		wantParts(x, f, 8)

		held, end = lateEnd(x, 5)
		x.Exec("UPDATE rowfeed_feeds SET fill_after = NULL", "UPDATE rowfeed_positions_kv SET shard = 4, bucket = 4")
		held.Release()
		if err := <-end; err != nil {
			x.Error(err)
		}
		wantParts(x, f, 5)

		// The bucket index of the present shard count is not dropped.
		held, end = lateEnd(x, 1)
		x.Reshard(f, 1)
		x.Reshard(f, 6)
		held.Release()
		x.WantCode(<-end, rowfeed.Conflict)
		wantParts(x, f, 6)

		// A batch does not belong to an upgrade to another number with the same mark.
		held, end = x.HeldReshard(2, testdb.Begin, "")
		x.Reshard(f, 2)
		begun, other = x.HeldReshard(5, testdb.Begin, "")
		held.Release()
		x.WantCode(<-end, rowfeed.Conflict)
		begun.Release()
		if err := <-other; err != nil {
			x.Error(err)
		}
		wantParts(x, f, 5)

		held, end = lateEnd(x, 2)
		if _, err := f.Admin().Bump(x.Ctx); err != nil {
			x.Fatal(err)
		}
		held.Release()
		if err := <-end; err != nil {
			x.Error(err)
		}
		wantParts(x, f, 2)
		x.WantSound(f)
	})
}

// TestIdleReaderNoticesReshard (H24): a process has read parts, and reads the next page only after the feed was
// resharded. Its old cursors are refused, and from the beginning its part is complete. That holds for one data shard,
// too, where parts have no index.
func TestIdleReaderNoticesReshard(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		x.Shards = 8
		f := x.AddKV()
		x.Fill(40)
		x.Publish(f)
		for _, shards := range []int{1, 3, 1} {
			reader := x.Tapped(testdb.Hooks{}, nil)
			before := f.DataShards()
			page, err := reader.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.Part(1, 2)})
			if err != nil || page.More {
				x.Fatalf("%+v, %v", page, err)
			}
			another := x.Tapped(testdb.Hooks{}, nil)
			x.Part(another, rowfeed.Part(0, 2), "", 100)
			x.Reshard(f, shards)
			_, err = reader.Fetch(x.Ctx, rowfeed.Request{After: page.Cursor, Shards: rowfeed.Part(1, 2)})
			x.WantCode(err, rowfeed.OtherPart)
			for i := range 2 {
				got, _ := x.Part(another, rowfeed.Part(i, 2), "", 100)
				want, _ := x.Part(f, rowfeed.Part(i, 2), "", 100)
				wantSame(x, fmt.Sprintf("part %d, from %d to %d data shards", i, before, shards), got, want)
			}
		}
	})
}

// TestLockedRowsDoNotRepeatStaleBatch (H24): locked rows do not make an upgrade repeat a batch if the feed was
// resharded to another number meanwhile.
func TestLockedRowsDoNotRepeatStaleBatch(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer
	suite.EachColumn(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(20)
		x.Publish(f)
		x.Reshard(f, 3)
		// In its second batch the upgrade reaches the locked rows.
		held := testdb.Hold(func(ev testdb.TapEvent) bool {
			return ev.Kind == testdb.Begin &&
				x.Scalar("SELECT count(*) FROM rowfeed_feeds WHERE fill_after LIKE '_1%'") == 1
		})
		upgrade := x.Tapped(testdb.Hooks{Before: held.Before}, nil)
		end := make(chan error, 1)
		go func() {
			_, err := upgrade.Admin().Reshard(x.Ctx, 2, nil)
			end <- err
		}()
		select {
		case <-held.Reached:
		case err := <-end:
			x.Fatalf("the upgrade ended before it was held: %v", err)
		}
		x.Reshard(f, 2)
		x.Reshard(f, 5)
		writer := x.Begin(sql.LevelReadCommitted)
		if _, err := writer.ExecContext(x.Ctx, "UPDATE kv SET v = v + 1"); err != nil {
			x.Fatal(err)
		}
		held.Release()
		x.WantCode(<-end, rowfeed.Conflict)
		if err := writer.Rollback(); err != nil {
			x.Fatal(err)
		}
		wantParts(x, f, 5)
	})
}

// TestPageChecksShardsInItsSnapshot (H1, H24): the snapshot of a page decides whether a part is readable. A restored
// database, or a pool with a server that is still resharding, has the generation and the head that the reader knows.
func TestPageChecksShardsInItsSnapshot(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		x.Shards = 8
		f := x.AddKV()
		x.Fill(20)
		x.Publish(f)
		part := rowfeed.Request{Shards: rowfeed.Part(1, 2)}
		amid := func(walk bool) {
			state := map[bool]string{false: "active", true: "sharding"}[walk]
			x.Exec("UPDATE rowfeed_feeds SET state = '" + state + "', fill_after = NULL WHERE state <> '" + state + "'")
		}
		reader := x.Tapped(testdb.Hooks{}, nil)
		x.Part(reader, part.Shards, "", 100)
		amid(true)
		_, err := reader.Fetch(x.Ctx, part)
		x.WantCode(err, rowfeed.Sharding)
		amid(false)
		whole, _ := x.Part(reader, part.Shards, "", 100)

		pooled := false
		servers := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if pooled && ev.Kind == testdb.Query {
				amid(!strings.Contains(ev.SQL, "delivered_columns")) // the record is read from the other server
			}
			return nil
		}}, nil)
		x.Part(servers, part.Shards, "", 100)
		pooled = true
		_, err = servers.Fetch(x.Ctx, part)
		x.WantCode(err, rowfeed.Sharding)
		pooled = false
		amid(false)
		again, _ := x.Part(servers, part.Shards, "", 100)
		wantSame(x, "parts after the walk", again, whole)
	})
}
