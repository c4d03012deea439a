package server_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/cmd/metrics"
	"github.com/rowfeed/rowfeed/cmd/server"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestServerIsNotReadyWhileDiskIsFull: a server whose publisher finds the disk full is not ready, and says so, until
// there is space.
func TestServerIsNotReadyWhileDiskIsFull(t *testing.T) {
	x := newFixture(t, "_pragma=max_page_count(150)")
	x.exec(t, `WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO kv SELECT i, 'v' FROM n`)
	x.fillDisk(t)
	r := run(t, server.Config{DB: x.db, Publish: true})
	r.waitReasons(t, `feed "kv"`, "free space for the database")
	if _, err := x.feed.Fetch(t.Context(), rowfeed.Request{}); err != nil {
		t.Errorf("nor are entries read: %v", err)
	}
	x.exec(t, `DELETE FROM filler`)
	r.waitReasons(t)
	page, err := r.feed().Fetch(t.Context(), rowfeed.Request{Limit: 500, Consistent: true, Wait: feedhttp.MaxWait})
	if err != nil || len(page.Entries) != 500 {
		t.Errorf("%d entries, %v", len(page.Entries), err)
	}
}

// fillDisk leaves no free page in the database.
func (x *fixture) fillDisk(t *testing.T) {
	t.Helper()
	x.exec(t, `CREATE TABLE filler (b BLOB)`)
	for size := 1 << 16; size > 0; size /= 2 {
		for err := error(nil); err == nil; {
			_, err = x.sql.ExecContext(t.Context(), `INSERT INTO filler VALUES (zeroblob(?))`, size)
		}
	}
}

// TestServerIsNotReadyWithTablesOfOtherVersion: the server detects tables of a newer and of an older rowfeed while it
// runs, because another process may migrate them.
func TestServerIsNotReadyWithTablesOfOtherVersion(t *testing.T) {
	x := newFixture(t)
	r := run(t, server.Config{DB: x.db, Publish: true})
	r.waitReasons(t)
	x.exec(t, `INSERT INTO rowfeed_schema_version VALUES (99, 0)`)
	r.waitReasons(t, "they have version 99", "use a newer rowfeed")
	x.exec(t, `DELETE FROM rowfeed_schema_version`)
	x.exec(t, `INSERT INTO rowfeed_schema_version VALUES (7, 0)`)
	r.waitReasons(t, "they have version 7, of before the first release", "rowfeed migrate down")
	if _, body := r.get(t, "/readyz"); strings.Contains(body, "true") {
		t.Error(body)
	}
}

// TestServerIsReadyWhilePublishersStandBy: a server whose publishers stand by is ready. The working server hands over
// when it ends.
func TestServerIsReadyWhilePublishersStandBy(t *testing.T) {
	x := newFixture(t)
	first := run(t, server.Config{DB: x.db, Publish: true})
	x.exec(t, `INSERT INTO kv VALUES (1, 'a')`)
	first.waitEntries(t, 1)
	m := metrics.New(&metrics.Config{Every: 1})
	db, err := rowfeed.Open(t.Context(), x.database.OpenTapped(t, testdb.Hooks{}), sqlite.New(),
		&rowfeed.Config{Observer: m.Observer()})
	if err != nil {
		t.Fatal(err)
	}
	second := run(t, server.Config{DB: db, Publish: true, Metrics: m})
	publishes := func(want string) {
		t.Helper()
		body := ""
		await(t, func() bool {
			_, body = second.get(t, "/metrics")
			return strings.Contains(body, `rowfeed_publisher{feed="kv"} `+want)
		}, func() string { return body })
	}
	publishes("0")
	second.waitReasons(t)
	first.end(t)
	publishes("1")
	second.waitReasons(t)
	x.exec(t, `INSERT INTO kv VALUES (2, 'b')`)
	second.waitEntries(t, 2)
}

// TestPublishingServerIsNotReadyOnReadOnlyDatabase: a server that publishes is not ready if the database is read-only.
// A server that only reads is ready.
func TestPublishingServerIsNotReadyOnReadOnlyDatabase(t *testing.T) {
	x := newFixture(t)
	x.exec(t, `INSERT INTO kv VALUES (1, 'a')`)
	if _, err := x.feed.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	open := func() *rowfeed.DB {
		pool := x.database.OpenTapped(t, testdb.Hooks{}, "_pragma=query_only(1)")
		db, err := rowfeed.Open(t.Context(), pool, sqlite.New(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	reads := run(t, server.Config{DB: open()})
	reads.waitReasons(t)
	reads.waitEntries(t, 1)
	publishes := run(t, server.Config{DB: open(), Publish: true})
	publishes.waitReasons(t, `feed "kv"`, "write the file and its directory")
	publishes.waitEntries(t, 1)
}

// TestReadyNamesCauseOnce: a cause that several feeds have is one reason, which names them and no other feed. What
// fails in other processes is listed, one cause once, and leaves the server ready. Its error is only for
// administrators.
func TestReadyNamesCauseOnce(t *testing.T) {
	x := newFixture(t, "_pragma=max_page_count(200)")
	for _, name := range []string{"second", "third"} {
		x.exec(t, `CREATE TABLE `+name+` (id INTEGER PRIMARY KEY)`)
		if _, err := x.db.AddFeed(t.Context(), rowfeed.FeedSpec{Name: name, Table: name}, nil); err != nil {
			t.Fatal(err)
		}
	}
	x.exec(t, `INSERT INTO kv VALUES (1, 'a')`)
	if _, err := x.feed.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		c := &rowfeed.Consumer{Name: name, Source: x.feed, DB: x.db,
			Options: rowfeed.ConsumerOptions{Retry: rowfeed.Retry{MaxAttempts: 1, Backoff: 1}},
			Handle:  func(context.Context, *sql.Tx, []rowfeed.Entry) error { return errors.New("never") }}
		if err := c.RunOnce(t.Context()); err == nil {
			t.Error("no error")
		}
	}
	r := run(t, server.Config{DB: x.db})
	r.waitReasons(t)
	_, body := r.get(t, "/readyz")
	if n := strings.Count(body, "never"); n != 1 || !strings.Contains(body,
		`"concerns":["consumer \"one\" of feed \"kv\"","consumer \"two\" of feed \"kv\""]`) {
		t.Errorf("%d times in %s", n, body)
	}
	withTokens := run(t, server.Config{DB: x.db, Access: access.Identify(access.NewTokens(x.db))})
	for _, right := range []access.Right{access.Read, access.Administer} {
		grants := []access.Grant{{Right: access.Read, Feed: access.EveryFeed}, {Right: right, Feed: "kv"}}
		token, _, err := x.db.Admin().AddToken(t.Context(), admin.TokenSpec{Name: string(right), Grants: grants})
		if err != nil {
			t.Fatal(err)
		}
		_, body := withTokens.getAs(t, "/readyz", token)
		if strings.Contains(body, "never") != (right == access.Administer) ||
			!strings.Contains(body, `consumer \"one\"`) || !strings.Contains(body, `"since":"20`) {
			t.Errorf("with the right to %s: %s", right, body)
		}
	}
	const rows = `WITH n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 500) `
	x.exec(t, rows+`INSERT INTO kv SELECT i, 'v' FROM n`)
	x.exec(t, rows+`INSERT INTO second SELECT i FROM n`)
	x.fillDisk(t)
	publishing := run(t, server.Config{DB: x.db, Publish: true})
	if reasons := publishing.waitReasons(t, `feeds "kv", "second": `); len(reasons) != 1 {
		t.Errorf("%q", reasons)
	}
}
