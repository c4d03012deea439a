package consume

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// letter is a row of the table of dead letters: a key that a consumer has set aside,
// and where its latest version stands.
type letter struct {
	digest string
	key    string // JSON
	// generation of the position: below 0 where the consumer has begun again since, and
	// the position says nothing any more. op is then Delete where the new pass has ended
	// without the key.
	generation int64
	position   string
	op         feedtype.Op
	dataShard  *int64 // of its entry; nil of letters from before tables version 5
}

// letters is the condition that a dead letter is of this consumer's.
func (r *consuming) letters(b *dialect.Builder) string {
	return "consumer = " + b.Arg(r.c.Name) + " AND feed = " + b.Arg(r.feed) + " AND shard = " + b.Arg(r.row.Shard)
}

func (r *consuming) lettersTable() string { return r.c.DB.Store.Table("dead_letters") }

// setAside makes a dead letter of an entry and moves the cursor past it.
func (r *consuming) setAside(ctx context.Context, e feedtype.Entry, to feedtype.Cursor, attempts int, cause error) error {
	err := r.inTx(ctx, func(tx *sql.Tx, t *consumerTx) error {
		key := e.Key.AppendJSON(nil)
		now := r.c.DB.Store.Dialect.Now()
		b := dialect.NewBuilder(r.c.DB.Store.Dialect)
		n, err := t.q.Exec(ctx, r.c.DB.Store.Dialect.InsertNew(r.lettersTable(),
			[]string{"consumer", "feed", "shard", "key_digest", "key_json", "generation", "position", "op", "state", "attempts", "collapsed", "error", "first_at", "last_at", "data_shard"},
			[]string{b.Arg(r.c.Name), b.Arg(r.feed), b.Arg(r.row.Shard), b.Arg(keyDigest(key)), b.Arg(string(key)), b.Arg(e.Generation), b.Arg(e.Position),
				b.Arg(string(e.Op)), b.Arg(feedtype.LetterAside), b.Arg(attempts), "0", b.Arg(letterText(cause)), now, now, b.Arg(e.Shard)},
			[]string{"consumer", "feed", "shard", "key_digest"}), b.Args()...)
		switch {
		case err != nil:
			return err
		case n != 1:
			return errOvertaken
		}
		if err := t.complete(ctx, tx, to, 1); err != nil {
			return err
		}
		return t.advance(ctx, to, 1)
	})
	if err == nil {
		r.complete = true
		r.c.DB.Store.Observer.SetAside(feedtype.SetAsideEvent{Consumer: r.c.Name, Feed: r.feed, Shard: max(r.shard, 0), ShardCount: r.count, Attempts: attempts})
	}
	return err
}

// letterText is an error as a dead letter keeps it: valid text of bounded length.
func letterText(err error) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(err.Error(), "\uFFFD"), "\x00", "\uFFFD")
	const most = 4000
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " …"
	}
	return text
}

// collapse takes the entries of keys that are set aside out of a batch and joins them
// to their dead letters, so that no version of a key overtakes another.
func (r *consuming) collapse(ctx context.Context, q dialect.Querier, entries []feedtype.Entry) ([]feedtype.Entry, error) {
	digests := make([]string, len(entries))
	for i, e := range entries {
		digests[i] = keyDigest(e.Key.AppendJSON(nil))
	}
	aside, err := r.asideAmong(ctx, q, digests)
	if err != nil {
		return nil, err
	}
	if len(aside) == 0 {
		return entries, nil
	}
	var rest []feedtype.Entry
	for i, e := range entries {
		if !aside[digests[i]] {
			rest = append(rest, e)
			continue
		}
		b := dialect.NewBuilder(r.c.DB.Store.Dialect)
		n, err := q.Exec(ctx, "UPDATE "+r.lettersTable()+" SET generation = "+b.Arg(e.Generation)+", position = "+b.Arg(e.Position)+
			", op = "+b.Arg(string(e.Op))+", data_shard = "+b.Arg(e.Shard)+", collapsed = collapsed + 1, last_at = "+r.c.DB.Store.Dialect.Now()+
			" WHERE "+r.letters(b)+" AND key_digest = "+b.Arg(digests[i]), b.Args()...)
		switch {
		case err != nil:
			return nil, err
		case n != 1:
			return nil, errOvertaken // dropped meanwhile: it is to be handed over after all
		}
	}
	return rest, nil
}

// asideAmong answers keys that are set aside, those of the digests among them, and notes
// whether an operator has asked for the release of any letter: one statement, unless both
// keys and letters are many.
func (r *consuming) asideAmong(ctx context.Context, q dialect.Querier, digests []string) (map[string]bool, error) {
	const chunk = 500 // letters, or parameters, of which databases take a limited number
	type found struct{ digest, state string }
	aside := map[string]bool{}
	for from := 0; from < len(digests); from += chunk {
		b := dialect.NewBuilder(r.c.DB.Store.Dialect)
		query := "SELECT key_digest, state FROM " + r.lettersTable() + " WHERE " + r.letters(b)
		few := r.row.Aside <= chunk
		if !few {
			query += " AND (state = " + b.Arg(feedtype.LetterRetry) + " OR key_digest IN ("
			for i, d := range digests[from:min(from+chunk, len(digests))] {
				if i > 0 {
					query += ", "
				}
				query += b.Arg(d)
			}
			query += "))"
		}
		letters, err := dialect.QueryAll(ctx, q, query, b.Args(), func(rows dialect.Rows) (f found, err error) {
			return f, rows.Scan(&f.digest, &f.state)
		})
		if err != nil {
			return nil, err
		}
		for _, l := range letters {
			aside[l.digest] = true
			r.releases = r.releases || l.state == feedtype.LetterRetry
		}
		if few {
			break
		}
	}
	return aside, nil
}

// release hands the latest version of one key over for which an operator has asked
// that; released is false when there is none. It is part of the consumer's own loop:
// the cursor stands still meanwhile, or the compare-and-set says so, and no newer
// version can come between.
func (r *consuming) release(ctx context.Context) (released bool, err error) {
	b := dialect.NewBuilder(r.c.DB.Store.Dialect)
	var l letter
	err = dialect.QueryRow(ctx, r.c.DB.Store.On(), "SELECT key_digest, key_json, generation, position, op, data_shard FROM "+r.lettersTable()+
		" WHERE "+r.letters(b)+" AND state = "+b.Arg(feedtype.LetterRetry)+" ORDER BY first_at, key_digest LIMIT 1", b.Args(),
		&l.digest, &l.key, &l.generation, &l.position, &l.op, &l.dataShard)
	if errors.Is(err, sql.ErrNoRows) {
		r.releases = false
		return false, nil
	}
	if err != nil {
		return false, err
	}
	started := time.Now()
	batch, err := r.reread(ctx, l)
	if isRefusal(err) {
		return false, nil // so is the cursor: the next page says so, and knows what to do
	}
	if errors.Is(err, feedtype.Conflict) {
		r.trouble(err)
		return true, r.keepAside(ctx, l, err)
	}
	if err != nil {
		return true, err
	}
	at := r.row.Value
	handled := func(tx *sql.Tx, t *consumerTx) error {
		if len(batch) > 0 && r.c.Deliver == nil {
			if err := t.handle(ctx, func() error { return r.c.Handle(ctx, tx, batch) }); err != nil {
				return err
			}
		}
		b := dialect.NewBuilder(r.c.DB.Store.Dialect)
		n, err := t.q.Exec(ctx, "DELETE FROM "+r.lettersTable()+" WHERE "+r.exactly(b, l), b.Args()...)
		switch {
		case err != nil:
			return err
		case n != 1:
			return errOvertaken // a newer version has joined it
		}
		return t.advance(ctx, at, -1)
	}
	if err = r.deliverLetter(ctx, batch); err == nil {
		err = r.inTx(ctx, handled)
	}
	var failed *handlerError
	switch {
	case err == nil:
		r.consumed(len(batch), 0, at, started)
		return true, nil
	case !errors.As(err, &failed):
		return true, err
	}
	r.trouble(failed.err)
	r.denials = 0
	return true, r.keepAside(ctx, l, failed.err)
}

// exactly is the condition that a dead letter is still the one that was read.
func (r *consuming) exactly(b *dialect.Builder, l letter) string {
	return r.letters(b) + " AND key_digest = " + b.Arg(l.digest) +
		" AND generation = " + b.Arg(l.generation) + " AND position = " + b.Arg(l.position) + " AND state = " + b.Arg(feedtype.LetterRetry)
}

// keepAside notes that another attempt has failed.
func (r *consuming) keepAside(ctx context.Context, l letter, cause error) error {
	return r.c.DB.Store.InTx(ctx, dialect.ForRecord, "keep a dead letter", func(tx dialect.Querier) error {
		b := dialect.NewBuilder(r.c.DB.Store.Dialect)
		_, err := tx.Exec(ctx, "UPDATE "+r.lettersTable()+" SET state = "+b.Arg(feedtype.LetterAside)+", attempts = attempts + 1, error = "+b.Arg(letterText(cause))+
			", last_at = "+r.c.DB.Store.Dialect.Now()+" WHERE "+r.exactly(b, l), b.Args()...)
		return err
	})
}

// reread asks the source for the key's version at the position of its dead letter, as
// the row is now. None there means that a newer one is on its way, above the cursor:
// versions up to the cursor have joined the letter; that much only a source can say
// that is not behind the letter. Of a letter from before the consumer began again, only
// a whole pass without the key tells anything: that the key is gone.
func (r *consuming) reread(ctx context.Context, l letter) ([]feedtype.Entry, error) {
	position, err := feedtype.ParsePosition(l.position)
	if err != nil {
		return nil, fmt.Errorf("position of a dead letter: %w", err)
	}
	switch {
	case l.generation < 0 && l.op == feedtype.Delete:
		return r.gone(l)
	case l.generation != r.row.Generation:
		return nil, &feedtype.Error{Code: feedtype.Conflict, Object: r.object(), Cause: "nothing tells whether the key " + l.key + " of a dead letter is still there: the consumer's cursor was set to another history, or past what the key stood in",
			Next: "republish the key with `rowfeed republish`, and it comes again, or drop it with `rowfeed dead drop`"}
	}
	below := feedtype.CursorState{Generation: l.generation, Position: position.Before()}
	if below.Position.IsZero() {
		below.Mark = position // the beginning itself would mean something else
	}
	page, err := r.c.Source.Fetch(ctx, feedtype.Request{After: below.Cursor(), Limit: 1, Shards: r.whole()})
	if errors.Is(err, feedtype.TombstonesExpired) {
		if l.op == feedtype.Delete {
			return r.gone(l)
		}
		// The consumer's own cursor has seen those deletes, or it would be refused too.
		var at feedtype.CursorState
		if at, err = r.row.Value.State(); err != nil {
			return nil, err
		}
		below.Mark = at.Seen().Max(position)
		page, err = r.c.Source.Fetch(ctx, feedtype.Request{After: below.Cursor(), Limit: 1, Shards: r.whole()})
	}
	if errors.Is(err, feedtype.EntriesExpired) {
		return nil, &feedtype.Error{Code: feedtype.Conflict, Object: r.object(), Cause: "the entry of the dead letter " + l.key + ", at position " + l.position + ", was purged: the feed keeps entries for a time",
			Next: "take the row from the table, and drop the dead letter with `rowfeed dead drop`"}
	}
	if err != nil {
		return nil, err
	}
	if len(page.Entries) == 1 && page.Entries[0].Position == l.position {
		return page.Entries, nil
	}
	reached, err := page.Cursor.State()
	switch {
	case err != nil:
		return nil, err
	case reached.Generation != l.generation || position.Above(reached.Position):
		return nil, &feedtype.Error{Code: feedtype.Unavailable, Object: r.object(), Cause: "the source is behind the dead letter of " + l.key + ", at position " + l.position + ": it is a replica that lags",
			Next: "wait for it"}
	case l.op == feedtype.Delete && !below.Mark.IsZero():
		return r.gone(l) // what the mark leaves out
	}
	return nil, nil
}

// gone makes a delete of a dead letter.
func (r *consuming) gone(l letter) ([]feedtype.Entry, error) {
	shard := int64(0)
	if l.dataShard != nil {
		shard = *l.dataShard
	}
	wire, err := json.Marshal(map[string]any{"position": l.position, "shard": shard, "op": feedtype.Delete, "key": json.RawMessage(l.key)})
	if err != nil {
		return nil, err
	}
	// In the letter's own history no other entry stands at its position.
	e, ok, err := feedtype.ParseEntry(wire, max(l.generation, -l.generation), &feedtype.Info{Key: r.key})
	if err == nil && !ok {
		err = errors.New("it has not the feed's key columns")
	}
	if err != nil {
		return nil, &feedtype.Error{Code: feedtype.Conflict, Object: r.object(), Cause: "the key of dead letter " + l.key + " cannot be read", Err: err,
			Next: "drop it with `rowfeed dead drop`"}
	}
	return []feedtype.Entry{e}, nil
}

// ForgetPlaces says of dead letters that their positions are of a pass that is over:
// the next one brings every key that is there.
func (db *Consumers) ForgetPlaces(ctx context.Context, tx dialect.Querier, id feedtype.ConsumerID) error {
	b := dialect.NewBuilder(db.Store.Dialect)
	_, err := tx.Exec(ctx, "UPDATE "+db.Store.Table("dead_letters")+" SET generation = -ABS(generation), op = "+b.Arg(string(feedtype.Upsert))+" WHERE "+WhereID(b, id), b.Args()...)
	return err
}
