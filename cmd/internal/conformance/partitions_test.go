package conformance

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// eachPartitioned runs f on every engine on which new partitions lack something: PostgreSQL.
func eachPartitioned(t *testing.T, f func(x *env)) {
	t.Helper()
	testdb.Only(t, testdb.PostgreSQL...)
	each(t, f)
}

const partitioned = "CREATE TABLE p (id bigint PRIMARY KEY, v int) PARTITION BY RANGE (id)"

func partition(name string, from, to int) string {
	return fmt.Sprintf("CREATE TABLE %s PARTITION OF p FOR VALUES FROM (%d) TO (%d)", name, from, to)
}

func attach(name string, from, to int) string {
	return fmt.Sprintf("ALTER TABLE p ATTACH PARTITION %s FOR VALUES FROM (%d) TO (%d)", name, from, to)
}

// addPartitioned makes the table p(id, v) with a partition for 0 to 99, and its feed.
func (x *env) addPartitioned() *rowfeed.Feed {
	x.Helper()
	x.exec(partitioned, partition("p0", 0, 100))
	return x.add(rowfeed.FeedSpec{Name: "p", Table: "p"})
}

// tells whether one of the troubles has all the words.
func (t *troubles) tells(words ...string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.told, func(text string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
	})
}

// whilePublishing runs a publisher, whose first look begins at once, until the condition holds.
func (x *env) whilePublishing(until string, ok func(t *troubles) bool) {
	x.Helper()
	x.whilePublishingOn(x.pool, until, ok)
}

func (x *env) whilePublishingOn(pool *sql.DB, until string, ok func(t *troubles) bool) {
	x.Helper()
	t := &troubles{}
	rf, err := rowfeed.Open(x.ctx, pool, x.dialect, &rowfeed.Config{Observer: t.observer()})
	if err != nil {
		x.Fatal(err)
	}
	f, err := rf.Feed(x.ctx, "p")
	if err != nil {
		x.Fatal(err)
	}
	ctx, stop := context.WithCancel(x.ctx)
	ended := make(chan error, 1)
	go func() { ended <- f.RunPublisher(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			x.Errorf("RunPublisher: %v", err)
		}
	}()
	x.eventually(until, func() bool { return ok(t) })
}

// follows runs a publisher until exactly the keys of the table have positions that are not deleted, and no new
// partition is left.
func (x *env) follows(f *rowfeed.Feed) {
	x.Helper()
	x.whilePublishing("the publisher has followed the partitions", func(*troubles) bool {
		fresh, err := f.Admin().VerifyPartitions(x.ctx)
		return err == nil && len(fresh) == 0 &&
			x.scalar(`SELECT COALESCE(json_array_length(o#>'{taken}'), 0) + abs(json_array_length(o#>'{attached}') -
  (SELECT count(*) FROM pg_partition_tree('p') WHERE isleaf)) 
  FROM (SELECT options::json#>'{partitions}' AS o FROM rowfeed_feeds) x`) == 0 &&
			x.scalar(`SELECT count(*) FROM p FULL JOIN (SELECT id FROM rowfeed_positions_p WHERE deleted = 0) q USING (id)
  WHERE p.id IS NULL OR q.id IS NULL`) == 0
	})
	x.wantSound(f)
}

// wantTold asserts what status says of new partitions, and that this does not count against readiness.
func (x *env) wantTold(f *rowfeed.Feed, partitions ...string) {
	x.Helper()
	status, err := f.Admin().Status(x.ctx)
	if err != nil || len(status.Problems) != len(partitions) {
		x.Fatalf("status: %q %v, want a problem of each of %q", status.Problems, err, partitions)
	}
	for i, name := range partitions {
		problem := status.Problems[i]
		if !strings.Contains(problem, "partition "+name+" has no trigger for TRUNCATE") || !strings.Contains(problem, "rowfeed feed upgrade p") {
			x.Errorf("status: %q, want %s named with the next step", problem, name)
		}
	}
	if problems, err := f.Admin().Verify(x.ctx); err != nil || len(problems) != 0 {
		x.Errorf("not ready: %q %v", problems, err)
	}
}

// wantLines asserts what is new above the cursor, in any order, keys that came twice once.
func (x *env) wantLines(f *rowfeed.Feed, after rowfeed.Cursor, want ...string) rowfeed.Cursor {
	x.Helper()
	lines, cursor := x.drain(f, after)
	slices.Sort(lines)
	if lines = slices.Compact(lines); !slices.Equal(lines, want) {
		x.Fatalf("entries above %q: %q, want %q", after, lines, want)
	}
	return cursor
}

// TestNewPartitions (V4): a publisher makes the triggers that new partitions lack, at every level. A TRUNCATE
// of a partition before that, and rows that ATTACH brought, are found and published unasked. All the time the
// feed is ready.
func TestNewPartitions(t *testing.T) {
	testdb.Quick(t)
	eachPartitioned(t, func(x *env) {
		f := x.addPartitioned()
		x.exec("INSERT INTO p VALUES (1, 0), (2, 0)")
		cursor := x.wantDrain(f, "", `upsert {"id":1,"v":0}`, `upsert {"id":2,"v":0}`)
		x.exec(partition("p1", 100, 200),
			"CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (200) TO (300) PARTITION BY RANGE (id)",
			"CREATE TABLE p2a PARTITION OF p2 FOR VALUES FROM (200) TO (250)",
			"CREATE TABLE p3 (id bigint PRIMARY KEY, v int)", "INSERT INTO p3 VALUES (300, 0)",
			attach("p3", 300, 400),
			"INSERT INTO p VALUES (100, 0), (200, 0), (301, 0)")
		cursor = x.wantDrain(f, cursor, `upsert {"id":100,"v":0}`, `upsert {"id":200,"v":0}`, `upsert {"id":301,"v":0}`)
		x.wantTold(f, "public.p1", "public.p2", "public.p2a", "public.p3")
		x.exec("TRUNCATE p1", "TRUNCATE p2")
		x.wantDrain(f, cursor) // nothing has fired
		x.follows(f)
		cursor = x.wantLines(f, cursor, gone(100), gone(200), `upsert {"id":300,"v":0}`, `upsert {"id":301,"v":0}`)
		x.wantTold(f)
		x.exec("INSERT INTO p VALUES (101, 0), (201, 0)")
		_, cursor = x.drain(f, cursor)
		x.exec("TRUNCATE p1, p2a, p3")
		x.wantLines(f, cursor, gone(101), gone(201), gone(300), gone(301))
		x.wantSound(f)
	})
}

// TestTruncateAboveNewPartitions (V4): a TRUNCATE of a table above new partitions is captured with their rows,
// before a publisher has seen them.
func TestTruncateAboveNewPartitions(t *testing.T) {
	eachPartitioned(t, func(x *env) {
		f := x.addPartitioned()
		x.exec("CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (100) TO (200) PARTITION BY RANGE (id)",
			"CREATE TABLE p1a PARTITION OF p1 FOR VALUES FROM (100) TO (150)", "INSERT INTO p VALUES (1, 0), (100, 0)")
		cursor := x.wantDrain(f, "", `upsert {"id":1,"v":0}`, `upsert {"id":100,"v":0}`)
		x.mustFail("TRUNCATE ONLY p")
		x.exec("TRUNCATE p")
		x.wantLines(f, cursor, gone(100), gone(1))
	})
}

// TestRowsOfDetachedPartitionsAreDeleted (V4): the rows of partitions that are detached or dropped are
// published as deleted, those of one that comes back as they are, unasked.
func TestRowsOfDetachedPartitionsAreDeleted(t *testing.T) {
	eachPartitioned(t, func(x *env) {
		f := x.addPartitioned()
		x.exec(partition("p1", 100, 200), partition("p2", 200, 300),
			"INSERT INTO p VALUES (1, 0), (100, 0), (101, 0), (200, 0)")
		x.follows(f)
		_, cursor := x.drain(f, "")
		x.exec("ALTER TABLE p DETACH PARTITION p1", "DROP TABLE p2")
		x.follows(f)
		cursor = x.wantLines(f, cursor, gone(100), gone(101), gone(200))
		x.exec("DELETE FROM p1 WHERE id = 100", attach("p1", 100, 200))
		x.follows(f)
		cursor = x.wantLines(f, cursor, `upsert {"id":101,"v":0}`)
		// Between two looks it goes and comes back without a row.
		x.exec("ALTER TABLE p DETACH PARTITION p1", "DELETE FROM p1",
			attach("p1", 100, 200))
		x.follows(f)
		x.wantLines(f, cursor, gone(101))
	})
}

// TestRewrittenPartitionIsPublished (V4): a copy of a partition with other rows takes its place in one
// transaction. Its keys have positions already, and its rows are published all the same.
func TestRewrittenPartitionIsPublished(t *testing.T) {
	eachPartitioned(t, func(x *env) {
		f := x.addPartitioned()
		x.exec("INSERT INTO p VALUES (1, 0), (2, 0)")
		_, cursor := x.drain(f, "")
		x.exec("CREATE TABLE other (LIKE p0 INCLUDING ALL)", "INSERT INTO other SELECT id, v + id FROM p0",
			"ALTER TABLE p DETACH PARTITION p0; "+attach("other", 0, 100))
		if _, err := f.Admin().Upgrade(x.ctx); err != nil {
			x.Fatal(err)
		}
		x.wantLines(f, cursor, `upsert {"id":1,"v":1}`, `upsert {"id":2,"v":2}`)
		x.wantSound(f)
	})
}

// TestPartitionGoesBesideAPass (V4): a key gets its position after the sequence was read, and its partition
// goes before the list of partitions is read.
func TestPartitionGoesBesideAPass(t *testing.T) {
	eachPartitioned(t, func(x *env) {
		f := x.addPartitioned()
		x.exec(partition("p1", 100, 200), "INSERT INTO p VALUES (1, 0), (100, 0)")
		if _, err := f.Admin().Upgrade(x.ctx); err != nil {
			x.Fatal(err)
		}
		_, cursor := x.drain(f, "")
		valued, gone := false, false
		rf := x.tappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			switch {
			case strings.HasPrefix(ev.SQL, "SELECT value FROM"):
				valued = true
			case valued && !gone && strings.Contains(ev.SQL, "pg_partition_tree"):
				gone = true
				x.exec("INSERT INTO p VALUES (150, 0)")
				x.publish(f)
				x.exec("ALTER TABLE p DETACH PARTITION p1")
			}
			return nil
		}}, nil)
		following, err := rf.Feed(x.ctx, "p")
		if err != nil {
			x.Fatal(err)
		}
		if _, err := following.Admin().Upgrade(x.ctx); err != nil {
			x.Fatal(err)
		}
		if !gone {
			x.Fatal("the partition did not go between the two")
		}
		x.wantLines(f, cursor, `delete {"id":100}`, `delete {"id":150}`)
		x.wantSound(f)
	})
}

// TestPublisherEndsWithinPartitions (V4): a publisher that ends between making a partition's trigger and
// recording what was missed leaves that to the next one, also when the partition is gone by then.
func TestPublisherEndsWithinPartitions(t *testing.T) {
	eachPartitioned(t, func(x *env) {
		f := x.addPartitioned()
		fails := x.db.OpenTapped(x.T, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "max(x.at)") {
				return testdb.ErrInjected
			}
			return nil
		}})
		cursor := rowfeed.Cursor("")
		for i, goes := range []string{"TRUNCATE p1", "DROP TABLE p2"} {
			id := 100 * (i + 1)
			x.exec(partition(fmt.Sprintf("p%d", i+1), id, id+100), fmt.Sprintf("INSERT INTO p VALUES (%d, 0)", id))
			_, cursor = x.drain(f, cursor)
			if i == 0 {
				x.exec(goes)
			}
			x.whilePublishingOn(fails, "the publisher fails", func(t *troubles) bool {
				return t.tells("record the keys of partitions")
			})
			x.wantTold(f)
			if i == 1 {
				x.exec(goes)
			}
			x.follows(f)
			cursor = x.wantLines(f, cursor, gone(id))
		}
	})
}

// TestManyRowsOfPartitions (V4): what came and went with partitions is found in steps, up to the last key.
func TestManyRowsOfPartitions(t *testing.T) {
	eachPartitioned(t, func(x *env) {
		f := x.addPartitioned()
		const rows = 4_501 // more than two steps
		x.exec(partition("p1", 1000, 10000), "CREATE TABLE p2 (id bigint PRIMARY KEY, v int)",
			fmt.Sprintf("INSERT INTO p SELECT 1000 + n, 0 FROM generate_series(1, %d) n", rows),
			fmt.Sprintf("INSERT INTO p2 SELECT 10000 + n, 0 FROM generate_series(1, %d) n", rows))
		_, cursor := x.drain(f, "")
		x.exec("TRUNCATE p1", attach("p2", 10000, 20000))
		x.follows(f)
		lines, cursor := x.drain(f, cursor)
		if len(lines) != 2*rows {
			x.Errorf("%d entries, want %d", len(lines), 2*rows)
		}
		x.exec("DROP TABLE p2")
		x.follows(f)
		if lines, _ = x.drain(f, cursor); len(lines) != rows {
			x.Errorf("%d entries, want %d", len(lines), rows)
		}
	})
}

// TestTriggerOfPartitionDropped (V4): a partition whose trigger for TRUNCATE was dropped is taken in like a new
// one, and a TRUNCATE of rows that were there long before is found.
func TestTriggerOfPartitionDropped(t *testing.T) {
	testdb.Quick(t)
	eachPartitioned(t, func(x *env) {
		f := x.addPartitioned()
		x.exec("INSERT INTO p VALUES (1, 0)")
		x.follows(f)
		_, cursor := x.drain(f, "")
		x.exec(partition("p1", 100, 200))
		x.follows(f) // from here on positions below the head are known to be in order
		x.exec("DROP TRIGGER rowfeed_p_truncate ON p0", "TRUNCATE p0")
		x.follows(f)
		x.wantLines(f, cursor, gone(1))
		x.exec("DROP TRIGGER rowfeed_p_capture ON p")
		if problems, err := f.Admin().Verify(x.ctx); err != nil || len(problems) != 3 {
			x.Errorf("without the triggers for rows: %q %v, want one of each table", problems, err)
		}
	})
}

// TestPartitionOfAnotherRole (V4): a publisher that may not make the trigger names the missing right and both
// remedies. The feed stays ready, and `feed upgrade` makes the trigger and records what was missed.
func TestPartitionOfAnotherRole(t *testing.T) {
	eachPartitioned(t, func(x *env) {
		f := x.addPartitioned()
		role := "publisher_" + x.db.Name
		x.exec("CREATE ROLE "+role, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO "+role,
			partition("p1", 100, 200), "INSERT INTO p VALUES (100, 0)")
		x.Cleanup(func() { x.exec("DROP OWNED BY "+role+" CASCADE", "DROP ROLE "+role) })
		_, cursor := x.drain(f, "")
		x.exec("TRUNCATE p1")
		owner := x.text("SELECT quote_ident(pg_get_userbyid(relowner)) FROM pg_class WHERE relname = 'p1'")
		x.as(role, func() {
			x.whilePublishing("the publisher names the right", func(t *troubles) bool {
				return t.tells("p1 has no trigger for TRUNCATE", "no member of the role "+owner, "`rowfeed feed upgrade p` as a member of "+owner,
					"GRANT "+owner+" TO "+role)
			})
			_, err := f.Admin().Upgrade(x.ctx)
			x.wantCode(err, rowfeed.Refused)
		})
		x.wantTold(f, "public.p1")
		mended, err := f.Admin().Upgrade(x.ctx)
		if err != nil || len(mended) != 1 || !strings.Contains(mended[0], "public.p1") {
			x.Errorf("upgrade: %q %v", mended, err)
		}
		x.wantTold(f)
		cursor = x.wantLines(f, cursor, gone(100))

		// The role that runs the trigger could not read the partition, and TRUNCATE would fail.
		other := "other_" + x.db.Name
		x.exec("CREATE ROLE "+other, "GRANT CREATE ON SCHEMA public TO "+other,
			"ALTER FUNCTION rowfeed_p_truncate() OWNER TO "+role, partition("p9", 900, 1000), "ALTER TABLE p9 OWNER TO "+other)
		x.Cleanup(func() { x.exec("DROP OWNED BY "+other+" CASCADE", "DROP ROLE "+other) })
		grant := `GRANT SELECT ON "public"."p9" TO ` + role
		x.whilePublishing("the publisher names the right", func(t *troubles) bool {
			return t.tells("p9 has no trigger for TRUNCATE", "the role "+role, "may not read it", grant)
		})
		x.exec(grant)
		x.follows(f)
		x.exec("SET ROLE "+other+"; TRUNCATE p9; RESET ROLE", "ALTER FUNCTION rowfeed_p_truncate() OWNER TO CURRENT_USER")

		// It may not record keys either, once triggers are another's task.
		x.exec("REVOKE INSERT ON rowfeed_changes_p FROM "+role,
			"CREATE TABLE p2 (id bigint PRIMARY KEY, v int)", "INSERT INTO p2 VALUES (200, 0)",
			attach("p2", 200, 300), "GRANT SELECT ON p2 TO "+role,
			"CREATE TRIGGER rowfeed_p_truncate BEFORE TRUNCATE ON p2 EXECUTE FUNCTION rowfeed_p_truncate()",
			"ALTER TABLE p2 ENABLE ALWAYS TRIGGER rowfeed_p_truncate")
		x.as(role, func() {
			x.whilePublishing("the publisher names the right", func(t *troubles) bool {
				return t.tells("record the keys", "grant it INSERT on public.rowfeed_changes_p", "`rowfeed feed upgrade p`")
			})
		})
		if _, err := f.Admin().Upgrade(x.ctx); err != nil {
			x.Error(err)
		}
		x.wantLines(f, cursor, `upsert {"id":200,"v":0}`)
	})
}

// TestPublisherMayFollowPartitions (V4): a login with a publisher's rights, a member of the role that owns the
// table, makes the triggers of new partitions and records what was missed.
func TestPublisherMayFollowPartitions(t *testing.T) {
	eachPartitioned(t, func(x *env) {
		owner, publisher := "owner_"+x.db.Name, "publisher_"+x.db.Name
		x.exec("CREATE ROLE "+owner, "CREATE ROLE "+publisher+" IN ROLE "+owner, "GRANT CREATE ON SCHEMA public TO "+owner)
		x.Cleanup(func() {
			x.exec("DROP OWNED BY "+publisher+" CASCADE", "DROP OWNED BY "+owner+" CASCADE",
				"DROP ROLE "+publisher, "DROP ROLE "+owner)
		})
		x.exec("SET ROLE " + owner + "; " + partitioned + "; " + partition("p0", 0, 100) + "; RESET ROLE")
		f := x.add(rowfeed.FeedSpec{Name: "p", Table: "p"})
		x.exec("GRANT SELECT ON rowfeed_schema_version TO "+publisher,
			"GRANT SELECT, UPDATE ON rowfeed_feeds, rowfeed_sequences TO "+publisher,
			"GRANT SELECT, INSERT, UPDATE ON rowfeed_leases TO "+publisher,
			"GRANT SELECT, INSERT, DELETE ON rowfeed_changes_p TO "+publisher,
			"GRANT SELECT, INSERT, UPDATE, DELETE ON rowfeed_positions_p TO "+publisher)
		x.exec("SET ROLE " + owner + "; " + partition("p1", 100, 200) + "; INSERT INTO p VALUES (100, 0); " +
			"CREATE TABLE p2 (id bigint PRIMARY KEY, v int); INSERT INTO p2 VALUES (200, 0); RESET ROLE")
		cursor := x.wantLines(f, "", `upsert {"id":100,"v":0}`)
		x.exec("SET ROLE " + owner + "; TRUNCATE p1; " + attach("p2", 200, 300) + "; RESET ROLE")
		x.as(publisher, func() { x.follows(f) })
		x.wantLines(f, cursor, gone(100), `upsert {"id":200,"v":0}`)
	})
}

// as runs fn while rowfeed's pool logs in as a role.
func (x *env) as(role string, fn func()) {
	x.Helper()
	x.exec("GRANT " + role + " TO CURRENT_USER")
	set := func(to string) {
		x.exec("ALTER ROLE CURRENT_USER IN DATABASE " + x.db.Name + to)
		x.pool.SetMaxIdleConns(0)
		x.pool.SetMaxIdleConns(8)
	}
	set(" SET role = " + role)
	defer set(" RESET role")
	fn()
}

func (x *env) text(query string) (text string) {
	x.Helper()
	if err := x.db.Admin().QueryRowContext(x.ctx, query).Scan(&text); err != nil {
		x.Fatalf("%s: %v", query, err)
	}
	return text
}

// TestNewPartitionIsHeld (V4): a transaction that has written to a new partition keeps the publisher from
// making its trigger. The publisher gives up, says so, publishes meanwhile, and tries again.
func TestNewPartitionIsHeld(t *testing.T) {
	eachPartitioned(t, func(x *env) {
		f := x.addPartitioned()
		x.exec(partition("p1", 100, 200), "INSERT INTO p VALUES (1, 0)")
		held := x.begin(0)
		x.in(held, "INSERT INTO p1 VALUES (100, 0)")
		x.whilePublishing("the publisher gives up", func(t *troubles) bool {
			return t.tells("p1 has no trigger for TRUNCATE", "the publisher tries again within a minute")
		})
		x.wantTold(f, "public.p1")
		x.commit(held)
		x.follows(f)
		x.wantLines(f, "", `upsert {"id":1,"v":0}`, `upsert {"id":100,"v":0}`)
	})
}

// TestPartitionsOfOutbox (V4): rows that ATTACH brings to the table of a feed with an outbox get records
// unasked.
func TestPartitionsOfOutbox(t *testing.T) {
	testdb.Quick(t)
	eachPartitioned(t, func(x *env) {
		x.exec(partitioned, partition("p0", 0, 100))
		f := x.add(rowfeed.FeedSpec{Name: "p", Table: "p", Mode: rowfeed.ModeOutbox, Capture: "trigger"})
		x.exec(partition("p1", 100, 200), "CREATE TABLE p2 (id bigint PRIMARY KEY, v int)",
			"INSERT INTO p2 VALUES (200, 0)", attach("p2", 200, 300),
			"INSERT INTO p VALUES (1, 0), (100, 0), (201, 0)")
		x.wantTold(f)
		var ids []string
		x.whilePublishing("all rows have places", func(*troubles) bool {
			page, err := f.Fetch(x.ctx, rowfeed.Request{Shards: rowfeed.One(0)})
			if err != nil {
				x.Fatal(err)
			}
			ids = nil
			for _, e := range page.Entries {
				ids = append(ids, line(e))
			}
			return len(ids) == 4
		})
		slices.Sort(ids)
		want := []string{`upsert {"id":1,"v":0}`, `upsert {"id":100,"v":0}`,
			`upsert {"id":200,"v":0}`, `upsert {"id":201,"v":0}`}
		if !slices.Equal(ids, want) {
			x.Errorf("entries %q, want %q", ids, want)
		}
	})
}

// TestPartitionsOfOutboxWithRecordsWaiting (V4): an upgrade follows a partition that was attached while records of other
// rows wait, and gives all of them places.
func TestPartitionsOfOutboxWithRecordsWaiting(t *testing.T) {
	eachPartitioned(t, func(x *env) {
		x.exec(partitioned, partition("p0", 0, 100))
		f := x.add(rowfeed.FeedSpec{Name: "p", Table: "p", Mode: rowfeed.ModeOutbox, Capture: "trigger"})
		x.exec("CREATE TABLE p2 (id bigint PRIMARY KEY, v int)", "INSERT INTO p2 VALUES (200, 0)",
			"INSERT INTO p VALUES (1, 0)", attach("p2", 200, 300))
		if _, err := f.Admin().Upgrade(x.ctx); err != nil {
			t.Fatal(err)
		}
		events := &events{x, f}
		events.wantShard(0, 1, 200)
	})
}

// TestNewPartitionsWithPositions (V4): with capture column a new partition gets its indexes from PostgreSQL,
// and rows that ATTACH brings without a position are published.
func TestNewPartitionsWithPositions(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...)
	eachColumn(t, func(x *env) {
		x.exec(partitioned, partition("p0", 0, 100))
		f := x.add(rowfeed.FeedSpec{Name: "p", Table: "p", Columns: []string{"id", "v"}})
		x.exec(partition("p1", 100, 200), "CREATE TABLE p2 (LIKE p INCLUDING DEFAULTS, PRIMARY KEY (id))")
		x.db.Exec(x.T, "INSERT INTO p2 (id, v) VALUES (200, 0)")
		x.exec(attach("p2", 200, 300))
		x.db.Exec(x.T, "INSERT INTO p (id, v) VALUES (100, 0)")
		x.wantLines(f, "", `upsert {"id":100,"v":0}`, `upsert {"id":200,"v":0}`)
		x.wantTold(f)
		indexes := func(table string) int64 {
			return x.scalar("SELECT count(*) FROM pg_index WHERE indrelid = '" + table + "'::regclass")
		}
		if indexes("p1") != indexes("p0") || indexes("p2") != indexes("p0") {
			x.Errorf("%d and %d indexes, want %d", indexes("p1"), indexes("p2"), indexes("p0"))
		}
	})
}

// TestForeignTablesAreNoPartitions (V4): PostgreSQL itself refuses a foreign table as a partition of a table
// that can have a feed, since that has a unique index.
func TestForeignTablesAreNoPartitions(t *testing.T) {
	eachPartitioned(t, func(x *env) {
		x.addPartitioned()
		x.exec("CREATE FOREIGN DATA WRAPPER away", "CREATE SERVER there FOREIGN DATA WRAPPER away",
			"CREATE FOREIGN TABLE far (id bigint NOT NULL, v int) SERVER there")
		x.mustFail("CREATE FOREIGN TABLE p1 PARTITION OF p FOR VALUES FROM (100) TO (200) SERVER there")
		x.mustFail(attach("far", 100, 200))
	})
}
