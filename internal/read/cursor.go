package read

import (
	"context"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/history"
)

// cursorState returns where a request's cursor says to begin. For "now" that is above every position: such a page has
// only the head.
func (f *Reader) cursorState(ctx context.Context, after feedtype.Cursor, shards feedtype.Shards) (
	feedtype.CursorState, error,
) {
	if after == feedtype.Now {
		return feedtype.CursorState{Generation: f.Generation(), Position: feedtype.LastPosition}, nil
	}
	if t, ok, err := after.Time(); ok {
		if err != nil {
			return feedtype.CursorState{}, err
		}
		pager, err := f.Pager()
		if err != nil {
			return feedtype.CursorState{}, err
		}
		return pager.At(ctx, t, shards)
	}
	at, err := after.State()
	if err != nil || at.Start {
		return at, err
	}
	pager, unreadable := f.Pager()
	switch {
	case unreadable == nil && pager.Accepts(at.Seen()):
	case at.Generation != f.Generation(): // a former feed of this name had positions of another kind
		err = f.otherGeneration(ctx, at, f.Generation())
	default:
		err = &feedtype.Error{
			Code:   feedtype.InvalidRequest,
			Param:  "after",
			Object: feedtype.FeedObject(f.Name),
			Cause:  fmt.Sprintf("after: %q is a cursor of another feed: its position is of another kind", after),
			Next:   "send back a cursor that this feed gave",
		}
	}
	return at, err
}

// headState is the state of a cursor that was asked for as "now".
func headState(rows *dialect.PageRows) feedtype.CursorState {
	at := feedtype.CursorState{Generation: rows.Generation, Position: rows.Head.Max(rows.EntriesBelow)}
	if rows.Filling && !rows.LiveFrom.IsZero() { // above all rows that back-fill places
		at.Position = at.Position.Max(rows.LiveFrom.Before())
	}
	return at
}

// validateCursor refuses a cursor that does not belong to the history of the page's feed, and completes a cursor at the
// beginning. A refusal names the next step: an empty page would hide a loss.
func (f *Reader) validateCursor(ctx context.Context, at feedtype.CursorState, rows *dialect.PageRows) (
	feedtype.CursorState, error,
) {
	if at.Start {
		at = feedtype.CursorState{Generation: rows.Generation, Mark: rows.Head, Position: rows.EntriesBelow}
		return readNow(at, rows), refuseFilling(f.Name, at, rows)
	}
	refuse := func(code feedtype.Code, format string, args ...any) (feedtype.CursorState, error) {
		return feedtype.CursorState{}, refusal(f.Name, code, format, args...)
	}
	// A visible row is not ahead, even if its ULID was never given: `rowfeed check` finds such a row.
	ahead := rows.Given.Max(rows.Head).Max(rows.EntriesBelow)
	switch {
	case f.Store.Replica && at.Generation > rows.Generation:
		// The replica lags behind a bump. Its entries are of the former generation, and not for this cursor.
		rows.Rows, rows.Head = nil, feedtype.Position{}
		return at, nil
	case at.Generation != rows.Generation:
		return feedtype.CursorState{}, f.otherGeneration(ctx, at, rows.Generation)
	case at.Seen().Max(at.Head).Above(ahead) && f.Store.Replica:
		// The replica lags. It may show rows whose deletes, up to the mark, this cursor never receives.
		rows.Rows, rows.Head = nil, feedtype.Position{}
		return at, nil
	case at.Term != 0:
		if err := f.knowsHistory(ctx, at, rows); err != nil {
			return feedtype.CursorState{}, err
		}
	case at.Seen().Above(ahead):
		return refuse(feedtype.CursorAhead, "cursor %q is ahead of the feed's head %s: "+
			"it belongs to another feed, shard or database, or the database was set back", at.Cursor(), ahead)
	}
	switch {
	case rows.TombstonesBelow.Above(at.Seen()):
		return refuse(feedtype.TombstonesExpired, "cursor %q is older than the tombstones kept (from position %s): "+
			"deletes since then are forgotten", at.Cursor(), rows.TombstonesBelow)
	// A start mark excuses nothing here: the purged entries were rows, not deletes.
	case rows.EntriesBelow.Above(at.Position):
		return feedtype.CursorState{}, &feedtype.Error{
			Code:   feedtype.EntriesExpired,
			Object: feedtype.FeedObject(f.Name),
			Cause: fmt.Sprintf("cursor %q is older than the entries kept (from position %s): "+
				"the entries between were purged", at.Cursor(), rows.EntriesBelow),
			Next: `start again at the beginning of the entries kept (after=""), ` +
				`and read what is missing from the table`,
		}
	}
	return readNow(at, rows), refuseFilling(f.Name, at, rows)
}

// readNow is the state of a consumer that has read a page: it has seen the head of that page.
func readNow(at feedtype.CursorState, rows *dialect.PageRows) feedtype.CursorState {
	if at.Head, at.Term = rows.Given, rows.Term; at.Term == 0 {
		at.Head = feedtype.Position{}
	}
	return at
}

// knowsHistory refuses a cursor that has read a state which the database has lost, or never had.
func (f *Reader) knowsHistory(ctx context.Context, at feedtype.CursorState, rows *dialect.PageRows) error {
	now := history.State{Head: rows.Given.Number(), Term: rows.Term}
	ok, terms, err := f.History.Continues(ctx, now, history.State{Head: at.Head.Number(), Term: at.Term})
	if ok || err != nil {
		return err
	}
	far := "does not know that term"
	if upto, known := terms.Upto(at.Term); known {
		far = fmt.Sprintf("knows that term up to %d", upto)
	}
	cause := fmt.Sprintf("the reader of cursor %q has read up to head %s in term %s, and the database %s", at.Cursor(),
		at.Head, at.Term, far)
	if f.Store.Replica { // it may lag
		return &feedtype.Error{Code: feedtype.Unavailable, Object: feedtype.FeedObject(f.Name),
			Cause: cause + ": it is a replica, which may lag", Next: "try again, or read from the primary"}
	}
	return refusal(f.Name, feedtype.HistoryLost, "%s: a restored backup or a failover has lost positions", cause)
}

func refusal(feed string, code feedtype.Code, format string, args ...any) *feedtype.Error {
	return &feedtype.Error{
		Code:   code,
		Object: feedtype.FeedObject(feed),
		Cause:  fmt.Sprintf(format, args...),
		Next:   `start again at the beginning (after="") and remove what the new pass does not bring`,
	}
}

// otherGeneration is the error for a cursor of another generation. A plain number can be one of the publisher that gave
// the positions of the table before the feed adopted them.
func (f *Reader) otherGeneration(ctx context.Context, at feedtype.CursorState, generation int64) error {
	if f.Record.Load().State == catalog.StateCreating {
		if err := f.Reload(ctx); err != nil { // it may be complete by now
			return err
		}
	}
	r := f.Record.Load()
	if r.State == catalog.StateCreating {
		return &feedtype.Error{Code: feedtype.Filling, Object: feedtype.FeedObject(f.Name),
			Cause: "the feed is not complete yet: its state is " + r.State,
			Next:  "try again when it is; `rowfeed feed add` with the same options continues one that was interrupted"}
	}
	err := refusal(f.Name, feedtype.GenerationChanged, "cursor %q is of generation %d, the feed is at generation %d: "+
		"a restored backup or a failover lost positions, or the feed was created again",
		at.Cursor(), at.Generation, generation)
	plain := feedtype.CursorState{Generation: 1, Position: at.Position}
	if r.Adopt && at == plain {
		at.Generation = generation
		err.Next = fmt.Sprintf("if %s is a position that the table's former publisher gave, send %q; otherwise %s",
			plain.Cursor(), at.Cursor(), err.Next)
	}
	return err
}

// otherPart is the error for a cursor of one part in a request for another part, whose earlier entries its reader has
// not read. A consumer may continue from its lowest cursor without the start mark: it then receives every delete that a
// reader of another part needs.
func (f *Reader) otherPart(at feedtype.CursorState, asked feedtype.CursorPart) error {
	if f.Store.Replica && at.Part.Of != asked.Of && asked != (feedtype.CursorPart{}) {
		return &feedtype.Error{Code: feedtype.Unavailable, Object: feedtype.FeedObject(f.Name),
			Cause: fmt.Sprintf("cursor %q is of %s, and the request is for %s: this is a replica, which may show a "+
				"former number of data shards", at.Cursor(), at.Part, asked),
			Next: "try again, or read from the primary"}
	}
	whole := at
	whole.Part, whole.Mark = feedtype.CursorPart{}, feedtype.Position{}
	return &feedtype.Error{
		Code:   feedtype.OtherPart,
		Object: feedtype.FeedObject(f.Name),
		Cause: fmt.Sprintf("cursor %q is of %s, and the request is for %s: keys of it may have been published below "+
			"the cursor, which its reader has never seen", at.Cursor(), at.Part, asked),
		Next: fmt.Sprintf("send the cursor with the shard and shard_count that it was given for; if the feed or the "+
			"number of readers was changed, continue with the lowest cursor of all shards, without '@' and '_' and "+
			"the digits behind each: of this cursor that is %q", whole.Cursor()),
	}
}

// next is the position that a page reaches, and whether entries above it were visible. A page that was not cut reaches
// its head, also if filters left out entries.
func next(after feedtype.Position, rows *dialect.PageRows, limit int) (position feedtype.Position, more bool) {
	if len(rows.Rows) < limit && !rows.Truncated && !rows.Cut {
		return after.Max(rows.Head), false
	}
	last := rows.Rows[len(rows.Rows)-1].Position
	return last, rows.Head.Above(last)
}

// refuseFilling refuses a cursor that would miss rows which back-fill has still to place.
func refuseFilling(feed string, at feedtype.CursorState, rows *dialect.PageRows) error {
	if !rows.Filling || !rows.LiveFrom.IsZero() && !rows.LiveFrom.Before().Above(at.Position) {
		return nil
	}
	return &feedtype.Error{
		Code:   feedtype.Filling,
		Object: feedtype.FeedObject(feed),
		Cause: fmt.Sprintf("back-fill is placing older rows behind the head of shard %d, "+
			"and a reader at cursor %q would miss them", rows.Shard, at.Cursor()),
		Next: "try again when back-fill is done; `rowfeed feed backfill " + feed + "` resumes one that was interrupted",
	}
}
