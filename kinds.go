package rowfeed

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/gap"
	"github.com/rowfeed/rowfeed/internal/history"
	"github.com/rowfeed/rowfeed/internal/install"
	"github.com/rowfeed/rowfeed/internal/operate"
	"github.com/rowfeed/rowfeed/internal/publish"
	"github.com/rowfeed/rowfeed/internal/read"
	"github.com/rowfeed/rowfeed/internal/ulidfeed"
)

// kind has the two parts of a feed that depend on its mode: one reads pages, one assigns positions. What is installed
// and inspected for a mode is chosen by tables in those packages.
type kind struct {
	read.Pager
	publish.Positioner
}

// newFeed composes a feed of its parts. Only this function connects implementations with the interfaces of packages
// that do not import them.
func (db *DB) newFeed(name string) *Feed {
	cfg, database := db.cfg, &install.Database{Store: db.store}
	c := &catalog.Feed{Name: name, Store: db.store}
	c.Gone = func() { db.forget(name) }
	c.Diagnose = func(ctx context.Context, doing string, err error) error {
		return database.Diagnose(ctx, c, doing, err)
	}
	f := &Feed{db: db, catalog: c}
	past, gaps := history.New(c, db.flushes, cfg.Replica, cfg.UnsafeDurability), gap.New(c)
	pager := func() (read.Pager, error) { k, err := f.kind(); return k.Pager, err }
	positioner := func() (publish.Positioner, error) { k, err := f.kind(); return k.Positioner, err }

	f.reader = &read.Reader{Feed: c, History: past, Watch: db.watch, Poller: db.poller, Pager: pager,
		Quota: db.store.Quotas.Pages.OfFeed(), MaxPageBytes: cfg.MaxPageBytes, TailBytes: cfg.TailBytes}
	f.publisher = publish.New(c, db.watch, gaps, positioner)
	f.publisher.Quota = db.store.Quotas.Publishing.OfFeed()
	f.publisher.BatchSize, f.publisher.IdlePoll, f.publisher.Lease = cfg.BatchSize, cfg.IdlePoll, cfg.PublisherLease
	f.recorder = &publish.Recorder{Feed: c, Wake: f.publisher.Wake}
	f.locks = &ulidfeed.Locks{Feed: c, Wait: cfg.LockWait, Idle: cfg.LockIdle}
	f.shards = &ulidfeed.Shards{Feed: c, Gaps: gaps, Reader: f.reader}
	sequence := &publish.Sequence{Feed: c, History: past, Watch: db.watch, Gaps: gaps, BatchSize: cfg.BatchSize}
	outbox := &ulidfeed.Outbox{Feed: c, History: past, Watch: db.watch, Gaps: gaps}
	f.kinds = map[string]kind{
		ModeSequence: {
			read.SequencePager{Reader: f.reader},
			sequence,
		},
		ModeBlocking: {f.shards, ulidfeed.Blocking{Feed: name}},
		ModeOutbox:   {ulidfeed.OutboxPager{Shards: f.shards, Outbox: outbox}, outbox},
	}

	f.elsewhere = kind{f.kinds[ModeSequence].Pager, &publish.Elsewhere{Feed: c}}

	f.installed = install.New(c, f.recorder, outbox, f.publisher.SetProblems)
	f.publisher.Keeper = f.installed
	f.installed.Upgrader.PublishVisible = sequence.PublishVisible
	f.inspector = &operate.Inspector{Feed: c, Install: f.installed, Reader: f.reader, ULIDs: f.shards,
		Consumers: db.Admin().Consumers}
	return f
}

// kind returns the kind of the feed's mode, as last read. The error says why this version cannot read the feed's
// record.
func (f *Feed) kind() (kind, error) {
	r := f.catalog.Record.Load()
	if r.PublishedElsewhere {
		return f.elsewhere, r.Unreadable
	}
	return f.kinds[r.Mode], r.Unreadable
}

// waitingFeeds tells the watcher which feeds have something to publish.
type waitingFeeds struct{ db *DB }

// FirstWaiting implements watch.Feeds.
func (w waitingFeeds) FirstWaiting(feed string) string {
	if f := w.db.known(feed); f != nil {
		if k, err := f.kind(); err == nil {
			return k.Pending()
		}
	}
	return ""
}

// Elsewhere implements watch.Feeds.
func (w waitingFeeds) Elsewhere() (all []*dialect.Feed) {
	for _, f := range w.db.allKnown() {
		if feed := f.catalog.DialectFeed(); feed.Elsewhere != nil {
			all = append(all, feed)
		}
	}
	return all
}

// ShardsWithRecords implements watch.Feeds. It finds nothing in a process that does not publish, because such a process
// may not move records.
func (w waitingFeeds) ShardsWithRecords(ctx context.Context, feed string, shards []int) []int {
	f := w.db.known(feed)
	if f == nil || !w.db.store.Publishes() {
		return nil
	}
	return f.shards.ShardsWithRecords(ctx, shards)
}
