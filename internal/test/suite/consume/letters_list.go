package consume

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// insertLetters inserts dead letters of the ids first to last with one statement. Ten letters have the same time. Their
// digests are not those of their keys. i is the id in the expressions for shard and error; text is i as text.
func insertLetters(x *suite.Env, consumer, feed string, first, last int, shard, message string) {
	x.Helper()
	const text = "CAST(i AS char(8))"
	x.Exec(fmt.Sprintf("INSERT INTO rowfeed_dead_letters (consumer, feed, shard, key_digest, key_json, generation, "+
		"position, op, state, attempts, collapsed, error, first_at, last_at, data_shard) "+
		"WITH RECURSIVE d (x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM d WHERE x < 99) "+
		"SELECT '%s', '%s', %s, CAST(10000000 + i AS char(8)), replace('{\"id\":#}', '#', %s), 1, %s, 'upsert', "+
		"'aside', 1, 0, %s, 5000000 - i / 10, 6000000 + i, 0 FROM "+
		"(SELECT 100 * a.x + b.x AS i FROM d a CROSS JOIN d b) n WHERE i >= %d AND i <= %d", consumer, feed, shard,
		text, text, strings.ReplaceAll(message, "text", text), first, last))
}

// setAside sets the key 1 of the feed kv aside for the consumer "test", which therefore has a cursor. Then it inserts
// dead letters of the ids 2 to last.
func setAside(x *suite.Env, r *suite.Receiver, f *rowfeed.Feed, last int, message string) *rowfeed.Consumer {
	x.Helper()
	x.Fill(1)
	x.Publish(f)
	r.Fail = failsOn(1)
	c := r.Consumer(f, x.RF)
	c.OnFailure = rowfeed.SetAside
	r.Once(c)
	insertLetters(x, "test", "kv", 2, last, "0", message)
	x.Exec(fmt.Sprintf("UPDATE rowfeed_cursors SET aside = %d", last))
	return c
}

// TestLettersAreListedInPages (H25, M72): the pages of a query have every letter that it selects once, in order,
// whatever the size of a page and wherever a page ends. Their number is the one that is counted.
func TestLettersAreListedInPages(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		insertLetters(x, "a", "kv", 1, 1000, "i % 3 - 1", "replace('status 503 after # s', '#', text)")
		insertLetters(x, "a", "zv", 1, 60, "0", "'50% refused_by'")
		insertLetters(x, "b", "kv", 1, 900, "i % 2", "'Status 404'")
		x.Exec("UPDATE rowfeed_dead_letters SET error = 'ünicode 100% !' WHERE consumer = 'b' AND position = '7'")
		zero, one := 0, 1
		for _, c := range []struct {
			q     rowfeed.LetterQuery
			where string
		}{
			{rowfeed.LetterQuery{}, "1 = 1"},
			{rowfeed.LetterQuery{ConsumerID: rowfeed.ConsumerID{Consumer: "a"}}, "consumer = 'a'"},
			{rowfeed.LetterQuery{ConsumerID: rowfeed.ConsumerID{Feed: "kv"}}, "feed = 'kv'"},
			{rowfeed.LetterQuery{ConsumerID: rowfeed.ConsumerID{Shard: &one}}, "shard = 1"},
			{rowfeed.LetterQuery{ConsumerID: rowfeed.ConsumerID{Consumer: "a", Feed: "kv", Shard: &zero}},
				"consumer = 'a' AND feed = 'kv' AND shard = 0"},
			{rowfeed.LetterQuery{Error: "STATUS"}, "feed = 'kv' AND (consumer = 'a' OR position <> '7')"},
			{rowfeed.LetterQuery{Error: "status 404"}, "consumer = 'b' AND position <> '7'"},
			{rowfeed.LetterQuery{Error: "after # s"}, "consumer = 'a' AND feed = 'kv'"},
			{rowfeed.LetterQuery{Error: "0% refused_by"}, "feed = 'zv'"},
			{rowfeed.LetterQuery{Error: "0_ refused"}, "1 = 0"},
			{rowfeed.LetterQuery{Error: "ünicode 100% !"}, "consumer = 'b' AND position = '7'"},
			{rowfeed.LetterQuery{Group: "status # after # s"}, "consumer = 'a' AND feed = 'kv'"},
			{rowfeed.LetterQuery{Group: "after # s"}, "1 = 0"},
		} {
			want := x.List("SELECT consumer, feed, shard, first_at, position FROM rowfeed_dead_letters WHERE " +
				c.where + " ORDER BY consumer, feed, shard, first_at, key_digest")
			if n, err := x.RF.Admin().CountDeadLetters(x.Ctx, c.q); err != nil || int(n) != len(want) {
				x.Errorf("%+v: counted %d letters, want %d, %v", c.q, n, len(want), err)
			}
			for _, limit := range []int{7, 1000} {
				var got []string
				q := c.q
				for q.Limit = limit; ; {
					page, err := x.RF.Admin().DeadLetters(x.Ctx, q)
					if err != nil {
						x.Fatalf("%+v: %v", q, err)
					}
					for _, l := range page.Letters {
						got = append(got, fmt.Sprintf("%s %s %d %d %s", l.Consumer, l.Feed, l.Shard,
							l.FirstAt.UnixMicro(), l.Position))
					}
					if len(page.Letters) > limit || page.Next != "" && len(page.Letters) < limit {
						x.Fatalf("%+v: a page of %d letters", q, len(page.Letters))
					}
					if q.After = page.Next; q.After == "" || len(got) > len(want) {
						break
					}
				}
				if !slices.Equal(got, want) {
					x.Errorf("%+v in pages of %d: %d letters, want %d in order", c.q, limit, len(got), len(want))
				}
			}
		}
		_, err := x.RF.Admin().DeadLetters(x.Ctx, rowfeed.LetterQuery{After: "bm8"})
		x.WantCode(err, rowfeed.InvalidRequest)
	})
}

// TestLettersAreGroupedByError (M72): letters are counted by consumer and error. Errors that differ only in numbers in
// their first 200 characters are one group, and the group's name selects its letters.
func TestLettersAreGroupedByError(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		insertLetters(x, "a", "kv", 1, 300, "i % 3", "replace('status 503 after # s', '#', text)")
		insertLetters(x, "a", "zv", 1, 40, "0", "'Status 503 after 1 s'")
		insertLetters(x, "b", "kv", 1, 50, "0", "'before: status 503 after 1 s'")
		insertLetters(x, "b", "kv", 51, 60, "0", "'status 503 after 1 s'")
		long := strings.Repeat("9", 180) + strings.Repeat("é", 20)
		insertLetters(x, "b", "kv", 101, 120, "0", "replace('"+long+" # s', '#', text)")
		for _, c := range []struct {
			q    rowfeed.LetterQuery
			want []string
		}{
			{rowfeed.LetterQuery{}, []string{"a kv 300 status # after # s", "b kv 50 before: status # after # s",
				"a zv 40 Status # after # s", "b kv 20 #" + strings.Repeat("é", 20), "b kv 10 status # after # s"}},
			{rowfeed.LetterQuery{Limit: 1}, []string{"a kv 300 status # after # s"}},
			{rowfeed.LetterQuery{Error: "503", ConsumerID: rowfeed.ConsumerID{Consumer: "b"}},
				[]string{"b kv 50 before: status # after # s", "b kv 10 status # after # s"}},
		} {
			groups, err := x.RF.Admin().GroupDeadLetters(x.Ctx, c.q)
			if err != nil {
				x.Fatal(err)
			}
			var got []string
			for _, g := range groups {
				got = append(got, fmt.Sprint(g.Consumer, " ", g.Feed, " ", g.Letters, " ", g.Error))
				q := suite.Letters(rowfeed.ConsumerID{Consumer: g.Consumer, Feed: g.Feed}, "")
				q.Group = g.Error
				if n, err := x.RF.Admin().CountDeadLetters(x.Ctx, q); err != nil || n != g.Letters {
					x.Errorf("the group %q selects %d letters, want %d, %v", g.Error, n, g.Letters, err)
				}
			}
			if !slices.Equal(got, c.want) {
				x.Errorf("%+v: groups %q, want %q", c.q, got, c.want)
			}
			if first := groups[0]; len(c.want) == 5 && (first.FirstAt.UnixMicro() != 5000000-30 ||
				first.LastAt.UnixMicro() != 6000000+300) {
				x.Errorf("the first group is of %v to %v", first.FirstAt, first.LastAt)
			}
		}
	})
}

// TestLettersAreChangedInBatches (H25): retry and drop change every letter that a query selects, and no other, in short
// transactions. The cursor counts those that are left.
func TestLettersAreChangedInBatches(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		c := setAside(x, r, f, 1501, "replace('status # s', '#', CAST(500 + i % 3 AS char(8)))")
		query := suite.Letters(suite.TestConsumer, "")
		query.Error = "status 501"
		type changing = func(context.Context, rowfeed.LetterQuery, func(int64)) (int64, error)
		change := func(fn changing, q rowfeed.LetterQuery) int64 {
			x.Helper()
			var last int64
			total, err := fn(x.Ctx, q, func(n int64) {
				if n-last > 200 || n <= last {
					x.Errorf("%d letters after %d: a batch is too large", n, last)
				}
				last = n
			})
			if err != nil || total != last {
				x.Errorf("%d letters, reported %d, %v", total, last, err)
			}
			return total
		}
		const toRetry = "SELECT count(*) FROM rowfeed_dead_letters WHERE state = 'retry'"
		if n := change(x.RF.Admin().RetryDeadLetters, query); n != 500 || x.Scalar(toRetry) != 500 ||
			x.Scalar(toRetry+" AND error = 'status 501 s'") != 500 {
			x.Errorf("%d letters are to be retried, want the 500 of the error", n)
		}
		if n := change(x.RF.Admin().DropDeadLetters, query); n != 500 {
			x.Errorf("%d letters were dropped, want 500", n)
		}
		left := func(want int64) {
			x.Helper()
			n := x.Scalar("SELECT count(*) FROM rowfeed_dead_letters")
			if aside := x.Scalar("SELECT aside FROM rowfeed_cursors"); n != want || aside != want {
				x.Errorf("%d letters are left and the cursor counts %d, want %d", n, aside, want)
			}
		}
		left(1001)

		// The consumer stores another error between the read of a batch and its transaction: the letter stays.
		query.Error = "status 502"
		held := testdb.Hold(begins)
		ended := make(chan error, 1)
		go func() {
			_, err := x.TappedDB(testdb.Hooks{Before: held.Before}, nil).Admin().DropDeadLetters(x.Ctx, query, nil)
			ended <- err
		}()
		<-held.Reached
		x.Exec(`UPDATE rowfeed_dead_letters SET error = 'another' WHERE key_json = '{"id":1499}'`)
		held.Release()
		if err := <-ended; err != nil {
			x.Fatal(err)
		}
		left(502)
		if n := change(x.RF.Admin().DropDeadLetters, suite.Letters(suite.TestConsumer, "")); n != 502 {
			x.Errorf("%d letters were dropped, want 502", n)
		}
		left(0)
		r.Fail = nil
		x.Exec("UPDATE kv SET v = 2")
		x.Publish(f)
		r.Once(c)
		wantApplied(r, "2 upsert 1")
	})
}

// TestLettersAreFoundByKey (H25): a key is found as entries show it, with its columns in any order, or as the value of
// its only column. Only that key is changed.
func TestLettersAreFoundByKey(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		insertLetters(x, "a", "kv", 1, 9, "i % 2", "'e'")
		for i, key := range []string{
			`{"id":7}`, `{"id":"7"}`, `{"ns":"a\"é","k":1,"z":[1,2]}`, `{"b":{"$binary":"AQ=="}}`, `{"s":"null"}`,
			`{"s":null}`,
		} {
			feed := fmt.Sprintf("f%d", i)
			insertLetters(x, "a", feed, 1, 1, "0", "'e'")
			x.Exec(fmt.Sprintf("UPDATE rowfeed_dead_letters SET key_json = %s, key_digest = '%x' WHERE feed = '%s'",
				x.Dialect.Literal(key), sha256.Sum256([]byte(key)), feed),
				"INSERT INTO rowfeed_cursors (consumer, feed, shard, shard_count, value, generation, epoch, version, "+
					"paused, aside, updated_at) VALUES ('a', '"+feed+"', 0, 1, '', 0, 0, 0, 0, 1, 0)")
		}
		for _, c := range []struct{ key, feeds string }{
			{`{"id":7}`, "f0"}, {` { "id" : "7" } `, "f1"}, {"7", "f0 f1"}, {`"7"`, "f1"}, {"8", ""},
			{`{"z":[1, 2],"k":1,"ns":"a\"\u00e9"}`, "f2"}, {`{"k":1,"ns":"a\"é"}`, ""}, {`{"$binary": "AQ=="}`, "f3"},
			{"null", "f4 f5"}, {`{"id":7`, ""}, {"{}", ""},
		} {
			page, err := x.RF.Admin().DeadLetters(x.Ctx, rowfeed.LetterQuery{Key: c.key})
			var feeds []string
			for _, l := range page.Letters {
				feeds = append(feeds, l.Feed)
			}
			if got := strings.Join(feeds, " "); err != nil || got != c.feeds {
				x.Errorf("the key %s is found in %q, want %q, %v", c.key, got, c.feeds, err)
			}
		}
		q := rowfeed.LetterQuery{ConsumerID: rowfeed.ConsumerID{Consumer: "a", Feed: "f0"}, Key: "7"}
		if n, err := x.RF.Admin().RetryDeadLetters(x.Ctx, q, nil); n != 1 || err != nil {
			x.Errorf("retried %d letters, %v", n, err)
		}
		got := x.List("SELECT feed FROM rowfeed_dead_letters WHERE state = 'retry'")
		if !slices.Equal(got, []string{"f0"}) {
			x.Errorf("retried the letters of %q", got)
		}
		q.Key = "8"
		_, err := x.RF.Admin().DropDeadLetters(x.Ctx, q, nil)
		x.WantCode(err, rowfeed.UnknownConsumer)
	})
}

// TestRowOfLetterIsShown (M72): an operator sees the row that a retry delivers, with its present content.
func TestRowOfLetterIsShown(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		c := setAside(x, r, f, 1, "'e'")
		letter := func() rowfeed.DeadLetter {
			x.Helper()
			page, err := x.RF.Admin().DeadLetters(x.Ctx, suite.Letters(suite.TestConsumer, "1"))
			if err != nil || len(page.Letters) != 1 {
				x.Fatalf("%d letters, %v", len(page.Letters), err)
			}
			return page.Letters[0]
		}
		want := func(row string) {
			x.Helper()
			e, err := x.RF.Admin().LetterRow(x.Ctx, letter())
			got := ""
			if e != nil {
				v, _ := e.Row.Get("v")
				got = fmt.Sprint(e.Op, " ", v)
			}
			if err != nil || got != row {
				x.Errorf("the row is %q, want %q, %v", got, row, err)
			}
		}
		x.Exec("UPDATE kv SET v = 7")
		want("upsert 7")
		x.Publish(f)
		want("") // the new version has not joined the letter
		r.Once(c)
		want("upsert 7")
		x.Exec("DELETE FROM kv")
		x.Publish(f)
		r.Once(c)
		want("")
		gone := letter()
		gone.Feed = "elsewhere"
		_, err := x.RF.Admin().LetterRow(x.Ctx, gone)
		x.WantCode(err, rowfeed.UnknownFeed)
	})
}
