package operate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/ulidfeed"
)

// status adds the shards with their heads and holders.
func (ulidKind) status(ctx context.Context, f *Inspector, s *admin.Status) (err error) {
	s.Shards, s.HoldersTold, err = f.Shards(ctx)
	for _, shard := range s.Shards {
		if h := shard.Holder; h != nil {
			s.Blockers = append(s.Blockers, admin.Blocker{Session: h.Session, User: h.User, Host: h.Host,
				AgeSeconds: h.AgeSeconds, Statement: h.Statement, Scope: fmt.Sprintf("holds shard %d", shard.Shard)})
		}
	}
	return err
}

// Shards is admin.Inspector.Shards.
func (f *Inspector) Shards(ctx context.Context) (shards []admin.ShardStatus, told string, err error) {
	d, feed := f.Store.Dialect, f.DialectFeed()
	shards = []admin.ShardStatus{}
	if feed.ULIDs == nil {
		return shards, "", nil
	}
	holdings, level, err := ulidfeed.Holders(ctx, f.Feed)
	if err != nil && d.Classify(err) != dialect.ClassPermission { // then the answer has what this login may see
		return shards, "", f.Fail("list the holders of its shards", err)
	}
	now, err := f.Store.Clock(ctx, f.Store.On())
	if err != nil {
		return shards, "", f.Fail("read the database's time", err)
	}
	heads, err := f.heads(ctx, holdings)
	if err != nil && d.Classify(err) != dialect.ClassUndefined { // Problems of the status report a missing table
		return shards, "", f.Fail("read the heads of its shards", err)
	}
	for _, head := range heads {
		shard := admin.ShardStatus{Shard: head.shard, Waiting: []admin.Session{}}
		if head.last.Valid {
			at := time.UnixMilli(int64(head.last.Position.High >> 16)).UTC()
			shard.Head, shard.HeadAt = head.last.Position.String(), &at
		}
		h := holdingOf(holdings, head.shard)
		if h.Holder != nil {
			holder := session(*h.Holder, now)
			shard.Holder = &holder
		}
		for _, w := range h.Waiting {
			shard.Waiting = append(shard.Waiting, session(w, now))
		}
		shards = append(shards, shard)
	}
	return shards, string(level), nil
}

// backlog is empty: nothing waits for a publisher.
func (ulidKind) backlog(context.Context, *Inspector, int) (admin.Backlog, error) {
	return admin.Backlog{}, nil
}

// session converts a session. Now is the database's time.
func session(s dialect.Session, now int64) admin.Session {
	x := admin.Session{Session: s.ID, User: s.User, Host: s.Host, Application: s.Application, State: s.State,
		Statement: s.Statement}
	if s.Age >= 0 {
		since := time.UnixMicro(now - s.Age).UTC()
		x.Since = &since
	}
	x.AgeSeconds, x.StateSeconds = ageSeconds(s.Age), ageSeconds(s.StateAge)
	return x
}

// shardHead is the greatest ULID of a shard.
type shardHead struct {
	shard int
	last  dialect.ScanULID
}

// heads returns the head of each shard in holdings, and of the lowest other shards. A shard in holdings may have no
// visible row yet: then its head is zero.
func (f *Inspector) heads(ctx context.Context, holdings []dialect.Holding) ([]shardHead, error) {
	name := "heads_of_shards"
	args := dialect.Args{"feed": f.Name, "count": max(admin.MaxShardStatus-len(holdings), len(holdings))}
	if len(holdings) > 0 {
		named := make([]int, len(holdings))
		for i, h := range holdings {
			named[i] = h.Shard
		}
		name, args["named"] = "heads_of_named_shards", dialect.List(named)
	}
	heads, err := dialect.All(ctx, f.Store.On(), f.Store.Dialect.Syntax, f.Statement(statements, name), args,
		func(rows dialect.Rows) (h shardHead, err error) {
			return h, rows.Scan(&h.shard, &h.last)
		})
	for _, h := range holdings {
		if !slices.ContainsFunc(heads, func(head shardHead) bool { return head.shard == h.Shard }) {
			heads = append(heads, shardHead{shard: h.Shard})
		}
	}
	slices.SortFunc(heads, func(a, b shardHead) int { return a.shard - b.shard })
	return heads, err
}
