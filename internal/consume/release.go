package consume

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

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

// release handles the latest version of one key whose release an operator has asked for, and reports whether there was
// one. It runs in the consumer's loop. The compare-and-set of the cursor makes sure that no newer version comes in
// between.
func (a *applier) release(ctx context.Context) (released bool, err error) {
	args := a.dead.args()
	args["retry"] = feedtype.LetterRetry
	var l letter
	err = a.db.Store.One(ctx, a.db.Store.On(), statements, "next_release", args, &l.digest, &l.key, &l.generation,
		&l.position, &l.op, &l.dataShard)
	if errors.Is(err, sql.ErrNoRows) {
		a.cursor.releases = false
		return false, nil
	}
	if err != nil {
		return false, err
	}
	started := time.Now()
	batch, err := a.dead.reread(ctx, l)
	if isRefusal(err) {
		return false, nil // the cursor is refused too: the next page handles that
	}
	if errors.Is(err, feedtype.Conflict) {
		a.trouble(err)
		return true, a.dead.keep(ctx, l, err)
	}
	if err != nil {
		return true, err
	}
	at := a.cursor.row.Value
	handled := func(tx *sql.Tx, t *batchTx) error {
		if len(batch) > 0 && a.deliver == nil {
			if err := t.handle(ctx, func() error { return a.c.Handle(ctx, tx, batch) }); err != nil {
				return err
			}
		}
		n, err := a.db.exec(ctx, t.q, "released", a.dead.unchanged(l))
		if err = oneRow(n, err); err != nil {
			return err // a newer version has joined it
		}
		return t.advance(ctx, at, -1)
	}
	if err = a.deliverOne(ctx, batch); err == nil {
		err = a.inTx(ctx, handled)
	}
	var failed *handlerError
	switch {
	case err == nil:
		a.consumed(len(batch), 0, at, started)
		return true, nil
	case !errors.As(err, &failed):
		return true, err
	}
	a.trouble(failed.err)
	a.retry.denials = 0
	return true, a.dead.keep(ctx, l, failed.err)
}

// unchanged are the arguments of "unchanged_letter".
func (d *deadLetters) unchanged(l letter) dialect.Args {
	args := d.args()
	args["digest"], args["generation"], args["position"], args["retry"] =
		l.digest, l.generation, l.position, feedtype.LetterRetry
	return args
}

// keep records another failed attempt of a dead letter.
func (d *deadLetters) keep(ctx context.Context, l letter, cause error) error {
	return d.db.Store.InTx(ctx, dialect.ForRecord, "keep a dead letter", func(tx dialect.Querier) error {
		args := d.unchanged(l)
		args["aside"], args["error"] = feedtype.LetterAside, letterText(cause)
		_, err := d.db.exec(ctx, tx, "not_released", args)
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
		err = errors.New("it lacks the feed's key columns")
	}
	if err != nil {
		return nil, &feedtype.Error{Code: feedtype.Conflict, Object: d.object(), Cause: "the key of dead letter " +
			l.key + " cannot be read", Err: err, Next: "drop it with `rowfeed dead drop`"}
	}
	return []feedtype.Entry{e}, nil
}
