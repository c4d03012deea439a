package operate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
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
	holdings, level, err := d.Holders(ctx, f.Store.On(), feed)
	if err != nil && d.Classify(err) != dialect.ClassPermission { // then the answer has what this login may see
		return shards, "", f.Fail("list the holders of its shards", err)
	}
	var now int64
	if err := dialect.QueryRow(ctx, f.Store.On(), "SELECT "+d.Now(), nil, &now); err != nil {
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

// heads returns the heads of all shards that holdings name, whose rows may not be visible yet, and of the first others.
func (f *Inspector) heads(ctx context.Context, holdings []dialect.Holding) ([]shardHead, error) {
	d, feed := f.Store.Dialect, f.DialectFeed()
	b := dialect.NewBuilder(d)
	ref := dialect.Ref(d, "g", feed.ULIDs.Position.Name)
	query := "SELECT s.shard, (SELECT " + d.Value(feed.ULIDs.Position, ref) + " FROM " +
		dialect.Qualified(d, feed.ULIDTable()) + " g WHERE " + dialect.Ref(d, "g", feed.ULIDs.Shard.Name) +
		" = s.shard ORDER BY " + ref + " DESC LIMIT 1)" +
		" FROM " + f.Store.Table("shards") + " s WHERE s.feed = " + b.Arg(f.Name)
	named := make([]string, 0, len(holdings))
	for _, h := range holdings {
		named = append(named, b.Arg(h.Shard))
	}
	if len(named) > 0 { // the named shards come first
		query += " ORDER BY CASE WHEN s.shard IN (" + strings.Join(named, ", ") + ") THEN 0 ELSE 1 END, s.shard"
	} else {
		query += " ORDER BY s.shard"
	}
	heads, err := dialect.QueryAll(ctx, f.Store.On(), query+" LIMIT "+
		b.Arg(max(admin.MaxShardStatus-len(holdings), len(holdings))), b.Args(),
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
