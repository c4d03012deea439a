package shard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestColumnCaptureGivesKeysTheirShards (M18, M19): with column capture, too, every key has the shard of its text, in
// its row, deleted, hidden or republished. The delete and the row of a changed key each have their own shard. The parts
// are the whole feed together.
func TestColumnCaptureGivesKeysTheirShards(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		x.Shards = 7
		f := x.AddKV()
		x.InsertKV(-20, 380)
		x.Publish(f)
		wantParts(x, f, 7)
		x.Exec("DELETE FROM kv WHERE id % 7 = 0", "UPDATE kv SET v = 2 WHERE id % 10 = 3",
			"UPDATE kv SET id = 1000 + id WHERE id = 5", "UPDATE kv SET shard = 6")
		err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error {
			return errors.Join(f.Unpublish(x.Ctx, tx, rowfeed.Key{11}, rowfeed.Key{12}),
				f.Republish(x.Ctx, tx, rowfeed.Key{13}))
		})
		if err != nil {
			x.Fatal(err)
		}
		x.Publish(f)
		wantParts(x, f, 7)
		x.Exec("INSERT INTO kv VALUES (7, 'again', 1), (-7, 'again', 1)",
			"UPDATE kv SET v = 3 WHERE id IN (11, 13, 1005)")
		x.Publish(f)
		wantParts(x, f, 7)
		x.WantSound(f)
		for _, shards := range []int{1, 4} {
			x.Reshard(f, shards)
			wantParts(x, f, shards)
		}
		if n := x.Scalar(x.Text("shard.count_bucket_indexes")); n > 0 {
			t.Error("the feed has a bucket index, which no page reads")
		}
	})
}

// TestColumnCaptureGivesCompositeKeysTheirShards (M18, H24): with column capture, keys of several columns and types
// have the shard that the rule gives them.
func TestColumnCaptureGivesCompositeKeysTheirShards(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		x.Exec(x.Text("shard.composite_key"))
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: 5})
		for i := range 40 {
			x.Exec(x.Text("shard.insert_composite", i%3, i, -i))
		}
		x.Publish(f)
		wantParts(x, f, 5)
		x.Reshard(f, 3)
		wantParts(x, f, 3)
		x.Exec("DELETE FROM kv WHERE c < -20")
		x.Publish(f)
		wantParts(x, f, 3)
	})
}

// TestUntypedKeyIsRefusedForShards (M18): if values have types and columns have none, one value can exist in two types,
// 1 and 1.0. A key of such a column is refused, because a row and its delete could get different shards. The same holds
// for the column that gives the shard. Columns that convert their values are accepted, and a value that is no integer
// has a shard of its own.
func TestUntypedKeyIsRefusedForShards(t *testing.T) {
	testdb.Only(t, testdb.SQLite) // elsewhere columns have types
	suite.EachColumn(t, func(x *suite.Env) {
		add := func(name, create, shardColumn string) (*rowfeed.Feed, error) {
			x.Exec(create)
			return x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: name, Table: name, Capture: feedtype.CaptureColumn,
				DataShards: 64, ShardColumn: shardColumn}, nil)
		}
		for i, decl := range []string{
			"(k %s, n INTEGER)", "(k BLOB %s, n INTEGER)", "(k LONGBLOB %s, n INTEGER)", "(k ANY %s, n INTEGER) STRICT",
		} {
			for _, shardColumn := range []string{"", "k"} {
				if name := fmt.Sprintf("t%d%s", i, shardColumn); !strings.Contains(decl, "BLOB") || shardColumn == "" {
					_, err := add(name, "CREATE TABLE "+name+" "+fmt.Sprintf(decl, "NOT NULL PRIMARY KEY"), shardColumn)
					x.WantCode(err, rowfeed.Refused)
				}
			}
		}
		for _, key := range []string{"k:TEXT COLLATE NOCASE", "k:BLOB"} {
			_, err := rowfeed.PrintFeed(x.Dialect, nil, rowfeed.FeedSpec{Name: "kv", Table: "kv",
				Capture: feedtype.CaptureColumn, Key: []string{key}, DataShards: 8})
			x.WantCode(err, rowfeed.Refused)
		}
		for i, key := range []string{"k INTEGER", "k NUMERIC", "k DOUBLE", "k ANY", "k VARCHAR(9)"} {
			name := fmt.Sprintf("u%d", i)
			f, err := add(name, "CREATE TABLE "+name+" ("+key+" NOT NULL, n INTEGER, PRIMARY KEY (k))", "")
			if err != nil {
				x.Errorf("%s: %v", key, err)
				continue
			}
			x.Exec("INSERT INTO " + name + " (k, n) VALUES (1.0, 0)")
			x.Publish(f)
			was, cursor := x.Part(f, rowfeed.Shards{}, "", 10)
			if len(was) != 1 {
				x.Fatalf("%s: %d entries", key, len(was))
			}
			tx := x.Begin(0)
			if err := f.Delete(x.Ctx, rowfeed.InTx(tx), rowfeed.Key{was[0].Key.Value(0)}); err != nil {
				x.Fatal(err)
			}
			x.Commit(tx)
			x.Publish(f)
			if is, _ := x.Part(f, rowfeed.One(was[0].Shard), cursor, 10); len(is) != 1 || is[0].Op != rowfeed.Delete {
				x.Errorf("%s: the reader of shard %d, which has the row, is told %v", key, was[0].Shard, is)
			}
		}

		// A value that is no integer has a shard by its text.
		f, err := add("mixed",
			"CREATE TABLE mixed (k TEXT NOT NULL, o INTEGER NOT NULL, n INTEGER, PRIMARY KEY (k, o))", "o")
		if err != nil {
			x.Fatal(err)
		}
		x.Exec("INSERT INTO mixed (k, o) VALUES ('a', 'x'), ('B', 'x'), ('c', 'x'), ('a', 70)")
		x.Publish(f)
		entries, _ := x.Part(f, rowfeed.Shards{}, "", 10)
		for _, e := range entries {
			want := int(crc32.ChecksumIEEE([]byte("x")) % 64)
			if e.Key.Value(1) == int64(70) {
				want = 6
			}
			if e.Shard != want {
				x.Errorf("%s is in shard %d, not %d", e.Key.AppendJSON(nil), e.Shard, want)
			}
		}
		if len(entries) != 4 {
			x.Errorf("%d entries", len(entries))
		}
	})
}

// TestConcurrentColumnCaptureKeepsShardsWhole (M18): writers of every kind, publishers and upgrades run concurrently
// with column capture. In the end the parts are the whole feed, and the rows are those of the writers.
func TestConcurrentColumnCaptureKeepsShardsWhole(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		x.Shards = 5
		f := x.AddKV()
		x.Fill(300)
		ctx, stop := context.WithCancel(x.Ctx)
		ended := make(chan error, 3)
		for range 2 {
			other := x.Tapped(testdb.Hooks{}, &rowfeed.Config{PublisherLease: rowfeed.NoLease, BatchSize: 50})
			go func() { ended <- other.RunPublisher(ctx) }()
		}
		go func() {
			for n := 0; ctx.Err() == nil; n++ {
				for _, s := range []string{
					fmt.Sprintf("UPDATE kv SET v = v + 1 WHERE id %% 7 = %d", n%7),
					fmt.Sprintf("INSERT INTO kv VALUES (%d, 'new', 0)", 1000+n),
					fmt.Sprintf("DELETE FROM kv WHERE id = %d", 990+n)} {
					if err := write(x, s); err != nil {
						ended <- err
						return
					}
				}
			}
			ended <- nil
		}()
		for _, shards := range []int{3, 8, 1, 6} {
			x.Reshard(f, shards)
		}
		stop()
		for range 3 {
			if err := <-ended; err != nil {
				x.Error(err)
			}
		}
		x.Publish(f)
		wantParts(x, f, 6)
		k := x.Recorder(f, 0)
		k.Read()
		k.Check(x.KVRows(), suite.ByID)
		x.WantSound(f)
	})
}

// write runs a statement in a transaction of its own, and again after a lock timeout or deadlock.
func write(x *suite.Env, statement string) error {
	for attempt := 0; ; attempt++ {
		err := func() error {
			tx, err := x.DB.Admin().BeginTx(x.Ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			for _, part := range x.SQL(statement) {
				if _, err := tx.ExecContext(x.Ctx, part); err != nil {
					return err
				}
			}
			return tx.Commit()
		}()
		if err == nil || attempt == 100 || x.Dialect.Classify(err) != dialect.ClassRetry {
			return err
		}
	}
}

// TestLockedRowsGetShardsLater (M18, H10, H12): rows that an open transaction has locked get their shards when that
// transaction has ended. Meanwhile neither side waits for the other: publishers publish, and the transaction can lock
// any other row.
func TestLockedRowsGetShardsLater(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer
	suite.EachColumn(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(20)
		x.Publish(f)
		for i, end := range []func(*sql.Tx) error{(*sql.Tx).Commit, (*sql.Tx).Rollback} {
			shards := []int{4, 9}[i]
			stuck := x.Begin(sql.LevelReadCommitted)
			hold := func(id int) {
				x.Helper()
				_, err := stuck.ExecContext(x.Bounded(), "UPDATE kv SET v = v + 1 WHERE id = "+fmt.Sprint(id))
				if err != nil {
					x.Fatalf("the writer waits: %v", err)
				}
			}
			hold(3)
			hold(17)
			tried := make(chan struct{}, 1000)
			upgrade := x.Tapped(testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
				if ev.Kind == testdb.Commit && x.Scalar("SELECT count(*) FROM kv WHERE shard <> 0") > int64(i) {
					select {
					case tried <- struct{}{}:
					default:
					}
				}
				return err
			}}, nil)
			result := make(chan error, 1)
			ctx, cancel := context.WithCancel(x.Ctx)
			x.Cleanup(cancel)
			go func() {
				_, err := upgrade.Admin().Reshard(ctx, shards, nil)
				result <- err
			}()
			bounded := x.Bounded()
			for range 2 {
				select {
				case <-tried:
				case <-bounded.Done():
					x.Fatal("the upgrade waits for the writer")
				}
			}
			hold(8)
			hold(1)
			if x.Info(f).State != "sharding" {
				x.Fatalf("the feed is %s while a row is held", f.State())
			}
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'new', 0)", 100+i))
			if n, err := f.Publish(x.Bounded()); n != 1 || err != nil {
				x.Fatalf("%d rows were published meanwhile: %v", n, err)
			}
			if err := end(stuck); err != nil {
				x.Fatal(err)
			}
			if err := <-result; err != nil {
				x.Fatal(err)
			}
			wantParts(x, f, shards)
		}
	})
}

// TestAdoptedPositionsGetShards (M18): adopted positions stay, and their keys get their shards, whatever the table's
// own column "shard" has. A former consumer continues. An interrupted feed add continues.
func TestAdoptedPositionsGetShards(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		for _, own := range []string{"", ", shard INT NULL", ", shard BIGINT NOT NULL DEFAULT 0"} {
			x.Exec("CREATE TABLE kv "+
				"(id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT, feed_sync_id BIGINT NULL"+own+")",
				"CREATE TABLE cursors "+
					"(id INT NOT NULL PRIMARY KEY, name VARCHAR(100) NOT NULL UNIQUE, value BIGINT NOT NULL)",
				"INSERT INTO cursors VALUES (1, 'mailer', 530)")
			var values []string
			for id := range 540 { // two batches
				values = append(values, fmt.Sprintf("(%d, 'k', 0, %d)", id, 1000-id))
			}
			x.DB.Exec(x.T, "INSERT INTO kv (id, k, v, feed_sync_id) VALUES "+strings.Join(values, ", "))
			x.DB.Exec(x.T, "INSERT INTO kv (id, k, v) VALUES (800, 'waits', 0)")
			spec := rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn,
				Adopt: true, AdoptCursors: "cursors", DataShards: 6}
			batches := 0
			broken := x.TappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
				if ev.Kind == testdb.Exec && strings.Contains(ev.SQL, "UPDATE") &&
					strings.Contains(ev.SQL, "shard = ") && strings.Contains(ev.SQL, "kv") {
					if batches++; batches == 2 {
						return testdb.ErrInjected
					}
				}
				return nil
			}}, nil)
			if _, err := broken.AddFeed(x.Ctx, spec, nil); !errors.Is(err, testdb.ErrInjected) {
				x.Fatalf("error %v", err)
			}
			half, err := x.RF.Feed(x.Ctx, "kv")
			if err != nil {
				x.Fatal(err)
			}
			if _, err := half.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.One(2)}); !suite.IsCode(err,
				rowfeed.Sharding) {
				x.Errorf("a part of a half-adopted feed: %v", err)
			}
			if _, err := half.Fetch(x.Ctx, rowfeed.Request{}); err != nil {
				x.Error(err)
			}
			f := x.Add(spec)
			x.Publish(f)
			wantParts(x, f, 6)
			if n := x.Scalar("SELECT count(*) FROM kv WHERE id < 540 AND feed_sync_id = 1000 - id"); n != 540 {
				x.Errorf("%d of 540 positions stayed", n)
			}
			consumers, err := x.RF.Admin().Consumers(x.Ctx, rowfeed.ConsumerID{Consumer: "mailer"})
			if err != nil || len(consumers) != 1 || f.Generation() == 1 && suite.Place(consumers[0].Cursor) != "530" {
				x.Errorf("consumers %+v, %v", consumers, err)
			}
			x.WantSound(f)
			if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
				x.Fatal(err)
			}
			x.Exec("DROP TABLE kv", "DROP TABLE cursors", "DELETE FROM rowfeed_cursors")
			delete(x.Columns, "kv")
			delete(x.Columns, x.Dialect.Quote("kv"))
		}
	})
}

// TestUnfitShardColumnIsRefused (M18): if the table's own column "shard" cannot hold shards, feed add and upgrade
// refuse it with the reason, and change nothing.
func TestUnfitShardColumnIsRefused(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		tables := map[string]string{
			"shard INT NOT NULL, PRIMARY KEY (shard, id)":                "unique index",
			"shard INT NOT NULL UNIQUE, PRIMARY KEY (id)":                "unique index",
			"shard INT GENERATED ALWAYS AS (0) STORED, PRIMARY KEY (id)": "is generated",
		}
		if x.Has.TypedColumns {
			tables["shard SMALLINT NOT NULL DEFAULT 0, PRIMARY KEY (id)"] = "cannot hold shard 39999"
		}
		n := 0
		for columns, reason := range tables {
			n++
			name := fmt.Sprintf("t%d", n)
			x.Exec("CREATE TABLE " + name + " (id BIGINT NOT NULL, feed_sync_id BIGINT NULL, " + columns + ")")
			spec := rowfeed.FeedSpec{
				Name:       name,
				Table:      name,
				Capture:    feedtype.CaptureColumn,
				Adopt:      true,
				DataShards: 40_000,
			}
			before := x.DB.Dump(x.T)
			_, err := x.RF.AddFeed(x.Ctx, spec, nil)
			x.WantCode(err, rowfeed.Refused)
			if err == nil || !strings.Contains(err.Error(), reason) {
				x.Errorf("%s: %v, want %q", columns, err, reason)
			}
			if got := x.DB.Dump(x.T); got != before {
				x.Errorf("%s: the refusal left\n%s", columns, got)
			}
			spec.DataShards = 1
			f, err := x.RF.AddFeed(x.Ctx, spec, nil)
			if err != nil {
				x.Fatal(err)
			}
			_, err = f.Admin().Reshard(x.Ctx, 40_000, nil)
			x.WantCode(err, rowfeed.Refused)
			if x.Info(f).State != "active" || f.Generation() != 1 {
				x.Errorf("%s: the refusal changed the feed", columns)
			}
		}
	})
}
