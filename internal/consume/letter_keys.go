package consume

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

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
	b := db.builder()
	feeds, err := dialect.QueryAll(ctx, db.Store.On(), "SELECT DISTINCT consumer, feed FROM "+db.table("cursors")+
		" WHERE "+WhereID(b, id)+" AND aside > 0", b.Args(),
		func(rows dialect.Rows) (of feedtype.ConsumerID, err error) {
			return of, rows.Scan(&of.Consumer, &of.Feed)
		})
	if err != nil {
		return nil, err
	}
	for _, of := range feeds {
		b := db.builder()
		keys, err := dialect.QueryAll(ctx, db.Store.On(), "SELECT key_json FROM "+db.table("dead_letters")+" WHERE "+
			WhereID(b, of)+" ORDER BY "+strings.Join(letterOrder, ", ")+" LIMIT 1", b.Args(),
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
