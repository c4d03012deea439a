package consume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

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

// deadLetters are those of a shard.
type deadLetters struct {
	*assignment
	cursor *cursorState
}

// own is the condition that a dead letter is of this consumer's.
func (d *deadLetters) where(b *dialect.Builder) string {
	return "consumer = " + b.Arg(d.c.Name) + " AND feed = " + b.Arg(d.feed) + " AND shard = " + b.Arg(d.cursor.row.Shard)
}

func (d *deadLetters) table() string { return d.db.table("dead_letters") }

// which tells which of the entries are of keys that are set aside; it asks nobody
// where there are none.
func (d *deadLetters) indexesAside(ctx context.Context, entries []feedtype.Entry) (map[int]bool, error) {
	if d.cursor.row.Aside == 0 {
		return nil, nil
	}
	digests := make([]string, len(entries))
	for i, e := range entries {
		digests[i] = keyDigest(e.Key.AppendJSON(nil))
	}
	found, err := d.among(ctx, d.db.Store.On(), digests)
	if err != nil {
		return nil, err
	}
	aside := map[int]bool{}
	for i, d := range digests {
		if found[d] {
			aside[i] = true
		}
	}
	return aside, nil
}

// collapse takes the entries of keys that are set aside out of a batch and joins them
// to their dead letters, so that no version of a key overtakes another.
func (d *deadLetters) collapse(ctx context.Context, q dialect.Querier, entries []feedtype.Entry) ([]feedtype.Entry, error) {
	digests := make([]string, len(entries))
	for i, e := range entries {
		digests[i] = keyDigest(e.Key.AppendJSON(nil))
	}
	aside, err := d.among(ctx, q, digests)
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
		b := d.db.builder()
		n, err := q.Exec(ctx, "UPDATE "+d.table()+" SET generation = "+b.Arg(e.Generation)+", position = "+b.Arg(e.Position)+
			", op = "+b.Arg(string(e.Op))+", data_shard = "+b.Arg(e.Shard)+", collapsed = collapsed + 1, last_at = "+d.db.now()+
			" WHERE "+d.where(b)+" AND key_digest = "+b.Arg(digests[i]), b.Args()...)
		switch {
		case err != nil:
			return nil, err
		case n != 1:
			return nil, errOvertaken // dropped meanwhile: it is to be handed over after all
		}
	}
	return rest, nil
}

// among answers keys that are set aside, those of the digests among them, and notes
// whether an operator has asked for the release of any letter: one statement, unless both
// keys and letters are many.
func (d *deadLetters) among(ctx context.Context, q dialect.Querier, digests []string) (map[string]bool, error) {
	const chunk = 500 // letters, or parameters, of which databases take a limited number
	type found struct{ digest, state string }
	aside := map[string]bool{}
	for from := 0; from < len(digests); from += chunk {
		b := d.db.builder()
		query := "SELECT key_digest, state FROM " + d.table() + " WHERE " + d.where(b)
		few := d.cursor.row.Aside <= chunk
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
			d.cursor.releases = d.cursor.releases || l.state == feedtype.LetterRetry
		}
		if few {
			break
		}
	}
	return aside, nil
}

// exactly is the condition that a dead letter is still the one that was read.
func (d *deadLetters) exactly(b *dialect.Builder, l letter) string {
	return d.where(b) + " AND key_digest = " + b.Arg(l.digest) +
		" AND generation = " + b.Arg(l.generation) + " AND position = " + b.Arg(l.position) + " AND state = " + b.Arg(feedtype.LetterRetry)
}

// keep notes that another attempt has failed.
func (d *deadLetters) keep(ctx context.Context, l letter, cause error) error {
	return d.db.Store.InTx(ctx, dialect.ForRecord, "keep a dead letter", func(tx dialect.Querier) error {
		b := d.db.builder()
		_, err := tx.Exec(ctx, "UPDATE "+d.table()+" SET state = "+b.Arg(feedtype.LetterAside)+", attempts = attempts + 1, error = "+b.Arg(letterText(cause))+
			", last_at = "+d.db.now()+" WHERE "+d.exactly(b, l), b.Args()...)
		return err
	})
}

// reread asks the source for the key's version at the position of its dead letter, as
// the row is now. None there means that a newer one is on its way, above the cursor:
// versions up to the cursor have joined the letter; that much only a source can say
// that is not behind the letter. Of a letter from before the consumer began again, only
// a whole pass without the key tells anything: that the key is gone.
func (d *deadLetters) reread(ctx context.Context, l letter) ([]feedtype.Entry, error) {
	position, err := feedtype.ParsePosition(l.position)
	if err != nil {
		return nil, fmt.Errorf("position of a dead letter: %w", err)
	}
	switch {
	case l.generation < 0 && l.op == feedtype.Delete:
		return d.asDelete(l)
	case l.generation != d.cursor.row.Generation:
		return nil, &feedtype.Error{Code: feedtype.Conflict, Object: d.object(), Cause: "nothing tells whether the key " + l.key + " of a dead letter is still there: the consumer's cursor was set to another history, or past what the key stood in",
			Next: "republish the key with `rowfeed republish`, and it comes again, or drop it with `rowfeed dead drop`"}
	}
	below := feedtype.CursorState{Generation: l.generation, Position: position.Before()}
	if below.Position.IsZero() {
		below.Mark = position // the beginning itself would mean something else
	}
	page, err := d.c.Source.Fetch(ctx, feedtype.Request{After: below.Cursor(), Limit: 1, Shards: d.whole()})
	if errors.Is(err, feedtype.TombstonesExpired) {
		if l.op == feedtype.Delete {
			return d.asDelete(l)
		}
		// The consumer's own cursor has seen those deletes, or it would be refused too.
		var at feedtype.CursorState
		if at, err = d.cursor.row.Value.State(); err != nil {
			return nil, err
		}
		below.Mark = at.Seen().Max(position)
		page, err = d.c.Source.Fetch(ctx, feedtype.Request{After: below.Cursor(), Limit: 1, Shards: d.whole()})
	}
	if errors.Is(err, feedtype.EntriesExpired) {
		return nil, &feedtype.Error{Code: feedtype.Conflict, Object: d.object(), Cause: "the entry of the dead letter " + l.key + ", at position " + l.position + ", was purged: the feed keeps entries for a time",
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
		return nil, &feedtype.Error{Code: feedtype.Unavailable, Object: d.object(), Cause: "the source is behind the dead letter of " + l.key + ", at position " + l.position + ": it is a replica that lags",
			Next: "wait for it"}
	case l.op == feedtype.Delete && !below.Mark.IsZero():
		return d.asDelete(l) // what the mark leaves out
	}
	return nil, nil
}

// gone makes a delete of a dead letter.
func (d *deadLetters) asDelete(l letter) ([]feedtype.Entry, error) {
	shard := int64(0)
	if l.dataShard != nil {
		shard = *l.dataShard
	}
	wire, err := json.Marshal(map[string]any{"position": l.position, "shard": shard, "op": feedtype.Delete, "key": json.RawMessage(l.key)})
	if err != nil {
		return nil, err
	}
	// In the letter's own history no other entry stands at its position.
	e, ok, err := feedtype.ParseEntry(wire, max(l.generation, -l.generation), &feedtype.Info{Key: d.key})
	if err == nil && !ok {
		err = errors.New("it has not the feed's key columns")
	}
	if err != nil {
		return nil, &feedtype.Error{Code: feedtype.Conflict, Object: d.object(), Cause: "the key of dead letter " + l.key + " cannot be read", Err: err,
			Next: "drop it with `rowfeed dead drop`"}
	}
	return []feedtype.Entry{e}, nil
}
