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

// twoTexts is a key column in which the database takes three texts for one value, and a fourth text for another value.
// The texts are SQL.
type twoTexts struct {
	column string
	same   [3]string
	other  string
}

// columnsWithTwoTexts returns such columns of the database, and makes what they need.
func columnsWithTwoTexts(x *suite.Env) (all []twoTexts) {
	x.Helper()
	x.Exec(x.Statements("values.make_collation")...)
	for _, paragraph := range strings.Split(x.Text("values.keys_with_two_texts"), "\n\n") {
		lines := strings.Split(paragraph, "\n")
		all = append(all, twoTexts{lines[0], [3]string(lines[1:4]), lines[4]})
	}
	return all
}

// keyReader applies entries to rows by their keys, as readers outside the database do.
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
			part := rowfeed.Part(i, len(r.cursors))
			page, err := f.Fetch(x.Ctx, rowfeed.Request{After: r.cursors[i], Limit: 3, Shards: part})
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

// TestKeyKeepsItsText (M4, H24, V1): two texts are one key for the database. In all entries the key has one text,
// whatever statements write. Readers who apply entries by key, from any moment on, whole or in parts, have one row for
// each row of the table.
func TestKeyKeepsItsText(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		for i, c := range columnsWithTwoTexts(x) {
			for _, capture := range []feedtype.Capture{feedtype.CaptureTrigger, feedtype.CaptureApp} {
				name := fmt.Sprintf("t%d%s", i, capture)
				x.Exec("CREATE TABLE " + name + " (" + c.column + " NOT NULL PRIMARY KEY, v INTEGER)")
				f := x.Add(rowfeed.FeedSpec{Name: name, Table: name, Capture: capture, DataShards: 4})
				// write runs a statement with the texts of these numbers. A writer of capture app records the text that
				// it has written.
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
					for name, r := range map[string]*keyReader{
						"the first reader": first, "two readers of parts": parts, "a late reader": late,
					} {
						got := slices.Sorted(maps.Values(r.rows))
						if !slices.Equal(got, want) || !maps.Equal(r.rows, late.rows) {
							x.Fatalf("with %s, %s has %v, a late reader has %v, and the table %v",
								c.column, name, r.rows, late.rows, want)
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
				unpublish := "INSERT INTO rowfeed_changes_" + name + " (k, kind) VALUES (" + c.same[0] + ", 2)"
				if err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error {
					_, err := tx.Exec(x.Ctx, unpublish)
					return err
				}); err != nil {
					x.Fatal(err)
				}
				x.Publish(f)
				first.read(x, f)
				if len(first.rows) != 1 {
					x.Errorf("with %s, a reader still has a hidden key: %v", c.column, first.rows)
				}
				x.WantSound(f)
			}
		}
	})
}

// TestCaptureColumnRefusesInexactKeys (H24, V1): with capture column no table keeps the text of a key that readers
// know. Keys with several texts are refused, and nothing is left behind.
func TestCaptureColumnRefusesInexactKeys(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		for i, c := range columnsWithTwoTexts(x) {
			name := "t" + strconv.Itoa(i)
			x.Exec("CREATE TABLE " + name + " (" + c.column + " NOT NULL PRIMARY KEY, v INTEGER)")
			spec := rowfeed.FeedSpec{Name: name, Table: name, Capture: feedtype.CaptureColumn}
			_, err := x.RF.AddFeed(x.Ctx, spec, nil)
			x.WantCode(err, rowfeed.Refused)
			if !strings.Contains(err.Error(), "--capture trigger, which takes such keys and every --shard-column") {
				x.Errorf("the refusal does not say how to go on: %v", err)
			}
			if feeds, err := x.RF.Feeds(x.Ctx); err != nil || len(feeds) != 0 {
				x.Errorf("after the refusal of %s the feeds are %v, %v", c.column, feeds, err)
			}
		}
	})
}

// TestRefusesIndexOfNonDefaultOperatorClass (V1): a unique index by an operator class that is not the default of its
// type is refused as key. It could tell keys apart that are equal in rowfeed's tables.
func TestRefusesIndexOfNonDefaultOperatorClass(t *testing.T) {
	testdb.Only(t, testdb.Postgres15)
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.Statements("values.indexes_of_other_operator_classes")...)
		_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "n", Table: "n", Key: []string{"k"}}, nil)
		x.WantCode(err, rowfeed.Refused)
		x.Add(rowfeed.FeedSpec{Name: "n", Table: "n", Key: []string{"name"}})
	})
}

// TestDecodedKeyKeepsItsText (V1): a consumer stores decoded rows by their keys, and deletes them by their keys. It has
// one row for each row of the table.
func TestDecodedKeyKeepsItsText(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE users (" + columnsWithTwoTexts(x)[0].column + " NOT NULL PRIMARY KEY, v INTEGER)")
		f := x.Add(rowfeed.FeedSpec{Name: "users", Table: "users"})
		type user struct {
			K string
			V int64
		}
		stored := map[string]int64{}
		handle := func(_ context.Context, _ *sql.Tx, e rowfeed.Entry, u user) error {
			if delete(stored, u.K); e.Op == rowfeed.Upsert {
				stored[u.K] = u.V
			}
			return nil
		}
		c := &rowfeed.Consumer{Name: "store", Source: f, DB: x.RF, Handle: rowfeed.Each(handle)}
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
				x.Fatalf("after %s the consumer has stored %v, want %v", step.sql, stored, step.want)
			}
		}
	})
}

// TestDeadLetterKeepsChangedKey (V1): a key is set aside, and its text changes. Its later versions join the dead
// letter, and the retry delivers the row as it is.
func TestDeadLetterKeepsChangedKey(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE users (" + columnsWithTwoTexts(x)[0].column + " NOT NULL PRIMARY KEY, v INTEGER)")
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
		page, err := x.RF.Admin().DeadLetters(x.Ctx, suite.Letters(id, ""))
		letters := page.Letters
		if err != nil || len(letters) != 1 || letters[0].Collapsed != 1 || len(handled) != 0 {
			x.Fatalf("the dead letters are %+v, %v, and the consumer has handled %q", letters, err, handled)
		}
		if _, err := x.RF.Admin().RetryDeadLetters(x.Ctx, suite.Letters(id, ""), nil); err != nil {
			x.Fatal(err)
		}
		step("INSERT INTO users VALUES ('ann', 3)")
		want := []string{`{"k":"ann"} upsert {"k":"ann","v":3}`, `{"k":"fred"} upsert {"k":"FRED","v":2}`}
		if slices.Sort(handled); !slices.Equal(handled, want) {
			x.Errorf("the consumer has handled %q, want %q", handled, want)
		}
	})
}

// TestRepairPublishesBothTextsOfAKey (V1): a column is altered so that it tells two texts of a key apart: the text that
// readers know, and that of the row. Upgrade says so, and repair publishes both.
func TestRepairPublishesBothTextsOfAKey(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has no ALTER for a column's collation
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE users (" + columnsWithTwoTexts(x)[0].column + " NOT NULL PRIMARY KEY, v INTEGER)")
		f := x.Add(rowfeed.FeedSpec{Name: "users", Table: "users"})
		x.Exec("INSERT INTO users VALUES ('fred', 1), ('ann', 2)")
		reader := newKeyReader(1)
		x.Publish(f)
		reader.read(x, f)
		x.Exec("UPDATE users SET k = 'FRED' WHERE k = 'fred'")
		x.Publish(f)
		x.Exec(x.Text("values.tell_texts_apart"))
		mended, err := f.Admin().Upgrade(x.Ctx)
		if err != nil || !strings.Contains(strings.Join(mended, "\n"), "rowfeed repair users") {
			x.Fatalf("upgrade mended %q, %v", mended, err)
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
