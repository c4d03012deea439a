package rowfeed

import (
	"context"
	"time"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// mode is what depends on how a feed's positions come about. Everything else in this
// package, and all above it, is the same for all feeds.
type mode interface {
	// defaults fills in what a spec leaves open, validate says what is wrong with it, and keeps
	// with how long entries are to be kept.
	defaults(s *FeedSpec)
	validate(s FeedSpec) error
	keeps(r feedtype.Retention) error
	// complete checks what a spec asks for against the table, and puts into the record what
	// the mode needs of it.
	complete(d dialect.Dialect, r *catalog.Record, spec FeedSpec, table *dialect.Table) error
	// up and down are the statements that make and remove what the feed needs in the
	// database, besides its record; begin does the rest, before the feed is in the state
	// that it answers.
	// Before all of them admit refuses rows that the table must not have.
	admit(ctx context.Context, db *DB, q dialect.Querier, r *catalog.Record) error
	up(db *DB, r *catalog.Record, table *dialect.Table) ([]dialect.Step, error)
	down(ctx context.Context, db *DB, q dialect.Querier, r *catalog.Record, table *dialect.Table) error
	begin(ctx context.Context, db *DB, q dialect.Querier, r *catalog.Record) (state string, err error)
	// declare puts into a table that is not at hand the columns and indexes which a spec names
	// beside the key, and takes their types out of the spec; script is begin in a printed
	// script, and note what is then said of the state.
	declare(t *declared, spec *FeedSpec) error
	script(db *DB, r *catalog.Record) (steps []dialect.Step, state, note string, err error)
	// verify says what is not as the feed needs it, and mend does what can be done about it.
	verify(ctx context.Context, db *DB, q dialect.Querier, r *catalog.Record, table *dialect.Table) ([]string, error)
	mend(ctx context.Context, db *DB, q dialect.Querier, r *catalog.Record, table *dialect.Table) error

	// rights are what logins need on rowfeed's own tables and functions, besides what all
	// need: writers (nothing where what they write is recorded for them), and readers.
	rights(d dialect.Dialect, f *dialect.Feed) (writing, reading []dialect.Right)

	// part sets a page's query to the part of the feed that is asked for.
	part(ctx context.Context, f *Feed, l *catalog.Layout, q *dialect.PageQuery, s feedtype.Shards) error
	// byShard refuses where the feed's shards are no feeds by themselves.
	byShard(f *Feed) error
	// takes tells whether a position can be one of the feed's.
	takes(p feedtype.Position) bool
	// placeAt is just below the lowest position of a part that came at or after a time.
	placeAt(ctx context.Context, f *Feed, t time.Time, s feedtype.Shards) (feedtype.CursorState, error)
	// head completes a description of the feed.
	head(ctx context.Context, f *Feed, info *feedtype.Info) error

	// backfill records, or places, the next batch of the rows that were there before the feed, in
	// state filling, and answers how many there were. The error is errRecordChanged where
	// another process has done it.
	backfill(ctx context.Context, f *Feed, r *catalog.Record) (int64, error)

	// fill is told of a reader of so many entries that has come to the end of a shard in which
	// something waits: it gives positions to it, unless others have done so by now.
	fill(ctx context.Context, f *Feed, shard, limit int) error
	// pass publishes up to so many changes.
	pass(ctx context.Context, f *Feed, limit int, full bool) (feedtype.PublishEvent, error)
	// firstWaiting is a query with a row where something waits for a publisher, "" where nothing ever does.
	firstWaiting(f *Feed) string
	// publishVisible publishes what is visible now, of a shard where each is a feed by itself.
	publishVisible(ctx context.Context, f *Feed, shard int) error
	// asBefore refuses a database in which the feed was set back.
	asBefore(ctx context.Context, f *Feed) error
	// purge forgets what need not be kept any longer.
	purge(ctx context.Context, f *Feed) (int, error)
	// keys refuses what is done to keys one by one, where there is nothing to do.
	keys(f *Feed, doing string) error

	check(ctx context.Context, f *Feed) ([]Finding, error)
	// repair puts right what check finds, and answers how many keys that were.
	repair(ctx context.Context, f *Feed) (int64, error)
	status(ctx context.Context, f *Feed, s *Status) error
	// backlog is what of the status may be asked for often; it counts up to limit.
	backlog(ctx context.Context, f *Feed, limit int) (Backlog, error)
	// lag says of cursors how far they are behind.
	lag(ctx context.Context, f *Feed, cursors []*admin.ConsumerStatus) error
}

var modes = map[string]mode{feedtype.ModeSequence: sequenced{}, feedtype.ModeBlocking: blocking{}, feedtype.ModeOutbox: outbox{}}

// mode is that of the feed.
func modeOf(r *catalog.Record) mode {
	if r.Unreadable != nil {
		return unreadable{r.Unreadable}
	}
	return modes[r.Mode]
}

func (f *Feed) mode() mode { return modeOf(f.catalog.Record.Load()) }

// Mode is how the feed's positions are made: ModeSequence, ModeBlocking or ModeOutbox.
func (f *Feed) Mode() string { return f.catalog.Record.Load().Mode }
