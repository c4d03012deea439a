package rowfeed

import (
	"context"
	"errors"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

func (sequenced) repair(ctx context.Context, f *Feed) (int64, error) { return f.repairKeys(ctx) }

func (sequenced) check(ctx context.Context, f *Feed) ([]Finding, error) { return f.checkOnce(ctx) }

// status tells what waits for the publisher, and since when.
func (m sequenced) status(ctx context.Context, f *Feed, s *Status) (err error) {
	if s.Backlog, err = m.backlog(ctx, f, MaxWaiting); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, vanishedBudget)
	defer cancel()
	if n, err := f.countVanished(bounded); err == nil {
		s.Vanished = &n
	}
	return nil
}

func (sequenced) lag(ctx context.Context, f *Feed, cursors []*admin.ConsumerStatus) error {
	for _, s := range cursors {
		if err := f.behindPosition(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (f *Feed) behindPosition(ctx context.Context, s *admin.ConsumerStatus) error {
	at, err := s.Cursor.State()
	if err != nil || !at.Start && at.Generation != f.Generation() {
		return nil // "now", "at:…", or a place in another history
	}
	b := dialect.NewBuilder(f.db.store.Dialect)
	var head, now int64
	err = dialect.QueryRow(ctx, f.db.store.On(), "SELECT value, "+f.db.store.Dialect.Now()+" FROM "+f.db.store.Table("sequences")+" WHERE name = "+b.Arg(f.name), b.Args(), &head, &now)
	if errors.Is(err, store.ErrNoRows) {
		return nil // dropped
	}
	if err != nil {
		return f.db.store.Fail(feedtype.FeedObject(f.name), "read its sequence", err)
	}
	if at.Seen().Above(feedtype.Numbered(head)) {
		return nil // ahead of the feed: the source will refuse it
	}
	behind, age := head-at.Position.Number(), 0.0
	s.Behind = &behind
	if behind > 0 && f.Capture() == dialect.CaptureColumn {
		return nil
	}
	if behind > 0 {
		_, publishedAt, err := f.publishedAbove(ctx, at.Position.Number())
		switch {
		case errors.Is(err, store.ErrNoRows):
		case err != nil:
			return f.db.store.Fail(feedtype.FeedObject(f.name), "look for the oldest entry not consumed", err)
		default:
			age = store.Seconds(max(now-publishedAt, 0))
		}
	}
	s.BehindSeconds = &age
	return nil
}
