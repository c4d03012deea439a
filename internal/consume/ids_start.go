package consume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// begins looks up where a new consumer begins in each of the feed's shards, for Now and a time:
// all of them before anything is handled, and before there is a cursor, since whatever is
// published from then on is to come. What is not named begins at its beginning, as every shard
// that comes later. It is nil where nothing is to be looked up.
func (r *consuming) begins(ctx context.Context, info *feedtype.Info) (map[int]feedtype.Cursor, error) {
	if r.c.Start.IsBeginning() {
		return nil, nil
	}
	whole, err := r.c.DB.wholeOf(ctx, r.c.DB.Store.On(), r.c.Name, info.Name)
	if err != nil || whole != nil {
		return nil, err
	}
	now, err := r.standingsOf(ctx, info)
	if err != nil {
		return nil, err
	}
	at := make(map[int]feedtype.Cursor, len(now.Shards))
	for shard := range now.Shards {
		if at[shard], err = r.beginsAt(ctx, shard); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// beginsAt is the place of Start in a shard. That of a time to which the shard has come stays
// where it is, whenever it is looked up; else it is the head of this moment, as with Now. The
// head alone tells, and nothing is moved for it, so that a shard that somebody has, or with a
// record that cannot be placed, is in nobody's way. What the shard refuses it refuses again when
// it has its turn, by itself.
func (r *consuming) beginsAt(ctx context.Context, shard int) (feedtype.Cursor, error) {
	if _, err := r.c.Start.State(); err == nil {
		return r.c.Start, nil // a cursor
	}
	t, isTime, err := r.c.Start.Time()
	if err != nil {
		return "", err
	}
	page, err := r.c.Source.Fetch(ctx, feedtype.Request{After: feedtype.Now, Limit: 1, Shards: feedtype.One(shard)})
	switch {
	case isRefusal(err):
		return r.c.Start, nil
	case isTime && (errors.Is(err, feedtype.Filling) || errors.Is(err, feedtype.Locked)):
		over, failed := r.isOver(ctx, t)
		if failed == nil && over {
			return r.c.Start, nil // it is the same later, while now is another moment then, and so is a time to come
		}
		return "", cmp.Or(failed, err)
	case err != nil || !isTime:
		return page.Cursor, err
	}
	head, err := page.Cursor.State()
	if err == nil && int64(head.Position.High>>16) >= t.UnixMilli() {
		return r.c.Start, nil
	}
	return page.Cursor, err
}

// isOver tells whether a time has gone by, by the clock of the consumer's own database.
func (r *consuming) isOver(ctx context.Context, t time.Time) (bool, error) {
	var micros int64
	err := dialect.QueryRow(ctx, r.c.DB.Store.On(), "SELECT "+r.c.DB.Store.Dialect.Now(), nil, &micros)
	return t.Before(time.UnixMicro(micros)), err
}

// standingsOf are how far the feed's shards are at this moment. A source that only lists them
// says nothing of any.
func (r *consuming) standingsOf(ctx context.Context, info *feedtype.Info) (*feedtype.Standings, error) {
	if source, can := r.c.Source.(feedtype.ShardSource); can {
		return source.Standings(ctx, "", 0)
	}
	if info.MoreShardIDs {
		return nil, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(info.Name), Cause: fmt.Sprintf("it has more shards than the %d that a description lists", feedtype.MaxShardIDs),
			Next: "read it from a source that is a rowfeed.ShardSource, as a *Feed and a feedhttp.Client are"}
	}
	now := &feedtype.Standings{Shards: make(map[int]string, len(info.ShardIDs))}
	for _, shard := range info.ShardIDs {
		now.Shards[shard] = ""
	}
	return now, nil
}
