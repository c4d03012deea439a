package admin

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/consume"
	"github.com/rowfeed/rowfeed/internal/lease"
)

// ConsumerStatus is how one shard of a consumer stands.
type ConsumerStatus struct {
	Consumer   string `json:"consumer"`
	Feed       string `json:"feed"`
	Shard      int    `json:"shard"`
	ShardCount int    `json:"shard_count"`
	// Worker is the one of ShardCount that has the shard, where each shard is a feed by
	// itself; nil where it is a part of one.
	Worker      *int            `json:"worker,omitempty"`
	Cursor      feedtype.Cursor `json:"cursor"`
	Generation  int64           `json:"generation"` // of the cursor; 0 at the beginning
	Epoch       int64           `json:"epoch"`
	Paused      bool            `json:"paused"`
	DeadLetters int64           `json:"dead_letters"`
	MovedAt     time.Time       `json:"moved_at"` // when the row was last written
	// Failure says why a shard of several rests: its next entry cannot be handled, and nothing
	// is passed over (see Stop). Empty where it does not. It is tried again now and then.
	Failure string `json:"failure"`
	// Lease is that of the shard, where it has one and somebody holds it: who works on it,
	// and since when.
	Lease *feedtype.LeaseStatus `json:"lease"`
	// Behind is the number of positions between the cursor and the feed's head. It counts positions of all shards,
	// and there are at most as many entries. Behind is nil if the feed is not in this database or has another
	// generation, if the cursor is ahead of the head, and if positions are ULIDs.
	Behind *int64 `json:"behind"`
	// BehindSeconds is the age of the oldest position not yet consumed; nil also with
	// column capture, where nothing tells it, and of the others where more than 1,000 shards of
	// a feed are behind.
	BehindSeconds *float64 `json:"behind_seconds"`
	// NewPaused: the consumer was paused as a whole, and shards that come are paused, too, until
	// it is resumed as a whole.
	NewPaused bool `json:"new_paused,omitempty"`
}

// Consumers tells how consumers stand, in the order of their names; all of them where
// id names none.
func (db *Admin) Consumers(ctx context.Context, id feedtype.ConsumerID) ([]ConsumerStatus, error) {
	if err := db.store.RequireSchema(ctx, db.store.On()); err != nil {
		return nil, err
	}
	b := dialect.NewBuilder(db.store.Dialect)
	rows, err := dialect.QueryAll(ctx, db.store.On(), "SELECT "+consume.CursorColumns+" FROM "+
		db.store.Table("cursors")+" WHERE "+consume.WhereID(b, id)+
		" ORDER BY consumer, feed, shard", b.Args(), consume.ScanCursor)
	if err != nil {
		return nil, db.store.Fail(id.String(), "read its cursors", err)
	}
	workers, err := db.consumers.Workers(ctx, db.store.On(), id)
	if err != nil {
		return nil, db.store.Fail(id.String(), "read its cursors", err)
	}
	leases, err := db.consumers.ShardLeases(ctx, rows)
	if err != nil {
		return nil, err
	}
	var feeds []string // in their order
	byFeed := map[string][]*ConsumerStatus{}
	all := make([]ConsumerStatus, len(rows))
	for i, row := range rows {
		s := ConsumerStatus{Consumer: row.Consumer, Feed: row.Feed, Shard: row.Shard, ShardCount: row.ShardCount,
			Cursor: row.Value, Generation: row.Generation,
			Epoch: row.Epoch, Paused: row.Paused, DeadLetters: row.Aside, MovedAt: time.UnixMicro(row.UpdatedAt).UTC(),
			Failure: row.Failure}
		job := row.Shard
		if whole := workers[[2]string{row.Consumer, row.Feed}]; whole != nil {
			job = consume.JobOf(row.Shard, row.ShardCount)
			s.Worker, s.NewPaused = &job, whole.Paused
		}
		s.Lease = leases[lease.JobLease(consume.ConsumerGroup(row.Consumer, row.Feed), row.ShardCount, job)]
		if all[i] = s; byFeed[row.Feed] == nil {
			feeds = append(feeds, row.Feed)
		}
		byFeed[row.Feed] = append(byFeed[row.Feed], &all[i])
	}
	for _, name := range feeds {
		f, err := db.feed(ctx, name)
		switch {
		case errors.Is(err, feedtype.UnknownFeed), errors.Is(err, catalog.ErrUnreadable):
			continue
		case err == nil:
			err = f.Lag(ctx, byFeed[name])
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// PausedShards are the shards of a consumer that are paused.
func (db *Admin) PausedShards(ctx context.Context, id feedtype.ConsumerID) ([]int, error) {
	b := dialect.NewBuilder(db.store.Dialect)
	paused, err := dialect.QueryAll(ctx, db.store.On(), "SELECT shard FROM "+db.store.Table("cursors")+" WHERE "+
		consume.WhereID(b, id)+" AND paused <> 0 ORDER BY shard", b.Args(),
		func(rows dialect.Rows) (shard int, err error) { return shard, rows.Scan(&shard) })
	return paused, db.store.Fail(id.String(), "read its cursors", err)
}

// PauseConsumer makes a consumer stand still, in whatever process it runs, without a
// restart: what it is handling is rolled back. It answers the number of shards.
func (db *Admin) PauseConsumer(ctx context.Context, id feedtype.ConsumerID) (int64, error) {
	return db.setPaused(ctx, id, "pause", 1)
}

// ResumeConsumer lets a paused consumer go on.
func (db *Admin) ResumeConsumer(ctx context.Context, id feedtype.ConsumerID) (int64, error) {
	return db.setPaused(ctx, id, "resume", 0)
}

// setPaused says it of shards that are still to come, too, unless one is named.
func (db *Admin) setPaused(ctx context.Context, id feedtype.ConsumerID, doing string, paused int) (int64, error) {
	return db.moveCursors(ctx, id, doing, func(tx dialect.Querier, b *dialect.Builder) (string, error) {
		if id.Shard == nil {
			b := dialect.NewBuilder(db.store.Dialect)
			if _, err := tx.Exec(ctx, "UPDATE "+db.store.Table("consumers")+" SET paused = "+b.Arg(paused)+
				", version = version + 1 WHERE "+consume.WhereID(b, id), b.Args()...); err != nil {
				return "", err
			}
		}
		return "paused = " + b.Arg(paused), nil
	})
}

// ResetConsumer sets a consumer back to the beginning: it will be handed the whole
// feed again. Rows that are gone by then are not named in such a pass: the receiver is
// to remove what the pass did not bring. Shards of several end what they have in hand and
// begin anew, under epochs above all before: the feed may have divided its keys in another
// way by now.
func (db *Admin) ResetConsumer(ctx context.Context, id feedtype.ConsumerID) (int64, error) {
	return db.moveCursors(ctx, id, "reset", func(tx dialect.Querier, b *dialect.Builder) (string, error) {
		if err := db.consumers.ForgetLetterPositions(ctx, tx, id); err != nil {
			return "", err
		}
		return "value = " + b.Arg("") + ", generation = " + b.Arg(0), db.consumers.RaiseEpochs(ctx, tx, id)
	})
}

// SeekConsumer sets a consumer's cursor: to one that the feed gave, to Now or At a
// time. Between an earlier cursor and the present one it is handed entries again; what
// is between the present one and a later one it is never told. Where the feed is in
// this database its refusals come at once, and Now and At are settled at once.
func (db *Admin) SeekConsumer(ctx context.Context, id feedtype.ConsumerID, to feedtype.Cursor) (int64, error) {
	if id.Feed == "" {
		return 0, feedtype.Invalid("feed", "name the feed that the cursor is of")
	}
	if err := to.Check(); err != nil {
		return 0, err
	}
	workers, err := db.consumers.Workers(ctx, db.store.On(), id)
	if err != nil {
		return 0, db.store.Fail(id.String(), "read its cursors", err)
	}
	f, err := db.feed(ctx, id.Feed)
	switch {
	case errors.Is(err, feedtype.UnknownFeed): // it is somewhere else
	case err != nil:
		return 0, err
	case len(workers) > 0 && f.ShardsAreFeeds() && !to.IsBeginning(): // else another feed has its name
		return db.seekShards(ctx, id, f, to)
	default:
		if to, err = f.Locate(ctx, to, feedtype.Shards{}); err != nil {
			return 0, err
		}
	}
	if to.IsBeginning() {
		return db.ResetConsumer(ctx, id)
	}
	return db.moveCursors(ctx, id, "seek", func(tx dialect.Querier, b *dialect.Builder) (string, error) {
		return "value = " + b.Arg(string(to)) + ", generation = " + b.Arg(to.Generation()), nil
	})
}

// seekShards sets cursors of shards each of which is a feed by itself: all, or none where one
// of them refuses.
func (db *Admin) seekShards(ctx context.Context, id feedtype.ConsumerID, f Source, to feedtype.Cursor) (int64, error) {
	rows, err := db.consumers.CursorsOf(ctx, db.store.On(), id.Consumer, id.Feed)
	if err != nil {
		return 0, db.store.Fail(id.String(), "read its cursors", err)
	}
	rows = slices.DeleteFunc(rows, func(r *consume.CursorRow) bool { return id.Shard != nil && *id.Shard != r.Shard })
	if len(rows) == 0 {
		return 0, db.consumers.UnknownConsumer(ctx, db.store.On(), id)
	}
	at := make([]feedtype.Cursor, len(rows))
	for i, row := range rows {
		if at[i], err = f.Locate(ctx, to, feedtype.One(row.Shard)); err != nil {
			return 0, err
		}
	}
	var n int64
	err = db.store.InTx(ctx, dialect.ForRecord, "seek "+id.String(), func(tx dialect.Querier) error {
		n = 0
		if _, err := db.consumers.LockWhole(ctx, tx, id); err != nil {
			return err
		}
		for i, row := range rows {
			one := feedtype.ConsumerID{Consumer: id.Consumer, Feed: id.Feed, Shard: &row.Shard}
			b := dialect.NewBuilder(db.store.Dialect)
			moved, err := tx.Exec(ctx, "UPDATE "+db.store.Table("cursors")+" SET value = "+b.Arg(string(at[i]))+
				", generation = "+b.Arg(at[i].Generation())+
				", version = version + 1, failure = NULL, updated_at = "+db.store.Dialect.Now()+" WHERE "+
				consume.WhereID(b, one), b.Args()...)
			if err != nil {
				return err
			}
			n += moved
		}
		return nil
	})
	return n, db.store.Fail(id.String(), "seek", err)
}

// moveCursors changes rows of cursors. A consumer at work notices by its
// compare-and-set, whatever was changed.
func (db *Admin) moveCursors(
	ctx context.Context, id feedtype.ConsumerID, doing string,
	set func(dialect.Querier, *dialect.Builder) (string, error),
) (n int64, err error) {
	if id.Consumer == "" {
		return 0, feedtype.Invalid("consumer", "name the consumer")
	}
	if err := db.store.RequireSchema(ctx, db.store.On()); err != nil {
		return 0, err
	}
	err = db.store.InTx(ctx, dialect.ForRecord, doing+" "+id.String(), func(tx dialect.Querier) error {
		if _, err := db.consumers.LockWhole(ctx, tx, id); err != nil {
			return err
		}
		b := dialect.NewBuilder(db.store.Dialect)
		what, err := set(tx, b)
		if err != nil {
			return err
		}
		n, err = tx.Exec(ctx, "UPDATE "+db.store.Table("cursors")+" SET "+what+
			", version = version + 1, failure = NULL, updated_at = "+db.store.Dialect.Now()+
			" WHERE "+consume.WhereID(b, id), b.Args()...)
		if err != nil || n > 0 {
			return err
		}
		workers, err := db.consumers.Workers(ctx, tx, id)
		if err == nil && (len(workers) == 0 || id.Shard != nil) { // one without a shard yet has no cursor
			err = db.consumers.UnknownConsumer(ctx, tx, id)
		}
		return err
	})
	return n, db.store.Fail(id.String(), doing, err)
}

// DropConsumer forgets a consumer, all shards of it: its cursors, dead letters and
// processed ids. One that still runs begins anew. Its epochs do not, whatever the number
// of its shards will be: receivers remember the highest.
func (db *Admin) DropConsumer(ctx context.Context, id feedtype.ConsumerID) (n int64, err error) {
	switch {
	case id.Consumer == "":
		return 0, feedtype.Invalid("consumer", "name the consumer")
	case id.Shard != nil:
		return 0, feedtype.Invalid("shard", "a consumer is dropped as a whole; reset sets one shard back")
	}
	if err := db.store.RequireSchema(ctx, db.store.On()); err != nil {
		return 0, err
	}
	// Processed ids may be many: one statement takes as long as they do.
	err = db.store.InTx(ctx, dialect.ForRepair, "drop "+id.String(), func(tx dialect.Querier) error {
		// Before all others: who makes cursors of new shards begins with it, too.
		whole, err := db.consumers.LockWhole(ctx, tx, id)
		if err != nil {
			return err
		}
		for _, table := range []string{"consumers", "dead_letters", "processed", "cursors"} {
			if table == "cursors" {
				if err := db.consumers.KeepEpochs(ctx, tx, id); err != nil {
					return err
				}
			}
			b := dialect.NewBuilder(db.store.Dialect)
			if n, err = tx.Exec(ctx, "DELETE FROM "+db.store.Table(table)+" WHERE "+consume.WhereID(b, id),
				b.Args()...); err != nil {
				return err
			}
		}
		if n == 0 && whole == 0 { // one without a shard yet has no cursor
			return db.consumers.UnknownConsumer(ctx, tx, id)
		}
		return nil
	})
	return n, db.store.Fail(id.String(), "drop", err)
}
