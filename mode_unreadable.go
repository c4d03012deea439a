package rowfeed

import (
	"context"
	"time"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// unreadable is the mode of a feed whose record this version cannot read: it is of a mode that
// came later, or damaged. Such a feed is listed, and refuses by itself whatever it is asked;
// all others go on.
type unreadable struct{ why error }

func (unreadable) defaults(*FeedSpec) {}

func (m unreadable) validate(FeedSpec) error { return m.why }

func (m unreadable) keeps(feedtype.Retention) error { return m.why }

func (m unreadable) complete(dialect.Dialect, *catalog.Record, FeedSpec, *dialect.Table) error {
	return m.why
}

func (m unreadable) admit(context.Context, *DB, dialect.Querier, *catalog.Record) error { return m.why }

func (m unreadable) up(*DB, *catalog.Record, *dialect.Table) ([]dialect.Step, error) {
	return nil, m.why
}

func (m unreadable) down(context.Context, *DB, dialect.Querier, *catalog.Record, *dialect.Table) error {
	return m.why
}

func (m unreadable) begin(context.Context, *DB, dialect.Querier, *catalog.Record) (string, error) {
	return "", m.why
}

func (m unreadable) declare(*declared, *FeedSpec) error { return m.why }

func (m unreadable) script(*DB, *catalog.Record) (steps []dialect.Step, state, note string, err error) {
	return nil, "", "", m.why
}

func (m unreadable) verify(context.Context, *DB, dialect.Querier, *catalog.Record, *dialect.Table) ([]string, error) {
	return nil, m.why
}

func (m unreadable) mend(context.Context, *DB, dialect.Querier, *catalog.Record, *dialect.Table) error {
	return m.why
}

// rights are not known, see DB.rights.
func (unreadable) rights(dialect.Dialect, *dialect.Feed) (writing, reading []dialect.Right) {
	return nil, nil
}

func (m unreadable) part(context.Context, *Feed, *catalog.Layout, *dialect.PageQuery, feedtype.Shards) error {
	return m.why
}

func (m unreadable) byShard(*Feed) error { return m.why }

func (unreadable) takes(feedtype.Position) bool { return false }

func (m unreadable) placeAt(context.Context, *Feed, time.Time, feedtype.Shards) (feedtype.CursorState, error) {
	return feedtype.CursorState{}, m.why
}

func (m unreadable) head(context.Context, *Feed, *feedtype.Info) error { return m.why }

func (m unreadable) backfill(context.Context, *Feed, *catalog.Record) (int64, error) { return 0, m.why }

func (m unreadable) fill(context.Context, *Feed, int, int) error { return m.why }

func (unreadable) firstWaiting(*Feed) string { return "" }

// pass looks whether the record was put right.
func (unreadable) pass(ctx context.Context, f *Feed, limit int, full bool) (feedtype.PublishEvent, error) {
	if err := f.catalog.Reload(ctx); err != nil {
		return feedtype.PublishEvent{Feed: f.name}, err
	}
	return f.mode().pass(ctx, f, limit, full)
}

func (m unreadable) publishVisible(context.Context, *Feed, int) error { return m.why }

func (m unreadable) asBefore(context.Context, *Feed) error { return m.why }

func (m unreadable) purge(context.Context, *Feed) (int, error) { return 0, m.why }

func (m unreadable) keys(*Feed, string) error { return m.why }

func (m unreadable) check(context.Context, *Feed) ([]Finding, error) { return nil, m.why }

func (m unreadable) repair(context.Context, *Feed) (int64, error) { return 0, m.why }

func (m unreadable) status(context.Context, *Feed, *Status) error { return m.why }

func (m unreadable) backlog(context.Context, *Feed, int) (Backlog, error) { return Backlog{}, m.why }

func (m unreadable) lag(context.Context, *Feed, []*admin.ConsumerStatus) error { return nil }
