package plans

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestLetterPagesUseIndex (H25, H17): a page of 100,000 dead letters reads as many rows of the index as it has letters,
// wherever it begins, and sorts nothing. A batch of a retry reads its own letters only. That holds before the first
// ANALYZE and after it.
func TestLetterPagesUseIndex(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		x.Needs("plans.explained_by")
		const page, many = 100, 100_000
		x.Exec("CREATE TABLE hot (id INTEGER PRIMARY KEY, v INTEGER)")
		x.Add(rowfeed.FeedSpec{Name: "hot", Table: "hot"})
		p := newPlans(x, page)
		x.Exec("INSERT INTO rowfeed_dead_letters (consumer, feed, shard, key_digest, key_json, generation, position, " +
			"op, state, attempts, collapsed, error, first_at, last_at, data_shard) " +
			numbered(1, many, "'c', 'hot', i % 4, CAST(10000000 + i AS char(8)), '{}', 1, '1', 'upsert', 'aside', "+
				"1, 0, 'e', i / 50, 0, 0"))
		list := func(q rowfeed.LetterQuery) (next rowfeed.LetterQuery) {
			q.Limit = page
			seen := p.during(func() error {
				read, err := p.rf.Admin().DeadLetters(x.Ctx, q)
				next, next.After = q, read.Next
				return err
			})
			if len(seen) == 0 {
				x.Errorf("no statement reads the page %+v", q)
			}
			for i, s := range seen {
				p.explain(fmt.Sprintf("%+v, statement %d", q, i), s)
			}
			return next
		}
		all, of, shard := rowfeed.LetterQuery{}, rowfeed.LetterQuery{}, 1
		of.ConsumerID = rowfeed.ConsumerID{Consumer: "c", Feed: "hot"}
		one := of
		one.Shard = &shard
		for range 2 {
			for _, q := range []rowfeed.LetterQuery{all, of, one} {
				list(list(q))
			}
			// 20,000 letters of shard 1 are before this one.
			deep := x.List("SELECT first_at, key_digest FROM rowfeed_dead_letters WHERE shard = 1 " +
				"AND first_at >= 1600 ORDER BY first_at, key_digest LIMIT 1")
			for _, q := range []rowfeed.LetterQuery{all, of, one} {
				q.After = place("c", "hot", 1, deep[0])
				list(list(q))
			}
			retried := p.during(func() error {
				_, err := p.rf.Admin().RetryDeadLetters(x.Ctx, one, nil)
				return err
			})
			retried = slices.DeleteFunc(retried, func(s statement) bool { return s.name != "retry letters" })
			p.explain("retry, a batch in the middle", retried[len(retried)/2])
			analyze(x, "rowfeed_dead_letters")
		}
	})
}

// place returns the cursor of the list behind a letter, whose time and digest are separated by a blank.
func place(consumer, feed string, shard int, letter string) string {
	var first int64
	var digest string
	_, _ = fmt.Sscan(letter, &first, &digest)
	text, _ := json.Marshal([]any{consumer, feed, shard, first, digest})
	return base64.RawURLEncoding.EncodeToString(text)
}
