package rowfeed

import (
	"context"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/publish"
)

type (
	Finding        = admin.Finding
	Status         = admin.Status
	Backlog        = admin.Backlog
	Blocker        = admin.Blocker
	Unseen         = admin.Unseen
	ShardStatus    = admin.ShardStatus
	Session        = admin.Session
	UnblockRequest = admin.UnblockRequest
	Unblocked      = admin.Unblocked
)

const (
	HoldersAll       = admin.HoldersAll
	HoldersWaitedFor = admin.HoldersWaitedFor
	HoldersNone      = admin.HoldersNone
	MaxShardStatus   = admin.MaxShardStatus
	MaxWaiting       = admin.MaxWaiting
)

func (f *Feed) Check(ctx context.Context) ([]Finding, error) { return f.checker.Check(ctx) }

func (f *Feed) Repair(ctx context.Context) (int64, error) { return f.checker.Repair(ctx) }

func (f *Feed) Status(ctx context.Context) (*Status, error) { return f.inspector.Status(ctx) }

func (f *Feed) Backlog(ctx context.Context, limit int) (Backlog, error) {
	return f.inspector.Backlog(ctx, limit)
}

func (f *Feed) Shards(ctx context.Context) ([]ShardStatus, string, error) {
	return f.inspector.Shards(ctx)
}

func (f *Feed) Blockers(ctx context.Context) ([]Blocker, *Unseen, error) {
	return f.inspector.Blockers(ctx)
}

func (f *Feed) Unblock(ctx context.Context, req UnblockRequest) (*Unblocked, error) {
	return f.inspector.Unblock(ctx, req)
}

func (f *Feed) Verify(ctx context.Context) ([]string, error) { return f.installed.Verify(ctx) }

func (f *Feed) VerifyParts(ctx context.Context) (string, error) { return f.catalog.VerifyParts(ctx) }

func (f *Feed) VerifyPartitions(ctx context.Context) ([]string, error) {
	return f.installed.Partitions.VerifyPartitions(ctx)
}

func (f *Feed) Upgrade(ctx context.Context) ([]string, error) { return f.installed.Upgrade(ctx) }

func (f *Feed) Grant(ctx context.Context, logins Grants) error { return f.grants.Grant(ctx, logins) }

func (f *Feed) Revoke(ctx context.Context, logins Grants) error { return f.grants.Revoke(ctx, logins) }

func (f *Feed) PrintGrants(ctx context.Context, logins Grants, revoke bool) ([]dialect.Step, error) {
	return f.grants.PrintGrants(ctx, logins, revoke)
}

func (f *Feed) Granted() Grants { return f.grants.Granted() }

func (f *Feed) Bump(ctx context.Context) (int64, error) { return f.installed.Bump(ctx) }

func (f *Feed) AdoptDatabase(ctx context.Context) (bool, error) {
	return f.installed.AdoptDatabase(ctx)
}

func (f *Feed) BackFill(ctx context.Context, progress func(rows int64)) (int64, error) {
	return f.installed.BackFill(ctx, progress)
}

func (f *Feed) Reshard(ctx context.Context, dataShards int, progress func(keys int64)) (bool, error) {
	return f.installed.Division.Reshard(ctx, dataShards, progress)
}

func (f *Feed) SetRetention(ctx context.Context, to Retention) error {
	return f.installed.SetRetention(ctx, to)
}

func (f *Feed) Retention() Retention { return f.catalog.Record.Load().Retain }

func (f *Feed) Purge(ctx context.Context) (int, error) { return f.publisher.Purge(ctx) }

func (f *Feed) UnknownKeys(ctx context.Context, keys ...Key) ([]Key, error) {
	return f.recorder.UnknownKeys(ctx, keys...)
}

func (f *Feed) InOwnTx(ctx context.Context, fn func(Tx) error) error {
	return f.recorder.InOwnTx(ctx, func(tx dialect.Querier) error { return fn(ownTx{tx}) })
}

func (f *Feed) RepublishWhere(ctx context.Context, where string, batch int, each func(rows int64) error) (int64, error) {
	return f.recorder.RepublishWhere(ctx, where, batch, each)
}

func (f *Feed) CountWhere(ctx context.Context, where string) (int64, error) {
	return f.recorder.CountWhere(ctx, where)
}

func (f *Feed) DeleteSQL() []string { return f.recorder.DeleteSQL() }

var _ feedtype.ShardSource = (*Feed)(nil)

func (db *DB) Readers() map[string]int { return db.Admin().Readers() }

// PublisherLease is the name of the lease through which the publishers of a feed take turns.
func PublisherLease(feed string) string { return publish.LeaseName(feed) }
