package consume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// letter is a row of the table rowfeed_dead_letters: a key that a consumer has set aside, and its latest version.
type letter struct {
	digest string
	key    string // JSON
	// generation of the position. It is negative if the consumer has restarted since: the position is
	// then invalid, and op becomes Delete when the new pass has ended without the key.
	generation int64
	position   string
	op         feedtype.Op
	dataShard  *int64 // of its entry; nil for letters from before schema version 5
}

// deadLetters reads and changes the dead letters of one shard.
type deadLetters struct {
	*assignment
	cursor *cursorState
}

// where returns the condition that a dead letter belongs to this shard.
func (d *deadLetters) where(b *dialect.Builder) string {
	return "consumer = " + b.Arg(d.c.Name) + " AND feed = " + b.Arg(d.feed) + " AND shard = " +
		b.Arg(d.cursor.row.Shard)
}

func (d *deadLetters) table() string { return d.db.table("dead_letters") }

// indexesAside returns the indexes of the entries whose keys are set aside. It sends no statement if the shard has no
// dead letters.
func (d *deadLetters) indexesAside(ctx context.Context, entries []feedtype.Entry) (map[int]bool, error) {
	if d.cursor.row.Aside == 0 {
		return nil, nil
	}
	digests := keyDigests(entries)
	found, err := d.among(ctx, d.db.Store.On(), digests)
	if err != nil {
		return nil, err
	}
	aside := map[int]bool{}
	for i, digest := range digests {
		if found[digest] {
			aside[i] = true
		}
	}
	return aside, nil
}

// collapse removes the entries of keys that are set aside from a batch, and records them in their dead letters. So no
// version of a key overtakes another.
func (d *deadLetters) collapse(ctx context.Context, q dialect.Querier,
	entries []feedtype.Entry) ([]feedtype.Entry, error) {
	digests := keyDigests(entries)
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
		n, err := q.Exec(ctx, "UPDATE "+d.table()+" SET generation = "+b.Arg(e.Generation)+", position = "+
			b.Arg(e.Position)+", op = "+b.Arg(string(e.Op))+", data_shard = "+b.Arg(e.Shard)+
			", collapsed = collapsed + 1, last_at = "+d.db.now()+" WHERE "+d.where(b)+" AND key_digest = "+
			b.Arg(digests[i]), b.Args()...)
		if err = oneRow(n, err); err != nil {
			return nil, err // dropped meanwhile: the entry must be handed over
		}
	}
	return rest, nil
}

// among returns which of the digests are of keys that are set aside. It also notes whether an operator has asked for a
// release. It sends one statement, unless both keys and letters are many.
func (d *deadLetters) among(ctx context.Context, q dialect.Querier, digests []string) (map[string]bool, error) {
	const chunk = 500 // of letters, or of parameters, whose number databases limit
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

// exactly returns the condition that a dead letter is unchanged since it was read.
func (d *deadLetters) exactly(b *dialect.Builder, l letter) string {
	return d.where(b) + " AND key_digest = " + b.Arg(l.digest) +
		" AND generation = " + b.Arg(l.generation) +
		" AND position = " + b.Arg(l.position) + " AND state = " + b.Arg(feedtype.LetterRetry)
}

// keep records another failed attempt of a dead letter.
func (d *deadLetters) keep(ctx context.Context, l letter, cause error) error {
	return d.db.Store.InTx(ctx, dialect.ForRecord, "keep a dead letter", func(tx dialect.Querier) error {
		b := d.db.builder()
		_, err := tx.Exec(ctx, "UPDATE "+d.table()+" SET state = "+b.Arg(feedtype.LetterAside)+
			", attempts = attempts + 1, error = "+b.Arg(letterText(cause))+
			", last_at = "+d.db.now()+" WHERE "+d.exactly(b, l), b.Args()...)
		return err
	})
}

// reread asks the source for the current version of the key at the position of its dead letter. If there is none, a
// newer version is above the cursor, since versions below it have joined the letter. The source must not lag behind
// the letter. A letter from before a restart becomes a delete once a whole pass has not delivered its key.
func (d *deadLetters) reread(ctx context.Context, l letter) ([]feedtype.Entry, error) {
	position, err := feedtype.ParsePosition(l.position)
	if err != nil {
		return nil, fmt.Errorf("position of a dead letter: %w", err)
	}
	switch {
	case l.generation < 0 && l.op == feedtype.Delete:
		return d.asDelete(l)
	case l.generation != d.cursor.row.Generation:
		return nil, d.fail(feedtype.Conflict, "it is unknown whether the key "+l.key+
			" of a dead letter still exists: the consumer's cursor was set to another generation, or past the "+
			"position of the key",
			"republish the key with `rowfeed republish` to have it delivered again, or drop it with `rowfeed dead "+
				"drop`")
	}
	below := feedtype.CursorState{Generation: l.generation, Position: position.Before()}
	if below.Position.IsZero() {
		below.Mark = position // without a mark this would be the beginning
	}
	page, err := d.c.Source.Fetch(ctx, feedtype.Request{After: below.Cursor(), Limit: 1, Shards: d.whole()})
	if errors.Is(err, feedtype.TombstonesExpired) {
		if l.op == feedtype.Delete {
			return d.asDelete(l)
		}
		// The cursor has seen those deletes. Otherwise it would be refused too.
		var at feedtype.CursorState
		if at, err = d.cursor.row.Value.State(); err != nil {
			return nil, err
		}
		below.Mark = at.Seen().Max(position)
		page, err = d.c.Source.Fetch(ctx, feedtype.Request{After: below.Cursor(), Limit: 1, Shards: d.whole()})
	}
	if errors.Is(err, feedtype.EntriesExpired) {
		return nil, d.fail(feedtype.Conflict, "the entry of the dead letter "+l.key+", at position "+l.position+
			", was purged: the feed keeps entries for a time",
			"read the current row from the table yourself, then delete the dead letter with `rowfeed dead drop`")
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
		return nil, d.fail(feedtype.Unavailable, "the source is behind the dead letter of "+l.key+", at position "+
			l.position+": it is a replica that lags", "wait for it")
	case l.op == feedtype.Delete && !below.Mark.IsZero():
		return d.asDelete(l) // a source does not return deletes below the mark
	}
	return nil, nil
}

// asDelete turns a dead letter into a delete of its key.
func (d *deadLetters) asDelete(l letter) ([]feedtype.Entry, error) {
	shard := int64(0)
	if l.dataShard != nil {
		shard = *l.dataShard
	}
	wire, err := json.Marshal(map[string]any{"position": l.position, "shard": shard, "op": feedtype.Delete,
		"key": json.RawMessage(l.key)})
	if err != nil {
		return nil, err
	}
	// Use the generation of the letter: no other entry has this position there.
	e, ok, err := feedtype.ParseEntry(wire, max(l.generation, -l.generation), &feedtype.Info{Key: d.key})
	if err == nil && !ok {
		err = errors.New("it has not the feed's key columns")
	}
	if err != nil {
		return nil, &feedtype.Error{Code: feedtype.Conflict, Object: d.object(), Cause: "the key of dead letter " +
			l.key + " cannot be read", Err: err, Next: "drop it with `rowfeed dead drop`"}
	}
	return []feedtype.Entry{e}, nil
}
