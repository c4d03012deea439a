package operate

import (
	"context"
	"errors"
	"time"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/store"
)

// kind is what differs between sequences, ULIDs and outboxes.
type kind interface {
	// check finds wrong keys. repair corrects what it can, and returns the number of keys.
	check(ctx context.Context, f *Checker) ([]admin.Finding, error)
	repair(ctx context.Context, f *Checker) (int64, error)
	// status adds to a status.
	status(ctx context.Context, f *Inspector, s *admin.Status) error
	// backlog is the part of a status that is cheap enough for metrics. It counts up to limit.
	backlog(ctx context.Context, f *Inspector, limit int) (admin.Backlog, error)
	// lag sets how far cursors are behind.
	lag(ctx context.Context, f *Inspector, cursors []*admin.ConsumerStatus) error
}

var kinds = map[string]kind{
	feedtype.ModeSequence: sequenceKind{},
	feedtype.ModeBlocking: ulidKind{},
	feedtype.ModeOutbox:   outboxKind{},
}

// kindOf returns the kind of a feed, or the reason why this version cannot read its record.
func kindOf(r *catalog.FeedRecord) (kind, error) { return kinds[r.Mode], r.Unreadable }

// vanishedBudget bounds the count of vanished rows, which reads the whole feed.
const vanishedBudget = 2 * time.Second

// sequenceKind is a feed whose positions are numbers of one sequence.
type sequenceKind struct{}

// ulidKind is a feed whose rows have ULIDs, outboxKind a feed with an outbox.
type (
	ulidKind   struct{}
	outboxKind struct{ ulidKind }
)

func (sequenceKind) repair(ctx context.Context, f *Checker) (int64, error) { return f.repairKeys(ctx) }

func (sequenceKind) check(ctx context.Context, f *Checker) ([]admin.Finding, error) {
	return f.checkOnce(ctx)
}

// status adds the publisher's backlog, and the number of vanished rows if it can be counted within vanishedBudget.
func (m sequenceKind) status(ctx context.Context, f *Inspector, s *admin.Status) (err error) {
	if s.Backlog, err = m.backlog(ctx, f, admin.MaxWaiting); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, vanishedBudget)
	defer cancel()
	if n, err := f.countVanished(bounded); err == nil {
		s.Vanished = &n
	}
	return nil
}

func (sequenceKind) lag(ctx context.Context, f *Inspector, cursors []*admin.ConsumerStatus) error {
	for _, s := range cursors {
		if err := f.behindPosition(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (f *Inspector) behindPosition(ctx context.Context, s *admin.ConsumerStatus) error {
	at, err := s.Cursor.State()
	if err != nil || !at.Start && at.Generation != f.Generation() {
		return nil // "now", "at:…", or a cursor of another generation
	}
	var head, now int64
	err = dialect.One(ctx, f.Store.On(), f.Store.Dialect.Syntax, f.Statement(statements, "head"),
		dialect.Args{"feed": f.Name}, &head, &now)
	if errors.Is(err, store.ErrNoRows) {
		return nil // dropped
	}
	if err != nil {
		return f.Fail("read its sequence", err)
	}
	if at.Seen().Above(feedtype.Numbered(head)) {
		return nil // ahead of the feed, which refuses it
	}
	behind, age := head-at.Position.Number(), 0.0
	s.Behind = &behind
	if behind > 0 && f.DialectFeed().ReadsRows() {
		return nil
	}
	if behind > 0 {
		_, publishedAt, err := f.Reader.PublishedAbove(ctx, at.Position.Number())
		switch {
		case errors.Is(err, store.ErrNoRows):
		case err != nil:
			return f.Fail("read its oldest entry not consumed", err)
		default:
			age = store.Seconds(max(now-publishedAt, 0))
		}
	}
	s.BehindSeconds = &age
	return nil
}

// countVanished counts keys whose rows are gone without a recorded change.
func (f *Inspector) countVanished(ctx context.Context) (n int64, err error) {
	err = dialect.One(ctx, f.Store.On(), f.Store.Dialect.Syntax, f.Statement(statements, "count_vanished"), nil, &n)
	if errors.Is(err, store.ErrNoRows) {
		err = nil
	}
	return n, err
}
