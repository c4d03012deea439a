package values

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// twoTexts are key columns in which the database takes three different texts for one value, and a
// fourth for another value. The values are SQL.
var twoTexts = map[string][]struct {
	column string
	same   [3]string
	other  string
}{
	"sqlite": {
		{"k TEXT COLLATE NOCASE", [3]string{"'fred'", "'FRED'", "'Fred'"}, "'ann'"},
		{"k TEXT COLLATE RTRIM", [3]string{"'fred'", "'fred '", "'fred  '"}, "'ann'"},
		{"k", [3]string{"1", "1.0", "1"}, "2"},
	},
	"postgres": {
		{`k text COLLATE nocase`, [3]string{"'fred'", "'FRED'", "'Fred'"}, "'ann'"},
		{"k numeric", [3]string{"1.0", "1.00", "1"}, "2"},
		{"k float8", [3]string{"0", "'-0'", "0"}, "2"},
		{"k interval", [3]string{"'30 days'", "'1 mon'", "'720 hours'"}, "'1 day'"},
		{"k numrange", [3]string{"'[1.0,2)'", "'[1.00,2)'", "'[1,2)'"}, "'[3,4)'"},
		{"k jsonb", [3]string{`'{"a":1.0}'`, `'{"a":1.00}'`, `'{"a":1}'`}, `'{"a":2}'`},
	},
	"mysql": {
		{"k varchar(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", [3]string{"'fred'", "'FRED'", "'frèd '"}, "'ann'"},
		{"k varchar(50) CHARACTER SET latin1 COLLATE latin1_bin", [3]string{"'fred'", "'fred '", "'fred  '"}, "'ann'"},
		{"k double", [3]string{"0e0", "-0e0", "0e0"}, "2e0"},
	},
}

// keyReader applies what it reads to rows by the entries' keys, as readers outside the database do.
type keyReader struct {
	cursors []rowfeed.Cursor // of the parts of the feed
	rows    map[string]string
}

func newKeyReader(parts int) *keyReader {
	return &keyReader{make([]rowfeed.Cursor, parts), map[string]string{}}
}

// read applies every entry up to the head of each part.
func (r *keyReader) read(x *suite.Env, f *rowfeed.Feed) {
	x.Helper()
	for i := range r.cursors {
		for more := true; more; {
			page, err := f.Fetch(x.Ctx, rowfeed.Request{After: r.cursors[i], Limit: 3, Shards: rowfeed.Part(i, len(r.cursors))})
			if err != nil {
				x.Fatal(err)
			}
			for _, e := range page.Entries {
				key := string(e.Key.AppendJSON(nil))
				if delete(r.rows, key); e.Op == rowfeed.Upsert {
					v, _ := e.Row.Get("v")
					r.rows[key] = fmt.Sprint(v)
				}
			}
			r.cursors[i], more = page.Cursor, page.More
		}
	}
}

// TestKeyKeepsItsText (M4, H24, V1): where two texts are one key for the database, a key has one text in all
// entries, whatever is done with it: readers who apply entries by key, from any moment on, whole or in
// parts, have one row for each of the table's.
func TestKeyKeepsItsText(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		if x.Family() == "postgres" {
			x.Exec("CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
		}
		for i, c := range twoTexts[x.Family()] {
			for _, capture := range []feedtype.Capture{feedtype.CaptureTrigger, feedtype.CaptureApp} {
				name := fmt.Sprintf("t%d%s", i, capture)
				x.Exec("CREATE TABLE " + name + " (" + c.column + " NOT NULL PRIMARY KEY, v INTEGER)")
				f := x.Add(rowfeed.FeedSpec{Name: name, Table: name, Capture: capture, DataShards: 4})
				// write runs a statement with {0} to {3} for the texts; a writer of capture app records
				// the text that it has at hand.
				write := func(statement string, texts ...int) {
					x.Helper()
					values := append(c.same[:], c.other)
					args := make([]any, len(texts))
					for i, n := range texts {
						args[i] = values[n]
					}
					statement = fmt.Sprintf(statement, append([]any{name}, args...)...)
					if capture == feedtype.CaptureTrigger {
						x.Exec(statement)
						return
					}
					tx := x.Begin(sql.LevelReadCommitted)
					x.In(tx, statement)
					for _, arg := range args {
						x.In(tx, fmt.Sprintf("INSERT INTO rowfeed_changes_%s (k) VALUES (%s)", name, arg))
					}
					x.Commit(tx)
				}
				first, parts := newKeyReader(1), newKeyReader(2)
				read := func() {
					x.Helper()
					x.Publish(f)
					late := newKeyReader(1)
					for _, r := range []*keyReader{first, parts, late} {
						r.read(x, f)
					}
					want := x.List("SELECT v FROM " + name + " ORDER BY v")
					for who, r := range map[string]*keyReader{"the first reader": first, "two readers of parts": parts, "a late reader": late} {
						if got := slices.Sorted(maps.Values(r.rows)); !slices.Equal(got, want) || !maps.Equal(r.rows, late.rows) {
							x.Fatalf("%s: %s has %v, a late reader %v, the table %v", c.column, who, r.rows, late.rows, want)
						}
					}
				}
				write("INSERT INTO %s VALUES (%s, 1)", 0)
				write("INSERT INTO %s VALUES (%s, 2)", 3)
				read()
				write("UPDATE %s SET k = %[2]s WHERE k = %[2]s", 1)
				read()
				write("UPDATE %s SET v = 3 WHERE k = %s", 0)
				write("UPDATE %s SET k = %[2]s WHERE k = %[2]s", 2)
				read()
				write("DELETE FROM %s WHERE k = %s", 1)
				read()
				write("INSERT INTO %s VALUES (%s, 4)", 2)
				write("UPDATE %s SET k = %[2]s WHERE k = %[2]s", 1)
				read()
				write("DELETE FROM %s WHERE k = %s", 0)
				write("INSERT INTO %s VALUES (%s, 5)", 1)
				read()
				if err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error {
					_, err := tx.Exec(x.Ctx, "INSERT INTO rowfeed_changes_"+name+" (k, kind) VALUES ("+c.same[0]+", 2)") // unpublish
					return err
				}); err != nil {
					x.Fatal(err)
				}
				x.Publish(f)
				first.read(x, f)
				if len(first.rows) != 1 {
					x.Errorf("%s: a hidden key is still there: %v", c.column, first.rows)
				}
				x.WantSound(f)
			}
		}
	})
}

// TestColumnRefusesTwoTexts (H24, V1): with capture column nothing keeps the text that readers know, so such
// keys are refused before anything is made, with the ways out.
func TestColumnRefusesTwoTexts(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		if x.Family() == "postgres" {
			x.Exec("CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
		}
		for i, c := range twoTexts[x.Family()] {
			name := "t" + strconv.Itoa(i)
			x.Exec("CREATE TABLE " + name + " (" + c.column + " NOT NULL PRIMARY KEY, v INTEGER)")
			_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: name, Table: name, Capture: feedtype.CaptureColumn}, nil)
			x.WantCode(err, rowfeed.Refused)
			if feeds, err := x.RF.Feeds(x.Ctx); err != nil || len(feeds) != 0 {
				x.Errorf("%s: feeds %v, %v", c.column, feeds, err)
			}
		}
	})
}

// TestRefusesIndexOfOwnOperatorClass (V1): a unique index by an operator class that is not its type's default
// can tell keys apart in a way that rowfeed's tables do not.
func TestRefusesIndexOfOwnOperatorClass(t *testing.T) {
	testdb.Postgres15.Require(t)
	x := suite.NewEnv(t, testdb.Postgres15, nil)
	x.Migrate()
	x.Exec("CREATE OPERATOR CLASS own_ops FOR TYPE numeric USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, "+
		"OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 numeric_cmp(numeric, numeric)",
		"CREATE TABLE n (k numeric NOT NULL, name text NOT NULL)", "CREATE UNIQUE INDEX ON n (k own_ops)",
		"CREATE UNIQUE INDEX ON n (name text_pattern_ops)")
	_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "n", Table: "n", Key: []string{"k"}}, nil)
	x.WantCode(err, rowfeed.Refused)
	x.Add(rowfeed.FeedSpec{Name: "n", Table: "n", Key: []string{"name"}})
}

// TestDecodedKeyKeepsItsText (V1): a consumer that stores decoded rows by their key, and deletes them by
// it, has one row for each of the table's.
func TestDecodedKeyKeepsItsText(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		if x.Family() == "postgres" {
			x.Exec("CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
		}
		x.Exec("CREATE TABLE users (" + twoTexts[x.Family()][0].column + " NOT NULL PRIMARY KEY, v INTEGER)")
		f := x.Add(rowfeed.FeedSpec{Name: "users", Table: "users"})
		type user struct {
			K string
			V int64
		}
		stored := map[string]int64{}
		c := &rowfeed.Consumer{Name: "store", Source: f, DB: x.RF, Handle: rowfeed.Each(func(_ context.Context, _ *sql.Tx, e rowfeed.Entry, u user) error {
			if delete(stored, u.K); e.Op == rowfeed.Upsert {
				stored[u.K] = u.V
			}
			return nil
		})}
		for _, step := range []struct {
			sql  string
			want map[string]int64
		}{
			{"INSERT INTO users VALUES ('fred', 1)", map[string]int64{"fred": 1}},
			{"UPDATE users SET k = 'FRED', v = 2", map[string]int64{"fred": 2}},
			{"DELETE FROM users", map[string]int64{}},
		} {
			x.Exec(step.sql)
			x.Publish(f)
			if err := c.RunOnce(x.Ctx); err != nil {
				x.Fatal(err)
			}
			if !maps.Equal(stored, step.want) {
				x.Fatalf("after %s: %v, want %v", step.sql, stored, step.want)
			}
		}
	})
}

// TestDeadLetterOfTwoTexts (V1): a key that was set aside stays so when its text changes; its later
// versions and its delete join it, and the retry hands over the row as it is.
func TestDeadLetterOfTwoTexts(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		if x.Family() == "postgres" {
			x.Exec("CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
		}
		x.Exec("CREATE TABLE users (" + twoTexts[x.Family()][0].column + " NOT NULL PRIMARY KEY, v INTEGER)")
		f := x.Add(rowfeed.FeedSpec{Name: "users", Table: "users"})
		var handled []string
		failing := true
		c := &rowfeed.Consumer{Name: "test", Source: f, DB: x.RF, OnFailure: rowfeed.SetAside,
			Options: rowfeed.ConsumerOptions{Retry: rowfeed.Retry{MaxAttempts: 1}},
			Handle: func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
				for _, e := range entries {
					if failing {
						return errors.New("not yet")
					}
					handled = append(handled, string(e.Key.AppendJSON(nil))+" "+suite.Line(e))
				}
				return nil
			}}
		id := rowfeed.ConsumerID{Consumer: "test", Feed: "users"}
		step := func(statement string) {
			x.Helper()
			x.Exec(statement)
			x.Publish(f)
			if err := c.RunOnce(x.Ctx); err != nil {
				x.Fatal(err)
			}
		}
		step("INSERT INTO users VALUES ('fred', 1)")
		failing = false
		step("UPDATE users SET k = 'FRED', v = 2")
		letters, err := x.RF.Admin().DeadLetters(x.Ctx, id, nil)
		if err != nil || len(letters) != 1 || letters[0].Collapsed != 1 || len(handled) != 0 {
			x.Fatalf("dead letters %+v, %v; handled %q", letters, err, handled)
		}
		if _, err := x.RF.Admin().RetryDeadLetters(x.Ctx, id, nil); err != nil {
			x.Fatal(err)
		}
		step("INSERT INTO users VALUES ('ann', 3)")
		want := []string{`{"k":"ann"} upsert {"k":"ann","v":3}`, `{"k":"fred"} upsert {"k":"FRED","v":2}`}
		if slices.Sort(handled); !slices.Equal(handled, want) {
			x.Errorf("handled %q, want %q", handled, want)
		}
	})
}

// TestKeyThatBecomesTwo (V1): a column that comes to tell two texts apart makes two keys of one, the text
// that readers know and the row's. The upgrade says so, and repair publishes both.
func TestKeyThatBecomesTwo(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has no ALTER for a column's collation
	suite.Each(t, func(x *suite.Env) {
		if x.Family() == "postgres" {
			x.Exec("CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
		}
		x.Exec("CREATE TABLE users (" + twoTexts[x.Family()][0].column + " NOT NULL PRIMARY KEY, v INTEGER)")
		f := x.Add(rowfeed.FeedSpec{Name: "users", Table: "users"})
		x.Exec("INSERT INTO users VALUES ('fred', 1), ('ann', 2)")
		reader := newKeyReader(1)
		x.Publish(f)
		reader.read(x, f)
		x.Exec("UPDATE users SET k = 'FRED' WHERE k = 'fred'")
		x.Publish(f)
		x.Exec(x.By(map[string]string{
			"postgres": `ALTER TABLE users ALTER k TYPE text COLLATE "C"`,
			"mysql":    "ALTER TABLE users MODIFY k varchar(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL",
		}))
		mended, err := f.Admin().Upgrade(x.Ctx)
		if err != nil || !strings.Contains(strings.Join(mended, "\n"), "rowfeed repair users") {
			x.Fatalf("mended %q, %v", mended, err)
		}
		if _, err := f.Admin().Repair(x.Ctx); err != nil {
			x.Fatal(err)
		}
		x.Publish(f)
		reader.read(x, f)
		if want := map[string]string{`{"k":"FRED"}`: "1", `{"k":"ann"}`: "2"}; !maps.Equal(reader.rows, want) {
			x.Errorf("the reader has %v, want %v", reader.rows, want)
		}
		x.WantSound(f)
	})
}
