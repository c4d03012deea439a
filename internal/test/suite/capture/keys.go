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

// keyed is a table whose feed has the key (id), by its primary key or by a unique index of its own.
type keyed struct {
	name       string
	table      string
	drop, make []string // the key's index
}

func keyedTables(x *suite.Env) []keyed {
	return []keyed{
		{"primary key", "CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)",
			[]string{x.By(map[string]string{"postgres": "ALTER TABLE kv DROP CONSTRAINT kv_pkey",
				"mysql": "ALTER TABLE kv DROP PRIMARY KEY", "sqlite": ""})},
			[]string{"ALTER TABLE kv ADD PRIMARY KEY (id)"}},
		{"unique index", "CREATE TABLE kv (id BIGINT NOT NULL, k VARCHAR(100), v BIGINT); CREATE UNIQUE INDEX kv_id ON kv (id)",
			[]string{"DROP INDEX kv_id" + x.By(map[string]string{"postgres": "", "sqlite": "", "mysql": " ON kv"})},
			[]string{"CREATE UNIQUE INDEX kv_id ON kv (id)"}},
	}
}

// TestKeyLosesItsIndex (V7): where the index is gone that made the feed's key unique, check, upgrade, the
// publisher and readiness say so, with the way out. When it is made again everything goes on, and nothing was
// lost.
func TestKeyLosesItsIndex(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		for _, key := range keyedTables(x) {
			if key.drop[0] == "" {
				continue // SQLite drops no primary key
			}
			x.Run(key.name, func(t *testing.T) {
				x := *x
				x.T = t
				x.Exec(strings.Split(key.table, "; ")...)
				f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", Key: []string{"id"}})
				x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
				cursor := x.WantDrain(f, "", suite.KV(1, "a", 0), suite.KV(2, "b", 0))
				x.Exec(key.drop...)
				x.Exec("INSERT INTO kv VALUES (3, 'c', 0)", "INSERT INTO kv VALUES (1, 'twin', 0)", "DELETE FROM kv WHERE id = 2")
				x.WantUnfit(f, "no unique index has exactly the columns (id)",
					"remove rows that share a key, and create a unique index on just these columns")
				if _, err := f.Publish(x.Ctx); err != nil {
					wantNoBareError(&x, err, "no unique index has exactly the columns (id)")
				}
				x.Exec("DELETE FROM kv WHERE k = 'twin'")
				x.Exec(key.make...)
				wantUpgraded(&x, f)
				x.Exec("UPDATE kv SET v = 1 WHERE id = 1")
				lines, _ := x.Drain(f, cursor)
				slices.Sort(lines)
				if want := []string{suite.Gone(2), suite.KV(1, "a", 1), suite.KV(3, "c", 0)}; !slices.Equal(slices.Compact(lines), want) {
					x.Errorf("entries %q, want %q", lines, want)
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

// wantNoBareError asserts an error of a feed's own with object, cause and next step.
func wantNoBareError(x *suite.Env, err error, says string) {
	x.Helper()
	var e *rowfeed.Error
	if !errors.As(err, &e) || e.Code != rowfeed.Refused || e.Object != `feed "kv"` || !strings.Contains(e.Cause,
		says) || e.Next == "" {
		x.Errorf("the publisher: %v", err)
	}
}

// wantUpgraded asserts that upgrade finds nothing that it cannot mend.
func wantUpgraded(x *suite.Env, f *rowfeed.Feed) {
	x.Helper()
	if _, err := f.Admin().Upgrade(x.Ctx); err != nil {
		x.Fatal(err)
	}
	if problems, err := f.Admin().Verify(x.Ctx); err != nil || len(problems) > 0 {
		x.Errorf("after upgrade: %q %v", problems, err)
	}
}

// unfit is what becomes of a table after `feed add`, which would refuse it then.
type unfit struct {
	name       string
	turn, back []string
	says, next string
	key        string // id where empty
}

// TestTableTurnsUnfit (V7): whatever feed add refuses of a table is said by check, upgrade and readiness when
// it comes later, and is gone when the table is as it was.
func TestTableTurnsUnfit(t *testing.T) {
	testdb.Quick(t)
	toView := unfit{name: "view", turn: []string{"ALTER TABLE kv RENAME TO kv_rows",
		"CREATE VIEW kv AS SELECT * FROM kv_rows"},
		back: []string{"DROP VIEW kv", "ALTER TABLE kv_rows RENAME TO kv"}, says: "it is a view", next: "make "}
	narrowed := func(drop, index string) unfit {
		return unfit{name: "index " + index, turn: []string{drop, "CREATE UNIQUE INDEX other ON kv " + index},
			back: []string{"DROP INDEX other" + strings.TrimPrefix(drop, "DROP INDEX kv_k"),
				"CREATE UNIQUE INDEX kv_k ON kv (k)"},
			key: "k", says: "no unique index has exactly the columns (k)", next: "create a unique index"}
	}
	cases := map[string][]unfit{
		"sqlite": {toView, narrowed("DROP INDEX kv_k", "(k) WHERE id > 0"), narrowed("DROP INDEX kv_k", "(k, v)"),
			narrowed("DROP INDEX kv_k", "(k || 'x')"),
			{name: "collation", key: "k", turn: []string{"DROP INDEX kv_k", "CREATE UNIQUE INDEX kv_k ON kv (k COLLATE NOCASE)"},
				back: []string{"DROP INDEX kv_k", "CREATE UNIQUE INDEX kv_k ON kv (k)"},
				says: "does not have the collation of the feed's key", next: "former collation"},
			{name: "nullable", key: "k", turn: []string{"DROP TABLE kv",
				"CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)", "CREATE UNIQUE INDEX kv_k ON kv (k)"},
				back: []string{"DROP TABLE kv",
					"CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100) NOT NULL, v BIGINT)",
					"CREATE UNIQUE INDEX kv_k ON kv (k)"},
				says: `key column "k" may be NULL`, next: "declare the column NOT NULL"}},
		"postgres": {toView, narrowed("DROP INDEX kv_k", "(k) WHERE id > 0"), narrowed("DROP INDEX kv_k", "(k, v)"),
			narrowed("DROP INDEX kv_k", "((k || 'x'))"),
			narrowed("DROP INDEX kv_k", `(k COLLATE "C")`),
			{name: "nullable", key: "k", turn: []string{"ALTER TABLE kv ALTER k DROP NOT NULL"},
				back: []string{"ALTER TABLE kv ALTER k SET NOT NULL"},
				says: `key column "k" may be NULL`, next: "declare the column NOT NULL"},
			{name: "unlogged", turn: []string{"ALTER TABLE kv SET UNLOGGED"}, back: []string{"ALTER TABLE kv SET LOGGED"},
				says: "it is unlogged", next: "SET LOGGED"},
			{name: "heirs", turn: []string{"CREATE TABLE heir () INHERITS (kv)"}, back: []string{"DROP TABLE heir"},
				says: "inherit", next: "make feeds of the children"}},
		"mysql": {toView, narrowed("DROP INDEX kv_k ON kv", "(k(10))"), narrowed("DROP INDEX kv_k ON kv", "(k, v)"),
			{name: "nullable", key: "k", turn: []string{"ALTER TABLE kv MODIFY k VARCHAR(100)"},
				back: []string{"ALTER TABLE kv MODIFY k VARCHAR(100) NOT NULL"},
				says: `key column "k" may be NULL`, next: "declare the column NOT NULL"},
			{name: "MyISAM", turn: []string{"ALTER TABLE kv ENGINE=MyISAM"}, back: []string{"ALTER TABLE kv ENGINE=InnoDB"},
				says: "its engine is MyISAM", next: "ENGINE=InnoDB"},
			{name: "cascade", turn: []string{"CREATE TABLE parent (id BIGINT NOT NULL PRIMARY KEY)",
				"ALTER TABLE kv ADD CONSTRAINT up FOREIGN KEY (v) REFERENCES parent (id) ON DELETE CASCADE"},
				back: []string{"ALTER TABLE kv DROP FOREIGN KEY up", "DROP TABLE parent"}, says: "fire no trigger",
				next: "remove the cascade"}},
	}
	suite.Each(t, func(x *suite.Env) {
		for _, c := range cases[x.Family()] {
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
				x.Exec(c.turn...)
				x.WantUnfit(f, c.says, c.next)
				x.Exec(c.back...)
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

// TestPrimaryKeyMoves (V7): a feed of the former primary key goes on by another unique index on the same
// columns. Where statements name the primary key check says so, the publisher's error names the cure, and
// upgrade is it.
func TestPrimaryKeyMoves(t *testing.T) {
	for _, to := range []string{"nothing", "another column"} {
		t.Run(to, func(t *testing.T) {
			suite.EachCapture(t, func(x *suite.Env) {
				if x.Family() == "sqlite" {
					return // drops no primary key
				}
				x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT NOT NULL)")
				f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
				x.Exec("INSERT INTO kv VALUES (1, 'a', 1), (2, 'b', 2)")
				cursor := x.WantDrain(f, "", suite.KV(1, "a", 1), suite.KV(2, "b", 2))
				move := x.By(map[string]string{"postgres": "ALTER TABLE kv DROP CONSTRAINT kv_pkey, ADD UNIQUE (id)",
					"mysql": "ALTER TABLE kv DROP PRIMARY KEY, ADD UNIQUE (id)"})
				if to != "nothing" {
					move += ", ADD PRIMARY KEY (v)"
				}
				x.Exec(move, "UPDATE kv SET k = 'aa' WHERE id = 1", "DELETE FROM kv WHERE id = 2")
				other := suite.OpenEnv(x.T, x.DB, nil) // a process that is not told of the upgrade
				g, err := other.RF.Feed(x.Ctx, "kv")
				if err != nil {
					x.Fatal(err)
				}
				problems, err := f.Admin().Verify(x.Ctx)
				if says := strings.Join(problems, "; "); err != nil || strings.Contains(says,
					"is not the primary key of table") != (x.Family() == "mysql") || len(problems) > 1 {
					x.Errorf("problems %q, %v", says, err)
				}
				if x.Family() == "mysql" && to == "nothing" {
					_, err := f.Publish(x.Ctx)
					wantNoBareError(x, err, "is not the primary key of table")
					if _, err := f.Fetch(x.Ctx, rowfeed.Request{After: ""}); err == nil || !strings.Contains(err.Error(),
						"rowfeed feed upgrade kv") {
						x.Errorf("fetch: %v", err)
					}
				}
				wantUpgraded(x, f)
				lines, _ := x.Drain(g, cursor)
				slices.Sort(lines)
				if want := []string{suite.Gone(2), suite.KV(1, "aa", 1)}; !slices.Equal(lines, want) {
					x.Errorf("entries %q, want %q", lines, want)
				}
				x.WantSound(f)
			})
		})
	}
}

// TestOutboxTurnsUnfit (V7): the key of an outbox's table must stay unique, too; the column of times may go
// when the rows of before have their places.
func TestOutboxTurnsUnfit(t *testing.T) {
	suite.Each(t, func(e *suite.Env) {
		e.Exec("CREATE TABLE events (id BIGINT NOT NULL, shard INT NOT NULL, made TIMESTAMP NULL)",
			"CREATE UNIQUE INDEX events_id ON events (id)", "INSERT INTO events VALUES (1, 0, NULL)")
		x := &suite.Events{Env: e, Feed: e.Add(rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox,
			Capture: "trigger", Key: []string{"id"}, ShardColumn: "shard", TimeColumn: "made"})}
		x.Exec("ALTER TABLE events DROP COLUMN made")
		x.WantVerified()
		x.Exec("DROP INDEX events_id" + x.By(map[string]string{"sqlite": "", "postgres": "", "mysql": " ON events"}))
		x.Exec("INSERT INTO events VALUES (2, 0)", "INSERT INTO events VALUES (2, 0)")
		x.WantUnfit(x.Feed, "no unique index has exactly the columns (id)", "remove rows that share a key")
		x.Publish(x.Feed) // what the publisher of above has left
		x.Exec("DELETE FROM events WHERE id = 2", "CREATE UNIQUE INDEX events_id ON events (id)",
			"INSERT INTO events VALUES (2, 0)")
		wantUpgraded(x.Env, x.Feed)
		// Else who reads on until the row is at the head gets it at its former place, too.
		if n := x.Publish(x.Feed); n != 1 {
			x.Errorf("%d records had waited, want that of the row that came back", n)
		}
		x.WantShard(0, 1, 2)
		x.WantSound(x.Feed)
	})
}

// TestBlockingWithoutKey (V7): where rows hold their ULIDs the index of shard and ULID makes places unique:
// without that of the key everything goes on, and nothing is said.
func TestBlockingWithoutKey(t *testing.T) {
	suite.Each(t, func(e *suite.Env) {
		e.Exec(strings.Replace(e.EventsTable("events"), " PRIMARY KEY", "", 1),
			"CREATE UNIQUE INDEX events_id ON events (id)", "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
		spec := suite.EventsSpec()
		spec.Key = []string{"id"}
		x := &suite.Events{Env: e, Feed: e.Add(spec)}
		x.Write(7, 1, 2)
		x.Exec("DROP INDEX events_id" + x.By(map[string]string{"sqlite": "", "postgres": "", "mysql": " ON events"}))
		x.Write(7, 2, 3)
		x.WantVerified()
		wantUpgraded(x.Env, x.Feed)
		x.WantIDs(x.Page(x.Feed, 7, "", 10), false, 1, 2, 2, 3)
		x.WantSound(x.Feed)
	})
}
