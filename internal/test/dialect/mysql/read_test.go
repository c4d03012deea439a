package mysql_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/mysql"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// isHead recognizes a page's first statement.
func isHead(ev testdb.TapEvent) bool {
	return ev.Kind == testdb.Query && strings.HasPrefix(ev.SQL, "SELECT s.value, COALESCE(s.term, 0), f.generation")
}

// Hazard 1: a page belongs to the head that was read before it. What is published between the two statements is on the
// next page.
func TestPageEndsAtTheHeadReadFirst(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
		f := h.add(h.open(), "t")
		h.publish(f)
		var heads atomic.Int64 // how often the last page read the head
		after := func(f *dialect.Feed, between func()) *dialect.PageRows {
			page := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Query && !isHead(ev) })
			heads.Store(0)
			pool := h.OpenTapped(t, testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
				if isHead(ev) {
					heads.Add(1)
				}
				return page.Before(ctx, ev)
			}})
			type answer struct {
				rows *dialect.PageRows
				err  error
			}
			done := make(chan answer, 1)
			go func() {
				rows, err := mysql.New().ReadPage(h.ctx(), pool, f, dialect.PageQuery{Limit: 100, MaxBytes: 1 << 20})
				done <- answer{rows, err}
			}()
			<-page.Reached
			between()
			page.Release()
			a := <-done
			h.must(a.err)
			return a.rows
		}
		df, _ := h.feed("t")
		page := after(df, func() {
			h.sql("INSERT INTO t VALUES (2)")
			h.publish(f)
		})
		if page.Head.Number() != 1 || len(page.Rows) != 1 || page.Rows[0].Position.Number() != 1 {
			t.Errorf("head %s, rows %v", page.Head, page.Rows)
		}
		// If a feed is dropped and added again in between, the page uses nothing of the old head.
		page = after(df, func() {
			h.sql("UPDATE rowfeed_feeds SET generation = 7; UPDATE rowfeed_sequences SET value = 0; DELETE FROM " +
				"rowfeed_positions_t")
		})
		if !page.Head.IsZero() || page.Generation != 7 || len(page.Rows) != 0 {
			t.Errorf("after a new generation: head %s, generation %d, rows %v", page.Head, page.Generation, page.Rows)
		}
		// A head of another generation is not used, also if it is low enough.
		page = after(df, func() { h.sql("UPDATE rowfeed_feeds SET generation = 8") })
		if page.Generation != 8 || heads.Load() != 2 {
			t.Errorf("generation %d, the head was read %d times", page.Generation, heads.Load())
		}
		// A column that is added in between changes the page's signature.
		var changed string
		page = after(df, func() {
			h.sql("ALTER TABLE t ADD COLUMN v int")
			_, table := h.feed("t")
			changed = table.Signature
		})
		if page.Signature != changed {
			t.Errorf("signature %s, want %s", page.Signature, changed)
		}
	})
}

// The signature is the same as Describe's, and changes with every change of columns.
func TestPageAndDescribeHaveSameSignature(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE t (id int PRIMARY KEY, v varchar(10) CHARACTER SET latin1)")
		db := h.open()
		f := h.add(db, "t")
		seen := map[string]string{}
		for _, alter := range []string{"", "MODIFY v varchar(10) CHARACTER SET utf8mb4",
			"MODIFY v varchar(11) CHARACTER SET utf8mb4", "ADD COLUMN w int",
			"CHANGE w x int", "MODIFY x int AFTER id", "DROP COLUMN x", "MODIFY v varbinary(11)"} {
			if alter != "" {
				h.sql("ALTER TABLE t " + alter)
			}
			df, table := h.feed("t")
			page, err := mysql.New().ReadPage(h.ctx(), h.Admin(), df, dialect.PageQuery{Limit: 1, MaxBytes: 1})
			h.must(err)
			if page.Signature != table.Signature {
				t.Errorf("%s: the page says %s, Describe %s", alter, page.Signature, table.Signature)
			}
			if other, ok := seen[page.Signature]; ok && alter != "DROP COLUMN x" {
				t.Errorf("%q and %q have the same signature", alter, other)
			}
			seen[page.Signature] = alter
			_, err = f.Fetch(h.ctx(), rowfeed.Request{})
			h.must(err)
		}
		h.must(db.DropFeed(h.ctx(), "t"))
		df, _ := h.feed("t")
		_, err := mysql.New().ReadPage(h.ctx(), h.Admin(), df, dialect.PageQuery{Limit: 1, MaxBytes: 1})
		if !errors.Is(err, dialect.ErrNoTable) {
			t.Errorf("page of a dropped feed: %v", err)
		}
	})
}

// summer is a setting for a session in a time zone with one summer, which ends at 2026-10-25 01:00 UTC. The servers
// have no time zones.
func (h *harness) summer() string {
	h.Helper()
	const zone = "Rowfeed/Test"
	h.sql("INSERT INTO mysql.time_zone (Use_leap_seconds) VALUES ('N'); SET @z = LAST_INSERT_ID()" +
		"; INSERT INTO mysql.time_zone_name VALUES ('" + zone + "', @z)" +
		"; INSERT INTO mysql.time_zone_transition_type VALUES (@z, 0, 3600, 0, 'W'), (@z, 1, 7200, 1, 'S')" +
		"; INSERT INTO mysql.time_zone_transition VALUES (@z, 1774746000, 1), (@z, 1792890000, 0)")
	h.Cleanup(func() {
		h.sql("DELETE t, n, y, x FROM mysql.time_zone_name n JOIN mysql.time_zone t USING (Time_zone_id) JOIN " +
			"mysql.time_zone_transition_type y USING (Time_zone_id) " +
			"JOIN mysql.time_zone_transition x USING (Time_zone_id) WHERE n.Name = '" + zone + "'")
	})
	return "time_zone=%27Rowfeed%2FTest%27"
}

// An instant in the hour that the end of summer time repeats is the same instant for every reader, in every time zone
// of the session.
func TestRepeatedHourIsSameInstantInAllTimeZones(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE t (id int PRIMARY KEY, at timestamp NULL, local datetime)")
		h.sql("SET time_zone = '+00:00'; INSERT INTO t VALUES (1, '2026-10-25 00:30:00', '2026-10-25 02:30:00'), (2, " +
			"'2026-10-25 01:30:00', '2026-03-29 02:30:00')")
		f := h.add(h.open(h.summer()), "t")
		h.expect(f, "", `1 upsert {"id":1} {"id":1,"at":"2026-10-25T00:30:00Z","local":"2026-10-25T02:30:00"}`,
			`2 upsert {"id":2} {"id":2,"at":"2026-10-25T01:30:00Z","local":"2026-03-29T02:30:00"}`)
	})
}

// Counts and ages use the database's clock, in every time zone of the session.
func TestAgesUseDatabaseClock(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE t (id int PRIMARY KEY)")
		h.add(h.open(), "t")
		h.sql("INSERT INTO t VALUES (1), (2), (3); UPDATE t SET id = 4 WHERE id = 1")
		d := mysql.New()
		f, _ := h.feed("t")
		writer, err := h.pool().BeginTx(h.ctx(), nil)
		h.must(err)
		defer writer.Rollback()
		_, err = writer.ExecContext(h.ctx(), "INSERT INTO t VALUES (99)")
		h.must(err)
		for _, param := range []string{h.summer(), "time_zone=%27-11%3A30%27", "time_zone=%27%2B13%3A00%27"} {
			q := dialect.On(h.pool(param))
			n, age, err := d.Backlog(h.ctx(), q, f, 100)
			if err != nil || n != 5 || age < 0 || age > 1200e6 {
				t.Errorf("%s: backlog %d, %d µs, %v", param, n, age, err)
			}
			if n, _, err = d.Backlog(h.ctx(), q, f, 3); err != nil || n != 3 {
				t.Errorf("%s: backlog up to 3: %d, %v", param, n, err)
			}
			blockers, _, err := d.Blockers(h.ctx(), q, f)
			if err != nil || len(blockers) > 0 && blockers[0].AgeMicros > 1200e6 {
				t.Errorf("%s: blockers %v, %v", param, blockers, err)
			}
			var now int64
			h.must(dialect.QueryRow(h.ctx(), q, "SELECT "+d.Now+" - CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS "+
				"SIGNED)", nil, &now))
			if now < -1 || now > 1 {
				t.Errorf("%s: Now is %d µs off", param, now)
			}
		}
		h.must(writer.Rollback())
		h.sql("DELETE FROM rowfeed_changes_t")
		if n, age, err := d.Backlog(h.ctx(), dialect.On(h.Admin()), f, 100); n != 0 || age != 0 || err != nil {
			t.Errorf("an empty backlog: %d, %d µs, %v", n, age, err)
		}
	})
}
