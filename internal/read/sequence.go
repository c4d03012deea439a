package read

import (
	"context"
	_ "embed" // for read.sql
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/store"
)

//go:embed read.sql
var file string

var statements = dialect.NewStatements(file)

// headOnly is the query of a page with the head and no entries.
var headOnly = dialect.PageQuery{After: feedtype.LastPosition, Limit: 1, MaxBytes: 1}

// SequencePager is the Pager of feeds whose positions are numbers of one sequence.
type SequencePager struct{ Reader *Reader }

// Select restricts the query to a range of the data shards. If the feed has one data shard, the query reads the whole
// feed, and keepPart selects the part.
func (SequencePager) Select(_ context.Context, l *catalog.Layout, q *dialect.PageQuery, s feedtype.Shards) error {
	part, err := partOf(l, s)
	switch {
	case err != nil:
		return err
	case l.Unplaced != "" && !s.All():
		return l.RefuseParts()
	case part == feedtype.CursorPart{}:
		return nil
	case !l.Feed.Sharded():
		if err := exactKeys(l); err != nil {
			return err
		}
	default:
		q.From, q.To = part.From, part.To
	}
	q.Unserved = catalog.Unplaced
	return nil
}

// partOf returns the part of a feed that a request asks for; zero for the whole feed.
func partOf(l *catalog.Layout, s feedtype.Shards) (feedtype.CursorPart, error) {
	if l.Feed.ULIDs != nil {
		return feedtype.CursorPart{}, nil // its shards are feeds, with cursors of their own
	}
	of := max(l.Feed.DataShards, 1)
	if _, one := s.Single(); !one && !s.All() {
		of = feedtype.MaxParts(of)
	}
	from, to, err := s.Range(of)
	if err != nil || to-from == of {
		return feedtype.CursorPart{}, err
	}
	return feedtype.CursorPart{From: from, To: to, Of: of}, nil
}

// exactKeys refuses parts of a feed whose rows hold their positions if equal keys can have different texts. The text of
// the key in its row may change, which would move the key to another part.
func exactKeys(l *catalog.Layout) error {
	if !l.Feed.ReadsRows() {
		return nil
	}
	for _, c := range l.Feed.Key {
		if !c.Exact {
			return &feedtype.Error{Code: feedtype.InvalidRequest, Param: "shard_count",
				Object: feedtype.FeedObject(l.Feed.Name), Err: errors.ErrUnsupported,
				Cause: fmt.Sprintf("it cannot be read in shards: with capture column, key column %q can have values "+
					"that are equal although their text differs", c.Name),
				Next: "read the whole feed, or add a feed with --capture trigger"}
		}
	}
	return nil
}

// keepPart removes the rows of other parts from a page of the whole feed. If more than want rows of the part remain, it
// returns the position of the last one that it keeps.
func (f *Reader) keepPart(l *catalog.Layout, rows *dialect.PageRows, part feedtype.CursorPart, want int) (
	end feedtype.Position, err error,
) {
	column, kept := f.Record.Load().ShardColumn, rows.Rows[:0:0]
	for _, row := range rows.Rows {
		key, err := feedtype.NewRow(l.Key, slices.Clone(row.Key)) // which decodes in place
		if err != nil {
			return end, err
		}
		if shard := feedtype.ShardBy(column, key, part.Of); shard < part.From || shard >= part.To {
			continue
		}
		if len(kept) == want {
			end = kept[want-1].Position
			break
		}
		kept = append(kept, row)
	}
	rows.Rows = kept
	return end, nil
}

func (SequencePager) Accepts(p feedtype.Position) bool { return !p.IsULID() }

// At searches the index of positions in at most as many probes as the head has bits. A binary search is exact, since
// published_at never decreases from one position to a higher one. The state is valid for every part.
func (p SequencePager) At(ctx context.Context, t time.Time, _ feedtype.Shards) (feedtype.CursorState, error) {
	f := p.Reader
	if f.DialectFeed().ReadsRows() { // the record in memory may be old
		if err := f.Reload(ctx); err != nil {
			return feedtype.CursorState{}, err
		}
	}
	if f.DialectFeed().ReadsRows() {
		return feedtype.CursorState{}, &feedtype.Error{
			Code:   feedtype.InvalidRequest,
			Param:  "after",
			Object: feedtype.FeedObject(f.Name),
			Cause:  "with capture column no time of publication is stored",
			Next:   `start at the beginning (after="") or at the head (after=now)`,
		}
	}
	page, _, err := f.ReadPage(ctx, headOnly, feedtype.Shards{})
	if err != nil {
		return feedtype.CursorState{}, err
	}
	// Positions at or below low were published before t; answer is the best candidate so far.
	low, high, answer := int64(0), page.Head.Number(), page.Head.Number()
	for low < high {
		middle := low + (high-low)/2
		position, publishedAt, err := f.PublishedAbove(ctx, middle)
		switch {
		case errors.Is(err, store.ErrNoRows):
			high = middle
		case err != nil:
			return feedtype.CursorState{}, f.Fail("look for a time", err)
		case publishedAt >= t.UnixMicro():
			high, answer = middle, min(answer, position-1)
		default:
			low = max(position, middle+1)
		}
	}
	return feedtype.CursorState{Generation: page.Generation, Position: feedtype.Numbered(answer)}, nil
}

// PublishedAbove returns the lowest position above the given one, and when it was published, in microseconds since the
// Unix epoch. If there is none the error is store.ErrNoRows.
func (f *Reader) PublishedAbove(ctx context.Context, above int64) (position, publishedAt int64, err error) {
	err = dialect.One(ctx, f.Store.On(), f.Store.Dialect.Syntax, f.Statement(statements, "published_above"),
		dialect.Args{"above": above}, &position, &publishedAt)
	return position, publishedAt, err
}

func (SequencePager) MoveWaiting(context.Context, int, int) (stuck bool, err error) {
	return false, nil
}
