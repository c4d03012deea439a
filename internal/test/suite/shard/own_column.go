package shard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// ownShards is a feed whose table has the data shards in a column of its own.
var ownShards = rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: 512, ShardColumn: "shard"}

// makeTeamTable makes the table, the sequence and the cursors of a team that has published its rows itself so far, in
// 512 shards.
func makeTeamTable(x *suite.Env) {
	x.Helper()
	x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(100), shard INT NOT NULL,"+
		" feed_sync_id BIGINT NULL)",
		"CREATE TABLE sequences (name VARCHAR(100) NOT NULL PRIMARY KEY, value BIGINT NOT NULL,"+
			" version BIGINT NOT NULL)",
		"CREATE TABLE cursors (name VARCHAR(100) NOT NULL PRIMARY KEY, value BIGINT NOT NULL)",
		"INSERT INTO sequences VALUES ('kv', 9, 3)", "INSERT INTO cursors VALUES ('search', 7)",
		"INSERT INTO kv (id, v, shard, feed_sync_id) VALUES (1, 'a', 3, 7), (2, 'b', 3, 3), (3, 'c', 7, 9), "+
			"(4, 'd', 511, NULL), (5, 'e', 0, NULL)")
}

// linesOf are the entries of a part above a cursor.
func linesOf(x *suite.Env, f *rowfeed.Feed, shards rowfeed.Shards, after rowfeed.Cursor) (lines []string) {
	x.Helper()
	entries, _ := x.Part(f, shards, after, 100)
	for _, e := range entries {
		lines = append(lines, suite.Line(e))
	}
	return lines
}

// wantShard asserts which entries of a data shard are above a cursor, also if it is named as one of so many parts.
func wantShard(x *suite.Env, f *rowfeed.Feed, shard int, after rowfeed.Cursor, want ...string) {
	x.Helper()
	for _, shards := range []rowfeed.Shards{rowfeed.One(shard), rowfeed.Part(shard, 512)} {
		if got := linesOf(x, f, shards, after); !slices.Equal(got, want) {
			x.Errorf("%s above %q:\n%s\nwant:\n%s", shards, after, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// hasOwnShards reports whether the database can have data shards in a column of the table. If it cannot, the feed is
// refused.
func hasOwnShards(x *suite.Env) bool {
	if x.Dialect.OwnShards {
		return true
	}
	spec := ownShards
	spec.Capture = x.Capture
	_, err := x.RF.AddFeed(x.Ctx, spec, nil)
	if x.WantCode(err, rowfeed.Refused); !errors.Is(err, errors.ErrUnsupported) {
		x.Error(err)
	}
	return false
}

// rowOf is the entry of a row of ownShards.
func rowOf(id int, v string, shard int) string {
	return fmt.Sprintf(`upsert {"id":%d,"v":"%s","shard":%d}`, id, v, shard)
}

// wantFinding asserts that check finds only what the text says, of one key.
func wantFinding(x *suite.Env, f *rowfeed.Feed, key, text string) {
	x.Helper()
	findings, err := f.Admin().Check(x.Ctx)
	if err != nil || len(findings) != 1 || findings[0].Key == nil ||
		string(findings[0].Key.AppendJSON(nil)) != key || !strings.Contains(findings[0].Problem, text) {
		x.Errorf("check: %+v, %v; want %s: %s", findings, err, key, text)
	}
}

// TestOwnColumnHoldsTheShards (M18, M28): an integer column of the table holds the data shards, with every capture.
// Readers of a part get exactly the rows that hold its data shards, rows have the column, and rowfeed never writes it.
// Deletes reach the part of their row.
func TestOwnColumnHoldsTheShards(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(100), shard INT NOT NULL)",
			"INSERT INTO kv (id, v, shard) VALUES (1, 'a', 3), (2, 'b', 3), (3, 'c', 7), (4, 'd', 511), (5, 'e', 0)")
		if !hasOwnShards(x) {
			return
		}
		f := x.Add(ownShards)
		x.Add(ownShards) // again
		head := x.WantDrain(f, "", rowOf(1, "a", 3), rowOf(2, "b", 3), rowOf(3, "c", 7), rowOf(4, "d", 511),
			rowOf(5, "e", 0))
		wantShard(x, f, 3, "", rowOf(1, "a", 3), rowOf(2, "b", 3))
		wantShard(x, f, 511, "", rowOf(4, "d", 511))
		wantShard(x, f, 4, "")
		if got := linesOf(x, f, rowfeed.Part(0, 2), ""); len(got) != 4 {
			x.Errorf("part 0 of 2: %v", got)
		}
		x.WantSound(f)

		x.Exec("UPDATE kv SET v = 'A' WHERE id = 1", "DELETE FROM kv WHERE id = 2",
			"INSERT INTO kv (id, v, shard) VALUES (6, 'f', 7)")
		x.Publish(f)
		wantShard(x, f, 3, head, x.Order([]string{rowOf(1, "A", 3), suite.Gone(2)})...)
		x.Exec("UPDATE kv SET v = 'z' WHERE id = 3")
		x.Publish(f)
		if got := linesOf(x, f, rowfeed.One(7), head); !slices.Contains(got, rowOf(6, "f", 7)) ||
			!slices.Contains(got, rowOf(3, "z", 7)) || slices.Contains(got, rowOf(1, "A", 3)) {
			x.Errorf("shard 7: %v", got)
		}
		if got := x.List("SELECT shard FROM kv ORDER BY id"); !slices.Equal(got, []string{"3", "7", "511", "0", "7"}) {
			x.Errorf("the column has %v", got)
		}
		x.WantSound(f)
	})
}

// TestRowsOutsideOwnShardsAreReported (M28): rows whose column holds none of the data shards are refused by name when
// the feed is added, and nothing is left behind. Later ones are published: readers of the whole feed get them, parts do
// not, and status and check name them until they hold a data shard.
func TestRowsOutsideOwnShardsAreReported(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(100), shard BIGINT NOT NULL)",
			"INSERT INTO kv (id, v, shard) VALUES (1, 'a', 3), (2, 'b', -1), (3, 'c', 512)")
		before := x.DB.Dump(x.T)
		if !hasOwnShards(x) {
			return
		}
		spec := ownShards
		spec.Capture = x.Capture
		_, err := x.RF.AddFeed(x.Ctx, spec, nil)
		x.WantCode(err, rowfeed.Refused)
		for _, text := range []string{`-1 in {"id":2}`, `512 in {"id":3}`, "0 to 511", `"shard"`} {
			if !strings.Contains(err.Error(), text) {
				x.Errorf("the refusal does not say %s: %v", text, err)
			}
		}
		if after := x.DB.Dump(x.T); after != before {
			x.Errorf("the refusal left\n%s", after)
		}
		x.Exec("UPDATE kv SET shard = 0 WHERE id > 1")
		f := x.Add(spec)
		_, head := x.Drain(f, "")

		x.Exec("INSERT INTO kv (id, v, shard) VALUES (4, 'd', 9000000000)", "UPDATE kv SET v = 'A' WHERE id = 1")
		x.WantDrain(f, head, rowOf(4, "d", 9000000000), rowOf(1, "A", 3))
		for shard := range 4 {
			if got := linesOf(x, f, rowfeed.Part(shard, 4), head); slices.Contains(got, rowOf(4, "d", 9000000000)) {
				x.Errorf("part %d has a row of no data shard: %v", shard, got)
			}
		}
		wantFinding(x, f, `{"id":4}`, "holds none of the data shards 0 to 511")
		status, err := f.Admin().Status(x.Ctx)
		if err != nil || len(status.Problems) != 1 || !strings.Contains(status.Problems[0], `9000000000 in {"id":4}`) {
			x.Errorf("status: %+v, %v", status, err)
		}
		publisherTells(x, `9000000000 in {"id":4}`)
		x.Exec("UPDATE kv SET shard = 5 WHERE id = 4")
		x.Publish(f)
		wantShard(x, f, 5, head, rowOf(4, "d", 5))
		x.WantSound(f)
		if status, err = f.Admin().Status(x.Ctx); err != nil || len(status.Problems) > 0 {
			x.Errorf("status: %v, %v", status.Problems, err)
		}
	})
}

// publisherTells runs a publisher until its observer gets an error with these words.
func publisherTells(x *suite.Env, words string) {
	x.Helper()
	troubles := &suite.Troubles{}
	rf, err := rowfeed.Open(x.Ctx, x.Pool, x.Dialect, &rowfeed.Config{Observer: troubles.Observer()})
	if err != nil {
		x.Fatal(err)
	}
	f, err := rf.Feed(x.Ctx, "kv")
	if err != nil {
		x.Fatal(err)
	}
	ctx, stop := context.WithCancel(x.Ctx)
	ended := make(chan error, 1)
	go func() { ended <- f.RunPublisher(ctx) }()
	x.Eventually("the publisher tells of the rows", func() bool { return troubles.Like(words) > 0 })
	if problems := f.Problems(); len(problems) > 0 {
		x.Errorf("the feed is not ready: %v", problems)
	}
	stop()
	if err := <-ended; err != nil {
		x.Error(err)
	}
}

// TestAdoptedShardsAreKept (M28): a team's table keeps its data shards, positions and cursors when a feed adopts it,
// and its URLs answer the same rows. Without --shard-column the feed would overwrite these values with several data
// shards, and is refused; with one data shard the column is one of the row, and stays so.
func TestAdoptedShardsAreKept(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		makeTeamTable(x)
		before := x.DB.Dump(x.T)
		if !hasOwnShards(x) {
			return
		}
		spec := ownShards
		spec.Capture, spec.Adopt, spec.AdoptSequence, spec.AdoptCursors = x.Capture, true, "sequences", "cursors"
		unkept := spec
		unkept.ShardColumn = ""
		_, err := x.RF.AddFeed(x.Ctx, unkept, nil)
		x.WantCode(err, rowfeed.Refused)
		if !strings.Contains(err.Error(), "--shard-column shard") {
			x.Errorf("the refusal does not say how to keep the values: %v", err)
		}
		undivided := spec
		undivided.DataShards = 1
		_, err = x.RF.AddFeed(x.Ctx, undivided, nil)
		x.WantCode(err, rowfeed.InvalidRequest)
		if after := x.DB.Dump(x.T); after != before {
			x.Errorf("the refusals left\n%s", after)
		}

		f := x.Add(spec)
		if state := x.Info(f).State; state != "active" {
			x.Errorf("the feed is %s", state)
		}
		x.Publish(f)
		server := x.Served(x.RF)
		for query, want := range map[string]string{
			"shard=3&shard_count=512":         `3 {"id":2,"v":"b","shard":3}, 7 {"id":1,"v":"a","shard":3}`,
			"shard=3":                         `3 {"id":2,"v":"b","shard":3}, 7 {"id":1,"v":"a","shard":3}`,
			"shard=3&shard_count=512&after=3": `7 {"id":1,"v":"a","shard":3}`,
			"shard=511&shard_count=512":       `10 {"id":4,"v":"d","shard":511}`,
			"shard=4&shard_count=512":         "",
			"after=7": `9 {"id":3,"v":"c","shard":7}, 10 {"id":4,"v":"d","shard":511}, ` +
				`11 {"id":5,"v":"e","shard":0}`,
		} {
			if got := fetched(x, server.URL+"/_feeds/fetch/kv?"+query); got != want {
				x.Errorf("%s: %s, want %s", query, got, want)
			}
		}
		// The writers' own statements go on as they are.
		x.DB.Exec(x.T, "UPDATE kv SET v = 'A', feed_sync_id = NULL WHERE id = 1")
		x.DB.Exec(x.T, "INSERT INTO kv (id, v, shard, feed_sync_id) VALUES (6, 'f', 3, NULL)")
		x.Publish(f)
		wantShard(x, f, 3, "9", rowOf(1, "A", 3), rowOf(6, "f", 3))
		x.WantSound(f)
		if got := x.List("SELECT shard FROM kv ORDER BY id"); strings.Join(got, " ") != "3 3 7 511 0 3" {
			x.Errorf("the column has %v", got)
		}
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}

		// With one data shard the column is as any other, and stays so.
		undivided.ShardColumn = ""
		f = x.Add(undivided)
		if got := linesOf(x, f, rowfeed.Shards{}, ""); !slices.Contains(got, rowOf(6, "f", 3)) {
			x.Errorf("the rows are %v", got)
		}
		_, err = f.Admin().Reshard(x.Ctx, 512, nil)
		x.WantCode(err, rowfeed.Refused)
		if got := x.List("SELECT shard FROM kv ORDER BY id"); strings.Join(got, " ") != "3 3 7 511 0 3" {
			x.Errorf("the column has %v", got)
		}
	})
}

// fetched is the answer of a URL: positions and rows.
func fetched(x *suite.Env, url string) string {
	x.Helper()
	resp, err := http.Get(url)
	if err != nil {
		x.Fatal(err)
	}
	defer resp.Body.Close()
	var page struct {
		Entries []struct {
			Position string
			Row      json.RawMessage
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil || resp.StatusCode != http.StatusOK {
		x.Fatalf("%s: %s, %v", url, resp.Status, err)
	}
	var all []string
	for _, e := range page.Entries {
		all = append(all, e.Position+" "+string(e.Row))
	}
	return strings.Join(all, ", ")
}

// TestOwnShardsNeedNoExactKey (M18): with capture app and trigger, the shard column of the table needs no key whose
// text says everything, and no name that rowfeed would choose.
func TestOwnShardsNeedNoExactKey(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		part := x.Dialect.Quote("Part of")
		x.Exec("CREATE TABLE kv (id VARCHAR(50) NOT NULL PRIMARY KEY, v VARCHAR(100), " + part + " SMALLINT NOT NULL)")
		if !x.Dialect.OwnShards { // as other tests assert
			return
		}
		for _, capture := range []feedtype.Capture{feedtype.CaptureTrigger, feedtype.CaptureApp} {
			name := "kv_" + string(capture)
			f := x.Add(rowfeed.FeedSpec{Name: name, Table: "kv", Capture: capture, DataShards: 40,
				ShardColumn: "Part of"})
			x.Exec("INSERT INTO kv (id, v, " + part + ") VALUES ('" + name + "', 'a', 39)")
			if capture == feedtype.CaptureApp {
				x.Exec("INSERT INTO rowfeed_changes_" + name + " (id) VALUES ('" + name + "')")
			}
			x.Publish(f)
			want := `upsert {"id":"` + name + `","v":"a","Part of":39}`
			if got := linesOf(x, f, rowfeed.One(39), ""); !slices.Contains(got, want) {
				x.Errorf("%s: %v", capture, got)
			}
			x.WantSound(f)
		}
	})
}

// TestUnfitOwnShardColumnIsRefused (M18): a shard column that is missing, may be NULL, or holds no integers is refused,
// with the reason. Verify reports one that becomes unfit later.
func TestUnfitOwnShardColumnIsRefused(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(100) NOT NULL, maybe INT NULL)")
		for column, reason := range map[string]string{
			"nothing": "no column", "v": "not an integer", "maybe": "may be NULL"} {
			if column == "maybe" && !x.Dialect.OwnShards {
				reason = "column of the key"
			}
			spec := ownShards
			spec.ShardColumn = column
			_, err := x.RF.AddFeed(x.Ctx, spec, nil)
			x.WantCode(err, rowfeed.Refused)
			if !strings.Contains(err.Error(), reason) {
				x.Errorf("%s: %v", column, err)
			}
		}
	})
	t.Run("later", func(t *testing.T) {
		testdb.Only(t, testdb.PostgreSQL...) // the others spell it otherwise
		suite.Each(t, func(x *suite.Env) {
			x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(100), shard INT NOT NULL)")
			f := x.Add(ownShards)
			x.Exec("ALTER TABLE kv ALTER COLUMN shard DROP NOT NULL")
			problems, err := f.Admin().Verify(x.Ctx)
			if err != nil || len(problems) != 1 || !strings.Contains(problems[0], "may be NULL") {
				x.Errorf("problems %q, %v", problems, err)
			}
			x.Exec("CREATE TABLE lanes (id BIGINT NOT NULL PRIMARY KEY, lane OID NOT NULL)")
			spec := ownShards
			spec.Name, spec.Table, spec.ShardColumn = "lanes", "lanes", "lane"
			_, err = x.RF.AddFeed(x.Ctx, spec, nil)
			x.WantCode(err, rowfeed.Refused)
			if !strings.Contains(err.Error(), "cannot calculate") {
				x.Error(err)
			}
		})
	})
}
