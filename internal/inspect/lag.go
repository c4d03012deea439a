package inspect

import (
	"context"
	"errors"
	"slices"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/shards"
	"github.com/rowfeed/rowfeed/internal/store"
)

// mostBehind is of how many shards that are behind it is looked up by how much.
const mostBehind = 1000

// lag tells the age of the next row, by its ULID, where a cursor is not at its shard's head. How
// many there are only counting them would tell. It moves nothing, and reads a page of those
// shards alone that are behind.
func (m ulidView) lag(ctx context.Context, f *Inspector, cursors []*admin.ConsumerStatus) error {
	_, err := m.behindHeads(ctx, f, cursors)
	return err
}

// behindHeads answers of how many cursors more something may be looked up.
func (ulidView) behindHeads(ctx context.Context, f *Inspector, cursors []*admin.ConsumerStatus) (left int, err error) {
	heads, err := f.headsOf(ctx, cursors)
	if err != nil {
		return 0, f.Fail("ask how far its shards are", err)
	}
	var now int64
	if err := dialect.QueryRow(ctx, f.Store.On(), "SELECT "+f.Store.Dialect.Now(), nil, &now); err != nil {
		return 0, f.Fail("ask for the time", err)
	}
	left = mostBehind
	for _, s := range cursors {
		at, err := s.Cursor.State()
		if err != nil {
			continue // "now" or "at:…"
		}
		age := 0.0
		if head, has := heads[s.Shard]; !has || at.Start || at.Generation != f.Generation() || at.Position != head {
			if left--; left < 0 {
				continue
			}
			next, err := f.nextRow(ctx, s)
			if err != nil {
				return 0, err
			}
			if next == nil {
				continue
			}
			if !next.IsZero() {
				age = store.Seconds(max(now-int64(next.High>>16)*1000, 0))
			}
		}
		s.BehindSeconds = &age
	}
	return left, nil
}

// headsOf are the greatest ULIDs of the cursors' shards. Of rows that hold none a page says more.
func (f *Inspector) headsOf(ctx context.Context, cursors []*admin.ConsumerStatus) (map[int]feedtype.Position, error) {
	var numbers []int
	for _, s := range cursors {
		numbers = append(numbers, s.Shard)
	}
	slices.Sort(numbers)
	heads := make(map[int]feedtype.Position)
	for part := range slices.Chunk(slices.Compact(numbers), shards.LookedAt) {
		b := dialect.NewBuilder(f.Store.Dialect)
		_, err := dialect.QueryAll(ctx, f.Store.On(), dialect.GreatestULIDs(f.Store.Dialect, b, f.DialectFeed(), part), b.Args(), func(rows dialect.Rows) (struct{}, error) {
			var shard int
			var last dialect.ScanULID
			err := rows.Scan(&shard, &last)
			heads[shard] = last.Position
			return struct{}{}, err
		})
		if err != nil && !errors.Is(err, feedtype.ErrNoULID) && f.Store.Dialect.Classify(err) != dialect.ClassUndefined {
			return nil, err
		}
	}
	return heads, nil
}

// nextRow is the position of the row behind a cursor, zero where there is none; nil where the
// feed refuses the cursor, or has no single head: the consumer says so.
func (f *Inspector) nextRow(ctx context.Context, s *admin.ConsumerStatus) (*feedtype.Position, error) {
	page, err := f.Reader.Look(ctx, s.Cursor, s.Shard)
	if err != nil {
		var e *feedtype.Error
		if errors.As(err, &e) && e.Code != feedtype.Failed && e.Code != feedtype.Unavailable {
			return nil, nil
		}
		return nil, err
	}
	if len(page.Entries) == 0 {
		return &feedtype.Position{}, nil
	}
	next, err := feedtype.ParsePosition(page.Entries[0].Position)
	return &next, err
}

// lag counts what waits in the outbox, too: a consumer that stands at the head, and does not
// run, would otherwise never be behind.
func (m outboxView) lag(ctx context.Context, f *Inspector, cursors []*admin.ConsumerStatus) error {
	left, err := m.behindHeads(ctx, f, cursors)
	if err != nil {
		return err
	}
	atHead := make(map[int][]*admin.ConsumerStatus) // several consumers', by shard
	var shards []int
	for _, s := range cursors {
		if s.BehindSeconds != nil && *s.BehindSeconds == 0 {
			if atHead[s.Shard] == nil {
				shards = append(shards, s.Shard)
			}
			atHead[s.Shard] = append(atHead[s.Shard], s)
		}
	}
	slices.Sort(shards)
	for _, shard := range f.ULIDs.Filled(ctx, shards) {
		age := int64(-1)
		if left--; left >= 0 {
			if _, age, err = f.Store.Dialect.Backlog(ctx, f.Store.On(), f.DialectFeed(), 0, shard); err != nil {
				return f.Fail("look how long records wait", err)
			}
		}
		for _, s := range atHead[shard] {
			if *s.BehindSeconds = store.Seconds(max(age, 0)); left < 0 {
				s.BehindSeconds = nil
			}
		}
	}
	return nil
}

// Lag completes Behind and BehindSeconds of cursors.
func (f *Inspector) Lag(ctx context.Context, cursors []*admin.ConsumerStatus) error {
	view, err := viewOf(f.Record.Load())
	if err != nil {
		return nil // the feed says so itself
	}
	return view.lag(ctx, f, cursors)
}
