package consume

import (
	"context"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// cursorState is what is known of a shard's cursor.
type cursorState struct {
	*assignment
	// row is the cursor as this run read or wrote it last; nil when the database has to
	// be asked, as after every error: what a failed COMMIT did is known there alone.
	row    *CursorRow
	readAt time.Time // when the database was asked last
	// version is that of the row as it was read or written last, also where row is nil by now.
	version int64
	// releases: a dead letter may be there for whose release an operator has asked. What a
	// batch's keys are looked up with tells that as well.
	releases bool
}

// known notes the row as the database has answered it.
func (s *cursorState) known(row *CursorRow) {
	s.row, s.version, s.readAt, s.releases = row, row.version, time.Now(), true
}

// stored notes the row as a transaction has left it; nil where the database is to be asked.
func (s *cursorState) stored(row *CursorRow) {
	if s.row = row; row != nil {
		s.version = row.version
	}
}

// load reads the shard's cursor. It is there since the consumer was started: if it
// is not, the consumer was dropped, and begins anew, or another instance has changed the
// number of shards.
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
		case made: // and dropped again at once
			return nil, errOvertaken
		}
		if err := s.open(ctx, false); err != nil {
			return nil, err
		}
	}
}

// claim makes the cursor's row the lease's whose epoch the consumer has: it is raised
// before it is read, so that no holder of an earlier term can write it any more.
func (s *cursorState) claim(ctx context.Context, row *CursorRow) (*CursorRow, error) {
	db, epoch := s.db, s.epoch
	if epoch > row.Epoch {
		err := db.Store.InTx(ctx, dialect.ForRecord, "claim a cursor", func(tx dialect.Querier) error {
			b := db.builder()
			_, err := tx.Exec(ctx, "UPDATE "+db.table("cursors")+" SET epoch = "+b.Arg(epoch)+", version = version + 1, updated_at = "+db.now()+
				" WHERE consumer = "+b.Arg(row.Consumer)+" AND feed = "+b.Arg(row.Feed)+" AND shard = "+b.Arg(row.Shard)+
				" AND shard_count = "+b.Arg(row.ShardCount)+ // another division's epochs are not this lease's
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
		return nil, &feedtype.Error{Code: feedtype.LeaseLost, Object: s.object(), Cause: fmt.Sprintf("the lease with epoch %d is over: the cursor is held under epoch %d", epoch, row.Epoch),
			Next: "acquire the lease again"}
	}
	return row, nil
}

// wasChanged tells whether somebody has written the cursor of a shard that rests, such as
// an operator who has moved or paused it, or has asked for the release of a dead letter.
// Where the consumer has another number of shards by now it answers that conflict: the
// others wait for this instance's leases.
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
	err = dialect.QueryRow(ctx, db.Store.On(), "SELECT COUNT(*) FROM "+s.db.table("dead_letters")+" WHERE consumer = "+b.Arg(s.c.Name)+
		" AND feed = "+b.Arg(s.feed)+" AND shard = "+b.Arg(s.shard)+" AND state = "+b.Arg(feedtype.LetterRetry), b.Args(), &releases)
	return releases > 0, err
}

// noteFailure stores why a shard rests, for operators: see ConsumerStatus.Failure. It does
// so only where the cursor is still as it was tried, and says whether it was. What moves or
// pauses the cursor takes it away.
func (s *cursorState) noteFailure(ctx context.Context, why error) (noted bool, err error) {
	db := s.db
	err = db.Store.InTx(ctx, dialect.ForRecord, "note why a shard rests", func(tx dialect.Querier) error {
		b := db.builder()
		query := "UPDATE " + db.table("cursors") + " SET failure = " + b.Arg(letterText(why)) + ", version = version + 1" +
			" WHERE consumer = " + b.Arg(s.c.Name) + " AND feed = " + b.Arg(s.feed) + " AND shard = " + b.Arg(s.shard) +
			" AND shard_count = " + b.Arg(s.count) + " AND version = " + b.Arg(s.version)
		if s.epoch != 0 { // without a lease the cursor may have an epoch of before
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
