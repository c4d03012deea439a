package rowfeed

import (
	"context"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/install"
	"github.com/rowfeed/rowfeed/internal/operate"
	"github.com/rowfeed/rowfeed/internal/publish"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Admin returns the operations of operators on the feeds of this database.
func (db *DB) Admin() *admin.Admin {
	s := db.store
	return admin.New(admin.Database{SQL: s.SQL, Dialect: s.Dialect, Names: s.Names, Observer: s.Observer,
		Feed: func(ctx context.Context, name string) (admin.Source, error) {
			f, err := db.Feed(ctx, name)
			return administered{f}, err
		},
		Feeds: func(ctx context.Context) (all []admin.Source, err error) {
			feeds, err := db.Feeds(ctx)
			for _, f := range feeds {
				all = append(all, administered{f})
			}
			return all, err
		},
		Waiting: db.watch.Waiting,
		Quotas: func() []admin.ConnectionQuota {
			return []admin.ConnectionQuota{quota("pages", s.Quotas.Pages), quota("publishing", s.Quotas.Publishing)}
		}})
}

func quota(work string, q *store.Quota) admin.ConnectionQuota {
	return admin.ConnectionQuota{Work: work, Limit: q.Limit(), InUse: q.InUse(), Refused: q.Refused()}
}

// Admin returns the operations of operators on the feed.
func (f *Feed) Admin() *admin.Feed {
	return &admin.Feed{
		Inspector:    f.inspector,
		Checker:      &operate.Checker{Feed: f.catalog, Install: f.installed, Wake: f.recorder.Wake},
		Installation: installation{f.installed, f.catalog},
		Grantor:      &install.Grants{Feed: f.catalog, DB: &install.Database{Store: f.db.store}},
		Publications: publications{f.recorder, f.publisher},
	}
}

// installation implements admin.Feed's Installation with the catalog and the installer.
type installation struct {
	feed    *install.Feed
	catalog *catalog.Feed
}

func (i installation) Verify(ctx context.Context) ([]string, error) {
	return i.feed.Verifier.Verify(ctx)
}

func (i installation) VerifyParts(ctx context.Context) (string, error) {
	return i.catalog.VerifyParts(ctx)
}

func (i installation) VerifyPartitions(ctx context.Context) ([]string, error) {
	return i.feed.Partitions.VerifyPartitions(ctx)
}

func (i installation) Upgrade(ctx context.Context) ([]string, error) {
	return i.feed.Upgrader.Upgrade(ctx)
}

func (i installation) Reshard(ctx context.Context, dataShards int, progress func(keys int64)) (bool, error) {
	return i.feed.Resharding.Reshard(ctx, dataShards, progress)
}

func (i installation) PreviewReshard(ctx context.Context, dataShards int) (int64, error) {
	return i.feed.Resharding.Preview(ctx, dataShards)
}

func (i installation) BackFill(ctx context.Context, progress func(rows int64)) (int64, error) {
	return i.feed.Filler.BackFill(ctx, progress)
}

func (i installation) Bump(ctx context.Context) (int64, error) { return i.feed.Identity.Bump(ctx) }

func (i installation) AdoptDatabase(ctx context.Context) (bool, error) {
	return i.feed.Identity.AdoptDatabase(ctx)
}

func (i installation) Adoption(ctx context.Context) (*admin.Adoption, error) {
	r := i.catalog.Record.Load()
	a := &admin.Adoption{Continues: r.Dropped.Continues()}
	if r.Dropped != nil {
		a.Head, a.From, a.Restart = r.Dropped.Head, r.Dropped.Below, r.Dropped.Why
	}
	var err error
	if a.Consumers, a.Others, a.Unadopted, err = install.Cursors(ctx, i.catalog.Store, r); err != nil {
		err = i.catalog.Fail("read the stored cursors", err)
	}
	return a, err
}

func (i installation) Retention() feedtype.Retention { return i.catalog.Record.Load().Retain }

func (i installation) AddFence(ctx context.Context) error {
	return (&install.Database{Store: i.catalog.Store}).AddFence(ctx, i.catalog)
}

func (i installation) TakeOver(ctx context.Context, fence bool) (bool, error) {
	return i.feed.Upgrader.TakeOver(ctx, fence)
}

func (i installation) MayMovePositions(ctx context.Context) error {
	return i.feed.Upgrader.MayMove(ctx)
}

func (i installation) MovePositions(ctx context.Context, progress func(rows int64)) (bool, error) {
	return i.feed.Upgrader.MovePositions(ctx, progress)
}

func (i installation) SetRetention(ctx context.Context, to feedtype.Retention) error {
	return (&install.Database{Store: i.catalog.Store}).SetRetention(ctx, i.catalog, to)
}

// publications implements admin.Feed's Publications with the recorder and the publisher.
type publications struct {
	*publish.Recorder
	publisher *publish.Publisher
}

func (p publications) Purge(ctx context.Context) (int, error) { return p.publisher.Purge(ctx) }

// administered implements admin.Source for a feed.
type administered struct{ *Feed }

// ShardsAreFeeds implements admin.Source.
func (f administered) ShardsAreFeeds() bool { return f.reader.ShardsAreFeeds() == nil }

// Lag implements admin.Source.
func (f administered) Lag(ctx context.Context, cursors []*admin.ConsumerStatus) error {
	return f.inspector.Lag(ctx, cursors)
}

// Locate implements admin.Source.
func (f administered) Locate(ctx context.Context, to feedtype.Cursor, s feedtype.Shards) (feedtype.Cursor, error) {
	if t, ok, _ := to.Time(); ok {
		kind, err := f.kind()
		if err != nil {
			return to, err
		}
		at, err := kind.At(ctx, t, s)
		if err != nil || at.Position.IsZero() {
			return to, err // below every position: as a cursor it would be the beginning
		}
		return at.Cursor(), nil
	}
	page, err := f.Fetch(ctx, feedtype.Request{After: to, Limit: 1, Shards: s})
	if err == nil && to == feedtype.Now {
		return page.Cursor, nil
	}
	return to, err
}
