package capture

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// keyed is a table whose feed has the key (id), by its primary key or by another unique index.
type keyed struct {
	name       string
	table      string
	drop, make string // the key's index; drop is empty if the database cannot drop it
}

func keyedTables(x *suite.Env) []keyed {
	return []keyed{
		{"primary key", "CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)",
			x.Text("capture.drop_primary_key"), "ALTER TABLE kv ADD PRIMARY KEY (id)"},
		{"unique index", "CREATE TABLE kv (id BIGINT NOT NULL, k VARCHAR(100), v BIGINT); " +
			"CREATE UNIQUE INDEX kv_id ON kv (id)",
			dropIndex(x, "kv_id", "kv"), "CREATE UNIQUE INDEX kv_id ON kv (id)"},
	}
}

// TestLostIndexOfKeyIsReported (V7): the index that made the feed's key unique is dropped. Check, upgrade, the
// publisher and readiness say so, and what to do. With the index made again the feed works, and no change was lost.
func TestLostIndexOfKeyIsReported(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		for _, key := range keyedTables(x) {
			if key.drop == "" {
				continue
			}
			x.Run(key.name, func(t *testing.T) {
				x := *x
				x.T = t
				x.Exec(strings.Split(key.table, "; ")...)
				f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", Key: []string{"id"}})
				x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
				cursor := x.WantDrain(f, "", suite.KV(1, "a", 0), suite.KV(2, "b", 0))
				x.Exec(key.drop)
				x.Exec("INSERT INTO kv VALUES (3, 'c', 0)", "INSERT INTO kv VALUES (1, 'twin', 0)",
					"DELETE FROM kv WHERE id = 2")
				x.WantUnfit(f, "no unique index has exactly the columns (id)",
					"remove rows that share a key, and create a unique index on just these columns")
				if _, err := f.Publish(x.Ctx); err != nil {
					wantNoBareError(&x, err, "no unique index has exactly the columns (id)")
				}
				x.Exec("DELETE FROM kv WHERE k = 'twin'")
				x.Exec(key.make)
				wantUpgraded(&x, f)
				x.Exec("UPDATE kv SET v = 1 WHERE id = 1")
				lines, _ := x.Drain(f, cursor)
				slices.Sort(lines)
				want := []string{suite.Gone(2), suite.KV(1, "a", 1), suite.KV(3, "c", 0)}
				if !slices.Equal(slices.Compact(lines), want) {
					x.Errorf("the entries are %q, want %q", lines, want)
				}
				x.WantSound(f)
				if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
					x.Fatal(err)
				}
				x.Exec("DROP TABLE kv")
				delete(x.Columns, "kv")
			})
		}
	})
}

// wantNoBareError asserts an error of the feed that has an object, a cause and a next step.
func wantNoBareError(x *suite.Env, err error, says string) {
	x.Helper()
	var e *rowfeed.Error
	if !errors.As(err, &e) || e.Code != rowfeed.Refused || e.Object != `feed "kv"` ||
		!strings.Contains(e.Cause, says) || e.Next == "" {
		x.Errorf("the publisher failed with %v", err)
	}
}

// wantUpgraded asserts that upgrade succeeds, and that verify then finds nothing.
func wantUpgraded(x *suite.Env, f *rowfeed.Feed) {
	x.Helper()
	if _, err := f.Admin().Upgrade(x.Ctx); err != nil {
		x.Fatal(err)
	}
	if problems, err := f.Admin().Verify(x.Ctx); err != nil || len(problems) > 0 {
		x.Errorf("after upgrade, verify found %q, %v", problems, err)
	}
}

// unfit is a change of a table after which `feed add` would refuse it. A database has the change if its fixture has
// both texts.
type unfit struct {
	name       string
	turn, back string // the texts with the change, and with the change that reverts it
	says, next string
	key        string // the key of the feed; the primary key if empty
}

// TestUnfitTableIsReported (V7): a table turns into what feed add refuses. Check, upgrade and readiness say so, and no
// longer do when the change is reverted.
func TestUnfitTableIsReported(t *testing.T) {
	testdb.Quick(t)
	const noIndex, createIndex = "no unique index has exactly the columns (k)", "create a unique index"
	cases := []unfit{
		{"view", "capture.turn_into_view", "capture.turn_back_into_table", "it is a view", "make ", ""},
		{"partial index", "capture.index_some_rows", "capture.index_k_again", noIndex, createIndex, "k"},
		{"index on prefixes", "capture.index_prefixes", "capture.index_k_again", noIndex, createIndex, "k"},
		{"index on two columns", "capture.index_two_columns", "capture.index_k_again", noIndex, createIndex, "k"},
		{"index on an expression", "capture.index_expression", "capture.index_k_again", noIndex, createIndex, "k"},
		{"index with another collation", "capture.index_other_collation", "capture.index_k_again",
			noIndex, createIndex, "k"},
		{"collation of the key", "capture.index_key_with_other_collation", "capture.index_key_with_former_collation",
			"does not have the collation of the feed's key", "former collation", "k"},
		{"nullable", "capture.allow_null_keys", "capture.refuse_null_keys",
			`key column "k" may be NULL`, "declare the column NOT NULL", "k"},
		{"unlogged", "capture.make_unlogged", "capture.make_logged", "it is unlogged", "SET LOGGED", ""},
		{"inherited", "capture.make_heir", "capture.drop_heir", "inherit", "make feeds of the children", ""},
		{"MyISAM", "capture.leave_innodb", "capture.return_to_innodb", "its engine is MyISAM", "ENGINE=InnoDB", ""},
		{"cascade", "capture.add_cascade", "capture.remove_cascade", "fire no trigger", "remove the cascade", ""},
	}
	suite.Each(t, func(x *suite.Env) {
		for _, c := range cases {
			if !x.Has.Knows(c.turn) {
				continue
			}
			x.Run(c.name, func(t *testing.T) {
				x := *x
				x.T = t
				x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100) NOT NULL, v BIGINT)",
					"CREATE UNIQUE INDEX kv_k ON kv (k)")
				spec := rowfeed.FeedSpec{Name: "kv", Table: "kv"}
				if c.key != "" {
					spec.Key = []string{c.key}
				}
				f := x.Add(spec)
				x.Exec(x.Statements(c.turn)...)
				x.WantUnfit(f, c.says, c.next)
				x.Exec(x.Statements(c.back)...)
				wantUpgraded(&x, f)
				x.Exec("INSERT INTO kv VALUES (1, 'a', NULL)")
				x.WantDrain(f, "", `upsert {"id":1,"k":"a","v":null}`)
				x.WantSound(f)
				if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
					x.Fatal(err)
				}
				x.Exec("DROP TABLE kv")
			})
		}
	})
}

// TestFeedSurvivesMovedPrimaryKey (V7): the feed's key is the primary key no more, but has another unique index. The
// feed works. If statements name the primary key, check says so, the publisher's error names upgrade, and upgrade mends
// it.
func TestFeedSurvivesMovedPrimaryKey(t *testing.T) {
	for _, to := range []string{"nothing", "another column"} {
		t.Run(to, func(t *testing.T) {
			suite.EachCapture(t, func(x *suite.Env) {
				move := x.Text("capture.replace_primary_key_by_unique_index")
				if move == "" {
					return
				}
				x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT NOT NULL)")
				f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
				x.Exec("INSERT INTO kv VALUES (1, 'a', 1), (2, 'b', 2)")
				cursor := x.WantDrain(f, "", suite.KV(1, "a", 1), suite.KV(2, "b", 2))
				if to != "nothing" {
					move += ", ADD PRIMARY KEY (v)"
				}
				x.Exec(move, "UPDATE kv SET k = 'aa' WHERE id = 1", "DELETE FROM kv WHERE id = 2")
				other := suite.OpenEnv(x.T, x.DB, nil) // a process that does not learn of the upgrade
				g, err := other.RF.Feed(x.Ctx, "kv")
				if err != nil {
					x.Fatal(err)
				}
				problems, err := f.Admin().Verify(x.Ctx)
				const problem = "is not the primary key of table"
				named := strings.Contains(strings.Join(problems, "; "), problem)
				if err != nil || named != x.Has.IndexHints || len(problems) > 1 {
					x.Errorf("verify found %q, %v", problems, err)
				}
				if x.Has.IndexHints && to == "nothing" {
					_, err := f.Publish(x.Ctx)
					wantNoBareError(x, err, problem)
					_, err = f.Fetch(x.Ctx, rowfeed.Request{})
					if err == nil || !strings.Contains(err.Error(), "rowfeed feed upgrade kv") {
						x.Errorf("fetch failed with %v", err)
					}
				}
				wantUpgraded(x, f)
				lines, _ := x.Drain(g, cursor)
				slices.Sort(lines)
				if want := []string{suite.Gone(2), suite.KV(1, "aa", 1)}; !slices.Equal(lines, want) {
					x.Errorf("the entries are %q, want %q", lines, want)
				}
				x.WantSound(f)
			})
		})
	}
}

// TestUnfitOutboxIsReported (V7): the key of an outbox's table must stay unique. The column of times can be dropped
// once the old rows have their entries.
func TestUnfitOutboxIsReported(t *testing.T) {
	suite.Each(t, func(e *suite.Env) {
		e.Exec("CREATE TABLE events (id BIGINT NOT NULL, shard INT NOT NULL, made TIMESTAMP NULL)",
			"CREATE UNIQUE INDEX events_id ON events (id)", "INSERT INTO events VALUES (1, 0, NULL)")
		x := &suite.Events{Env: e, Feed: e.Add(rowfeed.FeedSpec{Name: "events", Table: "events",
			Mode:    rowfeed.ModeOutbox,
			Capture: "trigger", Key: []string{"id"}, ShardColumn: "shard", TimeColumn: "made"})}
		x.Exec("ALTER TABLE events DROP COLUMN made")
		x.WantVerified()
		x.Exec(dropIndex(e, "events_id", "events"))
		x.Exec("INSERT INTO events VALUES (2, 0)", "INSERT INTO events VALUES (2, 0)")
		x.WantUnfit(x.Feed, "no unique index has exactly the columns (id)", "remove rows that share a key")
		x.Publish(x.Feed) // the publisher of WantUnfit may have left records
		x.Exec("DELETE FROM events WHERE id = 2", "CREATE UNIQUE INDEX events_id ON events (id)",
			"INSERT INTO events VALUES (2, 0)")
		wantUpgraded(x.Env, x.Feed)
		// Otherwise a reader would get the row at its former position before it moves to the head.
		if n := x.Publish(x.Feed); n != 1 {
			x.Errorf("%d records moved, want that of the row that was inserted again", n)
		}
		x.WantShard(0, 1, 2)
		x.WantSound(x.Feed)
	})
}

// TestBlockingFeedNeedsNoKeyIndex (V7): the index of shard and ULID makes positions unique, so a feed in mode blocking
// works without the unique index of its key, and verify finds nothing.
func TestBlockingFeedNeedsNoKeyIndex(t *testing.T) {
	suite.Each(t, func(e *suite.Env) {
		e.Exec(strings.Replace(e.EventsTable("events"), " PRIMARY KEY", "", 1),
			"CREATE UNIQUE INDEX events_id ON events (id)", "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
		spec := suite.EventsSpec()
		spec.Key = []string{"id"}
		x := &suite.Events{Env: e, Feed: e.Add(spec)}
		x.Write(7, 1, 2)
		x.Exec(dropIndex(e, "events_id", "events"))
		x.Write(7, 2, 3)
		x.WantVerified()
		wantUpgraded(x.Env, x.Feed)
		x.WantIDs(x.Page(x.Feed, 7, "", 10), false, 1, 2, 2, 3)
		x.WantSound(x.Feed)
	})
}
