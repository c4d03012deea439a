package read

import (
	"context"
	_ "embed" // for read.sql
	"errors"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/store"
)

//go:embed read.sql
var file string

var statements = dialect.NewStatements(file)

// headOnly is the query of a page that answers the head and no entries.
var headOnly = dialect.PageQuery{After: feedtype.LastPosition, Limit: 1, MaxBytes: 1}

// SequencePager is the Pager of feeds whose positions are numbers of one sequence.
type SequencePager struct{ Reader *Reader }

// Select restricts the query to a range of the data shards. A part without a data shard gets an empty page.
func (SequencePager) Select(_ context.Context, l *catalog.Layout, q *dialect.PageQuery, s feedtype.Shards) error {
	count := max(l.Feed.DataShards, 1)
	from, to, err := s.Range(count)
	switch {
	case err != nil:
		return err
	case l.Unplaced != "" && !s.All():
		return l.RefuseParts()
	case from == to:
		q.After = feedtype.LastPosition
	case to-from < count:
		q.From, q.To, q.Unserved = from, to, catalog.Unplaced
	}
	return nil
}

func (SequencePager) Accepts(p feedtype.Position) bool { return !p.IsULID() }

// At searches the index of positions in at most as many probes as the head has bits. A binary search is exact, since
// published_at never decreases from one position to a higher one. The state is valid for every part.
func (p SequencePager) At(ctx context.Context, t time.Time, _ feedtype.Shards) (feedtype.CursorState, error) {
	f := p.Reader
	if f.Record.Load().Capture == feedtype.CaptureColumn {
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
