package install

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/fixture"
	"github.com/rowfeed/rowfeed/internal/test/golden"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// storedFolder has a dump for each database and version of rowfeed's tables, with a feed of every kind.
const storedFolder = "../../../internal/test/suite/install/testdata/stored"

// storedFeed is a feed of a dump. Its table has the rows 1 to 6. The consumer app has handled 1 to 4, except for 2,
// which is a dead letter. Row 3 was deleted if the feed has deletes. Row 5 is published, row 6 is not.
type storedFeed struct {
	name, create string
	spec         rowfeed.FeedSpec
	insert       string // %d is the row's number
	key          func(id int) rowfeed.Key
}

func storedFeeds(x *suite.Env) []storedFeed {
	key := func(id int) rowfeed.Key { return rowfeed.Key{int64(id)} }
	one := "(id BIGINT NOT NULL PRIMARY KEY, v INT NOT NULL)"
	row := "VALUES (%d, 1)"
	return []storedFeed{
		{"single", one, rowfeed.FeedSpec{}, row, key},
		{"composite", "(ns VARCHAR(50) NOT NULL, id VARCHAR(50) NOT NULL, v INT NOT NULL, PRIMARY KEY (ns, id))",
			rowfeed.FeedSpec{}, "VALUES ('ü', '%d', 1)",
			func(id int) rowfeed.Key { return rowfeed.Key{"ü", fmt.Sprint(id)} }},
		{"columned", one, rowfeed.FeedSpec{Capture: feedtype.CaptureColumn}, row, key},
		{"sharded", one, rowfeed.FeedSpec{DataShards: 8}, row, key},
		{"appended", one, rowfeed.FeedSpec{Mode: rowfeed.ModeOutbox}, row, key},
		{"captured", one, rowfeed.FeedSpec{Mode: rowfeed.ModeOutbox, Capture: feedtype.CaptureTrigger,
			ShardColumn: "v"}, row, key},
		{"blocking", "(id BIGINT NOT NULL PRIMARY KEY, v INT NOT NULL, u " + x.ULIDType() + " NOT NULL)",
			rowfeed.FeedSpec{Mode: rowfeed.ModeBlocking, PositionColumn: "u", ShardColumn: "v"}, row, key},
	}
}

// TestStoredDatabaseIsReadable: a database that an earlier commit made is migrated and read as it was left: pages and
// consumers resume at their cursors, dead letters, leases and tokens are valid, and check finds nothing. -update makes
// the dump of the newest version if it is missing. A commit that changes the format of rowfeed's tables adds one.
func TestStoredDatabaseIsReadable(t *testing.T) {
	testdb.Quick(t)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		savedBy := fixture.Of(e).Text(t, "install.saved_by")
		x := suite.NewEnv(t, e, nil)
		all, err := x.RF.Admin().Migrations(x.Ctx)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(storedFolder, fmt.Sprintf("%s.%d.sql", savedBy, all[len(all)-1].Version))
		if _, err := os.Stat(file); e.Name == savedBy && golden.Update() && os.IsNotExist(err) {
			x.Migrate()
			store(x)
			if err := os.WriteFile(file, []byte(x.DB.Save(t)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		files, err := filepath.Glob(filepath.Join(storedFolder, savedBy+".*.sql"))
		if err != nil || !slices.Contains(files, file) {
			t.Fatalf("%s is missing: %v", file, err)
		}
		for _, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				db := e.New(t)
				db.Load(t, string(text))
				x := suite.OpenEnv(t, db, nil)
				x.Migrate()
				readStored(x)
			})
		}
	})
}

// store makes the feeds and works on them. The cursor behind rows 1 to 4 is saved in a table of its own.
func store(x *suite.Env) {
	x.Helper()
	x.Exec("CREATE TABLE saved (feed VARCHAR(50) NOT NULL PRIMARY KEY, after VARCHAR(100) NOT NULL, entries TEXT)",
		"CREATE TABLE texts (token VARCHAR(100) NOT NULL)")
	for _, s := range storedFeeds(x) {
		x.Exec("CREATE TABLE " + s.name + " " + x.Exact(s.create))
		if s.spec.Mode == rowfeed.ModeBlocking {
			x.Exec("CREATE UNIQUE INDEX blocking_feed ON blocking (v, u)")
		}
		s.spec.Name, s.spec.Table = s.name, s.name
		f := x.Add(s.spec)
		for id := 1; id <= 4; id++ {
			storeRow(x, f, s, id)
		}
		x.Publish(f)
		page := storedPage(x, f, rowfeed.Beginning)
		x.Exec(fmt.Sprintf("INSERT INTO saved VALUES ('%s', '%s', NULL)", s.name, page.Cursor))
		if got := storedConsume(x, f, 2); len(got) != 4 {
			x.Fatalf("%s: the consumer got %q", s.name, got)
		}
		if s.spec.Mode == "" {
			must(x, f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error { return f.Delete(x.Ctx, tx, s.key(3)) }))
		}
		storeRow(x, f, s, 5)
		x.Publish(f)
		x.Exec(
			fmt.Sprintf("UPDATE saved SET entries = '%s' WHERE feed = '%s'", // the page moves the records of an outbox
				storedEntries(storedPage(x, f, rowfeed.Beginning)), s.name),
		)
		if s.name == "sharded" {
			storeConsumers(x, f)
		}
		storeRow(x, f, s, 6)
	}
	must(x, x.RF.Admin().Audited(x.Ctx, storedAct, func(context.Context) error { return nil }))
	_, err := x.RF.Lease("stored", time.Hour).TryAcquire(x.Ctx)
	must(x, err)
	text, _, err := x.RF.Admin().AddToken(x.Ctx, admin.TokenSpec{Name: "stored",
		Grants: []admin.TokenGrant{{Right: admin.RightRead, Feed: "single"}}})
	must(x, err)
	x.Exec("INSERT INTO texts VALUES ('" + text + "')")
}

func must(x *suite.Env, err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

// storeRow inserts a row as the feed's writers do.
func storeRow(x *suite.Env, f *rowfeed.Feed, s storedFeed, id int) {
	x.Helper()
	insert := "INSERT INTO " + s.name + " " + fmt.Sprintf(s.insert, id)
	if s.spec.Mode == "" || s.spec.Capture == feedtype.CaptureTrigger {
		x.Exec(insert)
		return
	}
	tx := x.Begin(sql.LevelReadCommitted)
	if s.spec.Mode == rowfeed.ModeOutbox {
		x.In(tx, insert)
		must(x, f.AppendOutbox(x.Ctx, rowfeed.InTx(tx), rowfeed.OutboxRecord{Shard: 1, Key: s.key(id)}))
	} else {
		u, err := f.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{1}})
		must(x, err)
		at, err := u.At(1, 0)
		must(x, err)
		insert := "INSERT INTO blocking (id, v, u) VALUES (" +
			x.Dialect.Placeholder(1) + ", 1, " + x.Dialect.Placeholder(2) + ")"
		_, err = tx.ExecContext(x.Ctx, insert, id, at)
		must(x, err)
	}
	x.Commit(tx)
}

// storedPage returns the page behind a cursor.
func storedPage(x *suite.Env, f *rowfeed.Feed, after rowfeed.Cursor) rowfeed.Page {
	x.Helper()
	req := rowfeed.Request{After: after}
	if f.Mode() != rowfeed.ModeSequence {
		req.Shards = rowfeed.One(1)
	}
	page, err := f.Fetch(x.Ctx, req)
	if err != nil {
		x.Fatalf("%s: %v", f.Name(), err)
	}
	return page
}

// storedConsume runs the consumer app, whose handler fails for the row failing. It returns the rows that the handler
// got: "5" for an upsert, "-3" for a delete.
func storedConsume(x *suite.Env, f *rowfeed.Feed, failing int) (ids []string) {
	x.Helper()
	c := &rowfeed.Consumer{Name: "app", Source: f, DB: x.RF, OnFailure: rowfeed.SetAside,
		Options: rowfeed.ConsumerOptions{Retry: rowfeed.Retry{MaxAttempts: 1}, Limit: 1},
		Handle: func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
			for _, e := range entries {
				id := storedID(e)
				if !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
				if id == fmt.Sprint(failing) {
					return errors.New("the handler fails for this row")
				}
			}
			return nil
		}}
	must(x, c.RunOnce(x.Ctx))
	slices.Sort(ids)
	return ids
}

func storedID(e rowfeed.Entry) string {
	id, _ := e.Key.Get("id")
	if e.Op == rowfeed.Delete {
		return "-" + fmt.Sprint(id)
	}
	return fmt.Sprint(id)
}

// readStored asserts that the database is as store has left it.
func readStored(x *suite.Env) {
	x.Helper()
	feeds, err := x.RF.Feeds(x.Ctx)
	must(x, err)
	all := storedFeeds(x)
	if len(feeds) != len(all) {
		x.Errorf("%d feeds, want %d", len(feeds), len(all))
	}
	for _, s := range all {
		f, err := x.RF.Feed(x.Ctx, s.name)
		must(x, err)
		_, err = f.Admin().AdoptDatabase(x.Ctx) // the server is another one
		must(x, err)
		if problems, err := f.Admin().Verify(x.Ctx); err != nil || len(problems) > 0 {
			x.Errorf("%s: verify: %q %v", s.name, problems, err)
		}
		x.Publish(f)
		want := []string{"5", "6"}
		if s.spec.Mode == "" {
			want = []string{"-3", "5", "6"}
		}
		entries := x.DB.Lines(x.T, "SELECT entries FROM saved WHERE feed = '"+s.name+"'")
		now := storedEntries(storedPage(x, f, rowfeed.Beginning)) // row 6 is the last one
		if before := strings.Trim(entries[0], "[]"); !strings.HasPrefix(now, before+"\n") {
			x.Errorf("%s: the entries are\n%s\nwant first:\n%s", s.name, now, before)
		}
		if s.name == "sharded" {
			readConsumers(x, f)
		}
		after := x.DB.Lines(x.T, "SELECT after FROM saved WHERE feed = '"+s.name+"'")
		var got []string
		for _, e := range storedPage(x, f, rowfeed.Cursor(strings.Trim(after[0], "[]"))).Entries {
			got = append(got, storedID(e))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			x.Errorf("%s: behind the saved cursor %q, want %q", s.name, got, want)
		}
		id := rowfeed.ConsumerID{Consumer: "app", Feed: s.name}
		page, err := x.RF.Admin().DeadLetters(x.Ctx, suite.Letters(id, ""))
		letters := page.Letters
		if err != nil || len(letters) != 1 || !strings.Contains(string(letters[0].Key), "2") {
			x.Errorf("%s: dead letters %+v %v", s.name, letters, err)
		}
		if got := storedConsume(x, f, 0); !slices.Equal(got, want) {
			x.Errorf("%s: the consumer got %q, want %q", s.name, got, want)
		}
		_, err = x.RF.Admin().RetryDeadLetters(x.Ctx, suite.Letters(id, ""), nil)
		must(x, err)
		if got := storedConsume(x, f, 0); !slices.Equal(got, []string{"2"}) {
			x.Errorf("%s: of the dead letter the consumer got %q", s.name, got)
		}
		x.WantSound(f)
	}
	leases, err := x.RF.Admin().Leases(x.Ctx)
	if err != nil || !slices.ContainsFunc(leases, func(l *rowfeed.LeaseStatus) bool {
		return l.Name == "stored" && l.Epoch == 1
	}) {
		x.Errorf("leases: %+v %v", leases, err)
	}
	if acts, err := x.RF.Admin().Acts(x.Ctx, 0, 0); err != nil || len(acts) != 1 || acts[0].Actor != storedAct.Actor ||
		acts[0].Act != storedAct.Act || acts[0].Object != storedAct.Object || acts[0].Outcome != "done" {
		x.Errorf("audit log: %+v %v", acts, err)
	}
	text := strings.Trim(x.DB.Lines(x.T, "SELECT token FROM texts")[0], "[]")
	if token, err := x.RF.Admin().TokenOf(x.Ctx, text); err != nil || token.Name != "stored" {
		x.Errorf("token: %+v %v", token, err)
	}
}

// storedAct is in the audit log.
var storedAct = admin.Act{Actor: "ü@stored", Act: "consumer pause", Object: "consumer paused", Detail: "one feed"}

// storedEntries returns the entries of a page as lines of JSON.
func storedEntries(page rowfeed.Page) string {
	var lines []string
	for _, e := range page.Entries {
		lines = append(lines, string(e.AppendJSON(nil)))
	}
	return strings.Join(lines, "\n")
}

// storedHalves runs a consumer with two shards, and returns the rows that its handler got.
func storedHalves(x *suite.Env, f *rowfeed.Feed) (ids []string) {
	x.Helper()
	c := &rowfeed.Consumer{Name: "halves", Source: f, DB: x.RF, ShardCount: 2,
		Handle: func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
			for _, e := range entries {
				ids = append(ids, storedID(e))
			}
			return nil
		}}
	must(x, c.RunOnce(x.Ctx))
	slices.Sort(ids)
	return ids
}

// storedPaused runs the consumer that storeConsumers pauses.
func storedPaused(x *suite.Env, f *rowfeed.Feed) error {
	return (&rowfeed.Consumer{Name: "paused", Source: f, DB: x.RF, Options: rowfeed.ConsumerOptions{Limit: 1},
		Handle: func(context.Context, *sql.Tx, []rowfeed.Entry) error { return nil }}).RunOnce(x.Ctx)
}

// storeConsumers creates a consumer with two shards and a paused one. Both have read up to row 5. It marks the first
// entry as processed.
func storeConsumers(x *suite.Env, f *rowfeed.Feed) {
	x.Helper()
	if got := storedHalves(x, f); !slices.Equal(got, []string{"1", "2", "4", "5"}) {
		x.Fatalf("two shards got %q", got)
	}
	must(x, storedPaused(x, f))
	_, err := x.RF.Admin().PauseConsumer(x.Ctx, rowfeed.ConsumerID{Consumer: "paused"})
	must(x, err)
	storedMark(x, f, 0, true)
}

// storedMark marks an entry as processed, and asserts whether this was the first time.
func storedMark(x *suite.Env, f *rowfeed.Feed, i int, want bool) {
	x.Helper()
	tx := x.Begin(sql.LevelReadCommitted)
	e := storedPage(x, f, rowfeed.Beginning).Entries[i]
	first, err := x.RF.MarkProcessed(x.Ctx, rowfeed.InTx(tx), "marks", f.Name(), e)
	if err != nil || first != want {
		x.Errorf("entry %d is processed for the first time: %v, want %v %v", i, first, want, err)
	}
	x.Commit(tx)
}

// readConsumers asserts that consumers resume as storeConsumers has left them. Row 6 is published.
func readConsumers(x *suite.Env, f *rowfeed.Feed) {
	x.Helper()
	if got := storedHalves(x, f); !slices.Equal(got, []string{"6"}) {
		x.Errorf("two shards got %q, want row 6", got)
	}
	if n, err := x.RF.Admin().ConsumerShardCount(x.Ctx, "halves", f.Name()); err != nil || n != 2 {
		x.Errorf("the consumer has %d shards, want 2: %v", n, err)
	}
	id := rowfeed.ConsumerID{Consumer: "paused"}
	if paused, err := x.RF.Admin().PausedShards(x.Ctx, id); err != nil || !slices.Equal(paused, []int{0}) {
		x.Errorf("paused shards %v %v", paused, err)
	}
	x.WantCode(storedPaused(x, f), rowfeed.ConsumerPaused)
	storedMark(x, f, 0, false)
	storedMark(x, f, 1, true)
}
