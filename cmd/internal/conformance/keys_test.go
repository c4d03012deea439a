package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// keyed is a table whose feed has the key (id), by its primary key or by a unique index of its own.
type keyed struct {
	name       string
	table      string
	drop, make []string // the key's index
}

func (x *env) keyed() []keyed {
	return []keyed{
		{"primary key", "CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)",
			[]string{x.by(map[string]string{"postgres": "ALTER TABLE kv DROP CONSTRAINT kv_pkey",
				"mysql": "ALTER TABLE kv DROP PRIMARY KEY", "sqlite": ""})},
			[]string{"ALTER TABLE kv ADD PRIMARY KEY (id)"}},
		{"unique index", "CREATE TABLE kv (id BIGINT NOT NULL, k VARCHAR(100), v BIGINT); CREATE UNIQUE INDEX kv_id ON kv (id)",
			[]string{"DROP INDEX kv_id" + x.by(map[string]string{"postgres": "", "sqlite": "", "mysql": " ON kv"})},
			[]string{"CREATE UNIQUE INDEX kv_id ON kv (id)"}},
	}
}

// TestKeyLosesItsIndex (V7): where the index is gone that made the feed's key unique, check, upgrade, the
// publisher and readiness say so, with the way out. When it is made again everything goes on, and nothing was
// lost.
func TestKeyLosesItsIndex(t *testing.T) {
	testdb.Quick(t)
	eachCapture(t, func(x *env) {
		for _, key := range x.keyed() {
			if key.drop[0] == "" {
				continue // SQLite drops no primary key
			}
			x.Run(key.name, func(t *testing.T) {
				x := *x
				x.T = t
				x.exec(strings.Split(key.table, "; ")...)
				f := x.add(rowfeed.FeedSpec{Name: "kv", Table: "kv", Key: []string{"id"}})
				x.exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
				cursor := x.wantDrain(f, "", kv(1, "a", 0), kv(2, "b", 0))
				x.exec(key.drop...)
				x.exec("INSERT INTO kv VALUES (3, 'c', 0)", "INSERT INTO kv VALUES (1, 'twin', 0)", "DELETE FROM kv WHERE id = 2")
				x.wantUnfit(f, "no unique index has exactly the columns (id)",
					"remove rows that share a key, and create a unique index on just these columns")
				if _, err := f.Publish(x.ctx); err != nil {
					x.wantNoBareError(err, "no unique index has exactly the columns (id)")
				}
				x.exec("DELETE FROM kv WHERE k = 'twin'")
				x.exec(key.make...)
				x.wantUpgraded(f)
				x.exec("UPDATE kv SET v = 1 WHERE id = 1")
				lines, _ := x.drain(f, cursor)
				slices.Sort(lines)
				if want := []string{gone(2), kv(1, "a", 1), kv(3, "c", 0)}; !slices.Equal(slices.Compact(lines), want) {
					x.Errorf("entries %q, want %q", lines, want)
				}
				x.wantSound(f)
				if err := x.rf.DropFeed(x.ctx, "kv"); err != nil {
					x.Fatal(err)
				}
				x.exec("DROP TABLE kv")
				delete(x.columns, "kv")
			})
		}
	})
}

// wantUnfit asserts that check, upgrade and the publisher say why feed add would refuse the table, and what to do.
func (x *env) wantUnfit(f *rowfeed.Feed, says, next string) {
	x.Helper()
	told := func(who, text string) {
		x.Helper()
		for _, part := range []string{"has become one that `rowfeed feed add` would refuse", says, next,
			"rowfeed feed drop"} {
			if !strings.Contains(text, part) {
				x.Errorf("%s: %q does not say %q", who, text, part)
			}
		}
	}
	problems, err := f.Admin().Verify(x.ctx)
	told("verify", fmt.Sprint(strings.Join(problems, "; "), err))
	_, err = f.Admin().Upgrade(x.ctx)
	told("upgrade", fmt.Sprint(err))
	findings, err := f.Admin().Check(x.ctx)
	var all []string
	for _, finding := range findings {
		all = append(all, finding.Problem)
	}
	told("check", fmt.Sprint(strings.Join(all, "; "), err))
	status, err := f.Admin().Status(x.ctx)
	if err != nil {
		x.Fatal(err)
	}
	told("status", strings.Join(status.Problems, "; "))
	if x.Failed() {
		return // readiness asks as verify does, and would be waited for in vain
	}
	x.publisherSays(f, func(text string) bool { return strings.Contains(text, says) })
}

// publisherSays runs a publisher until readiness says something of the feed. What waits it may have published by then.
func (x *env) publisherSays(f *rowfeed.Feed, what func(string) bool) {
	x.Helper()
	ctx, cancel := context.WithCancel(x.ctx)
	done := make(chan error, 1)
	go func() { done <- f.RunPublisher(ctx) }()
	x.eventually("readiness says what is wrong", func() bool { return what(strings.Join(f.Problems(), "; ")) })
	cancel()
	if err := <-done; err != nil {
		x.Error(err)
	}
}

// wantNoBareError asserts an error of a feed's own with object, cause and next step.
func (x *env) wantNoBareError(err error, says string) {
	x.Helper()
	var e *rowfeed.Error
	if !errors.As(err, &e) || e.Code != rowfeed.Refused || e.Object != `feed "kv"` || !strings.Contains(e.Cause,
		says) || e.Next == "" {
		x.Errorf("the publisher: %v", err)
	}
}

// wantUpgraded asserts that upgrade finds nothing that it cannot mend.
func (x *env) wantUpgraded(f *rowfeed.Feed) {
	x.Helper()
	if _, err := f.Admin().Upgrade(x.ctx); err != nil {
		x.Fatal(err)
	}
	if problems, err := f.Admin().Verify(x.ctx); err != nil || len(problems) > 0 {
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
	each(t, func(x *env) {
		for _, c := range cases[x.family()] {
			x.Run(c.name, func(t *testing.T) {
				x := *x
				x.T = t
				x.exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100) NOT NULL, v BIGINT)",
					"CREATE UNIQUE INDEX kv_k ON kv (k)")
				spec := rowfeed.FeedSpec{Name: "kv", Table: "kv"}
				if c.key != "" {
					spec.Key = []string{c.key}
				}
				f := x.add(spec)
				x.exec(c.turn...)
				x.wantUnfit(f, c.says, c.next)
				x.exec(c.back...)
				x.wantUpgraded(f)
				x.exec("INSERT INTO kv VALUES (1, 'a', NULL)")
				x.wantDrain(f, "", `upsert {"id":1,"k":"a","v":null}`)
				x.wantSound(f)
				if err := x.rf.DropFeed(x.ctx, "kv"); err != nil {
					x.Fatal(err)
				}
				x.exec("DROP TABLE kv")
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
			eachCapture(t, func(x *env) {
				if x.family() == "sqlite" {
					return // drops no primary key
				}
				x.exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT NOT NULL)")
				f := x.add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
				x.exec("INSERT INTO kv VALUES (1, 'a', 1), (2, 'b', 2)")
				cursor := x.wantDrain(f, "", kv(1, "a", 1), kv(2, "b", 2))
				move := x.by(map[string]string{"postgres": "ALTER TABLE kv DROP CONSTRAINT kv_pkey, ADD UNIQUE (id)",
					"mysql": "ALTER TABLE kv DROP PRIMARY KEY, ADD UNIQUE (id)"})
				if to != "nothing" {
					move += ", ADD PRIMARY KEY (v)"
				}
				x.exec(move, "UPDATE kv SET k = 'aa' WHERE id = 1", "DELETE FROM kv WHERE id = 2")
				other := openEnv(x.T, x.db, nil) // a process that is not told of the upgrade
				g, err := other.rf.Feed(x.ctx, "kv")
				if err != nil {
					x.Fatal(err)
				}
				problems, err := f.Admin().Verify(x.ctx)
				if says := strings.Join(problems, "; "); err != nil || strings.Contains(says,
					"is not the primary key of table") != (x.family() == "mysql") || len(problems) > 1 {
					x.Errorf("problems %q, %v", says, err)
				}
				if x.family() == "mysql" && to == "nothing" {
					_, err := f.Publish(x.ctx)
					x.wantNoBareError(err, "is not the primary key of table")
					if _, err := f.Fetch(x.ctx, rowfeed.Request{After: ""}); err == nil || !strings.Contains(err.Error(),
						"rowfeed feed upgrade kv") {
						x.Errorf("fetch: %v", err)
					}
				}
				x.wantUpgraded(f)
				lines, _ := x.drain(g, cursor)
				slices.Sort(lines)
				if want := []string{gone(2), kv(1, "aa", 1)}; !slices.Equal(lines, want) {
					x.Errorf("entries %q, want %q", lines, want)
				}
				x.wantSound(f)
			})
		})
	}
}

// TestOutboxTurnsUnfit (V7): the key of an outbox's table must stay unique, too; the column of times may go
// when the rows of before have their places.
func TestOutboxTurnsUnfit(t *testing.T) {
	each(t, func(e *env) {
		e.exec("CREATE TABLE events (id BIGINT NOT NULL, shard INT NOT NULL, made TIMESTAMP NULL)",
			"CREATE UNIQUE INDEX events_id ON events (id)", "INSERT INTO events VALUES (1, 0, NULL)")
		x := &events{e, e.add(rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox,
			Capture: "trigger", Key: []string{"id"}, ShardColumn: "shard", TimeColumn: "made"})}
		x.exec("ALTER TABLE events DROP COLUMN made")
		x.wantVerified()
		x.exec("DROP INDEX events_id" + x.by(map[string]string{"sqlite": "", "postgres": "", "mysql": " ON events"}))
		x.exec("INSERT INTO events VALUES (2, 0)", "INSERT INTO events VALUES (2, 0)")
		x.wantUnfit(x.feed, "no unique index has exactly the columns (id)", "remove rows that share a key")
		x.publish(x.feed) // what the publisher of above has left
		x.exec("DELETE FROM events WHERE id = 2", "CREATE UNIQUE INDEX events_id ON events (id)",
			"INSERT INTO events VALUES (2, 0)")
		x.wantUpgraded(x.feed)
		// Else who reads on until the row is at the head gets it at its former place, too.
		if n := x.publish(x.feed); n != 1 {
			x.Errorf("%d records had waited, want that of the row that came back", n)
		}
		x.wantShard(0, 1, 2)
		x.wantSound(x.feed)
	})
}

// TestBlockingWithoutKey (V7): where rows hold their ULIDs the index of shard and ULID makes places unique:
// without that of the key everything goes on, and nothing is said.
func TestBlockingWithoutKey(t *testing.T) {
	each(t, func(e *env) {
		e.exec(strings.Replace(e.eventsTable("events"), " PRIMARY KEY", "", 1),
			"CREATE UNIQUE INDEX events_id ON events (id)", "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
		spec := eventsSpec()
		spec.Key = []string{"id"}
		x := &events{e, e.add(spec)}
		x.write(7, 1, 2)
		x.exec("DROP INDEX events_id" + x.by(map[string]string{"sqlite": "", "postgres": "", "mysql": " ON events"}))
		x.write(7, 2, 3)
		x.wantVerified()
		x.wantUpgraded(x.feed)
		x.wantIDs(x.page(x.feed, 7, "", 10), false, 1, 2, 2, 3)
		x.wantSound(x.feed)
	})
}
