package rowfeed

import (
	"context"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Backlog tells what waits for the feed's publisher: what of Status costs little, for whoever
// asks now and then, as metrics do. Changes are counted up to limit; 0 means MaxWaiting.
func (f *Feed) Backlog(ctx context.Context, limit int) (Backlog, error) {
	if limit <= 0 || limit > MaxWaiting {
		limit = MaxWaiting
	}
	return f.mode().backlog(ctx, f, limit)
}

// backlog reads the sequence, and counts changes.
func (sequenced) backlog(ctx context.Context, f *Feed, limit int) (found Backlog, err error) {
	b := dialect.NewBuilder(f.db.store.Dialect)
	var updated, age int64
	err = dialect.QueryRow(ctx, f.db.store.On(), "SELECT value, updated_at FROM "+f.db.store.Table("sequences")+
		" WHERE name = "+b.Arg(f.name), b.Args(), &found.Head, &updated)
	if err != nil {
		return found, f.db.store.Fail(feedtype.FeedObject(f.name), "read its sequence", err)
	}
	if found.Head > 0 {
		at := time.UnixMicro(updated).UTC()
		found.PublishedAt = &at
	}
	// The table may be gone: the rest is still worth knowing.
	// In a transaction, for its settings: without them a plan that was made while most
	// rows waited reads the whole table when none does.
	err = f.db.store.InTx(ctx, dialect.ForRead, "count what waits in "+f.name, func(tx dialect.Querier) (err error) {
		found.Waiting, age, err = f.db.store.Dialect.Backlog(ctx, tx, f.catalog.DialectFeed(), limit)
		return err
	})
	if err != nil && f.db.store.Dialect.Classify(err) != dialect.ClassUndefined {
		return found, f.db.store.Fail(feedtype.FeedObject(f.name), "count the changes waiting", err)
	}
	found.OldestSeconds = store.Seconds(age)
	return found, nil
}

// Readers counts those who wait for an entry at this moment, in this process (Request.Wait), by
// the feed's name. Feeds for whose entries nobody waits are left out.
func (db *DB) Readers() map[string]int {
	w := db.watch
	w.Mu.Lock()
	defer w.Mu.Unlock()
	n := make(map[string]int)
	for what, c := range w.Crowds {
		n[what.Key.Feed] += c.Size
	}
	return n
}
