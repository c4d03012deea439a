package capture

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// eachPartitioned runs f on every engine on which new partitions lack something: PostgreSQL.
func eachPartitioned(t *testing.T, f func(x *suite.Env)) {
	t.Helper()
	testdb.Only(t, testdb.PostgreSQL...)
	suite.Each(t, f)
}

const partitioned = "CREATE TABLE p (id bigint PRIMARY KEY, v int) PARTITION BY RANGE (id)"

func partition(name string, from, to int) string {
	return fmt.Sprintf("CREATE TABLE %s PARTITION OF p FOR VALUES FROM (%d) TO (%d)", name, from, to)
}

func attach(name string, from, to int) string {
	return fmt.Sprintf("ALTER TABLE p ATTACH PARTITION %s FOR VALUES FROM (%d) TO (%d)", name, from, to)
}

// addPartitioned makes the table p(id, v) with a partition for 0 to 99, and its feed.
func addPartitioned(x *suite.Env) *rowfeed.Feed {
	x.Helper()
	x.Exec(partitioned, partition("p0", 0, 100))
	return x.Add(rowfeed.FeedSpec{Name: "p", Table: "p"})
}

// tells whether one of the troubles has all the words.
func tells(t *suite.Troubles, words ...string) bool {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	return slices.ContainsFunc(t.Told, func(text string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
	})
}

// whilePublishing runs a publisher, whose first look begins at once, until the condition holds.
func whilePublishing(x *suite.Env, until string, ok func(t *suite.Troubles) bool) {
	x.Helper()
	whilePublishingOn(x, x.Pool, until, ok)
}

func whilePublishingOn(x *suite.Env, pool *sql.DB, until string, ok func(t *suite.Troubles) bool) {
	x.Helper()
	t := &suite.Troubles{}
	rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, &rowfeed.Config{Observer: t.Observer()})
	if err != nil {
		x.Fatal(err)
	}
	f, err := rf.Feed(x.Ctx, "p")
	if err != nil {
		x.Fatal(err)
	}
	ctx, stop := context.WithCancel(x.Ctx)
	ended := make(chan error, 1)
	go func() { ended <- f.RunPublisher(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			x.Errorf("RunPublisher: %v", err)
		}
	}()
	x.Eventually(until, func() bool { return ok(t) })
}

// follows runs a publisher until exactly the keys of the table have positions that are not deleted, and no new
// partition is left.
func follows(x *suite.Env, f *rowfeed.Feed) {
	x.Helper()
	whilePublishing(x, "the publisher has followed the partitions", func(*suite.Troubles) bool {
		fresh, err := f.Admin().VerifyPartitions(x.Ctx)
		return err == nil && len(fresh) == 0 &&
			x.Scalar(`SELECT COALESCE(json_array_length(o#>'{taken}'), 0) + abs(json_array_length(o#>'{attached}') -
  (SELECT count(*) FROM pg_partition_tree('p') WHERE isleaf)) 
  FROM (SELECT options::json#>'{partitions}' AS o FROM rowfeed_feeds) x`) == 0 &&
			x.Scalar(`SELECT count(*) FROM p FULL JOIN (SELECT id FROM rowfeed_positions_p WHERE deleted = 0) q USING (id)
  WHERE p.id IS NULL OR q.id IS NULL`) == 0
	})
	x.WantSound(f)
}

// wantTold asserts what status says of new partitions, and that this does not count against readiness.
func wantTold(x *suite.Env, f *rowfeed.Feed, partitions ...string) {
	x.Helper()
	status, err := f.Admin().Status(x.Ctx)
	if err != nil || len(status.Problems) != len(partitions) {
		x.Fatalf("status: %q %v, want a problem of each of %q", status.Problems, err, partitions)
	}
	for i, name := range partitions {
		problem := status.Problems[i]
		if !strings.Contains(problem, "partition "+name+" has no trigger for TRUNCATE") || !strings.Contains(problem, "rowfeed feed upgrade p") {
			x.Errorf("status: %q, want %s named with the next step", problem, name)
		}
	}
	if problems, err := f.Admin().Verify(x.Ctx); err != nil || len(problems) != 0 {
		x.Errorf("not ready: %q %v", problems, err)
	}
}

// wantLines asserts what is new above the cursor, in any order, keys that came twice once.
func wantLines(x *suite.Env, f *rowfeed.Feed, after rowfeed.Cursor, want ...string) rowfeed.Cursor {
	x.Helper()
	lines, cursor := x.Drain(f, after)
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
	eachPartitioned(t, func(x *suite.Env) {
		f := addPartitioned(x)
		x.Exec("INSERT INTO p VALUES (1, 0), (2, 0)")
		cursor := x.WantDrain(f, "", `upsert {"id":1,"v":0}`, `upsert {"id":2,"v":0}`)
		x.Exec(partition("p1", 100, 200),
			"CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (200) TO (300) PARTITION BY RANGE (id)",
			"CREATE TABLE p2a PARTITION OF p2 FOR VALUES FROM (200) TO (250)",
			"CREATE TABLE p3 (id bigint PRIMARY KEY, v int)", "INSERT INTO p3 VALUES (300, 0)",
			attach("p3", 300, 400),
			"INSERT INTO p VALUES (100, 0), (200, 0), (301, 0)")
		cursor = x.WantDrain(f, cursor, `upsert {"id":100,"v":0}`, `upsert {"id":200,"v":0}`, `upsert {"id":301,"v":0}`)
		wantTold(x, f, "public.p1", "public.p2", "public.p2a", "public.p3")
		x.Exec("TRUNCATE p1", "TRUNCATE p2")
		x.WantDrain(f, cursor) // nothing has fired
		follows(x, f)
		cursor = wantLines(x, f, cursor, suite.Gone(100), suite.Gone(200), `upsert {"id":300,"v":0}`, `upsert {"id":301,"v":0}`)
		wantTold(x, f)
		x.Exec("INSERT INTO p VALUES (101, 0), (201, 0)")
		_, cursor = x.Drain(f, cursor)
		x.Exec("TRUNCATE p1, p2a, p3")
		wantLines(x, f, cursor, suite.Gone(101), suite.Gone(201), suite.Gone(300), suite.Gone(301))
		x.WantSound(f)
	})
}

// TestTruncateAboveNewPartitions (V4): a TRUNCATE of a table above new partitions is captured with their rows,
// before a publisher has seen them.
func TestTruncateAboveNewPartitions(t *testing.T) {
	eachPartitioned(t, func(x *suite.Env) {
		f := addPartitioned(x)
		x.Exec("CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (100) TO (200) PARTITION BY RANGE (id)",
			"CREATE TABLE p1a PARTITION OF p1 FOR VALUES FROM (100) TO (150)", "INSERT INTO p VALUES (1, 0), (100, 0)")
		cursor := x.WantDrain(f, "", `upsert {"id":1,"v":0}`, `upsert {"id":100,"v":0}`)
		x.MustFail("TRUNCATE ONLY p")
		x.Exec("TRUNCATE p")
		wantLines(x, f, cursor, suite.Gone(100), suite.Gone(1))
	})
}

// TestRowsOfDetachedPartitionsAreDeleted (V4): the rows of partitions that are detached or dropped are
// published as deleted, those of one that comes back as they are, unasked.
func TestRowsOfDetachedPartitionsAreDeleted(t *testing.T) {
	eachPartitioned(t, func(x *suite.Env) {
		f := addPartitioned(x)
		x.Exec(partition("p1", 100, 200), partition("p2", 200, 300),
			"INSERT INTO p VALUES (1, 0), (100, 0), (101, 0), (200, 0)")
		follows(x, f)
		_, cursor := x.Drain(f, "")
		x.Exec("ALTER TABLE p DETACH PARTITION p1", "DROP TABLE p2")
		follows(x, f)
		cursor = wantLines(x, f, cursor, suite.Gone(100), suite.Gone(101), suite.Gone(200))
		x.Exec("DELETE FROM p1 WHERE id = 100", attach("p1", 100, 200))
		follows(x, f)
		cursor = wantLines(x, f, cursor, `upsert {"id":101,"v":0}`)
		// Between two looks it goes and comes back without a row.
		x.Exec("ALTER TABLE p DETACH PARTITION p1", "DELETE FROM p1",
			attach("p1", 100, 200))
		follows(x, f)
		wantLines(x, f, cursor, suite.Gone(101))
	})
}

// TestRewrittenPartitionIsPublished (V4): a copy of a partition with other rows takes its place in one
// transaction. Its keys have positions already, and its rows are published all the same.
func TestRewrittenPartitionIsPublished(t *testing.T) {
	eachPartitioned(t, func(x *suite.Env) {
		f := addPartitioned(x)
		x.Exec("INSERT INTO p VALUES (1, 0), (2, 0)")
		_, cursor := x.Drain(f, "")
		x.Exec("CREATE TABLE other (LIKE p0 INCLUDING ALL)", "INSERT INTO other SELECT id, v + id FROM p0",
			"ALTER TABLE p DETACH PARTITION p0; "+attach("other", 0, 100))
		if _, err := f.Admin().Upgrade(x.Ctx); err != nil {
			x.Fatal(err)
		}
		wantLines(x, f, cursor, `upsert {"id":1,"v":1}`, `upsert {"id":2,"v":2}`)
		x.WantSound(f)
	})
}

// TestPartitionGoesBesideAPass (V4): a key gets its position after the sequence was read, and its partition
// goes before the list of partitions is read.
func TestPartitionGoesBesideAPass(t *testing.T) {
	eachPartitioned(t, func(x *suite.Env) {
		f := addPartitioned(x)
		x.Exec(partition("p1", 100, 200), "INSERT INTO p VALUES (1, 0), (100, 0)")
		if _, err := f.Admin().Upgrade(x.Ctx); err != nil {
			x.Fatal(err)
		}
		_, cursor := x.Drain(f, "")
		valued, gone := false, false
		rf := x.TappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			switch {
			case strings.HasPrefix(ev.SQL, "SELECT value FROM"):
				valued = true
			case valued && !gone && strings.Contains(ev.SQL, "pg_partition_tree"):
				gone = true
				x.Exec("INSERT INTO p VALUES (150, 0)")
				x.Publish(f)
				x.Exec("ALTER TABLE p DETACH PARTITION p1")
			}
			return nil
		}}, nil)
		following, err := rf.Feed(x.Ctx, "p")
		if err != nil {
			x.Fatal(err)
		}
		if _, err := following.Admin().Upgrade(x.Ctx); err != nil {
			x.Fatal(err)
		}
		if !gone {
			x.Fatal("the partition did not go between the two")
		}
		wantLines(x, f, cursor, `delete {"id":100}`, `delete {"id":150}`)
		x.WantSound(f)
	})
}

// TestPublisherEndsWithinPartitions (V4): a publisher that ends between making a partition's trigger and
// recording what was missed leaves that to the next one, also when the partition is gone by then.
func TestPublisherEndsWithinPartitions(t *testing.T) {
	eachPartitioned(t, func(x *suite.Env) {
		f := addPartitioned(x)
		fails := x.DB.OpenTapped(x.T, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "max(x.at)") {
				return testdb.ErrInjected
			}
			return nil
		}})
		cursor := rowfeed.Cursor("")
		for i, goes := range []string{"TRUNCATE p1", "DROP TABLE p2"} {
			id := 100 * (i + 1)
			x.Exec(partition(fmt.Sprintf("p%d", i+1), id, id+100), fmt.Sprintf("INSERT INTO p VALUES (%d, 0)", id))
			_, cursor = x.Drain(f, cursor)
			if i == 0 {
				x.Exec(goes)
			}
			whilePublishingOn(x, fails, "the publisher fails", func(t *suite.Troubles) bool {
				return tells(t, "record the keys of partitions")
			})
			wantTold(x, f)
			if i == 1 {
				x.Exec(goes)
			}
			follows(x, f)
			cursor = wantLines(x, f, cursor, suite.Gone(id))
		}
	})
}

// TestManyRowsOfPartitions (V4): what came and went with partitions is found in steps, up to the last key.
func TestManyRowsOfPartitions(t *testing.T) {
	eachPartitioned(t, func(x *suite.Env) {
		f := addPartitioned(x)
		const rows = 4_501 // more than two steps
		x.Exec(partition("p1", 1000, 10000), "CREATE TABLE p2 (id bigint PRIMARY KEY, v int)",
			fmt.Sprintf("INSERT INTO p SELECT 1000 + n, 0 FROM generate_series(1, %d) n", rows),
			fmt.Sprintf("INSERT INTO p2 SELECT 10000 + n, 0 FROM generate_series(1, %d) n", rows))
		_, cursor := x.Drain(f, "")
		x.Exec("TRUNCATE p1", attach("p2", 10000, 20000))
		follows(x, f)
		lines, cursor := x.Drain(f, cursor)
		if len(lines) != 2*rows {
			x.Errorf("%d entries, want %d", len(lines), 2*rows)
		}
		x.Exec("DROP TABLE p2")
		follows(x, f)
		if lines, _ = x.Drain(f, cursor); len(lines) != rows {
			x.Errorf("%d entries, want %d", len(lines), rows)
		}
	})
}

// TestTriggerOfPartitionDropped (V4): a partition whose trigger for TRUNCATE was dropped is taken in like a new
// one, and a TRUNCATE of rows that were there long before is found.
func TestTriggerOfPartitionDropped(t *testing.T) {
	testdb.Quick(t)
	eachPartitioned(t, func(x *suite.Env) {
		f := addPartitioned(x)
		x.Exec("INSERT INTO p VALUES (1, 0)")
		follows(x, f)
		_, cursor := x.Drain(f, "")
		x.Exec(partition("p1", 100, 200))
		follows(x, f) // from here on positions below the head are known to be in order
		x.Exec("DROP TRIGGER rowfeed_p_truncate ON p0", "TRUNCATE p0")
		follows(x, f)
		wantLines(x, f, cursor, suite.Gone(1))
		x.Exec("DROP TRIGGER rowfeed_p_capture ON p")
		if problems, err := f.Admin().Verify(x.Ctx); err != nil || len(problems) != 3 {
			x.Errorf("without the triggers for rows: %q %v, want one of each table", problems, err)
		}
	})
}

// TestNewPartitionIsHeld (V4): a transaction that has written to a new partition keeps the publisher from
// making its trigger. The publisher gives up, says so, publishes meanwhile, and tries again.
func TestNewPartitionIsHeld(t *testing.T) {
	eachPartitioned(t, func(x *suite.Env) {
		f := addPartitioned(x)
		x.Exec(partition("p1", 100, 200), "INSERT INTO p VALUES (1, 0)")
		held := x.Begin(0)
		x.In(held, "INSERT INTO p1 VALUES (100, 0)")
		whilePublishing(x, "the publisher gives up", func(t *suite.Troubles) bool {
			return tells(t, "p1 has no trigger for TRUNCATE", "the publisher tries again within a minute")
		})
		wantTold(x, f, "public.p1")
		x.Commit(held)
		follows(x, f)
		wantLines(x, f, "", `upsert {"id":1,"v":0}`, `upsert {"id":100,"v":0}`)
	})
}

// TestNewPartitionsWithPositions (V4): with capture column a new partition gets its indexes from PostgreSQL,
// and rows that ATTACH brings without a position are published.
func TestNewPartitionsWithPositions(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...)
	suite.EachColumn(t, func(x *suite.Env) {
		x.Exec(partitioned, partition("p0", 0, 100))
		f := x.Add(rowfeed.FeedSpec{Name: "p", Table: "p", Columns: []string{"id", "v"}})
		x.Exec(partition("p1", 100, 200), "CREATE TABLE p2 (LIKE p INCLUDING DEFAULTS, PRIMARY KEY (id))")
		x.DB.Exec(x.T, "INSERT INTO p2 (id, v) VALUES (200, 0)")
		x.Exec(attach("p2", 200, 300))
		x.DB.Exec(x.T, "INSERT INTO p (id, v) VALUES (100, 0)")
		wantLines(x, f, "", `upsert {"id":100,"v":0}`, `upsert {"id":200,"v":0}`)
		wantTold(x, f)
		indexes := func(table string) int64 {
			return x.Scalar("SELECT count(*) FROM pg_index WHERE indrelid = '" + table + "'::regclass")
		}
		if indexes("p1") != indexes("p0") || indexes("p2") != indexes("p0") {
			x.Errorf("%d and %d indexes, want %d", indexes("p1"), indexes("p2"), indexes("p0"))
		}
	})
}

// TestForeignTablesAreNoPartitions (V4): PostgreSQL itself refuses a foreign table as a partition of a table
// that can have a feed, since that has a unique index.
func TestForeignTablesAreNoPartitions(t *testing.T) {
	eachPartitioned(t, func(x *suite.Env) {
		addPartitioned(x)
		x.Exec("CREATE FOREIGN DATA WRAPPER away", "CREATE SERVER there FOREIGN DATA WRAPPER away",
			"CREATE FOREIGN TABLE far (id bigint NOT NULL, v int) SERVER there")
		x.MustFail("CREATE FOREIGN TABLE p1 PARTITION OF p FOR VALUES FROM (100) TO (200) SERVER there")
		x.MustFail(attach("far", 100, 200))
	})
}
