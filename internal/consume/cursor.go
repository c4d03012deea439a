package consume

import (
	"context"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// cursorState is what this run knows of its shard's cursor.
type cursorState struct {
	*assignment
	// row is the cursor as this run last read or wrote it. It is nil if it has to be read, as after
	// every error: only the database knows whether a failed COMMIT took effect.
	row    *CursorRow
	readAt time.Time // when row was read
	// version is the version of row. It is kept when row becomes nil.
	version int64
	// releases means that an operator may have asked for the release of a dead letter. The query for
	// the dead letters of a batch notices that too.
	releases bool
}

// known notes a row that was read from the database.
func (s *cursorState) known(row *CursorRow) {
	s.row, s.version, s.readAt, s.releases = row, row.version, time.Now(), true
}

// stored notes the row that a committed transaction has left. With nil the database has to be asked.
func (s *cursorState) stored(row *CursorRow) {
	if s.row = row; row != nil {
		s.version = row.version
	}
}

// load reads the cursor of the shard. A missing cursor means that the consumer was dropped, so it is created again.
// Another shard count means that another instance has changed it, which is an error.
func (s *cursorState) load(ctx context.Context) (*CursorRow, error) {
	db := s.db
	for made := false; ; made = true {
		row, err := db.cursorOf(ctx, db.Store.On(), s.c.Name, s.feed, s.shard)
		switch {
		case err != nil:
			return nil, err
		case row != nil && row.ShardCount != s.count:
			return nil, s.shardCountChanged(row.ShardCount)
		case row != nil:
			return row, nil
		case made: // and dropped again
			return nil, errOvertaken
		}
		if err := s.open(ctx, false); err != nil {
			return nil, err
		}
	}
}

// claim raises the epoch of the cursor to that of the lease before any page is read. From then on the holder of an
// earlier lease cannot write the cursor.
func (s *cursorState) claim(ctx context.Context, row *CursorRow) (*CursorRow, error) {
	db, epoch := s.db, s.epoch
	if epoch > row.Epoch {
		err := db.Store.InTx(ctx, dialect.ForRecord, "claim a cursor", func(tx dialect.Querier) error {
			b := db.builder()
			_, err := tx.Exec(ctx, "UPDATE "+db.table("cursors")+" SET epoch = "+b.Arg(epoch)+
				", version = version + 1, updated_at = "+db.now()+" WHERE consumer = "+b.Arg(row.Consumer)+
				" AND feed = "+b.Arg(row.Feed)+" AND shard = "+b.Arg(row.Shard)+
				" AND shard_count = "+b.Arg(row.ShardCount)+ // epochs of another shard count are of other leases
				" AND epoch < "+b.Arg(epoch), b.Args()...)
			return err
		})
		if err != nil {
			return nil, err
		}
		if row, err = s.load(ctx); err != nil {
			return nil, err
		}
	}
	if epoch != 0 && row.Epoch > epoch {
		return nil, s.fail(feedtype.LeaseLost, fmt.Sprintf("the lease with epoch %d is over: the cursor is held "+
			"under epoch %d", epoch, row.Epoch), "acquire the lease again")
	}
	return row, nil
}

// wasChanged reports whether an operator has moved or paused the cursor of a shard that rests, or asked for the
// release of a dead letter. A changed shard count is an error: other instances wait for the leases of this one.
func (s *cursorState) wasChanged(ctx context.Context) (bool, error) {
	row, err := s.load(ctx)
	switch {
	case err != nil:
		return false, err
	case row.version != s.version:
		return true, nil
	case row.Aside == 0 || !row.Value.Settled():
		return false, nil
	}
	db := s.db
	b := db.builder()
	var releases int
	err = dialect.QueryRow(ctx, db.Store.On(), "SELECT COUNT(*) FROM "+s.db.table("dead_letters")+" WHERE consumer = "+
		b.Arg(s.c.Name)+
		" AND feed = "+b.Arg(s.feed)+" AND shard = "+b.Arg(s.shard)+" AND state = "+b.Arg(feedtype.LetterRetry),
		b.Args(), &releases)
	return releases > 0, err
}

// noteFailure stores why a shard rests, for ConsumerStatus.Failure. It does so only if the cursor is unchanged, and
// reports whether it was. Any later write of the cursor clears the failure.
func (s *cursorState) noteFailure(ctx context.Context, why error) (noted bool, err error) {
	db := s.db
	err = db.Store.InTx(ctx, dialect.ForRecord, "note why a shard rests", func(tx dialect.Querier) error {
		b := db.builder()
		query := "UPDATE " + db.table("cursors") + " SET failure = " + b.Arg(letterText(why)) +
			", version = version + 1" +
			" WHERE consumer = " + b.Arg(s.c.Name) + " AND feed = " + b.Arg(s.feed) + " AND shard = " + b.Arg(s.shard) +
			" AND shard_count = " + b.Arg(s.count) + " AND version = " + b.Arg(s.version)
		if s.epoch != 0 { // without a lease the cursor may still have an earlier epoch
			query += " AND epoch = " + b.Arg(s.epoch)
		}
		n, err := tx.Exec(ctx, query, b.Args()...)
		noted = n == 1
		return err
	})
	if err == nil && noted {
		s.version++
	}
	return noted, err
}
