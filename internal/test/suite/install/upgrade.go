package install

import (
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/fixture"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// oldBinary writes new dumps to testdata/upgrade. Build rowfeed of an older commit, and run
//
//	go test ./cmd/internal/suite -run TestSuite/install/TestOldDatabaseIsUpgraded -args -old-binary FILE
//
// Dumps are named after the version of that binary's tables.
var oldBinary = flag.String("old-binary", "", "an older rowfeed, which makes the databases that are upgraded")

// TestOldDatabaseIsUpgraded (M63, O7): databases that older versions of rowfeed used are refused with the next step,
// then upgraded. Nothing is lost, be it pending changes, deletes, dead letters or leases, and consumers resume at their
// cursors.
func TestOldDatabaseIsUpgraded(t *testing.T) {
	testdb.Quick(t)
	// MySQL's tables are upgraded as MariaDB's are.
	testdb.Only(t, testdb.SQLite, testdb.Postgres15, testdb.Postgres18, testdb.MariaDB)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		savedBy := fixture.Of(e).Text(t, "install.saved_by")
		if *oldBinary != "" && e.Name == savedBy {
			save(t, e)
		}
		files, err := filepath.Glob(
			filepath.Join("../../../internal/test/suite/install/testdata/upgrade", savedBy+".*.sql"),
		)
		if err != nil || len(files) == 0 {
			t.Fatalf("no saved databases: %v", err)
		}
		for _, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				db := e.New(t)
				db.Load(t, string(text))
				upgradeSaved(suite.OpenEnv(t, db, nil))
			})
		}
	})
}

func upgradeSaved(x *suite.Env) {
	_, err := x.RF.Feeds(x.Ctx)
	x.WantCode(err, rowfeed.SchemaVersion)
	if !strings.Contains(err.Error(), "Next: run `rowfeed init`") {
		x.Errorf("tables of an older version: %v", err)
	}
	before := contents(x)
	own, err := x.Dialect.CurrentSchema(x.Ctx, dialect.On(x.DB.Admin()))
	must(x, err)
	for table, rows := range before {
		for i := range rows {
			if strings.HasPrefix(table,
				"rowfeed_feeds ") { // since version 9 a table beside rowfeed's own has no schema
				rows[i] = strings.Replace(rows[i], " ["+own+"] ", " [] ", 1)
			}
		}
	}
	x.Migrate()
	for table, rows := range contents(x) {
		if old, ok := before[table]; ok && !slices.Equal(old, rows) {
			x.Errorf("%s held\n%s\nand holds\n%s", table, strings.Join(old, "\n"), strings.Join(rows, "\n"))
		}
	}
	kv, err := x.RF.Feed(x.Ctx, "kv")
	if err != nil {
		x.Fatal(err)
	}
	if _, err := kv.Publish(x.Ctx); err != nil { // the server may be another one, as it is after a dump was restored
		x.WantCode(err, rowfeed.DatabaseChanged)
	}
	feeds, err := x.RF.Feeds(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	for _, f := range feeds {
		if _, err := f.Admin().AdoptDatabase(x.Ctx); err != nil {
			x.Fatal(err)
		}
		if _, err := f.Admin().Upgrade(x.Ctx); err != nil {
			x.Fatal(err)
		}
		if problems, err := f.Admin().Verify(x.Ctx); err != nil || len(problems) > 0 {
			x.Errorf("feed %s after its upgrade: %q %v", f.Name(), problems, err)
		}
	}
	x.Publish(kv)

	// Row 3 was deleted, 5 updated and 11 inserted behind the consumers; 12 was not published.
	wantIDs(x, "lines", consumes(x, kv, "lines"), 3, 5, 11, 12)
	page, err := x.RF.Admin().DeadLetters(x.Ctx, suite.Letters(rowfeed.ConsumerID{Consumer: "hook"}, ""))
	letters := page.Letters
	if err != nil || len(letters) != 1 || !admin.SameKey(letters[0].Key, json.RawMessage(`{"id":4}`)) {
		x.Fatalf("dead letters: %+v %v", letters, err)
	}
	wantIDs(x, "hook", consumes(x, kv, "hook"), 3, 5, 11, 12)
	if n, err := x.RF.Admin().RetryDeadLetters(x.Ctx,
		suite.Letters(rowfeed.ConsumerID{Consumer: "hook"}, ""), nil); err != nil || n != 1 {
		x.Fatalf("%d to be tried again: %v", n, err)
	}
	wantIDs(x, "hook, the dead letter", consumes(x, kv, "hook"), 4)
	wantIDs(x, "a new consumer", consumes(x, kv, "new"), 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12)
	x.Exec("UPDATE kv SET v = 'again' WHERE id = 1", "DELETE FROM kv WHERE id = 2")
	x.Publish(kv)
	wantIDs(x, "lines, of new changes", consumes(x, kv, "lines"), 1, 2)

	claim, err := x.RF.Lease("relay:kv:lines", 10*time.Second).TryAcquire(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	if claim.Epoch() < 2 {
		x.Errorf("a lease that was held before begins anew with epoch %d", claim.Epoch())
	}
	if err := claim.Release(x.Ctx); err != nil {
		x.Error(err)
	}
	if i := slices.IndexFunc(feeds, func(f *rowfeed.Feed) bool { return f.Name() == "ev" }); i >= 0 {
		wantIDs(x, "evlines", consumes(x, feeds[i], "evlines"), 4)
	}
	findings, err := kv.Admin().Check(x.Ctx)
	if err != nil || len(findings) > 0 {
		x.Errorf("check: %+v %v", findings, err)
	}

	x.Exec("INSERT INTO rowfeed_schema_version (version, applied_at) VALUES (1000, 0)")
	_, err = suite.OpenEnv(x.T, x.DB, nil).RF.Feeds(x.Ctx)
	x.WantCode(err, rowfeed.SchemaVersion)
	if !strings.Contains(err.Error(), "Next: use a newer rowfeed") {
		x.Errorf("tables of a newer version: %v", err)
	}
}

// contents returns the rows of rowfeed's tables, except for schema_version.
func contents(x *suite.Env) map[string][]string {
	x.Helper()
	all := map[string][]string{}
	for _, base := range []string{
		"sequences", "feeds", "cursors", "consumers", "dead_letters", "processed", "leases", "shards",
		"changes_kv", "positions_kv", "outbox_ev", "feed_ev",
	} {
		table := "rowfeed_" + base
		columns, err := columnsOf(x, table)
		if err != nil || len(columns) == 0 {
			continue // the version or its feeds do not have the table
		}
		slices.Sort(columns)
		list := strings.Join(columns, ", ")
		lines := x.DB.Lines(x.T, "SELECT "+list+" FROM "+table)
		slices.Sort(lines)
		all[table+" ("+list+")"] = lines
	}
	return all
}

// columnsOf returns the names of a table's columns. The error says that there is no such table.
func columnsOf(x *suite.Env, table string) ([]string, error) {
	rows, err := x.DB.Admin().QueryContext(x.Ctx, "SELECT * FROM "+table+" WHERE 1 = 0")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	return rows.Columns()
}

// consumes runs a consumer up to the head, and returns the keys that its handler got.
func consumes(x *suite.Env, f *rowfeed.Feed, name string) (ids []string) {
	x.Helper()
	c := &rowfeed.Consumer{
		Name:   name,
		Source: f,
		DB:     x.RF,
		Handle: func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
			for _, e := range entries {
				ids = append(ids, string(e.Key.AppendJSON(nil)))
			}
			return nil
		},
	}
	if err := c.RunOnce(x.Ctx); err != nil {
		x.Fatal(err)
	}
	return ids
}

func wantIDs(x *suite.Env, what string, got []string, want ...int) {
	x.Helper()
	var keys []string
	for _, id := range want {
		keys = append(keys, fmt.Sprintf(`{"id":%d}`, id))
	}
	slices.Sort(keys)
	if slices.Sort(got); !slices.Equal(got, keys) {
		x.Errorf("%s: %v, want %v", what, got, keys)
	}
}

// save lets the old binary make a database and work on it, and writes the database's dump.
func save(t *testing.T, e testdb.Engine) {
	db := e.New(t)
	folder := t.TempDir()
	old := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(*oldBinary, args...)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "ROWFEED_DB="+db.URL)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), `"id":4`) {
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
	}))
	defer hook.Close()
	db.Exec(t, "CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(100))")
	db.Exec(t, "CREATE TABLE ev (customer INT NOT NULL, id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(100))")
	made := regexp.MustCompile(`version (\d+)`).FindStringSubmatch(old("init"))
	if made == nil {
		t.Fatal("the old binary does not say which version its tables have")
	}
	old("feed", "add", "kv", "--table", "kv", "--data-shards", "8")
	db.Exec(
		t,
		"INSERT INTO kv VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e'), (6, 'f'), (7, 'g'),"+
			" (8, NULL), (9, ''), (10, 'ü')",
	)
	old("publish", "--once")
	old("relay", "kv", "--to", "stdout:", "--consumer", "lines", "--once")
	old("relay", "kv", "--to", hook.URL, "--allow-private", "--consumer", "hook", "--once", "--set-aside")
	db.Exec(t, "DELETE FROM kv WHERE id = 3")
	db.Exec(t, "UPDATE kv SET v = 'E' WHERE id = 5")
	db.Exec(t, "INSERT INTO kv VALUES (11, 'k')")
	old("publish", "--once")
	db.Exec(t, "INSERT INTO kv VALUES (12, 'l')")
	if made[1] >= "7" { // the first with feeds that have ULIDs
		old("feed", "add", "ev", "--table", "ev", "--mode", "outbox", "--capture", "trigger", "--shard-column",
			"customer")
		db.Exec(t, "INSERT INTO ev VALUES (1, 1, 'a'), (1, 2, 'b'), (2, 3, 'c')")
		old("publish", "ev", "--once")
		old("relay", "ev", "--to", "stdout:", "--consumer", "evlines", "--once")
		db.Exec(t, "INSERT INTO ev VALUES (2, 4, 'd')")
	}
	path := filepath.Join("../../../internal/test/suite/install/testdata/upgrade", e.Name+"."+made[1]+".sql")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(db.Save(t)), 0o644); err != nil {
		t.Fatal(err)
	}
}
