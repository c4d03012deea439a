package mysql_test

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/mysql"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// impatient opens sessions whose wait for a row lock fails after a second, so that the tests need no clock to detect a
// wait.
const impatient = "innodb_lock_wait_timeout=1"

// Guarantee 6: an open transaction that has written delays only its own rows, wherever its change records are.
func TestOpenWritersDelayOnlyTheirRows(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE t (id int PRIMARY KEY, v int, KEY (v))")
		fill := "INSERT IGNORE INTO t WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 500) " +
			"SELECT i * 10, 0 FROM n"
		h.sql(fill)
		f := h.add(h.open(impatient), "t")
		h.publish(f)
		writers := h.pool(impatient)
		share := map[testdb.Engine]string{testdb.MariaDB: "LOCK IN SHARE MODE", testdb.MySQL: "FOR SHARE"}[h.Engine]
		for name, c := range map[string]struct {
			gaps int      // transactions that have written rows among the changes, and stay open
			open []string // statements of a transaction that begins after the changes, and stays open
		}{
			"in one gap":      {1, nil},
			"in every gap":    {40, nil},
			"same rows again": {0, []string{"UPDATE t SET v = v + 1 WHERE id BETWEEN 1000 AND 1500"}},
			"deleted":         {0, []string{"DELETE FROM t WHERE id BETWEEN 1000 AND 1500"}},
			"new neighbours":  {0, []string{"INSERT INTO t VALUES (1001, 1), (1011, 1), (9999, 1)"}},
			"after a rollback": {0, []string{"UPDATE t SET v = v + 1 WHERE id = 10", "ROLLBACK", "BEGIN",
				"UPDATE t SET v = v + 1 WHERE id = 20"}},
			"whole table read":   {0, []string{"SELECT COUNT(*) FROM t " + share}},
			"everything at once": {40, []string{"UPDATE t SET v = v + 1 WHERE id IN (1000, 1100, 1200)"}},
		} {
			t.Run(name, func(t *testing.T) {
				h := &harness{T: t, Database: h.Database}
				var txs []*sql.Tx
				begin := func() *sql.Tx {
					tx, err := writers.BeginTx(h.ctx(), nil)
					h.must(err)
					txs = append(txs, tx)
					return tx
				}
				defer func() {
					for _, tx := range txs {
						_ = tx.Rollback()
					}
					h.sql(fill)
					h.publish(f)
				}()
				for i := range 50 {
					h.sql("UPDATE t SET v = v + 1 WHERE id = ?", 1000+10*i)
					if i < c.gaps {
						_, err := begin().ExecContext(h.ctx(), "UPDATE t SET v = v + 1 WHERE id = ?", 4000+10*i)
						h.must(err)
					}
				}
				if c.open != nil {
					tx := begin()
					for _, q := range c.open {
						_, err := tx.ExecContext(h.ctx(), q)
						h.must(err)
					}
				}
				if n := h.publish(f); n != 50 {
					t.Errorf("published %d keys next to open writers, want 50", n)
				}
				for _, tx := range txs {
					h.must(tx.Commit())
				}
				want := h.one("SELECT COUNT(DISTINCT id) FROM rowfeed_changes_t")
				if n := h.publish(f); strconv.Itoa(n) != want || c.gaps > n {
					t.Errorf("published %d keys after their commit, want %s", n, want)
				}
			})
		}
	})
}

// A publisher that stops anywhere before its commit blocks no writer.
func TestOpenPublisherBlocksNoWriter(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE t (id int PRIMARY KEY, v int)")
		h.sql("INSERT INTO t VALUES (1, 0), (3, 0), (5, 0)")
		db := h.open()
		f := h.add(db, "t")
		h.publish(f)
		h.sql("UPDATE t SET v = v + 1")
		held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit && ev.InTx })
		publisher, err := rowfeed.Open(h.ctx(), h.OpenTapped(t, testdb.Hooks{Before: held.Before}), mysql.New(), nil)
		h.must(err)
		pf, err := publisher.Feed(h.ctx(), "t")
		h.must(err)
		done := make(chan error, 1)
		go func() {
			_, err := pf.Publish(context.Background())
			done <- err
		}()
		<-held.Reached
		writer := h.pool(impatient)
		for _, q := range []string{"UPDATE t SET v = v + 1", "INSERT INTO t VALUES (2, 0), (6, 0)",
			"DELETE FROM t WHERE id = 3", "REPLACE INTO t VALUES (1, 9)"} {
			if _, err := writer.ExecContext(h.ctx(), q); err != nil {
				t.Errorf("%s during an open publisher's transaction: %v", q, err)
			}
		}
		// A reader sees only what is committed, whatever its session's default is.
		for name, params := range dsns {
			other, err := rowfeed.Open(h.ctx(), h.pool(dsnFor(h.Engine, params)...), mysql.New(), nil)
			h.must(err)
			of, err := other.Feed(h.ctx(), "t")
			h.must(err)
			if got, head := h.drain(of, "3"); len(got) > 0 || !strings.HasPrefix(string(head), "3.") {
				t.Errorf("%s: a reader sees %q up to %q before the commit", name, got, head)
			}
		}
		held.Release()
		h.must(<-done)
		h.expect(f, "6", `7 upsert {"id":5} {"id":5,"v":2}`, `8 upsert {"id":2} {"id":2,"v":0}`,
			`9 upsert {"id":6} {"id":6,"v":0}`,
			`10 delete {"id":3}`, `11 upsert {"id":1} {"id":1,"v":9}`)
	})
}

// Publishers take turns: the second waits for the lock of the sequence until the first commits.
func TestPublishersTakeTurns(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE t (id int PRIMARY KEY)")
		h.add(h.open(), "t")
		d := mysql.New()
		f, _ := h.feed("t")
		lock := func(pool *sql.DB) (*sql.Tx, dialect.Sequence, error) {
			tx, err := pool.BeginTx(h.ctx(), d.Begin(dialect.ForPublish, dialect.Names{}).Options)
			h.must(err)
			t.Cleanup(func() { _ = tx.Rollback() })
			s, err := d.LockSequence(h.ctx(), dialect.On(tx), f)
			return tx, s, err
		}
		first, _, err := lock(h.pool())
		h.must(err)
		if _, _, err := lock(h.pool(impatient)); d.Classify(err) != dialect.ClassLockTimeout {
			t.Errorf("a second publisher: %v", err)
		}
		_, err = first.ExecContext(h.ctx(), "UPDATE rowfeed_sequences SET value = 5, version = 7")
		h.must(err)
		h.must(first.Commit())
		if _, s, err := lock(h.pool(impatient)); err != nil || s.Value != 5 || s.Version != 7 {
			t.Errorf("the next one: %+v %v", s, err)
		}
		f.Name = "none"
		if _, _, err := lock(h.pool()); err != sql.ErrNoRows {
			t.Errorf("without a row: %v", err)
		}
	})
}

// With Galera's auto_increment_increment, and with rollbacks, there are no two consecutive seqs.
func TestSeqsMayHaveGaps(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE t (id int PRIMARY KEY, v int)")
		f := h.add(h.open(), "t")
		conn, err := h.pool("auto_increment_increment=7").Conn(h.ctx())
		h.must(err)
		defer conn.Close()
		for i := range 100 {
			_, err := conn.ExecContext(h.ctx(), "INSERT INTO t VALUES (?, 0)", i)
			h.must(err)
		}
		if n := h.publish(f); n != 100 {
			t.Errorf("published %d of 100", n)
		}
		if n := h.one("SELECT COUNT(*) FROM rowfeed_changes_t"); n != "0" {
			t.Errorf("%s changes left", n)
		}
	})
}

// Hazard 10: a few runs of seqs are published by their ranges, in the order of the seqs and with consecutive positions,
// whatever lies between the runs.
func TestRangesOfSeqsGetConsecutivePositions(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE t (id int PRIMARY KEY, v int)")
		f := h.add(h.open(), "t")
		h.sql("INSERT INTO t SELECT seq, 0 FROM (SELECT 1 AS seq UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION " +
			"SELECT 5 UNION SELECT 6) s")
		h.publish(f)
		// A key that is superseded in the batch, a key without a row, and a delete.
		h.sql("DELETE FROM t WHERE id = 4")
		h.sql("DELETE FROM rowfeed_changes_t")
		h.sql("INSERT INTO rowfeed_changes_t (seq, id) VALUES (101, 6), (102, 5), (103, 2), (110, 4), (111, 9), (112," +
			" 3), (120, 2), (130, 1)")
		h.expect(f, "6", `7 upsert {"id":6} {"id":6,"v":0}`, `8 upsert {"id":5} {"id":5,"v":0}`, `9 delete {"id":4}`,
			`11 upsert {"id":3} {"id":3,"v":0}`, `12 upsert {"id":2} {"id":2,"v":0}`,
			`13 upsert {"id":1} {"id":1,"v":0}`)
	})
}

// A pass prepares no statement: each would need another round trip, and would be planned twice.
func TestPassPreparesNothing(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE t (id int PRIMARY KEY, v int)")
		h.sql("INSERT INTO t WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 50) SELECT i, 0 " +
			"FROM n")
		pool := h.pool()
		pool.SetMaxOpenConns(1)
		db, err := rowfeed.Open(h.ctx(), pool, mysql.New(), &rowfeed.Config{UnsafeDurability: true})
		h.must(err)
		_, err = db.Migrate(h.ctx())
		h.must(err)
		f := h.add(db, "t")
		h.publish(f)
		prepared := func() string {
			rows, err := dialect.QueryAll(h.ctx(), dialect.On(pool), "SHOW SESSION STATUS LIKE 'Com_stmt_prepare'",
				nil, func(rows dialect.Rows) (v []string, err error) {
					return dialect.ScanStrings(rows, 2)
				})
			h.must(err)
			return rows[0][1]
		}
		for _, spread := range []int{1, 7} { // one run of seqs, and many
			h.sql(fmt.Sprintf("INSERT INTO rowfeed_changes_t (seq, id) WITH RECURSIVE n AS (SELECT 1 i UNION ALL "+
				"SELECT i + 1 FROM n WHERE i < 50) SELECT i * %d + 1000, i FROM n", spread))
			before := prepared()
			if n := h.publish(f); n != 50 {
				t.Errorf("published %d keys of 50", n)
			}
			if after := prepared(); after != before {
				t.Errorf("seqs %d apart: %s statements prepared before the passes, %s after", spread, before, after)
			}
		}
	})
}

// Statements only contain characters that mean the same in every sql_mode and character set.
func TestStatementsHaveSafeCharacters(t *testing.T) {
	for _, v := range []any{0, -5, int64(math.MinInt64), "", "feed_1", "1.25:ab-CD/3"} {
		text, ok := mysql.New().Inline(v)
		if want := strings.ReplaceAll(fmt.Sprintf("%#v", v), `"`, "'"); !ok || text != want {
			t.Errorf("%#v is written %s, %t", v, text, ok)
		}
	}
	for _, v := range []any{nil, []byte("a"), 1.5, true, uint64(1), "it's", `a\b`, "a b", "what?", "naïve", "a\x00",
		"x;y", strings.Repeat("x", 201)} {
		if text, ok := mysql.New().Inline(v); ok {
			t.Errorf("%#v is written %s", v, text)
		}
	}
}

// DeleteChanges deletes the seqs that it is given and no other, also if some no longer exist.
func TestDeleteIsExact(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE t (id int PRIMARY KEY)")
		d := mysql.New()
		f, table := h.feed("t")
		h.steps(d.FeedUp(f, table))
		left := func() string {
			return h.one("SELECT COALESCE(GROUP_CONCAT(seq ORDER BY seq), '') FROM rowfeed_changes_t")
		}
		many := []int64{1, 2}
		for seq := int64(4); seq < 60; seq += 2 {
			many = append(many, seq)
		}
		for name, c := range map[string]struct {
			gone string
			seqs []int64
			n    int64
		}{
			"a run":             {"0", []int64{1, 2, 3}, 3},
			"two runs":          {"0", []int64{1, 2, 50, 51}, 4},
			"a run with a hole": {"2", []int64{1, 2, 3}, 2},
			"many runs":         {"0", many, int64(len(many))},
			"many, some gone":   {"4, 6", many, int64(len(many)) - 2},
		} {
			h.sql("TRUNCATE rowfeed_changes_t")
			h.sql("INSERT INTO rowfeed_changes_t (seq, id) WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 " +
				"FROM n WHERE i < 60) SELECT i, i FROM n")
			h.sql("DELETE FROM rowfeed_changes_t WHERE seq IN (" + c.gone + ")")
			var want []string
			for seq := int64(1); seq <= 60; seq++ {
				if !slices.Contains(c.seqs, seq) && !strings.Contains(", "+c.gone+",", fmt.Sprintf(" %d,", seq)) {
					want = append(want, strconv.FormatInt(seq, 10))
				}
			}
			n, err := d.DeleteChanges(h.ctx(), dialect.On(h.Admin()), f, c.seqs)
			if err != nil || n != c.n || left() != strings.Join(want, ",") {
				t.Errorf("%s: deleted %d, want %d (%v); left %s, want %v", name, n, c.n, err, left(), want)
			}
		}
	})
}

// Two spellings of one key in one batch: the later one decides, and an unpublish in between has effect.
func TestLaterSpellingOfKeyDecides(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE t (k varchar(10) COLLATE utf8mb4_general_ci PRIMARY KEY, v int)")
		f := h.add(h.open(), "t")
		h.sql("INSERT INTO t VALUES ('fred', 1)")
		at := h.expect(f, "", `1 upsert {"k":"fred"} {"k":"fred","v":1}`)
		record := func(changes ...string) {
			h.sql("INSERT INTO rowfeed_changes_t (k, kind) VALUES " + strings.Join(changes, ", "))
		}
		record("('Fred', 2)", "('FRED', 0)")
		at = h.expect(f, at, `2 delete {"k":"fred"}`) // hidden at 2; the change at 3 shows nothing
		record("('fred', 0)")
		at = h.expect(f, at)
		record("('Fred', 1)", "('fREd', 2)")
		at = h.expect(f, at, `6 delete {"k":"fred"}`)
		record("('Fred', 2)", "('fREd', 1)")
		h.expect(f, at, `8 upsert {"k":"fred"} {"k":"fred","v":1}`)
	})
}

// A batch looks up its keys one by one, for tables of any size and with any statistics: it never scans a table.
func TestPlansAreLookups(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		const rows = 30_000
		h.sql("CREATE TABLE t (a int, b varchar(40) COLLATE utf8mb4_general_ci, v varchar(100), UNIQUE KEY (b, a), " +
			"PRIMARY KEY (a, b))")
		h.sql(fmt.Sprintf("SET SESSION %s = 100000",
			map[testdb.Engine]string{testdb.MariaDB: "max_recursive_iterations",
				testdb.MySQL: "cte_max_recursion_depth"}[h.Engine]) +
			fmt.Sprintf("; INSERT INTO t WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < %d) "+
				"SELECT i, CONCAT('k', i %% 1000), REPEAT('x', 90) FROM n", rows))
		d := mysql.New()
		for i, key := range [][]string{{"a", "b"}, {"b", "a"}} {
			f, table := h.feed("t", key...)
			h.steps(d.FeedDown(f, nil), nil)
			h.steps(d.FeedUp(f, table))
			h.sql("INSERT INTO rowfeed_changes_t (a, b) SELECT a, b FROM t ORDER BY a")
			position := int64(0)
			for _, step := range []struct {
				before string
				n      int
			}{
				{"", 1000}, {"", 5000}, {"ANALYZE TABLE t, rowfeed_changes_t, rowfeed_positions_t", 1000}, {"", 5000},
				{"INSERT INTO rowfeed_changes_t (a, b) SELECT a, b FROM t ORDER BY a; ANALYZE TABLE " +
					"rowfeed_changes_t, rowfeed_positions_t", 5000}, {"", 100},
			} {
				if step.before != "" {
					h.sql(step.before)
				}
				tx, err := h.Admin().BeginTx(h.ctx(), d.Begin(dialect.ForPublish, dialect.Names{}).Options)
				h.must(err)
				q := dialect.On(tx)
				counted := func(what string, limit int64, fn func() error) {
					before := handlerReads(h, tx)
					h.must(fn())
					if reads := handlerReads(h, tx) - before; reads > limit {
						t.Errorf("key %v, %d changes: %s reads %d records, more than %d", key, step.n, what, reads,
							limit)
					}
				}
				var changes []dialect.Change
				counted("take", int64(step.n)+500, func() (err error) {
					changes,
						err = d.TakeChanges(h.ctx(), q, f, dialect.Seqs{}, step.n)
					return err
				})
				var as []dialect.Assignment
				var seqs []int64
				for _, c := range changes {
					position++
					as, seqs = append(as, dialect.Assignment{Seq: c.Seq, Position: position}), append(seqs, c.Seq)
				}
				// The list and a temporary table are scanned, and lookups count, too.
				counted("assign", int64(7*step.n)+500, func() error { return d.AssignPositions(h.ctx(), q, f, as, 1) })
				counted("delete", int64(2*step.n)+500, func() error {
					_,
						err := d.DeleteChanges(h.ctx(), q, f, seqs)
					return err
				})
				h.must(tx.Commit())
			}
			f.Columns = table.Columns
			if i == 0 {
				for _, migration := range d.Migrations(f.Names) {
					for _, m := range migration.Up {
						h.sql(m)
					}
				}
			}
			h.sql("REPLACE INTO rowfeed_sequences (name, value, version, updated_at) VALUES ('t', ?, 1, 1)", position)
			h.sql(`REPLACE INTO rowfeed_feeds (name, mode, capture, state, generation, source_table, key_columns, ` +
				`options, tombstones_seconds, created_at)
VALUES ('t', 'sequence', 'trigger', 'active', 1, 't', '', '', 1, 1)`)
			reader := h.pool()
			reader.SetMaxOpenConns(1)
			for _, limit := range []int{1, 100, 1000} {
				for _, after := range []int64{0, position / 2, position - 10, position} {
					before := handlerReads(h, reader)
					page, err := d.ReadPage(h.ctx(), reader, f, dialect.PageQuery{After: feedtype.Numbered(after),
						Limit: limit, MaxBytes: 1 << 30})
					h.must(err)
					want := min(int64(limit), position-after)
					if int64(len(page.Rows)) != want || page.Head.Number() != position {
						t.Errorf("page of %d after %d: %d rows, head %s", limit, after, len(page.Rows), page.Head)
					}
					// The part of the catalog is the same for every page. 500 is how far MySQL reads ahead.
					if reads := handlerReads(h, reader) - before; reads > 6*want+1500 {
						t.Errorf("key %v: a page of %d after %d reads %d records", key, limit, after, reads)
					}
				}
			}
		}
	})
}

// handlerReads returns how many records the session's statements have read so far.
func handlerReads(h *harness, q dialect.SQLQuerier) (n int64) {
	h.Helper()
	rows, err := dialect.QueryAll(h.ctx(), dialect.On(q), "SHOW SESSION STATUS LIKE 'Handler_read%'", nil,
		func(rows dialect.Rows) (v []string, err error) {
			return dialect.ScanStrings(rows, 2)
		})
	h.must(err)
	for _, v := range rows {
		i, err := strconv.ParseInt(v[1], 10, 64)
		h.must(err)
		n += i
	}
	return n
}

// Settings of rowfeed's transactions end with them.
func TestSessionSettingsAreRestored(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE t (id int PRIMARY KEY)")
		pool := h.pool()
		pool.SetMaxOpenConns(2)
		pool.SetMaxIdleConns(2)
		state := func() (all []string) {
			var conns []*sql.Conn
			for range 2 {
				conn, err := pool.Conn(h.ctx())
				h.must(err)
				conns = append(conns, conn)
				rows, err := dialect.QueryAll(h.ctx(), dialect.On(conn),
					"SHOW SESSION VARIABLES WHERE Variable_name NOT REGEXP "+
						"'timestamp|last_|insert_id|identity|rand_seed|pseudo_thread|statement_id|in_transaction|"+
						"warning_count|gtid'", nil,
					func(rows dialect.Rows) (string, error) {
						v, err := dialect.ScanStrings(rows, 2)
						return strings.Join(v, "="), err
					})
				h.must(err)
				all = append(all, rows...)
			}
			for _, c := range conns {
				_ = c.Close()
			}
			return all
		}
		before := state()
		db, err := rowfeed.Open(h.ctx(), pool, mysql.New(), nil)
		h.must(err)
		_, err = db.Migrate(h.ctx())
		h.must(err)
		f := h.add(db, "t")
		h.sql("INSERT INTO t VALUES (1)")
		h.expect(f, "", `1 upsert {"id":1} {"id":1}`)
		_, err = f.Admin().Check(h.ctx())
		h.must(err)
		_, err = f.Admin().Status(h.ctx())
		h.must(err)
		after := state()
		for i := range before {
			if before[i] != after[i] {
				t.Errorf("%s was %s", after[i], before[i])
			}
		}
	})
}

func TestWeakDurabilitySettingsAreReported(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.InnoDB...)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		h := &harness{T: t, Database: e.Dedicated(t, testdb.Setting("log_bin=binlog"), testdb.Setting("server_id=1"),
			testdb.Setting("sync_binlog=1")).NewDatabase(t)}
		for _, c := range []struct{ set, want string }{
			{"innodb_flush_log_at_trx_commit = 1", ""},
			{"innodb_flush_log_at_trx_commit = 2", "innodb_flush_log_at_trx_commit is 2"},
			{"innodb_flush_log_at_trx_commit = 0", "innodb_flush_log_at_trx_commit is 0"},
			{"innodb_flush_log_at_trx_commit = 1", ""},
			{"sync_binlog = 0", "sync_binlog is 0"},
			{"sync_binlog = 100", "sync_binlog is 100"},
		} {
			h.sql("SET GLOBAL " + c.set)
			err := mysql.New().Durability(h.ctx(), dialect.On(h.Admin()))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
				t.Errorf("%s: %v", c.set, err)
			}
		}
	})
}
