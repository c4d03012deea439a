package inspect

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/store"
)

// view is what differs between the kinds of positions when a feed is looked at.
type view interface {
	// check finds the keys that are wrong, and repair puts right what it can, and answers how many keys that were.
	check(ctx context.Context, f *Checker) ([]admin.Finding, error)
	repair(ctx context.Context, f *Checker) (int64, error)
	// status completes a status.
	status(ctx context.Context, f *Inspector, s *admin.Status) error
	// backlog is what of the status may be asked for often; it counts up to limit.
	backlog(ctx context.Context, f *Inspector, limit int) (admin.Backlog, error)
	// lag says of cursors how far they are behind.
	lag(ctx context.Context, f *Inspector, cursors []*admin.ConsumerStatus) error
}

var views = map[string]view{feedtype.ModeSequence: sequenceView{}, feedtype.ModeBlocking: ulidView{}, feedtype.ModeOutbox: outboxView{}}

// viewOf is the view of a feed, or why this version cannot read its record.
func viewOf(r *catalog.Record) (view, error) { return views[r.Mode], r.Unreadable }

// vanishedBudget bounds the count of vanished rows, which reads the whole feed.
const vanishedBudget = 2 * time.Second

// sequenceView is that of a feed whose positions are numbers of one sequence.
type sequenceView struct{}

// ulidView is that of a feed whose rows hold their ULIDs, outboxView that of one with an outbox.
type (
	ulidView   struct{}
	outboxView struct{ ulidView }
)

func (sequenceView) repair(ctx context.Context, f *Checker) (int64, error) { return f.repairKeys(ctx) }

func (sequenceView) check(ctx context.Context, f *Checker) ([]admin.Finding, error) {
	return f.checkOnce(ctx)
}

// status tells what waits for the publisher, and since when.
func (m sequenceView) status(ctx context.Context, f *Inspector, s *admin.Status) (err error) {
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

func (sequenceView) lag(ctx context.Context, f *Inspector, cursors []*admin.ConsumerStatus) error {
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
		return nil // "now", "at:…", or a place in another history
	}
	b := dialect.NewBuilder(f.Store.Dialect)
	var head, now int64
	err = dialect.QueryRow(ctx, f.Store.On(), "SELECT value, "+f.Store.Dialect.Now()+" FROM "+f.Store.Table("sequences")+" WHERE name = "+b.Arg(f.Name), b.Args(), &head, &now)
	if errors.Is(err, store.ErrNoRows) {
		return nil // dropped
	}
	if err != nil {
		return f.Fail("read its sequence", err)
	}
	if at.Seen().Above(feedtype.Numbered(head)) {
		return nil // ahead of the feed: the source will refuse it
	}
	behind, age := head-at.Position.Number(), 0.0
	s.Behind = &behind
	if behind > 0 && f.Record.Load().Capture == feedtype.CaptureColumn {
		return nil
	}
	if behind > 0 {
		_, publishedAt, err := f.Reader.PublishedAbove(ctx, at.Position.Number())
		switch {
		case errors.Is(err, store.ErrNoRows):
		case err != nil:
			return f.Fail("look for the oldest entry not consumed", err)
		default:
			age = store.Seconds(max(now-publishedAt, 0))
		}
	}
	s.BehindSeconds = &age
	return nil
}

// countVanished counts keys whose rows are gone although nothing has said so.
func (f *Inspector) countVanished(ctx context.Context) (n int64, err error) {
	b := dialect.NewBuilder(f.Store.Dialect)
	i := slices.IndexFunc(keyRules, func(r keyRule) bool { return r.rule == admin.RuleVanished })
	err = dialect.QueryRow(ctx, f.Store.On(), "SELECT count(*)"+ruleFrom(f.Feed, b, keyRules[i], "p"), b.Args(), &n)
	if errors.Is(err, store.ErrNoRows) {
		err = nil
	}
	return n, err
}
