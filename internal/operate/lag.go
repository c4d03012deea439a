package operate

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
	"github.com/rowfeed/rowfeed/internal/ulidfeed"
)

// maxShardsForLag bounds how many shards Lag queries one by one.
const maxShardsForLag = 1000

// lag sets BehindSeconds to the age of the next row, by its ULID, if a cursor is not at its shard's head. It reads one
// page of each shard that is behind, and moves no records. The number of entries behind would cost a count.
func (m ulidKind) lag(ctx context.Context, f *Inspector, cursors []*admin.ConsumerStatus) error {
	_, err := m.behindHeads(ctx, f, cursors)
	return err
}

// behindHeads compares cursors with the heads of their shards. It returns how many more shards may be queried.
func (ulidKind) behindHeads(ctx context.Context, f *Inspector, cursors []*admin.ConsumerStatus) (left int, err error) {
	heads, err := f.headsOf(ctx, cursors)
	if err != nil {
		return 0, f.Fail("read the heads of its shards", err)
	}
	now, err := f.Store.Clock(ctx, f.Store.On())
	if err != nil {
		return 0, f.Fail("read the database's time", err)
	}
	left = maxShardsForLag
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

// headsOf returns the greatest ULIDs of the cursors' shards. It ignores rows without a ULID, which a page reports.
func (f *Inspector) headsOf(ctx context.Context, cursors []*admin.ConsumerStatus) (map[int]feedtype.Position, error) {
	var numbers []int
	for _, s := range cursors {
		numbers = append(numbers, s.Shard)
	}
	slices.Sort(numbers)
	heads := make(map[int]feedtype.Position)
	for part := range slices.Chunk(slices.Compact(numbers), ulidfeed.ShardsPerStatement) {
		greatest, err := dialect.GreatestULIDs(ctx, f.Store.On(), f.Store.Dialect.Syntax, f.DialectFeed(), part)
		maps.Copy(heads, greatest)
		if err != nil && !errors.Is(err, feedtype.ErrNoULID) &&
			f.Store.Dialect.Classify(err) != dialect.ClassUndefined {
			return nil, err
		}
	}
	return heads, nil
}

// nextRow is the position of the next row after a cursor, zero if there is none. It is nil if the feed refuses the
// cursor; the consumer reports that.
func (f *Inspector) nextRow(ctx context.Context, s *admin.ConsumerStatus) (*feedtype.Position, error) {
	page, err := f.Reader.Inspect(ctx, s.Cursor, s.Shard)
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

// lag also counts records that wait in the outbox. Otherwise a stopped consumer at the head would never be behind.
func (m outboxKind) lag(ctx context.Context, f *Inspector, cursors []*admin.ConsumerStatus) error {
	left, err := m.behindHeads(ctx, f, cursors)
	if err != nil {
		return err
	}
	atHead := make(map[int][]*admin.ConsumerStatus) // by shard, of several consumers
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
	for _, shard := range f.ULIDs.ShardsWithRecords(ctx, shards) {
		age := int64(-1)
		if left--; left >= 0 {
			if _, age, err = f.Store.Dialect.Backlog(ctx, f.Store.On(), f.DialectFeed(), 0, shard); err != nil {
				return f.Fail("read the age of its records", err)
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

// Lag sets Behind and BehindSeconds of cursors.
func (f *Inspector) Lag(ctx context.Context, cursors []*admin.ConsumerStatus) error {
	kind, err := kindOf(f.Record.Load())
	if err != nil {
		return nil // the feed's own status says so
	}
	return kind.lag(ctx, f, cursors)
}
