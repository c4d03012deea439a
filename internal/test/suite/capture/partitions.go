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

// eachPartitioned runs f on PostgreSQL, the only database on which new partitions lack triggers.
func eachPartitioned(t *testing.T, f func(x *suite.Env)) {
	t.Helper()
	testdb.Only(t, testdb.PostgreSQL...)
	suite.Each(t, f)
}

// partitioned returns the statement that makes the partitioned table p(id, v).
func partitioned(x *suite.Env) string { return x.Text("capture.partitioned_table") }

// partition returns the statement that makes a partition of p.
func partition(x *suite.Env, name string, from, to int) string {
	return x.Text("capture.make_partition", name, from, to)
}

// attach returns the statement that makes a table a partition of p.
func attach(x *suite.Env, name string, from, to int) string {
	return x.Text("capture.attach_partition", name, from, to)
}

// detach returns the statement that makes a partition of p a table of its own.
func detach(x *suite.Env, name string) string { return x.Text("capture.detach_partition", name) }

// addPartitioned makes the table p(id, v) with a partition for 0 to 99, and its feed.
func addPartitioned(x *suite.Env) *rowfeed.Feed {
	x.Helper()
	x.Exec(partitioned(x), partition(x, "p0", 0, 100))
	return x.Add(rowfeed.FeedSpec{Name: "p", Table: "p"})
}

// tells tells whether an error that the observer got has all the words.
func tells(t *suite.Troubles, words ...string) bool {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	return slices.ContainsFunc(t.Told, func(text string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
	})
}

// whilePublishing runs a publisher, which reads the list of partitions at once, until the condition holds.
func whilePublishing(x *suite.Env, until string, ok func(t *suite.Troubles) bool) {
	x.Helper()
	whilePublishingOn(x, x.Pool, until, ok)
}

// whilePublishingOn is whilePublishing with a pool of connections.
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

// follows runs a publisher until no new partition is left, and exactly the keys of the table have positions that are
// not deleted.
func follows(x *suite.Env, f *rowfeed.Feed) {
	x.Helper()
	whilePublishing(x, "the publisher has followed the partitions", func(*suite.Troubles) bool {
		fresh, err := f.Admin().VerifyPartitions(x.Ctx)
		return err == nil && len(fresh) == 0 && x.Scalar(x.Text("capture.count_partitions_to_record")) == 0 &&
			x.Scalar(x.Text("capture.count_keys_to_publish")) == 0
	})
	x.WantSound(f)
}

// wantTold asserts what status says of new partitions, and that the feed is ready.
func wantTold(x *suite.Env, f *rowfeed.Feed, partitions ...string) {
	x.Helper()
	status, err := f.Admin().Status(x.Ctx)
	if err != nil || len(status.Problems) != len(partitions) {
		x.Fatalf("status has the problems %q, %v; want one of each of %q", status.Problems, err, partitions)
	}
	for i, name := range partitions {
		problem := status.Problems[i]
		if !strings.Contains(problem, "partition "+name+" has no trigger for TRUNCATE") || !strings.Contains(problem,
			"rowfeed feed upgrade p") {
			x.Errorf("status has the problem %q, want %s and the next step in it", problem, name)
		}
	}
	if problems, err := f.Admin().Verify(x.Ctx); err != nil || len(problems) != 0 {
		x.Errorf("the feed is not ready: %q, %v", problems, err)
	}
}

// wantLines asserts the entries above the cursor, in any order, without repeated ones.
func wantLines(x *suite.Env, f *rowfeed.Feed, after rowfeed.Cursor, want ...string) rowfeed.Cursor {
	x.Helper()
	lines, cursor := x.Drain(f, after)
	slices.Sort(lines)
	if lines = slices.Compact(lines); !slices.Equal(lines, want) {
		x.Fatalf("the entries above %q are %q, want %q", after, lines, want)
	}
	return cursor
}

// TestPublisherFollowsNewPartitions (V4): the publisher makes the triggers that new partitions lack, at every level. It
// publishes rows that ATTACH has brought, and rows that were truncated before there was a trigger. The feed is ready
// all the time.
func TestPublisherFollowsNewPartitions(t *testing.T) {
	testdb.Quick(t)
	eachPartitioned(t, func(x *suite.Env) {
		f := addPartitioned(x)
		x.Exec("INSERT INTO p VALUES (1, 0), (2, 0)")
		cursor := x.WantDrain(f, "", `upsert {"id":1,"v":0}`, `upsert {"id":2,"v":0}`)
		x.Exec(x.Statements("capture.make_partitions_of_partition", "p2", 200, 300, "p2a", 250)...)
		x.Exec(partition(x, "p1", 100, 200),
			"CREATE TABLE p3 (id bigint PRIMARY KEY, v int)", "INSERT INTO p3 VALUES (300, 0)",
			attach(x, "p3", 300, 400),
			"INSERT INTO p VALUES (100, 0), (200, 0), (301, 0)")
		cursor = x.WantDrain(f, cursor, `upsert {"id":100,"v":0}`, `upsert {"id":200,"v":0}`, `upsert {"id":301,"v":0}`)
		wantTold(x, f, "public.p1", "public.p2", "public.p2a", "public.p3")
		x.Exec("TRUNCATE p1", "TRUNCATE p2")
		x.WantDrain(f, cursor) // no trigger has fired
		follows(x, f)
		cursor = wantLines(x, f, cursor, suite.Gone(100), suite.Gone(200), `upsert {"id":300,"v":0}`,
			`upsert {"id":301,"v":0}`)
		wantTold(x, f)
		x.Exec("INSERT INTO p VALUES (101, 0), (201, 0)")
		_, cursor = x.Drain(f, cursor)
		x.Exec("TRUNCATE p1, p2a, p3")
		wantLines(x, f, cursor, suite.Gone(101), suite.Gone(201), suite.Gone(300), suite.Gone(301))
		x.WantSound(f)
	})
}

// TestTruncateAboveNewPartitionsIsCaptured (V4): TRUNCATE of a table with new partitions is captured with their rows,
// before a publisher has seen them.
func TestTruncateAboveNewPartitionsIsCaptured(t *testing.T) {
	eachPartitioned(t, func(x *suite.Env) {
		f := addPartitioned(x)
		x.Exec(x.Statements("capture.make_partitions_of_partition", "p1", 100, 200, "p1a", 150)...)
		x.Exec("INSERT INTO p VALUES (1, 0), (100, 0)")
		cursor := x.WantDrain(f, "", `upsert {"id":1,"v":0}`, `upsert {"id":100,"v":0}`)
		x.MustFail(x.Text("capture.truncate_without_partitions"))
		x.Exec("TRUNCATE p")
		wantLines(x, f, cursor, suite.Gone(100), suite.Gone(1))
	})
}

// TestRowsOfDetachedPartitionsAreDeleted (V4): the publisher publishes rows of detached or dropped partitions as
// deleted. If a partition comes back, it publishes its present rows.
func TestRowsOfDetachedPartitionsAreDeleted(t *testing.T) {
	eachPartitioned(t, func(x *suite.Env) {
		f := addPartitioned(x)
		x.Exec(partition(x, "p1", 100, 200), partition(x, "p2", 200, 300),
			"INSERT INTO p VALUES (1, 0), (100, 0), (101, 0), (200, 0)")
		follows(x, f)
		_, cursor := x.Drain(f, "")
		x.Exec(detach(x, "p1"), "DROP TABLE p2")
		follows(x, f)
		cursor = wantLines(x, f, cursor, suite.Gone(100), suite.Gone(101), suite.Gone(200))
		x.Exec("DELETE FROM p1 WHERE id = 100", attach(x, "p1", 100, 200))
		follows(x, f)
		cursor = wantLines(x, f, cursor, `upsert {"id":101,"v":0}`)
		// Between two passes a partition is detached, emptied and attached again.
		x.Exec(detach(x, "p1"), "DELETE FROM p1", attach(x, "p1", 100, 200))
		follows(x, f)
		wantLines(x, f, cursor, suite.Gone(101))
	})
}

// TestRewrittenPartitionIsPublished (V4): a copy of a partition with other rows replaces it in one transaction. Its
// rows are published, although their keys have positions.
func TestRewrittenPartitionIsPublished(t *testing.T) {
	eachPartitioned(t, func(x *suite.Env) {
		f := addPartitioned(x)
		x.Exec("INSERT INTO p VALUES (1, 0), (2, 0)")
		_, cursor := x.Drain(f, "")
		x.Exec(x.Text("capture.make_table_like_partition"), "INSERT INTO other SELECT id, v + id FROM p0",
			detach(x, "p0")+"; "+attach(x, "other", 0, 100))
		if _, err := f.Admin().Upgrade(x.Ctx); err != nil {
			x.Fatal(err)
		}
		wantLines(x, f, cursor, `upsert {"id":1,"v":1}`, `upsert {"id":2,"v":2}`)
		x.WantSound(f)
	})
}

// TestPartitionDetachedDuringUpgradeIsFollowed (V4): upgrade has read the sequence when a key gets a position, and the
// key's partition is detached before upgrade reads the list of partitions. The key is published as deleted.
func TestPartitionDetachedDuringUpgradeIsFollowed(t *testing.T) {
	eachPartitioned(t, func(x *suite.Env) {
		f := addPartitioned(x)
		x.Exec(partition(x, "p1", 100, 200), "INSERT INTO p VALUES (1, 0), (100, 0)")
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
				x.Exec(detach(x, "p1"))
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
			x.Fatal("upgrade has not read the sequence before the list of partitions")
		}
		wantLines(x, f, cursor, `delete {"id":100}`, `delete {"id":150}`)
		x.WantSound(f)
	})
}

// TestNextPublisherFinishesPartitions (V4): a publisher ends after it has made a partition's trigger, and before it
// records what was missed. The next publisher does, also if the partition is gone by then.
func TestNextPublisherFinishesPartitions(t *testing.T) {
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
			x.Exec(partition(x, fmt.Sprintf("p%d", i+1), id, id+100), fmt.Sprintf("INSERT INTO p VALUES (%d, 0)", id))
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

// TestRowsOfPartitionsAreFoundInSteps (V4): rows that came or went with partitions are recorded in steps, up to the
// last key.
func TestRowsOfPartitionsAreFoundInSteps(t *testing.T) {
	eachPartitioned(t, func(x *suite.Env) {
		f := addPartitioned(x)
		const rows = 4_501 // more than two steps
		x.Exec(partition(x, "p1", 1000, 10000), "CREATE TABLE p2 (id bigint PRIMARY KEY, v int)",
			x.Text("capture.insert_numbered_rows", "p", "id, v", "1000 + n, 0", rows),
			x.Text("capture.insert_numbered_rows", "p2", "id, v", "10000 + n, 0", rows))
		_, cursor := x.Drain(f, "")
		x.Exec("TRUNCATE p1", attach(x, "p2", 10000, 20000))
		follows(x, f)
		lines, cursor := x.Drain(f, cursor)
		if len(lines) != 2*rows {
			x.Errorf("the feed has %d entries, want %d", len(lines), 2*rows)
		}
		x.Exec("DROP TABLE p2")
		follows(x, f)
		if lines, _ = x.Drain(f, cursor); len(lines) != rows {
			x.Errorf("dropping the partition gave %d entries, want %d", len(lines), rows)
		}
	})
}

// TestPublisherMendsDroppedTriggerOfPartition (V4): the trigger for TRUNCATE of an old partition is dropped. The
// publisher makes it again, and finds the rows that were truncated meanwhile.
func TestPublisherMendsDroppedTriggerOfPartition(t *testing.T) {
	testdb.Quick(t)
	eachPartitioned(t, func(x *suite.Env) {
		f := addPartitioned(x)
		x.Exec("INSERT INTO p VALUES (1, 0)")
		follows(x, f)
		_, cursor := x.Drain(f, "")
		x.Exec(partition(x, "p1", 100, 200))
		follows(x, f) // the publisher need not check positions below the head again
		x.Exec(x.Text("capture.drop_trigger", "rowfeed_p_truncate", "p0"), "TRUNCATE p0")
		follows(x, f)
		wantLines(x, f, cursor, suite.Gone(1))
		x.Exec(x.Text("capture.drop_trigger", "rowfeed_p_capture", "p"))
		if problems, err := f.Admin().Verify(x.Ctx); err != nil || len(problems) != 3 {
			x.Errorf("without the triggers for rows, verify found %q, %v; want a problem of each table", problems, err)
		}
	})
}

// TestPublisherRetriesHeldPartition (V4): a transaction has written to a new partition, so that the publisher cannot
// make its trigger. The publisher gives up, reports that, publishes meanwhile, and tries again.
func TestPublisherRetriesHeldPartition(t *testing.T) {
	eachPartitioned(t, func(x *suite.Env) {
		f := addPartitioned(x)
		x.Exec(partition(x, "p1", 100, 200), "INSERT INTO p VALUES (1, 0)")
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

// TestNewPartitionsGetIndexesOfPositions (V4): with capture column PostgreSQL makes the indexes of a new partition, and
// rows that ATTACH brings without a position are published.
func TestNewPartitionsGetIndexesOfPositions(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...)
	suite.EachColumn(t, func(x *suite.Env) {
		x.Exec(partitioned(x), partition(x, "p0", 0, 100))
		f := x.Add(rowfeed.FeedSpec{Name: "p", Table: "p", Columns: []string{"id", "v"}})
		x.Exec(partition(x, "p1", 100, 200), x.Text("capture.make_table_like_partitioned"))
		x.DB.Exec(x.T, "INSERT INTO p2 (id, v) VALUES (200, 0)")
		x.Exec(attach(x, "p2", 200, 300))
		x.DB.Exec(x.T, "INSERT INTO p (id, v) VALUES (100, 0)")
		wantLines(x, f, "", `upsert {"id":100,"v":0}`, `upsert {"id":200,"v":0}`)
		wantTold(x, f)
		indexes := func(table string) int64 {
			return x.Scalar(x.Text("capture.count_indexes", table))
		}
		if indexes("p1") != indexes("p0") || indexes("p2") != indexes("p0") {
			x.Errorf("the new partitions have %d and %d indexes, want %d", indexes("p1"), indexes("p2"), indexes("p0"))
		}
	})
}

// TestForeignTablesAreNoPartitions (V4): PostgreSQL refuses a foreign table as partition of a table that can have a
// feed, since that has a unique index.
func TestForeignTablesAreNoPartitions(t *testing.T) {
	eachPartitioned(t, func(x *suite.Env) {
		addPartitioned(x)
		x.Exec(x.Statements("capture.make_foreign_table")...)
		x.MustFail(x.Text("capture.make_foreign_partition"))
		x.MustFail(attach(x, "far", 100, 200))
	})
}

// TestPartitionedTableIsCaptured (H11, H21): writes to a partitioned table, to a partition and to a partition that was
// attached later are captured. Check finds rows that ATTACH brings.
func TestPartitionedTableIsCaptured(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.Servers...) // SQLite has no partitions
	suite.Each(t, func(x *suite.Env) {
		if !x.Has.TruncateTriggers {
			x.Exec(x.Text("capture.table_with_two_partitions"))
			f := x.Add(rowfeed.FeedSpec{Name: "p", Table: "p"})
			x.Exec("INSERT INTO p VALUES (1, 0), (11, 0)")
			cursor := x.WantDrain(f, "", `upsert {"id":1,"v":0}`, `upsert {"id":11,"v":0}`)
			x.Exec("UPDATE p SET id = 12 WHERE id = 1")
			cursor = x.WantDrain(f, cursor, suite.Gone(1), `upsert {"id":12,"v":0}`)
			// No trigger fires. Readers get the rows no more, check finds them, and repair records them.
			x.Exec(x.Text("capture.truncate_second_partition"))
			x.WantRepaired(f, cursor, suite.Gone(11), suite.Gone(12))
			return
		}
		x.Exec(partitioned(x), partition(x, "p_a", 0, 10))
		x.Exec(x.Statements("capture.make_partitions_of_partition", "p_b", 10, 100, "p_b1", 50)...)
		f := x.Add(rowfeed.FeedSpec{Name: "p", Table: "p"})
		x.Exec("INSERT INTO p VALUES (1, 0), (11, 0)", "INSERT INTO p_b1 VALUES (12, 0)")
		cursor := x.WantDrain(f, "", `upsert {"id":1,"v":0}`, `upsert {"id":11,"v":0}`, `upsert {"id":12,"v":0}`)
		x.Exec("UPDATE p SET id = 13 WHERE id = 1")
		cursor = x.WantDrain(f, cursor, suite.Gone(1), `upsert {"id":13,"v":0}`)
		x.Exec("TRUNCATE p_b1")
		cursor = x.WantDrain(f, cursor, suite.Gone(11), suite.Gone(12), suite.Gone(13))
		x.Exec("CREATE TABLE p_c (id bigint PRIMARY KEY, v int)", "INSERT INTO p_c VALUES (200, 0)",
			attach(x, "p_c", 200, 300))
		x.Exec("INSERT INTO p VALUES (201, 0)")
		cursor = x.WantDrain(f, cursor, `upsert {"id":201,"v":0}`)
		wantTold(x, f, "public.p_c")
		if _, err := f.Admin().Upgrade(x.Ctx); err != nil {
			x.Fatal(err)
		}
		// Row 201 comes again: a partition may be a rewritten copy, so its keys with positions are recorded, too.
		cursor = x.WantDrain(f, cursor, `upsert {"id":200,"v":0}`, `upsert {"id":201,"v":0}`)
		x.Exec(detach(x, "p_c"))
		cursor = x.WantRepaired(f, cursor, suite.Gone(200), suite.Gone(201))
		x.Exec("TRUNCATE p_c") // records its former keys once more, although it is no partition
		x.WantDrain(f, cursor, suite.Gone(200), suite.Gone(201))
	})
}

// TestTableOwnerCanAddPartitionsToFeedOfOthers (H22): the owner of a partitioned table makes partitions of it, although
// another login has made the feed.
func TestTableOwnerCanAddPartitionsToFeedOfOthers(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...)
	suite.Each(t, func(x *suite.Env) {
		role := newRole(x, "owner")
		x.Exec(partitioned(x), x.Text("capture.grant_create", role), x.Text("capture.give_table", "p", role))
		f := x.Add(rowfeed.FeedSpec{Name: "p", Table: "p"})
		x.Exec(asRole(x, role, partition(x, "p1", 0, 10), "INSERT INTO p VALUES (1, 0)"))
		x.WantDrain(f, "", `upsert {"id":1,"v":0}`)
	})
}
