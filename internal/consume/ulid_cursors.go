package consume

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// shardCursors creates the cursors of a consumer of a ULID feed, one for each shard of the feed.
type shardCursors struct{ *assignment }

// arrange creates a cursor for each shard of the feed. The cursors of a new consumer begin at Consumer.Start. A shard
// that appears later begins at its beginning. Only an instance that starts changes the number of workers. That changes
// no position.
func (s *shardCursors) arrange(ctx context.Context, info *feedtype.Info, starting bool) error {
	for {
		begins, err := s.startCursors(ctx, info)
		if err == nil {
			err = s.arrangeWith(ctx, info, starting, begins)
		}
		if !errors.Is(err, errOvertaken) { // the consumer was dropped meanwhile
			return err
		}
	}
}

// arrangeWith is arrange with the start of each shard already looked up.
func (s *shardCursors) arrangeWith(ctx context.Context, info *feedtype.Info, starting bool,
	begins map[int]feedtype.Cursor) error {
	db, id := s.db, feedtype.ConsumerID{Consumer: s.c.Name, Feed: info.Name}
	return db.Store.InTx(ctx, dialect.ForRecord, "make a consumer's cursors", func(tx dialect.Querier) error {
		n, err := db.LockWhole(ctx, tx, id)
		isNew := false
		if err == nil && n == 0 {
			args := dialect.Args{"consumer": s.c.Name, "feed": info.Name, "shard_count": s.count}
			if n, err = db.exec(ctx, tx, "insert_consumer", args); err == nil {
				isNew = n == 1
				_, err = db.LockWhole(ctx, tx, id)
			}
		}
		if err != nil {
			return err
		}
		whole, err := db.consumerRowOf(ctx, tx, s.c.Name, info.Name)
		if err != nil {
			return err
		}
		rows, err := db.CursorsOf(ctx, tx, s.c.Name, info.Name)
		switch {
		case err != nil:
			return err
		case whole == nil, isNew && begins == nil && !s.c.Start.IsBeginning():
			return errOvertaken
		}
		shards := info.ShardIDs
		if isNew && len(rows) == 0 && begins != nil { // otherwise it has read another feed of this name
			shards = slices.Collect(maps.Keys(begins))
		} else {
			begins = nil
		}
		other := slices.ContainsFunc(rows, func(row *CursorRow) bool { return row.ShardCount != s.count })
		if whole.shardCount != s.count && !starting {
			return s.shardCountChanged(whole.shardCount)
		}
		if whole.shardCount != s.count || other {
			for _, name := range []string{"set_count_of_consumers", "set_count_of_cursors"} {
				args := dialect.Args{"shard_count": s.count, "which": Which(id)}
				if _, err := db.exec(ctx, tx, name, args); err != nil {
					return err
				}
			}
		}
		return s.insert(ctx, tx, info.Name, whole.Paused, rows, shards, begins)
	})
}

// insert creates the missing cursors, at begins or at the beginning of the shard. The consumer is locked, so no other
// instance inserts at the same time.
func (s *shardCursors) insert(ctx context.Context, tx dialect.Querier, feed string, paused bool, rows []*CursorRow,
	shards []int, begins map[int]feedtype.Cursor) error {
	has := make(map[int]bool, len(rows))
	for _, row := range rows {
		has[row.Shard] = true
	}
	missing := slices.DeleteFunc(slices.Clone(shards), func(shard int) bool { return has[shard] })
	const most = 100 // rows of nine parameters
	for some := range slices.Chunk(missing, most) {
		values := make([]dialect.Built, len(some))
		for i, shard := range some {
			values[i] = s.db.part("new_cursor", dialect.Args{"consumer": s.c.Name, "feed": feed, "shard": shard,
				"shard_count": s.count, "value": string(begins[shard]), "generation": begins[shard].Generation(),
				"paused": number(paused)})
		}
		args := dialect.Args{"rows": dialect.Joined(", ", values)}
		if _, err := s.db.exec(ctx, tx, "insert_cursors", args); err != nil {
			return err
		}
	}
	return nil
}

// startCursors looks up the start of a new consumer in each shard of the feed, for Now and for a time. It does so
// before any cursor exists, since everything published afterwards must be delivered. It returns nil if there is
// nothing to look up.
func (s *shardCursors) startCursors(ctx context.Context, info *feedtype.Info) (map[int]feedtype.Cursor, error) {
	if s.c.Start.IsBeginning() {
		return nil, nil
	}
	whole, err := s.db.consumerRowOf(ctx, s.db.Store.On(), s.c.Name, info.Name)
	if err != nil || whole != nil {
		return nil, err
	}
	now, err := s.c.watermarks(ctx, info)
	if err != nil {
		return nil, err
	}
	at := make(map[int]feedtype.Cursor, len(now.Shards))
	for shard := range now.Shards {
		if at[shard], err = s.startIn(ctx, shard); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// startIn looks up Consumer.Start in one shard. A time that the head has reached stays as it is. A later time, and
// Now, become the current head. Only the head is read, so a locked shard and records without a position do not
// disturb. A refusal is left to the first turn of the shard.
func (s *shardCursors) startIn(ctx context.Context, shard int) (feedtype.Cursor, error) {
	if _, err := s.c.Start.State(); err == nil {
		return s.c.Start, nil // a cursor, not a time
	}
	t, isTime, err := s.c.Start.Time()
	if err != nil {
		return "", err
	}
	page, err := s.c.Source.Fetch(ctx, feedtype.Request{After: feedtype.Now, Limit: 1, Shards: feedtype.One(shard)})
	switch {
	case isRefusal(err):
		return s.c.Start, nil
	case isTime && (errors.Is(err, feedtype.Filling) || errors.Is(err, feedtype.Locked)):
		over, failed := s.isOver(ctx, t)
		if failed == nil && over {
			return s.c.Start, nil // a time that has passed means the same later; Now and future times do not
		}
		return "", cmp.Or(failed, err)
	case err != nil || !isTime:
		return page.Cursor, err
	}
	head, err := page.Cursor.State()
	if err == nil && int64(head.Position.High>>16) >= t.UnixMilli() {
		return s.c.Start, nil
	}
	return page.Cursor, err
}

// isOver reports whether a time has passed, by the clock of the consumer's database.
func (s *shardCursors) isOver(ctx context.Context, t time.Time) (bool, error) {
	micros, err := s.db.Store.Clock(ctx, s.db.Store.On())
	return t.Before(time.UnixMicro(micros)), err
}
