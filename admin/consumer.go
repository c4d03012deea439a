package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/consume"
	"github.com/rowfeed/rowfeed/internal/lease"
	"github.com/rowfeed/rowfeed/internal/store"
)

// ConsumerStatus is the state of one shard of a consumer.
type ConsumerStatus struct {
	Consumer   string `json:"consumer"`
	Feed       string `json:"feed"`
	Shard      int    `json:"shard"`
	ShardCount int    `json:"shard_count"`
	// Worker is the number of the worker that reads the shard, below ShardCount. It is nil unless each shard is a feed
	// by itself.
	Worker      *int            `json:"worker,omitempty"`
	Cursor      feedtype.Cursor `json:"cursor"`
	Generation  int64           `json:"generation"` // of the cursor; 0 at the beginning of the feed
	Epoch       int64           `json:"epoch"`
	Paused      bool            `json:"paused"`
	DeadLetters int64           `json:"dead_letters"`
	MovedAt     time.Time       `json:"moved_at"` // when the cursor's row was last written
	// Failure is why the shard does not progress; nil if its last attempt has succeeded.
	Failure *feedtype.Failure `json:"failure"`
	// Target is where a relay delivers, without a password. It is empty for other consumers.
	Target string `json:"target"`
	// Lease is the shard's lease with its holder; nil if the shard has none, or if no process holds it.
	Lease *feedtype.LeaseStatus `json:"lease"`
	// Behind is the number of positions between the cursor and the feed's head. It counts positions of all shards, so
	// it is an upper bound of the entries behind. It is nil for feeds with ULIDs, for feeds that are not in this
	// database, and if the cursor is of another generation or ahead of the feed.
	Behind *int64 `json:"behind"`
	// BehindSeconds is the age of the oldest position that was not consumed, in seconds. It is 0 at the head, and nil
	// if it is not known: in the cases of Behind except ULIDs; with capture "column", unless the cursor is at the head;
	// and for the remaining shards if more than 1,000 shards of a feed with ULIDs are behind.
	BehindSeconds *float64 `json:"behind_seconds"`
	// NewPaused means that the consumer was paused as a whole. New shards are then paused, too, until the consumer is
	// resumed as a whole.
	NewPaused bool `json:"new_paused,omitempty"`
}

// State says in a word how the shard is: "paused" by an operator, "failing", "behind" its feed, "ok", or "unknown" if
// the feed is in another database.
func (s *ConsumerStatus) State() string {
	switch {
	case s.Paused:
		return "paused"
	case s.Failure != nil:
		return "failing"
	case s.Behind == nil && s.BehindSeconds == nil:
		return "unknown"
	case s.Behind != nil && *s.Behind > 0, s.BehindSeconds != nil && *s.BehindSeconds > 0:
		return "behind"
	}
	return "ok"
}

// Consumers returns the state of each shard of consumers, sorted by consumer, feed and shard. Empty fields of id select
// all.
func (db *Admin) Consumers(ctx context.Context, id feedtype.ConsumerID) ([]ConsumerStatus, error) {
	if err := db.store.RequireSchema(ctx, db.store.On()); err != nil {
		return nil, err
	}
	rows, err := db.consumers.Cursors(ctx, id)
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
	var feeds []string // in the order of rows
	byFeed := map[string][]*ConsumerStatus{}
	all := make([]ConsumerStatus, len(rows))
	for i, row := range rows {
		s := ConsumerStatus{
			Consumer:    row.Consumer,
			Feed:        row.Feed,
			Shard:       row.Shard,
			ShardCount:  row.ShardCount,
			Cursor:      row.Value,
			Generation:  row.Generation,
			Epoch:       row.Epoch,
			Paused:      row.Paused,
			DeadLetters: row.Aside,
			MovedAt:     time.UnixMicro(row.UpdatedAt).UTC(),
			Failure:     row.Failure,
			Target:      row.Target,
		}
		job := row.Shard
		if whole := workers[[2]string{row.Consumer, row.Feed}]; whole != nil {
			job = consume.JobOf(row.Shard, row.ShardCount)
			s.Worker, s.NewPaused = &job, whole.Paused
		}
		s.Lease = leases[lease.JobLease(consume.ConsumerGroup(row.Consumer, row.Feed), row.ShardCount, job)]
		if row.ShardCount == 1 && s.Lease == nil {
			s.Lease = leases[feedtype.RelayLease(row.Consumer, row.Feed)]
		}
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

// RequireConsumer returns an error with the code UnknownConsumer if there is no cursor of these consumers. Empty fields
// of id select all.
func (db *Admin) RequireConsumer(ctx context.Context, id feedtype.ConsumerID) error {
	return db.consumers.RequireConsumer(ctx, id)
}

// PausedShards returns the paused shards of a consumer, in ascending order.
func (db *Admin) PausedShards(ctx context.Context, id feedtype.ConsumerID) ([]int, error) {
	paused, err := store.All(ctx, db.store, db.store.On(), statements, "paused_shards",
		dialect.Args{"which": consume.Which(id)},
		func(rows dialect.Rows) (shard int, err error) { return shard, rows.Scan(&shard) })
	return paused, db.store.Fail(id.String(), "read its cursors", err)
}

// PauseConsumer pauses a consumer, or one shard of it, in every process without a restart. Entries that are being
// handled are rolled back. It returns the number of shards. An unknown consumer is an error with the code
// UnknownConsumer.
func (db *Admin) PauseConsumer(ctx context.Context, id feedtype.ConsumerID) (int64, error) {
	return db.setPaused(ctx, id, "pause", 1)
}

// ResumeConsumer ends a pause. It returns the number of shards.
func (db *Admin) ResumeConsumer(ctx context.Context, id feedtype.ConsumerID) (int64, error) {
	return db.setPaused(ctx, id, "resume", 0)
}

// setPaused applies to new shards as well, unless id names a shard.
func (db *Admin) setPaused(ctx context.Context, id feedtype.ConsumerID, doing string, paused int) (int64, error) {
	return db.moveCursors(ctx, id, doing, func(tx dialect.Querier) (n int64, err error) {
		args := dialect.Args{"paused": paused, "which": consume.Which(id)}
		if id.Shard == nil {
			if _, err := db.store.Exec(ctx, tx, statements, "pause_consumers", args); err != nil {
				return 0, err
			}
		}
		return db.store.Exec(ctx, tx, statements, "pause_cursors", args)
	})
}

// ResetConsumer sets a consumer back to the beginning: it receives the whole feed again. That pass does not name rows
// that are gone by then, so the receiver has to remove what the pass did not bring. A consumer with several shards
// finishes the entries in hand and begins again under higher epochs, since the feed may have another number of data
// shards by now. It returns the number of shards.
func (db *Admin) ResetConsumer(ctx context.Context, id feedtype.ConsumerID) (int64, error) {
	return db.moveCursors(ctx, id, "reset", func(tx dialect.Querier) (int64, error) {
		if err := db.consumers.ForgetLetterPositions(ctx, tx, id); err != nil {
			return 0, err
		}
		if err := db.consumers.RaiseEpochs(ctx, tx, id); err != nil {
			return 0, err
		}
		return db.seek(ctx, tx, id, feedtype.Beginning)
	})
}

// SeekConsumer sets a consumer's cursor to a cursor that the feed gave, to Now, or to At a time. With an earlier cursor
// the consumer receives entries again; with a later one it misses the entries between. If the feed is in this database,
// it resolves Now and At and refuses wrong cursors at once. It returns the number of shards.
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
	dataShards := 0
	f, err := db.feed(ctx, id.Feed)
	switch {
	case errors.Is(err, feedtype.UnknownFeed): // the feed is in another database
	case err != nil:
		return 0, err
	case len(workers) > 0 && f.ShardsAreFeeds() && !to.IsBeginning(): // else another feed has the name
		return db.seekShards(ctx, id, f, to)
	default:
		info, err := f.Info(ctx)
		if err != nil {
			return 0, err
		}
		dataShards = feedtype.MaxParts(info.DataShards)
		if to, err = f.Locate(ctx, to, feedtype.Shards{}); err != nil {
			return 0, err
		}
	}
	if to.IsBeginning() {
		return db.ResetConsumer(ctx, id)
	}
	return db.moveCursors(ctx, id, "seek", func(tx dialect.Querier) (n int64, err error) {
		rows, err := db.consumers.CursorsOf(ctx, tx, id.Consumer, id.Feed)
		for _, row := range rows {
			if err == nil && (id.Shard == nil || *id.Shard == row.Shard) {
				var moved int64
				one := feedtype.ConsumerID{Consumer: id.Consumer, Feed: id.Feed, Shard: &row.Shard}
				moved, err = db.seek(ctx, tx, one, ofShard(to, row, dataShards))
				n += moved
			}
		}
		return n, err
	})
}

// ofShard returns a cursor of the whole feed as one of a consumer's shard: if the data shards change later, it then
// shows which keys the shard has read. dataShards is 0 if the feed is in another database.
func ofShard(to feedtype.Cursor, row *consume.CursorRow, dataShards int) feedtype.Cursor {
	p, err := to.State()
	if err != nil || row.ShardCount < 2 || p.Part != (feedtype.CursorPart{}) {
		return to
	}
	if dataShards == 0 {
		was, err := row.Value.State()
		if err != nil {
			return to
		}
		p.Part = was.Part
	} else if from, end, err := feedtype.Part(row.Shard, row.ShardCount).Range(dataShards); err == nil {
		p.Part = feedtype.CursorPart{From: from, To: end, Of: dataShards}
	}
	return p.Cursor()
}

// seek sets cursors in a transaction, and returns their number.
func (db *Admin) seek(
	ctx context.Context, tx dialect.Querier, id feedtype.ConsumerID, to feedtype.Cursor,
) (int64, error) {
	return db.store.Exec(ctx, tx, statements, "seek",
		dialect.Args{"value": string(to), "generation": to.Generation(), "which": consume.Which(id)})
}

// CursorMove counts the positions that a consumer skips or receives again when its cursors are set.
type CursorMove struct {
	// Counted tells whether Skipped and Repeated are known. They are unknown for feeds with ULIDs, for feeds in other
	// databases, and for cursors of another generation.
	Counted bool
	// Skipped is the number of positions that the consumer never receives, and Repeated of those that it receives
	// again. Several changes of a row may be one entry, so both are upper bounds of the entries.
	Skipped, Repeated int64
}

// Effect says in one sentence what the consumer misses or receives again.
func (m CursorMove) Effect() string {
	entries := func(n int64) string {
		if n == 1 {
			return "1 position"
		}
		return fmt.Sprintf("%d positions", n)
	}
	switch {
	case !m.Counted:
		return "The consumer receives entries again, or never receives some: their number is not known."
	case m.Skipped == 0 && m.Repeated == 0:
		return "The cursor does not move."
	case m.Repeated == 0:
		return "The consumer never receives the entries at the next " + entries(m.Skipped) + "."
	case m.Skipped == 0:
		return "The consumer receives the entries at the last " + entries(m.Repeated) + " again."
	}
	return "Some shards receive the entries at up to " + entries(m.Repeated) + " again, and some never receive those " +
		"at up to " + entries(m.Skipped) + "."
}

// PreviewSeek returns what SeekConsumer would change, and the error with which it would refuse the cursor.
// feedtype.Beginning previews ResetConsumer.
func (db *Admin) PreviewSeek(
	ctx context.Context, id feedtype.ConsumerID, to feedtype.Cursor,
) (m CursorMove, err error) {
	if id.Feed == "" {
		return m, feedtype.Invalid("feed", "name the feed that the cursor is of")
	}
	if err := to.Check(); err != nil {
		return m, err
	}
	rows, err := db.consumers.CursorsOf(ctx, db.store.On(), id.Consumer, id.Feed)
	if err != nil {
		return m, db.store.Fail(id.String(), "read its cursors", err)
	}
	rows = slices.DeleteFunc(rows, func(r *consume.CursorRow) bool { return id.Shard != nil && *id.Shard != r.Shard })
	if len(rows) == 0 {
		return m, db.consumers.UnknownConsumer(ctx, db.store.On(), id)
	}
	f, err := db.feed(ctx, id.Feed)
	switch {
	case errors.Is(err, feedtype.UnknownFeed):
		return m, nil
	case err != nil:
		return m, err
	case f.ShardsAreFeeds():
		for _, row := range rows {
			if _, err := f.Locate(ctx, to, feedtype.One(row.Shard)); err != nil && !to.IsBeginning() {
				return m, err
			}
		}
		return m, nil
	}
	if to, err = f.Locate(ctx, to, feedtype.Shards{}); err != nil {
		return m, err
	}
	var target feedtype.CursorState
	if _, before, _ := to.Time(); !before { // Locate leaves a time as it is that is before every position
		if target, err = to.State(); err != nil {
			return m, err
		}
	}
	for _, row := range rows {
		at, err := row.Value.State()
		if err != nil || at.Generation != target.Generation && at.Generation != 0 && target.Generation != 0 {
			return CursorMove{}, nil
		}
		distance := target.Position.Number() - at.Position.Number()
		m.Skipped, m.Repeated = max(m.Skipped, distance), max(m.Repeated, -distance)
	}
	m.Counted = true
	return m, nil
}

// seekShards sets the cursors of shards each of which is a feed by itself. If one shard refuses, it sets none.
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
			moved, err := db.seek(ctx, tx, one, at[i])
			if err != nil {
				return err
			}
			n += moved
		}
		return nil
	})
	return n, db.store.Fail(id.String(), "seek", err)
}

// moveCursors changes cursors in a transaction, after it has locked the rows of the consumers. A running consumer
// notices the change by its compare-and-set.
func (db *Admin) moveCursors(
	ctx context.Context, id feedtype.ConsumerID, doing string, change func(dialect.Querier) (int64, error),
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
		var err error
		if n, err = change(tx); err != nil || n > 0 {
			return err
		}
		workers, err := db.consumers.Workers(ctx, tx, id)
		if err == nil && (len(workers) == 0 || id.Shard != nil) { // a consumer without a shard has no cursor yet
			err = db.consumers.UnknownConsumer(ctx, tx, id)
		}
		return err
	})
	return n, db.store.Fail(id.String(), doing, err)
}

// DropConsumer deletes a consumer with all its shards: cursors, dead letters and processed ids. It returns the number
// of cursors. A consumer that still runs begins at the beginning. Epochs continue to grow if the consumer is added
// again, with any number of shards: receivers remember the highest epoch.
func (db *Admin) DropConsumer(ctx context.Context, id feedtype.ConsumerID) (n int64, err error) {
	switch {
	case id.Consumer == "":
		return 0, feedtype.Invalid("consumer", "name the consumer")
	case id.Shard != nil:
		return 0, feedtype.Invalid("shard", "a consumer can only be dropped as a whole; use reset for one shard")
	}
	if err := db.store.RequireSchema(ctx, db.store.On()); err != nil {
		return 0, err
	}
	// ForRepair has no limit for a statement's time: there may be many processed ids.
	err = db.store.InTx(ctx, dialect.ForRepair, "drop "+id.String(), func(tx dialect.Querier) error {
		// This lock comes first, as in transactions that create cursors of new shards.
		whole, err := db.consumers.LockWhole(ctx, tx, id)
		if err != nil {
			return err
		}
		if n, err = db.consumers.Drop(ctx, tx, id); err != nil {
			return err
		}
		if n == 0 && whole == 0 { // a consumer without a shard has no cursor yet
			return db.consumers.UnknownConsumer(ctx, tx, id)
		}
		return nil
	})
	return n, db.store.Fail(id.String(), "drop", err)
}
