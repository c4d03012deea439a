package consume

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// letterOrder are the columns by which "selected_letters" lists dead letters. An index has them in this order.
var letterOrder = []string{"consumer", "feed", "shard", "first_at", "key_digest"}

// lettersAtOnce is the maximum number of letters that one transaction changes: a running consumer waits for it.
const lettersAtOnce = 200

// listed is a dead letter with its key in the list.
type listed struct {
	feedtype.DeadLetter
	digest string
}

func (l listed) place() [5]any {
	return [5]any{l.Consumer, l.Feed, int64(l.Shard), l.FirstAt.UnixMicro(), l.digest}
}

// DeadLetters returns a page of dead letters.
func (db *Consumers) DeadLetters(ctx context.Context, q feedtype.LetterQuery) (feedtype.LetterPage, error) {
	s, err := db.selection(ctx, q)
	if err != nil {
		return feedtype.LetterPage{}, err
	}
	letters, next, err := s.page(ctx, q.After, letterLimit(q.Limit))
	page := feedtype.LetterPage{Letters: make([]feedtype.DeadLetter, len(letters)), Next: next}
	for i, l := range letters {
		page.Letters[i] = l.DeadLetter
	}
	return page, err
}

func letterLimit(limit int) int {
	if limit <= 0 {
		return 100
	}
	return min(limit, 1000)
}

// CountDeadLetters returns the number of dead letters that a query selects on all its pages.
func (db *Consumers) CountDeadLetters(ctx context.Context, q feedtype.LetterQuery) (n int64, err error) {
	s, err := db.selection(ctx, q)
	if err != nil {
		return 0, err
	}
	err = db.Store.One(ctx, db.Store.On(), statements, "count_letters", dialect.Args{"which": s.which()}, &n)
	return n, db.Store.Fail(q.String(), "count its dead letters", err)
}

// GroupDeadLetters counts dead letters by consumer, feed and kind of error. The largest groups come first.
func (db *Consumers) GroupDeadLetters(ctx context.Context, q feedtype.LetterQuery) ([]feedtype.LetterGroup, error) {
	s, err := db.selection(ctx, q)
	if err != nil {
		return nil, err
	}
	groups, err := store.All(ctx, db.Store, db.Store.On(), statements, "group_letters",
		dialect.Args{"which": s.which(), "count": int64(letterLimit(q.Limit))},
		func(rows dialect.Rows) (g feedtype.LetterGroup, err error) {
			var first, last int64
			err = rows.Scan(&g.Consumer, &g.Feed, &g.Error, &g.Letters, &first, &last)
			g.FirstAt, g.LastAt = time.UnixMicro(first).UTC(), time.UnixMicro(last).UTC()
			return g, err
		})
	return groups, db.Store.Fail(q.String(), "count its dead letters", err)
}

// RetryDeadLetters asks consumers to handle the selected keys again. A consumer does so in its own loop, with the
// current row. A key that fails again stays set aside. It returns the number of dead letters to retry. progress may
// be nil; it is called with the number so far.
func (db *Consumers) RetryDeadLetters(ctx context.Context, q feedtype.LetterQuery,
	progress func(int64)) (int64, error) {
	return db.changeLetters(ctx, q, "retry", progress,
		func(tx dialect.Querier, _ listed, batch dialect.Built) (int64, error) {
			return db.exec(ctx, tx, "ask_for_release", dialect.Args{"retry": feedtype.LetterRetry, "which": batch})
		})
}

// DropDeadLetters deletes the selected dead letters. The versions of their keys so far are never handed over. The next
// version is.
func (db *Consumers) DropDeadLetters(ctx context.Context, q feedtype.LetterQuery,
	progress func(int64)) (int64, error) {
	return db.changeLetters(ctx, q, "drop", progress,
		func(tx dialect.Querier, of listed, batch dialect.Built) (int64, error) {
			n, err := db.exec(ctx, tx, "drop_letters", dialect.Args{"which": batch})
			if err != nil || n == 0 {
				return n, err
			}
			args := rowArgs(of.Consumer, of.Feed, of.Shard)
			args["dropped"] = n
			_, err = db.exec(ctx, tx, "count_dropped", args)
			return n, err
		})
}

// changeLetters changes dead letters in batches. A batch has letters of one shard, and a transaction of its own. fn
// gets the first letter of the batch, and the condition of the batch. The condition contains the query's, since a
// consumer may change a letter between the read and the change.
func (db *Consumers) changeLetters(ctx context.Context, q feedtype.LetterQuery, doing string, progress func(int64),
	fn func(dialect.Querier, listed, dialect.Built) (int64, error)) (total int64, err error) {
	s, err := db.selection(ctx, q)
	if err != nil {
		return 0, err
	}
	found := false
	for more, after := true, q.After; more; more = after != "" {
		var letters []listed
		if letters, after, err = s.page(ctx, after, lettersAtOnce); err != nil {
			return total, err
		}
		for len(letters) > 0 {
			found = true
			of := letters[0]
			n := slices.IndexFunc(letters, func(l listed) bool {
				return l.Consumer != of.Consumer || l.Feed != of.Feed || l.Shard != of.Shard
			})
			if n < 0 {
				n = len(letters)
			}
			batch := letterSelection{db, q, make([]string, n)}
			batch.q.ConsumerID = feedtype.ConsumerID{Consumer: of.Consumer, Feed: of.Feed, Shard: &of.Shard}
			for i, l := range letters[:n] {
				batch.digests[i] = l.digest
			}
			until := letters[n-1]
			letters = letters[n:]
			which := dialect.Joined(" AND ", []dialect.Built{batch.which(), db.part("begun_between",
				dialect.Args{"first": of.FirstAt.UnixMicro(), "last": until.FirstAt.UnixMicro()})})
			var changed int64
			err := db.Store.InTx(ctx, dialect.ForRecord, doing+" dead letters", func(tx dialect.Querier) (err error) {
				if _, err = db.LockWhole(ctx, tx, batch.q.ConsumerID); err == nil {
					changed, err = fn(tx, of, which)
				}
				return err
			})
			if err != nil {
				return total, db.Store.Fail(q.String(), doing+" its dead letters", err)
			}
			if total += changed; progress != nil {
				progress(total)
			}
		}
	}
	switch {
	case found:
	case q.Key != "":
		return 0, &feedtype.Error{Code: feedtype.UnknownConsumer, Object: q.String(),
			Cause: "there is no dead letter with key " + q.Key, Next: "`rowfeed dead list` lists the existing ones"}
	case q.Consumer != "":
		return 0, db.RequireConsumer(ctx, q.ConsumerID)
	}
	return total, nil
}

// letterSelection is a query whose key is resolved.
type letterSelection struct {
	db      *Consumers
	q       feedtype.LetterQuery
	digests []string // of the keys that are selected; nil selects all keys
}

func (db *Consumers) selection(ctx context.Context, q feedtype.LetterQuery) (*letterSelection, error) {
	if err := db.Store.RequireSchema(ctx, db.Store.On()); err != nil {
		return nil, err
	}
	digests, err := db.letterDigests(ctx, q)
	return &letterSelection{db, q, digests}, db.Store.Fail(q.String(), "look for the columns of its keys", err)
}

// which is the condition that selects the letters.
func (s *letterSelection) which() dialect.Built {
	parts := []dialect.Built{Which(s.q.ConsumerID)}
	switch {
	case len(s.digests) > 0:
		parts = append(parts, s.db.part("one_of", dialect.Args{"digests": dialect.List(s.digests)}))
	case s.q.Key != "":
		parts = append(parts, s.db.part("none", nil))
	}
	if s.q.Error != "" {
		name := "has_text"
		if strings.Contains(s.q.Error, "#") {
			name = "has_text_or_group"
		}
		part := "%" + strings.NewReplacer("!", "!!", "%", "!%", "_", "!_", "[", "![").Replace(s.q.Error) + "%"
		parts = append(parts, s.db.part(name, dialect.Args{"part": part}))
	}
	if s.q.Group != "" {
		parts = append(parts, s.db.part("in_group", dialect.Args{"group": s.q.Group}))
	}
	return dialect.Joined(" AND ", parts)
}

// page reads the letters behind a place in the list. First come those that are equal in all columns of the order but
// the last, then those that are equal in fewer. So each statement reads a range of the index: not every database does
// so if a statement compares all columns.
func (s *letterSelection) page(ctx context.Context, after string, limit int) (all []listed, next string, err error) {
	at, compared := [5]any{""}, 1 // all consumers: without a condition MariaDB sorts the whole table
	if after != "" {
		compared = len(letterOrder)
		if at, err = parsePlace(after); err != nil {
			return nil, "", err
		}
	}
	fixed := []bool{s.q.Consumer != "", s.q.Feed != "", s.q.Shard != nil, false, false} // by the query
	for ; compared > 0 && len(all) <= limit; compared-- {
		if after != "" && fixed[compared-1] {
			continue
		}
		which := func(b *dialect.Builder) string {
			where := s.which()(b)
			for i, column := range letterOrder[:compared] {
				if !fixed[i] {
					where += " AND " + column + map[bool]string{true: " > ", false: " = "}[i == compared-1] +
						b.Arg(at[i])
				}
			}
			return where
		}
		some, err := store.All(ctx, s.db.Store, s.db.Store.On(), statements, "selected_letters",
			dialect.Args{"which": dialect.Built(which), "count": int64(limit + 1 - len(all))}, scanLetter)
		if err != nil {
			return nil, "", s.db.Store.Fail(s.q.String(), "read its dead letters", err)
		}
		all = append(all, some...)
	}
	if len(all) > limit {
		all = all[:limit]
		text, err := json.Marshal(all[limit-1].place())
		return all, base64.RawURLEncoding.EncodeToString(text), err
	}
	return all, "", nil
}

// parsePlace reads a place in the list. It is the JSON of the columns of the order, as Base64.
func parsePlace(text string) (at [5]any, err error) {
	var consumer, feed, digest string
	var shard, first int64
	parts := []any{&consumer, &feed, &shard, &first, &digest}
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(plain, &parts) // which sets the length of parts
	}
	if err != nil || len(parts) != len(at) {
		return at, feedtype.Invalid("after",
			"%q is not from a page of dead letters: copy it from the previous page, or omit it", text)
	}
	return [5]any{consumer, feed, shard, first, digest}, nil
}

func scanLetter(rows dialect.Rows) (l listed, err error) {
	var text string
	var first, last int64
	err = rows.Scan(&l.Consumer, &l.Feed, &l.Shard, &l.DataShard, &text, &l.Generation, &l.Position, &l.Op, &l.State,
		&l.Attempts, &l.Collapsed, &l.Error, &first, &last, &l.digest)
	l.Generation = max(l.Generation, 0)
	l.Key, l.FirstAt, l.LastAt = json.RawMessage(text), time.UnixMicro(first).UTC(), time.UnixMicro(last).UTC()
	return l, err
}

// ForgetLetterPositions marks the positions of dead letters as positions of an earlier pass. The next pass delivers
// every key that still exists.
func (db *Consumers) ForgetLetterPositions(ctx context.Context, tx dialect.Querier, id feedtype.ConsumerID) error {
	_, err := db.exec(ctx, tx, "forget_positions",
		dialect.Args{"upsert": string(feedtype.Upsert), "which": Which(id)})
	return err
}

// maxReordered is the maximum number of columns of a key whose orders are all looked for: 5 columns have 120 orders.
const maxReordered = 5

// letterDigests returns the digests of the keys that the query's key may mean. A dead letter is found by the digest of
// its key's JSON. So the digests are of the JSON in the form in which consumers store it.
func (db *Consumers) letterDigests(ctx context.Context, q feedtype.LetterQuery) (digests []string, err error) {
	if q.Key == "" {
		return nil, nil
	}
	_, values, object := keyColumns(q.Key)
	if object {
		eachOrder(values, func(members []string) {
			digests = append(digests, keyDigest([]byte("{"+strings.Join(members, ",")+"}")))
		})
	}
	if object && !strings.HasPrefix(values[0], `"$`) { // {"$binary":"…"} is a value
		return digests, nil
	}
	columns, err := db.letterColumns(ctx, q.ConsumerID)
	for _, column := range columns {
		for _, value := range []string{canonical(json.RawMessage(q.Key)), jsonString(q.Key)} {
			digests = append(digests, keyDigest([]byte("{"+jsonString(column)+":"+value+"}")))
		}
	}
	return digests, err
}

// letterColumns returns the names of the key columns of feeds whose keys have one column. The feed may be in another
// database, so they are read from a dead letter of each.
func (db *Consumers) letterColumns(ctx context.Context, id feedtype.ConsumerID) (columns []string, err error) {
	feeds, err := store.All(ctx, db.Store, db.Store.On(), statements, "feeds_aside", dialect.Args{"which": Which(id)},
		func(rows dialect.Rows) (of feedtype.ConsumerID, err error) {
			return of, rows.Scan(&of.Consumer, &of.Feed)
		})
	if err != nil {
		return nil, err
	}
	for _, of := range feeds {
		keys, err := store.All(ctx, db.Store, db.Store.On(), statements, "first_key", dialect.Args{"which": Which(of)},
			func(rows dialect.Rows) (key string, err error) { return key, rows.Scan(&key) })
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			if names, _, ok := keyColumns(key); ok && len(names) == 1 && !slices.Contains(columns, names[0]) {
				columns = append(columns, names[0])
			}
		}
	}
	return columns, nil
}

// keyColumns returns the columns of a key, and their members of its JSON as consumers store them. ok is false if the
// text is not a JSON object with members.
func keyColumns(key string) (names, members []string, ok bool) {
	d := json.NewDecoder(strings.NewReader(key))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, nil, false
	}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return nil, nil, false
		}
		text, _ := name.(string)
		names, members = append(names, text), append(members, jsonString(text)+":"+canonical(value))
	}
	_, err := d.Token()
	return names, members, err == nil && !d.More() && len(names) > 0
}

// canonical returns a JSON value as consumers store it. Text that is not JSON stays as it is.
func canonical(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil && !bytes.Equal(bytes.TrimSpace(value), []byte("null")) {
		return jsonString(text)
	}
	var compact bytes.Buffer
	if json.Compact(&compact, value) != nil {
		return string(value)
	}
	return compact.String()
}

func jsonString(text string) string { return string(feedtype.AppendValue(nil, feedtype.Dynamic, text)) }

// eachOrder calls fn with every order of the members, or with the given order if they are many.
func eachOrder(members []string, fn func([]string)) {
	var put func(n int)
	put = func(n int) {
		if n == len(members) || len(members) > maxReordered {
			fn(members)
			return
		}
		for i := n; i < len(members); i++ {
			members[n], members[i] = members[i], members[n]
			put(n + 1)
			members[n], members[i] = members[i], members[n]
		}
	}
	put(0)
}
